"""Families of labelers: judges of one maker, variants of one rule. A family casts one vote.

The members' votes become the family's vote before anything else sees them: the class that most of its members vote
for, and an abstention where two classes tie. So a family is a labeler like any other, in every model and by every
door, and all that comes back is about families.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from driftvote.accuracies import MIN_LABELERS
from driftvote.errors import LabelerError, SettingError
from driftvote.inputs import Batch, read_batch, read_row
from driftvote.kernels.layout import Codes
from driftvote.labels import plain_vote
from driftvote.votes import Roster, VoteFormat, show_names


class Families:
    """Who belongs to which family, and the labelers that have been seen; without groups nothing is changed."""

    def __init__(self, groups: Any, members: Roster) -> None:
        self.family = _checked(groups)
        self.members = members if self.family else Roster()

    def roster(self, declared: Roster) -> Roster:
        """The families of declared labelers."""
        if not self.family or not declared.names:
            return declared
        return Roster(self._enough(self._families(declared.names)), declared.closed)

    def read(self, data: Any, form: VoteFormat, roster: Roster, **keys: Any) -> Batch:
        """Rows as a batch, a column for each family."""
        if not self.family:
            return read_batch(data, form, roster, **keys)
        return self._collapsed(read_batch(data, form, self.members, **keys), form.n_classes, roster)

    def read_row(self, row: Any, form: VoteFormat, roster: Roster, **keys: Any) -> Batch:
        """One row as a batch, a column for each family."""
        if not self.family:
            return read_row(row, form, roster, **keys)
        return self._collapsed(read_row(row, form, self.members, **keys), form.n_classes, roster)

    def settle(self, batch: Batch) -> None:
        """Remember the labelers of a batch that was learned from."""
        if batch.members is not None:
            self.members = Roster(batch.members, self.members.closed)

    def describe(self) -> list[str]:
        """A line for each family that has more than one member."""
        by_name: dict[str, list[str]] = {}
        for member, family in self.family.items():
            by_name.setdefault(family, []).append(member)
        return [f"  {family} votes for {show_names(members)}" for family, members in by_name.items()]

    def _families(self, names: Iterable[str]) -> tuple[str, ...]:
        """Families of labelers, in the order in which they first appear."""
        found = tuple(dict.fromkeys(self.family.get(name, name) for name in names))
        alone = {name for name in names if name not in self.family}
        clash = sorted(alone & set(self.family.values()))
        if clash:
            raise LabelerError(f"{clash[0]!r} is a family of groups= and a labeler outside of it; rename the family")
        return found

    def _enough(self, families: tuple[str, ...]) -> tuple[str, ...]:
        if len(families) < MIN_LABELERS:
            raise LabelerError(
                f"groups= leaves {len(families)} families ({show_names(families)}), but at least {MIN_LABELERS} are"
                " needed to tell from their agreement who is right; make smaller groups"
            )
        return families

    def _collapsed(self, batch: Batch, n_classes: int, roster: Roster) -> Batch:
        by_place = batch.names is None
        names = self.members.for_width(batch.codes.shape[1]).names if batch.names is None else batch.names
        families = self._families(names)
        self._enough(tuple(dict.fromkeys((*roster.names, *families))))
        places = {
            family: [p for p, name in enumerate(names) if self.family.get(name, name) == family] for family in families
        }
        codes = np.empty((len(batch.codes), len(families)), batch.codes.dtype)
        for column, family in enumerate(families):
            codes[:, column] = _one_vote(batch.codes[:, places[family]], n_classes)
        first = tuple(min(batch.first_rows[p] for p in places[f]) for f in families) if batch.first_rows else ()
        members = names if by_place else self.members.joined_by(names).names
        # The check of a first batch looks for class 0 in the votes; a family may have outvoted it.
        literal = batch.literal and not bool((batch.codes == 0).any())
        return replace(batch, names=families, codes=codes, first_rows=first, literal=literal, members=members)


def _one_vote(codes: Codes, n_classes: int) -> Any:
    """The vote of a family on each row: its plurality, or an abstention."""
    if codes.shape[1] == 1:
        return codes[:, 0]
    return plain_vote(np.ascontiguousarray(codes), np.full(len(codes), -1.0), n_classes)[0]


def _checked(groups: Any) -> dict[str, str]:
    """Labeler -> family, from a dict of that, a dict family -> labelers, or a list of lists.

    >>> _checked([["gpt-a", "gpt-b"], ["llama"]])
    {'gpt-a': 'gpt-a+gpt-b', 'gpt-b': 'gpt-a+gpt-b', 'llama': 'llama'}
    >>> _checked({"gpt-a": "gpt", "gpt-b": "gpt"}) == _checked({"gpt": ["gpt-a", "gpt-b"]})
    True
    """
    if groups is None:
        return {}
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
    family: dict[str, str] = {}
    for member, where in pairs:
        if member in family:
            raise SettingError(f"groups puts {member!r} into {family[member]!r} and into {where!r}; one family each")
        family[member] = where
    return family
