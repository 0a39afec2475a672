"""Records: the best known schedule and bound of every shipped instance, with the evidence, and how to improve them."""

from frostline.records.attempt import Effort, best_bound, best_schedule
from frostline.records.evidence import faults_of
from frostline.records.record import Evidence, Record, best_known, library_folder, read_records, write_records
from frostline.records.search import Outcome, Verdict, improve

__all__ = [
    "Effort",
    "Evidence",
    "Outcome",
    "Record",
    "Verdict",
    "best_bound",
    "best_known",
    "best_schedule",
    "faults_of",
    "improve",
    "library_folder",
    "read_records",
    "write_records",
]
