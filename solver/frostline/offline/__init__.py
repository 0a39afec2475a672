"""Offline optimum: the best schedule of a whole instance, with a bound that no schedule beats."""

from frostline.errors import TooLargeError
from frostline.offline.build import Option, pooled
from frostline.offline.certificate import Certified, certified
from frostline.offline.explain import ConstraintKind, Explanation
from frostline.offline.result import SolveResult, SolveStatus
from frostline.offline.search import Termination
from frostline.offline.solve import METHODS, VARIANTS, solve
from frostline.offline.stop import AnyOf, Callback, GapLimit, SearchState, StopRule, TimeLimit, WorkLimit
from frostline.offline.tasks import Objective

__all__ = [
    "METHODS",
    "VARIANTS",
    "AnyOf",
    "Callback",
    "Certified",
    "ConstraintKind",
    "Explanation",
    "GapLimit",
    "Objective",
    "Option",
    "SearchState",
    "SolveResult",
    "SolveStatus",
    "StopRule",
    "Termination",
    "TimeLimit",
    "TooLargeError",
    "WorkLimit",
    "certified",
    "pooled",
    "solve",
]
