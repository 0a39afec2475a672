"""Hypothesis strategies and assertions for tests, for users of frostline too."""

from frostline.testing.assertions import assert_bound_valid, assert_feasible
from frostline.testing.list_schedule import Choice, list_schedule
from frostline.testing.strategies import (
    clusters,
    durations_s,
    instances,
    instants_s,
    jobs,
    networks,
    plans,
    schedules,
    stage_graphs,
)

__all__ = [
    "Choice",
    "assert_bound_valid",
    "assert_feasible",
    "clusters",
    "durations_s",
    "instances",
    "instants_s",
    "jobs",
    "list_schedule",
    "networks",
    "plans",
    "schedules",
    "stage_graphs",
]
