"""How good the labels are: the default model and its peers on real and simulated votes (`make quality`).

`streams` has the vote streams, `scoring` says how labels are scored, `models` runs the label models of this package and
`peers` those of other projects. `simulated` has the streams whose truth is known. `checks` compares the figures with
what must hold, `page` writes docs/quality.md. `ablation` measures the default model with one choice changed.
"""
