"""The experiments of the paper on its own data (`make reproduce`), one module each.

A module of an experiment has `plan` (its runs), `run` (one of them), `collect` (numbers from the results of the runs),
`claims` (what the paper says beside what the numbers say), `tables` and `draw`. `EXPERIMENTS` in `page` lists them.
"""
