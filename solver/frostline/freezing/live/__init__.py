"""Freezing in live torch models: find their units, profile them, and freeze the first ones between epochs.

Needs torch, which the extra ``torch`` brings. Nothing else in frostline imports it.
"""

try:
    import torch as _torch  # noqa: F401
except ImportError:
    from frostline.errors import MissingExtraError

    raise MissingExtraError("freezing a live model", "torch", "torch") from None

from frostline.freezing.live.controller import FreezeController
from frostline.freezing.live.gradients import GradientMeter, batch_moments
from frostline.freezing.live.model_units import ModelUnit, ModelUnits, find_units
from frostline.freezing.live.profiler import ModelProfile, UnitProfile, profile_units
from frostline.freezing.live.step_time import step_seconds

__all__ = [
    "FreezeController",
    "GradientMeter",
    "ModelProfile",
    "ModelUnit",
    "ModelUnits",
    "UnitProfile",
    "batch_moments",
    "find_units",
    "profile_units",
    "step_seconds",
]
