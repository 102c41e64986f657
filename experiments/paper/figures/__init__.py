"""Figures of the experiments: each module draws one experiment from its numbers, in one style."""
