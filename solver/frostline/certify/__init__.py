"""Certificates: whether a schedule or a placement is what it claims, checked without trusting what made it."""

from frostline.certify.placement import (
    CertificateFault,
    CertificateFaultKind,
    CertificateReport,
    check_placement_certificate,
)
from frostline.certify.schedule import Fault, FaultKind, Report, check_schedule

__all__ = [
    "CertificateFault",
    "CertificateFaultKind",
    "CertificateReport",
    "Fault",
    "FaultKind",
    "Report",
    "check_placement_certificate",
    "check_schedule",
]
