"""The checker of bound certificates, to be read in one sitting; the folder needs nothing but Python, also elsewhere."""

from .document import CertificateFault, CertificateReport
from .tree import BoundFaultKind, BoundReport, check_certificate

__all__ = ["BoundFaultKind", "BoundReport", "CertificateFault", "CertificateReport", "check_certificate"]
