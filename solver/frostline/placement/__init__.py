"""Which server holds which replica: placement methods, and free GPUs."""

from frostline.placement.free_gpus import FreeGpus, Shape, shape_of
from frostline.placement.place import METHODS, place
from frostline.placement.result import DoesNotFitError, PlacementResult

__all__ = ["METHODS", "DoesNotFitError", "FreeGpus", "PlacementResult", "Shape", "place", "shape_of"]
