"""Prediction of job sizes, online, from finished jobs alone.

Examples
--------
>>> from frostline.problem import Fixed, Job
>>> predictor = OnlinePredictor("median")
>>> job = Job(id="a", release_s=0, work=Fixed(duration_s=60), gpus=8, user="u1")
>>> predictor.predict([job], 0.0)[0].cold_start
True
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from frostline.prediction.baselines import (
    ExponentialAverage,
    GlobalMedian,
    GroupMedian,
    GroupModel,
    LastFinished,
    RecentMedian,
    ScaledEstimate,
    UserEstimate,
    WidthMedian,
)
from frostline.prediction.combination import Combination
from frostline.prediction.distribution import SizeDistribution
from frostline.prediction.history import History, name_stem
from frostline.prediction.model import Estimate, Finished, SizeModel
from frostline.prediction.online import OnlinePredictor, PredictorStatistics
from frostline.prediction.registry import make_model, model_names
from frostline.prediction.replay import ReplayResult, replay
from frostline.prediction.scores import Distortion, Scores, distortion, score
from frostline.prediction.size import blinded, on_grid, size_of, with_size
from frostline.prediction.survival import EarlyStop, Survival, Watcher, kaplan_meier, surviving_sizes

if TYPE_CHECKING:
    from frostline.prediction.forest import IterationForest
    from frostline.prediction.forest_model import ForestModel
    from frostline.prediction.persistence import load_model, save_model

__all__ = [
    "Combination",
    "Distortion",
    "EarlyStop",
    "Estimate",
    "ExponentialAverage",
    "Finished",
    "ForestModel",
    "GlobalMedian",
    "GroupMedian",
    "GroupModel",
    "History",
    "IterationForest",
    "LastFinished",
    "OnlinePredictor",
    "PredictorStatistics",
    "RecentMedian",
    "ReplayResult",
    "ScaledEstimate",
    "Scores",
    "SizeDistribution",
    "SizeModel",
    "Survival",
    "UserEstimate",
    "Watcher",
    "WidthMedian",
    "blinded",
    "distortion",
    "kaplan_meier",
    "load_model",
    "make_model",
    "model_names",
    "name_stem",
    "on_grid",
    "replay",
    "save_model",
    "score",
    "size_of",
    "surviving_sizes",
    "with_size",
]

# Loaded when asked for, because they bring scikit-learn.
_LAZY = {
    "ForestModel": "forest_model",
    "IterationForest": "forest",
    "load_model": "persistence",
    "save_model": "persistence",
}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_LAZY[name]}"), name)
