"""Docstrings as the site reads them: an example that stands in the text is a block of code, as Python users expect."""

from __future__ import annotations

import re
from typing import Any

import griffe

EXAMPLE = re.compile(r"(?:^[ \t]*>>> .*\n?(?:^[ \t]*\S.*\n?)*\n*)+", re.MULTILINE)
"""Prompts with their output, up to a blank line; examples with nothing but blank lines between them are one block."""


class FencedExamples(griffe.Extension):
    """Puts fences around examples, except in a section `Examples`, where griffe finds them itself."""

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        """Called for every module, class, function and attribute."""
        if obj.docstring is not None:
            obj.docstring.value = fence_examples(obj.docstring.value)


def fence_examples(text: str) -> str:
    """The docstring with its free examples in fences."""
    before, heading, rest = text.partition("\nExamples\n--------\n")
    return EXAMPLE.sub(lambda found: f"```pycon\n{found[0].rstrip()}\n```\n\n", before) + heading + rest
