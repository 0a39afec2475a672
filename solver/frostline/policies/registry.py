"""Policies by name; others join through the entry-point group ``frostline.policies``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, partial
from importlib.metadata import entry_points
from inspect import signature

from frostline.errors import InvalidValueError, UnknownNameError
from frostline.policies.asrpt import Asrpt, AsrptBudget, AsrptGuard, AsrptStrict
from frostline.policies.base import Policy
from frostline.policies.elastic import IceFrog, Optimus, Pollux, Sia
from frostline.policies.gittins import Gittins
from frostline.policies.icefrog_rigid import IceFrogRigid
from frostline.policies.las import Las
from frostline.policies.las_fair import LasFair
from frostline.policies.list_policy import easy, fifo, ljf, sjf, smallest_area
from frostline.policies.offline_optimal import OfflineOptimal
from frostline.policies.serverfilling import ServerFillingSrpt
from frostline.policies.srtf import Srtf
from frostline.problem.settings import named_settings

__all__ = ["BUILT_IN", "OFFLINE", "make_policy", "policy_names"]

BUILT_IN: Mapping[str, Callable[..., Policy]] = {
    "asrpt": Asrpt,
    "asrpt-strict": AsrptStrict,
    "asrpt-budget": AsrptBudget,
    "asrpt-guard": AsrptGuard,
    "fifo": fifo,
    "sjf": sjf,
    "smallest-area": smallest_area,
    "ljf": ljf,
    "easy": easy,
    "las": Las,
    "gittins": Gittins,
    "las-fair": LasFair,
    "srtf": Srtf,
    "serverfilling-srpt": ServerFillingSrpt,
    "icefrog-rigid": IceFrogRigid,
    "icefrog": IceFrog,
    "pollux": Pollux,
    "sia": Sia,
    "optimus": Optimus,
}

OFFLINE: Mapping[str, Callable[..., Policy]] = {"offline-optimal": OfflineOptimal}
"""Policies that must be told a whole instance, and not too large a one."""


@cache
def _factories() -> dict[str, Callable[[], Callable[..., Policy]]]:
    """Loaders of all factories; a broken plug-in shows only when it is asked for."""
    loaders: dict[str, Callable[[], Callable[..., Policy]]] = {
        entry.name: entry.load for entry in entry_points(group="frostline.policies")
    }
    return loaders | {name: partial(_itself, factory) for name, factory in {**BUILT_IN, **OFFLINE}.items()}


def _itself(factory: Callable[..., Policy]) -> Callable[..., Policy]:
    return factory


def policy_names(*, offline: bool = False) -> tuple[str, ...]:
    """Names of all policies that take jobs as they come, sorted; with ``offline`` of those that know them before, too.

    Examples
    --------
    >>> set(policy_names(offline=True)) - set(policy_names())
    {'offline-optimal'}
    """
    return tuple(sorted(name for name in _factories() if offline or name not in OFFLINE))


def make_policy(text: str) -> Policy:
    """Policy from its name and parameters.

    Parameters
    ----------
    text : str
        ``name`` or ``name:parameter=value:parameter=value``.

    Raises
    ------
    UnknownNameError
        No such policy.
    InvalidValueError
        A parameter is unknown or given twice, or its value is bad.

    Examples
    --------
    >>> make_policy("sjf:discipline=strict").parameters
    {'discipline': 'strict'}
    >>> make_policy("asrpt-budget:share=0.5").parameters["share"]
    0.5
    """
    name, parameters = named_settings("policy", text)
    if name not in _factories():
        raise UnknownNameError("policy", name, policy_names(offline=True))
    factory = _load(name)
    known = set(signature(factory).parameters) - {"name"}
    for parameter in parameters:
        if parameter not in known:
            raise UnknownNameError(f"parameter of policy {name!r}", parameter, known)
    return factory(**parameters)


def _load(name: str) -> Callable[..., Policy]:
    """Factory of a policy; a plug-in that cannot be loaded is named."""
    try:
        return _factories()[name]()
    except (ImportError, AttributeError) as error:
        raise InvalidValueError("policy", "name", name, f"cannot be loaded: {error}") from error
