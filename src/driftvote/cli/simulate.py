"""Later."""

from __future__ import annotations


def simulate() -> None:
    """Later."""
