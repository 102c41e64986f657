"""Later."""

from __future__ import annotations


def compare() -> None:
    """Later."""
