"""Hypothesis strategies and assertions for tests, for users of frostline too."""

from frostline.testing.assertions import assert_bound_valid, assert_feasible, assert_within_guarantee
from frostline.testing.audit import RULES
from frostline.testing.code import instance_code
from frostline.testing.conformance import (
    CLAIMS,
    Conformance,
    ConformanceReport,
    assert_conforms,
    check_policy,
    contended_instances,
)
from frostline.testing.list_schedule import Choice, list_schedule
from frostline.testing.outage_strategies import checkpointed, outages
from frostline.testing.predictors import ScriptedPredictor, predictions
from frostline.testing.strategies import (
    clusters,
    durations_s,
    elastic_works,
    freeze_menus,
    instances,
    instants_s,
    jobs,
    networks,
    plans,
    schedules,
    stage_graphs,
)

__all__ = [
    "CLAIMS",
    "RULES",
    "Choice",
    "Conformance",
    "ConformanceReport",
    "ScriptedPredictor",
    "assert_bound_valid",
    "assert_conforms",
    "assert_feasible",
    "assert_within_guarantee",
    "check_policy",
    "checkpointed",
    "clusters",
    "contended_instances",
    "durations_s",
    "elastic_works",
    "freeze_menus",
    "instance_code",
    "instances",
    "instants_s",
    "jobs",
    "list_schedule",
    "networks",
    "outages",
    "plans",
    "predictions",
    "schedules",
    "stage_graphs",
]
