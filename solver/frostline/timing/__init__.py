"""How long one iteration takes, given which server holds which replica."""

from frostline.timing.column_costs import ColumnCosts, ColumnKind
from frostline.timing.contention import ContentionTime
from frostline.timing.duration import (
    fastest_us,
    iteration_ns_of,
    job_duration_us,
    slowest_type,
    slowest_us,
    training_time,
)
from frostline.timing.iteration_time import IterationTime, cut_bytes, iteration_ns
from frostline.timing.link import LinkTime
from frostline.timing.stage_graph import StageGraph, StageWork, stage_graph

__all__ = [
    "ColumnCosts",
    "ColumnKind",
    "ContentionTime",
    "IterationTime",
    "LinkTime",
    "StageGraph",
    "StageWork",
    "cut_bytes",
    "fastest_us",
    "iteration_ns",
    "iteration_ns_of",
    "job_duration_us",
    "slowest_type",
    "slowest_us",
    "stage_graph",
    "training_time",
]
