"""Certificates: whether a schedule, a placement or a bound is what it claims, checked without trusting what made it."""

from frostline.certify.document import CertificateFault, CertificateReport
from frostline.certify.placement import CertificateFaultKind, check_placement_certificate
from frostline.certify.schedule import Fault, FaultKind, Report, check_schedule
from frostline.certify.stated import check_bound, stated_problem
from frostline.certify.tree import BoundFaultKind, BoundReport, check_certificate

__all__ = [
    "BoundFaultKind",
    "BoundReport",
    "CertificateFault",
    "CertificateFaultKind",
    "CertificateReport",
    "Fault",
    "FaultKind",
    "Report",
    "check_bound",
    "check_certificate",
    "check_placement_certificate",
    "check_schedule",
    "stated_problem",
]
