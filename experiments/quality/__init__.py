"""How good the labels are: every model on every stream, measured the same way (`make quality`).

`streams` says on what, `models` says who, `measures` says how; `suite` runs it all, `verdicts` holds it against what
must hold, `page` writes it down. `scratch.evaluate` tries a model that is still being designed.
"""
