"""Experiments on label quality, outside the package: `paper/` (make reproduce) and `quality/` (make quality)."""
