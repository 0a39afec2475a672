"""The checker of choice certificates: exact integers, the standard library, and nothing of what made them.

A certificate states menus, limits, the option chosen for each job, its value, and prices of GPUs and of debt over a
denominator q. Whatever the prices are, if none is negative then no choice within the limits is worth more than

    ``Σ_j max_c (v_jc - p/q a_jc) + p/q limits``

over the options c of job j that fit alone: the limits leave every choice at least the last term to pay its prices with.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

__all__ = ["ChoiceFault", "ChoiceFaultKind", "ChoiceReport", "check_choice_certificate"]

_FORMAT, _VERSION = "frostline/choice-certificate", 1


class ChoiceFaultKind(StrEnum):
    """What may be wrong with a certificate."""

    MALFORMED = "malformed"  # not a certificate, or a field that breaks its rule
    DAMAGED = "damaged"  # changed since it was written
    OTHER_PROBLEM = "other_problem"  # about another problem than the one given
    OVER_LIMIT = "over_limit"  # the choice takes an option that there is not, or more than a limit
    WRONG_VALUE = "wrong_value"  # the choice is not worth the value stated
    UNPROVED = "unproved"  # the prices do not prove the bound stated


@dataclass(frozen=True, slots=True)
class ChoiceFault:
    """One thing that is wrong with a certificate, and a sentence about it."""

    kind: ChoiceFaultKind
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ChoiceReport:
    """All faults of a certificate, and what it proves, in a sentence, if it has none."""

    faults: tuple[ChoiceFault, ...]
    proved: str

    @property
    def valid(self) -> bool:
        """Whether nothing is wrong."""
        return not self.faults


def check_choice_certificate(certificate: object, problem: Mapping[str, Any] | None = None) -> ChoiceReport:
    """Check a choice certificate; nothing in it is taken on trust but the problem it states.

    Parameters
    ----------
    certificate : object
        The document, as read from JSON.
    problem : mapping, optional
        The problem that it must be about (:func:`frostline.freezing.optimizer.choice_problem`).

    Examples
    --------
    >>> from frostline.freezing.optimizer import Menus, choose
    >>> menus = Menus(first=[0, 2, 4], gpus=[0, 1, 0, 2], value=[0, 5, 0, 9])
    >>> certificate = choose(menus, 2).certificate
    >>> check_choice_certificate(certificate).proved
    'no choice is worth more than 9 steps, and this one is worth 9: it is optimal'
    >>> certificate["bound"] -= 1
    >>> for fault in check_choice_certificate(certificate).faults:
    ...     print(fault.kind, "|", fault.text)
    damaged | its content does not match its SHA-256
    unproved | the prices prove a bound of 9, not 8
    """
    try:
        document = _Document(certificate)
    except _MalformedError as error:
        return ChoiceReport(faults=(ChoiceFault(ChoiceFaultKind.MALFORMED, str(error)),), proved="")
    faults = tuple(document.faults(problem))
    return ChoiceReport(faults=faults, proved="" if faults else document.proved())


class _MalformedError(Exception):
    """A field that breaks its rule."""


def _fields(record: object, path: str, names: str) -> list[Any]:
    """Values of an object that has exactly the named fields."""
    if type(record) is not dict or set(record) != set(names.split()):
        raise _MalformedError(f"{path} must be an object with the fields {names}")
    return [record[name] for name in names.split()]


def _int(value: object, path: str, least: int | None = None) -> int:
    if type(value) is not int or (least is not None and value < least):
        raise _MalformedError(f"{path}={value!r} must be a whole number" + ("" if least is None else f" from {least}"))
    return value


def _list(value: object, path: str, length: int | None = None) -> list[Any]:
    if type(value) is not list or (length is not None and len(value) != length):
        raise _MalformedError(f"{path} must be a list" + ("" if length is None else f" of {length}"))
    return value


def _ints(value: object, path: str, length: int | None = None, least: int | None = None) -> list[int]:
    return [_int(entry, f"{path}[{i}]", least) for i, entry in enumerate(_list(value, path, length))]


class _Document:
    """A certificate whose fields all keep their rules."""

    def __init__(self, certificate: object) -> None:
        names = "format version problem selected value bound prices"
        *values, self.digest = _fields(certificate, "certificate", f"{names} sha256")
        self.content = dict(zip(names.split(), values, strict=True))
        if values[0] != _FORMAT or _int(values[1], "version") != _VERSION:
            raise _MalformedError(f"certificate must have format {_FORMAT!r} and version {_VERSION}")
        self.problem, selected, value, bound, prices = values[2:]
        self._read_problem(self.problem)
        self.selected = _ints(selected, "selected", len(self.jobs), 0)
        self.value, self.bound = _int(value, "value"), _int(bound, "bound")
        denominator, gpu_prices, debt_prices = _fields(prices, "prices", "denominator gpus debt")
        self.denominator = _int(denominator, "prices.denominator", 1)
        self.gpu_prices = _ints(gpu_prices, "prices.gpus", len(self.gpus), 0)
        self.debt_prices = _ints(debt_prices, "prices.debt", len(self.budgets), 0)
        if any(price for price, budget in zip(self.debt_prices, self.budgets, strict=True) if budget is None):
            raise _MalformedError("prices.debt must be 0 where there is no budget")

    def _read_problem(self, record: object) -> None:
        gpus, budgets, jobs = _fields(record, "problem", "gpus budgets jobs")
        self.gpus = _ints(gpus, "problem.gpus", least=0)
        self.budgets = [
            None if budget is None else _int(budget, f"problem.budgets[{i}]", 0)
            for i, budget in enumerate(_list(budgets, "problem.budgets"))
        ]
        self.jobs = [self._job(job, f"problem.jobs[{i}]") for i, job in enumerate(_list(jobs, "problem.jobs"))]

    def _job(self, record: object, path: str) -> tuple[int, list[tuple[int, int, int, int]]]:
        """Tenant and options of a job."""
        tenant, listed = _fields(record, path, "tenant options")
        options = []
        for i, option in enumerate(_list(listed, f"{path}.options")):
            kind, gpus, value, debt = _ints(option, f"{path}.options[{i}]", 4)
            if not 0 <= kind < len(self.gpus) or gpus < 0 or debt < 0:
                raise _MalformedError(f"{path}.options[{i}] must have a GPU type that there is, and no amount below 0")
            options.append((kind, gpus, value, debt))
        if not options or options[0][1] or options[0][3]:
            raise _MalformedError(f"{path}.options must begin with one that takes nothing")
        if _int(tenant, f"{path}.tenant", 0) >= len(self.budgets):
            raise _MalformedError(f"{path}.tenant={tenant} must have a budget or null")
        return tenant, options

    def faults(self, problem: Mapping[str, Any] | None) -> Iterator[ChoiceFault]:
        if self.digest != _digest(self.content):
            yield ChoiceFault(ChoiceFaultKind.DAMAGED, "its content does not match its SHA-256")
        if problem is not None and _digest(problem) != _digest(self.problem):
            yield ChoiceFault(ChoiceFaultKind.OTHER_PROBLEM, "it is about another problem")
        missing = [j for j, (_, options) in enumerate(self.jobs) if self.selected[j] >= len(options)]
        yield from (ChoiceFault(ChoiceFaultKind.OVER_LIMIT, f"job {j} has no such option") for j in missing)
        if not missing:
            yield from self._choice_faults()
        proved = self._proved_bound()
        if proved > self.bound:
            text = f"the prices prove a bound of {proved}, not {self.bound}"
            yield ChoiceFault(ChoiceFaultKind.UNPROVED, text)

    def _choice_faults(self) -> Iterator[ChoiceFault]:
        """Limits that the choice exceeds, and a value that it is not worth."""
        taken, owed, value = [0] * len(self.gpus), [0] * len(self.budgets), 0
        for (tenant, options), number in zip(self.jobs, self.selected, strict=True):
            kind, gpus, worth, debt = options[number]
            taken[kind] += gpus
            owed[tenant] += debt
            value += worth
        for kind, (used, most) in enumerate(zip(taken, self.gpus, strict=True)):
            if used > most:
                yield ChoiceFault(ChoiceFaultKind.OVER_LIMIT, f"GPU type {kind}: {used} of {most} GPUs taken")
        for tenant, (debt, budget) in enumerate(zip(owed, self.budgets, strict=True)):
            if budget is not None and debt > budget:
                yield ChoiceFault(ChoiceFaultKind.OVER_LIMIT, f"tenant {tenant}: debt of {debt}, budget {budget}")
        if value != self.value:
            yield ChoiceFault(ChoiceFaultKind.WRONG_VALUE, f"the choice is worth {value}, not {self.value}")

    def _proved_bound(self) -> int:
        """Bound that the prices prove, rounded down, as values are whole."""
        total = sum(price * most for price, most in zip(self.gpu_prices, self.gpus, strict=True))
        total += sum(price * (most or 0) for price, most in zip(self.debt_prices, self.budgets, strict=True))
        for tenant, options in self.jobs:
            budget = self.budgets[tenant]
            total += max(
                self.denominator * value - self.gpu_prices[kind] * gpus - self.debt_prices[tenant] * debt
                for kind, gpus, value, debt in options
                if gpus <= self.gpus[kind] and (budget is None or debt <= budget)
            )
        return total // self.denominator

    def proved(self) -> str:
        end = ": it is optimal" if self.value == self.bound else ""
        return f"no choice is worth more than {self.bound} steps, and this one is worth {self.value}{end}"


def _digest(content: Mapping[str, Any]) -> str:
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
