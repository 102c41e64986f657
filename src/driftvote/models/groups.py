"""Groups of labelers that cast one vote: judges of one maker, variants of one rule.

The votes of the members become the vote of the group before a model sees them: the class that most members vote for,
and an abstention where two classes tie. So a group is a labeler like any other, and all results are by group.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from driftvote.arrays import Codes
from driftvote.core.voting import majority_vote
from driftvote.errors import LabelerError, SettingError
from driftvote.inputs import Batch
from driftvote.votes import Roster, show_names


class Groups:
    """The group of each labeler."""

    def __init__(self, groups: Any) -> None:
        self.group_of = _check_groups(groups)

    def roster(self, members: Roster) -> Roster:
        """Return the groups of declared labelers."""
        if not members.names:
            return members
        return replace(members, names=self._check_enough(self._group_names(members.names), members.least))

    def collapse(self, batch: Batch, n_classes: int, members: Roster, roster: Roster) -> Batch:
        """Return the batch with a column for each group, whose vote is the plurality of its members.

        `members` are the labelers seen so far, `roster` their groups.
        """
        by_place = batch.names is None
        names = members.for_width(batch.codes.shape[1]).names if batch.names is None else batch.names
        groups = self._group_names(names)
        self._check_enough(tuple(dict.fromkeys((*roster.names, *groups))), roster.least)
        places = {
            group: [p for p, name in enumerate(names) if self.group_of.get(name, name) == group] for group in groups
        }
        codes = np.empty((len(batch.codes), len(groups)), batch.codes.dtype)
        for column, group in enumerate(groups):
            codes[:, column] = _plurality(batch.codes[:, places[group]], n_classes)
        first = tuple(min(batch.first_rows[p] for p in places[g]) for g in groups) if batch.first_rows else ()
        seen = names if by_place else members.joined_by(names).names
        # The check of a first batch looks for class 0 in the votes; a group may have outvoted it.
        literal = batch.literal and not bool((batch.codes == 0).any())
        return replace(batch, names=groups, codes=codes, first_rows=first, literal=literal, members=seen)

    def describe(self) -> list[str]:
        """Return a line for each group."""
        by_name: dict[str, list[str]] = {}
        for member, group in self.group_of.items():
            by_name.setdefault(group, []).append(member)
        return [f"  {group} votes for {show_names(members)}" for group, members in by_name.items()]

    def _group_names(self, names: Iterable[str]) -> tuple[str, ...]:
        """Return the groups of labelers, in the order in which they first appear."""
        names = tuple(names)
        alone = {name for name in names if name not in self.group_of}
        clash = sorted(alone & set(self.group_of.values()))
        if clash:
            raise LabelerError(f"{clash[0]!r} is a group of groups= and a labeler outside of it; rename the group")
        return tuple(dict.fromkeys(self.group_of.get(name, name) for name in names))

    def _check_enough(self, groups: tuple[str, ...], least: int) -> tuple[str, ...]:
        if len(groups) < least:
            raise LabelerError(
                f"groups= leaves {len(groups)} groups ({show_names(groups)}), but at least {least} are"
                " needed to tell from their agreement who is right; make smaller groups"
            )
        return groups


def _plurality(codes: Codes, n_classes: int) -> Any:
    """Return the vote of a group on each row, or an abstention."""
    if codes.shape[1] == 1:
        return codes[:, 0]
    return majority_vote(np.ascontiguousarray(codes), np.zeros(0), n_classes)[0]


def _check_groups(groups: Any) -> dict[str, str]:
    """Return labeler -> group, from a dict of that, a dict group -> labelers, or a list of lists.

    >>> _check_groups([["gpt-a", "gpt-b"], ["llama"]])
    {'gpt-a': 'gpt-a+gpt-b', 'gpt-b': 'gpt-a+gpt-b', 'llama': 'llama'}
    >>> _check_groups({"gpt-a": "gpt", "gpt-b": "gpt"}) == _check_groups({"gpt": ["gpt-a", "gpt-b"]})
    True
    """
    wrong = SettingError(
        f"groups must be a dict from labelers to their group, or a list of lists of labelers, not {groups!r}"
    )
    if isinstance(groups, (str, bytes)) or not isinstance(groups, (Mapping, Iterable)):
        raise wrong
    pairs: list[tuple[str, str]] = []
    for entry in groups.items() if isinstance(groups, Mapping) else groups:
        name, inside = entry if isinstance(groups, Mapping) else (None, entry)
        if isinstance(groups, Mapping) and (isinstance(inside, str) or not isinstance(inside, Iterable)):
            pairs.append((str(name), str(inside)))
            continue
        if isinstance(inside, (str, bytes)) or not isinstance(inside, Iterable):
            raise wrong
        members = [str(member) for member in inside]
        if not members:
            raise SettingError("groups holds an empty group; leave it out, or name its labelers")
        pairs += [(member, "+".join(members) if name is None else str(name)) for member in members]
    group_of: dict[str, str] = {}
    for member, group in pairs:
        if member in group_of:
            raise SettingError(f"groups puts {member!r} into {group_of[member]!r} and into {group!r}; one group each")
        group_of[member] = group
    return group_of
