"""A committee with a certified error, however labelers depend on each other.

Input: how often labelers agree, and how often each of them is right at least (`PanelFacts`). A linear program gives the
largest error that their majority can have (`worst_case`). The committee is the set of labelers with the smallest such
bound (`find_committee`). Read in this order: facts.py, program.py, search.py.
"""

from driftvote.committee.facts import PanelFacts
from driftvote.committee.program import Certificate, worst_case
from driftvote.committee.search import CertifiedCommittee, StepCertificate, find_committee

__all__ = ["Certificate", "CertifiedCommittee", "PanelFacts", "StepCertificate", "find_committee", "worst_case"]
