"""Watching a stream: a line of votes in, an answer out, and word of what changed.

`lines` reads, `reading` understands a line, `answers` writes one, `loop` does it line by line; `keeping` saves the
state, `figures` counts, `metrics` shows the counts to Prometheus, `announcing` tells people and files, `webhook` other
programs.
"""
