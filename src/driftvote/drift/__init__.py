"""Drift events: when something changed, which labelers changed, from what to what.

Read in this order: `events` (what comes out), `statistics` (what is counted and how two rates are compared), `detector`
(`DriftDetector` finds that a rate changed), `diagnosis` (which labelers, when, and which kind of change). `bands` are
confidence bands around accuracies, `dependence` says whether labelers err independently.
"""
