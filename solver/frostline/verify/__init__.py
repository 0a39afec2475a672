"""Whether a schedule, a placement, a choice or a bound is what it claims, without trusting what made it.

All but the proofs of bounds, whose checker is :mod:`frostline.certify`: what is here looks at an answer beside the
instance that it answers.
"""

from frostline.verify.fault import Fault, FaultKind, Report
from frostline.verify.placement import CertificateFaultKind, check_placement_certificate
from frostline.verify.schedule import check_schedule
from frostline.verify.stated import check_bound, stated_problem

__all__ = [
    "CertificateFaultKind",
    "Fault",
    "FaultKind",
    "Report",
    "check_bound",
    "check_placement_certificate",
    "check_schedule",
    "stated_problem",
]
