"""Which server holds which replica: placement methods, and free GPUs."""

from frostline.errors import TooLargeError
from frostline.placement.free_gpus import FreeGpus, Shape, shape_of
from frostline.placement.place import METHODS, place
from frostline.placement.request import DoesNotFitError
from frostline.placement.result import PlacementResult
from frostline.placement.solvers import SolverUnavailableError, SolverWarning

__all__ = [
    "METHODS",
    "DoesNotFitError",
    "FreeGpus",
    "PlacementResult",
    "Shape",
    "SolverUnavailableError",
    "SolverWarning",
    "TooLargeError",
    "place",
    "shape_of",
]
