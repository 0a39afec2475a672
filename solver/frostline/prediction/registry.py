"""Size models by name; others join through the entry-point group ``frostline.models``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, partial
from importlib.metadata import entry_points
from inspect import signature

from frostline.errors import InvalidValueError, UnknownNameError
from frostline.prediction.baselines import (
    ExponentialAverage,
    GlobalMedian,
    GroupMedian,
    LastFinished,
    RecentMedian,
    ScaledEstimate,
    UserEstimate,
    WidthMedian,
)
from frostline.prediction.combination import Combination
from frostline.prediction.model import SizeModel
from frostline.prediction.survival import EarlyStop, Survival
from frostline.problem.settings import named_settings

__all__ = ["make_model", "model_names"]

_BUILT_IN: Mapping[str, Callable[..., SizeModel]] = {
    "last-finished": LastFinished,
    "median": GroupMedian,
    "recent-median": RecentMedian,
    "width-median": WidthMedian,
    "ewma": ExponentialAverage,
    "global-median": GlobalMedian,
    "user-estimate": UserEstimate,
    "scaled-estimate": ScaledEstimate,
    "survival": Survival,
    "early-stop": EarlyStop,
    "combined": Combination,
}
_NOT_TEXT = frozenset({"history", "members"})


@cache
def _factories() -> dict[str, Callable[[], Callable[..., SizeModel]]]:
    """Loaders of all factories; a broken plug-in shows only when it is asked for."""
    loaders: dict[str, Callable[[], Callable[..., SizeModel]]] = {
        entry.name: entry.load for entry in entry_points(group="frostline.models")
    }
    built_in = {name: partial(_itself, factory) for name, factory in _BUILT_IN.items()}
    return loaders | built_in | {"forest": _forest}


def _itself(factory: Callable[..., SizeModel]) -> Callable[..., SizeModel]:
    return factory


def _forest() -> Callable[..., SizeModel]:
    from frostline.prediction.forest_model import ForestModel

    return ForestModel


def model_names() -> tuple[str, ...]:
    """Names of all models, sorted.

    Examples
    --------
    >>> [name for name in model_names() if name.endswith("finished")]
    ['last-finished']
    """
    return tuple(sorted(_factories()))


def make_model(text: str, *, seed: int = 0) -> SizeModel:
    """Model from its name and parameters.

    Parameters
    ----------
    text : str
        ``name`` or ``name:parameter=value:parameter=value``.
    seed : int
        Seed, for models that have one and are not given another.

    Raises
    ------
    UnknownNameError
        No such model, or no such parameter.
    InvalidValueError
        A parameter is given twice, or its value is bad.

    Examples
    --------
    >>> make_model("ewma:alpha=0.5").name
    'ewma'
    """
    name, parameters = named_settings("model", text)
    if name not in _factories():
        raise UnknownNameError("model", name, model_names())
    factory = _load(name)
    known = set(signature(factory).parameters) - _NOT_TEXT
    for parameter in parameters:
        if parameter not in known:
            raise UnknownNameError(f"parameter of model {name!r}", parameter, known)
    if "seed" in known:
        parameters.setdefault("seed", seed)
    return factory(**parameters)


def _load(name: str) -> Callable[..., SizeModel]:
    """Factory of a model; a plug-in that cannot be loaded is named."""
    try:
        return _factories()[name]()
    except (ImportError, AttributeError) as error:
        raise InvalidValueError("model", "name", name, f"cannot be loaded: {error}") from error
