"""How long one iteration takes, given which server holds which replica."""

from frostline.timing.column_costs import ColumnCosts, ColumnKind
from frostline.timing.contention import ContentionTime
from frostline.timing.duration import (
    elastic_iteration_ns,
    fastest_us,
    iteration_ns_of,
    job_duration_us,
    placement_class,
    reachable_classes,
    slowest_type,
    slowest_us,
    training_time,
)
from frostline.timing.iteration_time import IterationTime, cut_bytes, iteration_ns
from frostline.timing.link import LinkTime
from frostline.timing.options import Choices, Least, least_of
from frostline.timing.stage_graph import StageGraph, StageWork, stage_graph

__all__ = [
    "Choices",
    "ColumnCosts",
    "ColumnKind",
    "ContentionTime",
    "IterationTime",
    "Least",
    "LinkTime",
    "StageGraph",
    "StageWork",
    "cut_bytes",
    "elastic_iteration_ns",
    "fastest_us",
    "iteration_ns",
    "iteration_ns_of",
    "job_duration_us",
    "least_of",
    "placement_class",
    "reachable_classes",
    "slowest_type",
    "slowest_us",
    "stage_graph",
    "training_time",
]
