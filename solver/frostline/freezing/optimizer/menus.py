"""What jobs may choose from: menus of options, and all of them in flat arrays of whole numbers."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from frostline.errors import InvalidValueError
from frostline.units import as_finite, as_int

__all__ = ["MOST_JOBS", "Ints", "Menu", "Menus", "Option", "grid_steps", "menus_of"]

Ints = npt.NDArray[np.int64]

MOST_JOBS = 1 << 20
"""Most jobs of one choice."""

_MOST_GPUS = 1 << 20
_MOST_STEPS = 1 << 40
_MOST_PRODUCT = 1 << 58
_AUTO_BITS = 30
_LARGEST_FLOAT = 1e300


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """One thing that a job may do in a round.

    Parameters
    ----------
    gpus : int
        GPUs that it takes.
    value : float
        What it is worth, see :mod:`frostline.freezing.optimizer.objectives`.
    debt : float
        Accuracy debt that it adds, in the units of the tenant's budget.
    gpu_type : str
        Type of the GPUs.

    Examples
    --------
    >>> Option(gpus=4, value=3.1, debt=0.02).gpus
    4
    """

    gpus: int
    value: float
    debt: float = 0.0
    gpu_type: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "gpus", as_int(self.gpus, "option", "gpus", 0))
        object.__setattr__(self, "value", as_finite(self.value, "option", "value", maximum=_LARGEST_FLOAT))
        object.__setattr__(self, "debt", as_finite(self.debt, "option", "debt", 0.0))


@dataclass(frozen=True, slots=True, kw_only=True)
class Menu:
    """Options of one job; that it waits is always one more, number 0.

    Parameters
    ----------
    options : sequence of Option
        Options 1, 2, … of the job.
    tenant : str
        Whose debt budget counts.
    wait_value : float
        What waiting is worth; below 0 where it would cost a change.

    Examples
    --------
    >>> menu = Menu(options=[Option(gpus=1, value=1.0), Option(gpus=2, value=1.8)], tenant="vision")
    >>> len(menu.options)
    2
    """

    options: Sequence[Option]
    tenant: str = ""
    wait_value: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "options", tuple(self.options))
        value = as_finite(self.wait_value, "menu", "wait_value", maximum=_LARGEST_FLOAT)
        object.__setattr__(self, "wait_value", value)
        for option in self.options:
            if not isinstance(option, Option):
                raise InvalidValueError("menu", "options", option, "must be of Option")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Menus:
    """Menus of all jobs in flat arrays: options of job j are ``first[j]`` to ``first[j + 1] - 1``.

    Values and debts are whole numbers of grid steps, so that every method adds up the same ones. The first option of
    each job is to wait: it takes no GPU and adds no debt.

    Parameters
    ----------
    first : array of int, shape (jobs + 1,)
        Where the options of each job begin.
    gpus, value, debt : array of int, shape (options,)
        GPUs, value in steps of ``value_unit``, debt in steps of ``debt_unit`` (0 by default).
    gpu_type : array of int, shape (options,)
        Number of the type of the GPUs in ``gpu_types``; 0 by default.
    tenant : array of int, shape (jobs,)
        Number of the tenant in ``tenants``; 0 by default.
    gpu_types, tenants : sequence of str
        Names.
    value_unit, debt_unit : float
        Size of a step of the grids.

    Raises
    ------
    InvalidValueError
        Arrays that do not fit together, a job without waiting first, a negative amount; or numbers too large to be
        added up and multiplied in 64 bits: 2^20 jobs, 2^20 GPUs an option, 2^40 steps, jobs times the largest value
        2^58, and the largest value times the largest number of GPUs or of debt 2^58.

    Examples
    --------
    >>> menus = Menus(first=[0, 3, 5], gpus=[0, 1, 2, 0, 4], value=[0, 10, 18, 0, 30])
    >>> menus.jobs, menus.options, menus.debt.tolist()
    (2, 5, [0, 0, 0, 0, 0])
    """

    first: Ints
    gpus: Ints
    value: Ints
    debt: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    gpu_type: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    tenant: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    gpu_types: tuple[str, ...] = ("",)
    tenants: tuple[str, ...] = ("",)
    value_unit: float = 1.0
    debt_unit: float = 1.0

    def __post_init__(self) -> None:
        first, options = _whole(self.first, "first"), len(np.atleast_1d(self.gpus))
        _check_first(first, options)
        jobs = len(first) - 1
        arrays = {
            "first": first,
            "gpus": _whole(self.gpus, "gpus", options, 0, _MOST_GPUS),
            "value": _whole(self.value, "value", options, -_MOST_STEPS, _MOST_STEPS),
            "debt": _whole(self.debt, "debt", options, 0, _MOST_STEPS),
            "gpu_type": _whole(self.gpu_type, "gpu_type", options, 0, len(self.gpu_types) - 1),
            "tenant": _whole(self.tenant, "tenant", jobs, 0, len(self.tenants) - 1),
        }
        for name, array in arrays.items():
            array.flags.writeable = False
            object.__setattr__(self, name, array)
        for name in ("value_unit", "debt_unit"):
            object.__setattr__(self, name, _unit(getattr(self, name), name))
        object.__setattr__(self, "gpu_types", _names(self.gpu_types, "gpu_types"))
        object.__setattr__(self, "tenants", _names(self.tenants, "tenants"))
        self._check_waiting()
        self._check_size()

    @property
    def jobs(self) -> int:
        """Number of jobs."""
        return len(self.first) - 1

    @property
    def options(self) -> int:
        """Number of options of all jobs together."""
        return len(self.gpus)

    def _check_waiting(self) -> None:
        waits = self.first[:-1]
        for name, array in (("gpus", self.gpus), ("debt", self.debt)):
            bad = np.flatnonzero(array[waits])
            if len(bad):
                job = int(bad[0])
                rule = "must be 0: the first option is to wait"
                raise InvalidValueError(f"job {job}, option 0", name, int(array[waits[job]]), rule)

    def _check_size(self) -> None:
        largest = int(np.abs(self.value).max(initial=0))
        amount = max(int(self.gpus.max(initial=0)), int(self.debt.max(initial=0)))
        for name, factor in (("jobs", self.jobs), ("gpus or debt", amount)):
            if largest * factor > _MOST_PRODUCT:
                rule = f"times {name}, {factor}, must be at most 2^58; take a coarser unit"
                raise InvalidValueError("menus", "largest value", largest, rule)


def _check_first(first: Ints, options: int) -> None:
    if not len(first) or first[0] != 0 or first[-1] != options:
        raise InvalidValueError("menus", "first", first.tolist()[:3], f"must begin with 0 and end with {options}")
    short = np.flatnonzero(np.diff(first) < 1)
    if len(short):
        raise InvalidValueError(f"job {short[0]}", "options", 0, "must be at least 1: a job may always wait")
    if len(first) - 1 > MOST_JOBS:
        raise InvalidValueError("menus", "jobs", len(first) - 1, f"must be at most {MOST_JOBS}")


def _whole(
    values: Any, name: str, length: int | None = None, low: int = 0, high: int = _MOST_STEPS
) -> npt.NDArray[np.int64]:
    """Copy as 64-bit whole numbers; an empty array stands for zeros where a length is given."""
    array = np.atleast_1d(np.asarray(values))
    if length and not len(array) and name not in ("gpus", "value"):
        return np.zeros(length, np.int64)
    if array.ndim != 1 or (length is not None and len(array) != length):
        rule = "must be one-dimensional" + ("" if length is None else f" with {length} entries")
        raise InvalidValueError("menus", f"{name}.shape", array.shape, rule)
    if array.dtype.kind not in "iuf":
        array = np.array([as_int(value, f"entry {i}", name) for i, value in enumerate(array.tolist())], object)
    elif array.dtype.kind == "f":
        bad = np.flatnonzero(~np.isfinite(array) | (array != np.floor(array)))
        if len(bad):
            raise InvalidValueError(f"entry {bad[0]}", name, array[bad[0]].item(), "must be a whole number")
    out = np.flatnonzero((array < low) | (array > high))
    if len(out):
        raise InvalidValueError(f"entry {out[0]}", name, array.tolist()[out[0]], f"must be from {low} to {high}")
    return array.astype(np.int64)


def _unit(value: object, name: str) -> float:
    unit = as_finite(value, "menus", name, maximum=_LARGEST_FLOAT)
    if unit <= 0:
        raise InvalidValueError("menus", name, value, "must be above 0")
    return unit


def _names(names: Iterable[str], field_name: str) -> tuple[str, ...]:
    found = tuple(names)
    if len(set(found)) < len(found) or not all(isinstance(name, str) for name in found):
        raise InvalidValueError("menus", field_name, found, "must be different names")
    return found


def menus_of(menus: Iterable[Menu], *, value_unit: float | None = None, debt_unit: float = 1e-6) -> Menus:
    """Menus of jobs in flat arrays, jobs and options in the order given.

    Values are rounded to the nearest step. Debts are rounded up, so that no sum of debts within a budget on the grid
    exceeds it; a debt that is a step but for the last bits of a float is that step.

    Parameters
    ----------
    menus : iterable of Menu
        Menus of the jobs in order of arrival: ties go to the earlier one.
    value_unit : float, optional
        Step of the values; by default the power of two of which the largest value has 2^29 to 2^30.
    debt_unit : float
        Step of the debts.

    Examples
    --------
    >>> small = Menu(options=[Option(gpus=1, value=1.0, debt=0.3), Option(gpus=2, value=1.5)])
    >>> menus = menus_of([small, small], value_unit=0.1)
    >>> menus.value.tolist(), menus.debt.tolist()[:3], menus.gpus.tolist()
    ([0, 10, 15, 0, 10, 15], [0, 300000, 0], [0, 1, 2, 0, 1, 2])
    """
    listed = list(menus)
    for menu in listed:
        if not isinstance(menu, Menu):
            raise InvalidValueError("menus", "menus", menu, "must be of Menu")
    waiting = [Option(gpus=0, value=menu.wait_value) for menu in listed]
    jobs = [(wait, *menu.options) for wait, menu in zip(waiting, listed, strict=True)]
    options = [option for job in jobs for option in job]
    step = _unit(debt_unit, "debt_unit")
    values = np.array([option.value for option in options])
    unit = _auto_unit(values) if value_unit is None else _unit(value_unit, "value_unit")
    types = list(dict.fromkeys(option.gpu_type for option in options if option.gpus)) or [""]
    tenants = list(dict.fromkeys(menu.tenant for menu in listed)) or [""]
    type_numbers, tenant_numbers = ({name: i for i, name in enumerate(names)} for names in (types, tenants))
    return Menus(
        first=np.cumsum([0, *map(len, jobs)]),
        gpus=np.array([option.gpus for option in options], np.int64),
        value=np.rint(values / unit),
        debt=np.array([grid_steps(option.debt, step, up=True) for option in options], np.int64),
        gpu_type=np.array([type_numbers.get(option.gpu_type, 0) for option in options], np.int64),
        tenant=np.array([tenant_numbers[menu.tenant] for menu in listed], np.int64),
        gpu_types=tuple(types),
        tenants=tuple(tenants),
        value_unit=unit,
        debt_unit=step,
    )


def _auto_unit(values: npt.NDArray[np.float64]) -> float:
    largest = float(np.abs(values).max(initial=0.0))
    return math.ldexp(1.0, max(math.frexp(largest)[1] - _AUTO_BITS, -1000)) if largest else 1.0


def grid_steps(amount: float, unit: float, *, up: bool) -> int:
    """Steps of a grid in an amount, rounded up or down unless it is a step but for the last bits.

    Examples
    --------
    >>> grid_steps(0.3, 1e-6, up=True), grid_steps(0.3, 1e-6, up=False), grid_steps(0.3, 0.25, up=False)
    (300000, 300000, 1)
    """
    exact = amount / unit
    nearest = round(exact)
    if abs(exact - nearest) <= 4 * math.ulp(exact):
        return nearest
    return math.ceil(exact) if up else math.floor(exact)
