"""A committee with a certified error, whatever the dependence between labelers.

From how often labelers agree and how often each is right at least, a linear program gives the largest error that a
majority can have (`worst_case`); the set with the smallest such bound is the committee (`find_committee`).
"""

from driftvote.committee.certificate import Certificate
from driftvote.committee.known import Known, known
from driftvote.committee.program import worst_case
from driftvote.committee.search import Committee, find_committee

__all__ = ["Certificate", "Committee", "Known", "find_committee", "known", "worst_case"]
