"""How good the labels are: every model on every stream, measured the same way (`make quality`).

`streams` and `models` list what is measured, `measures` says how, `work` is one run. `suite` runs everything,
`verdicts` compares with what must hold, `page` writes docs/quality.md. `trial` tries a model that is still being
designed, and `ablation` the default model with one choice changed.
"""
