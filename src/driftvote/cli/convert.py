"""Later."""

from __future__ import annotations


def convert() -> None:
    """Later."""
