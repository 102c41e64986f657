"""Measurements of driftvote beside its neighbours; `python -m benchmarks` runs them. Never imported by the package."""
