"""The checker of choice certificates: exact integers, the standard library, and nothing of what made them.

A certificate states menus, limits, the option chosen for each job, its value, and prices of GPUs and of debt over a
denominator q. Whatever the prices are, if none is negative then no choice within the limits is worth more than

    ``Σ_j max_c (v_jc - p/q a_jc) + p/q limits``

over the options c of job j that fit alone: the limits leave every choice at least the last term to pay its prices with.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Any

from frostline.certify.document import (
    CertificateFault,
    CertificateReport,
    MalformedError,
    digest,
    fields,
    listed,
    opened,
    whole,
    wholes,
)

__all__ = ["ChoiceFaultKind", "check_choice_certificate"]

_FORMAT = "frostline/choice-certificate"


class ChoiceFaultKind(StrEnum):
    """What may be wrong with a certificate."""

    MALFORMED = "malformed"  # not a certificate, or a field that breaks its rule
    DAMAGED = "damaged"  # changed since it was written
    OTHER_PROBLEM = "other_problem"  # about another problem than the one given
    OVER_LIMIT = "over_limit"  # the choice takes an option that there is not, or more than a limit
    WRONG_VALUE = "wrong_value"  # the choice is not worth the value stated
    UNPROVED = "unproved"  # the prices do not prove the bound stated


def check_choice_certificate(certificate: object, problem: Mapping[str, Any] | None = None) -> CertificateReport:
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
    except MalformedError as error:
        return CertificateReport(faults=(CertificateFault(ChoiceFaultKind.MALFORMED, str(error)),), proved="")
    faults = tuple(document.faults(problem))
    return CertificateReport(faults=faults, proved="" if faults else document.proved())


class _Document:
    """A certificate whose fields all keep their rules."""

    def __init__(self, certificate: object) -> None:
        values, self.intact = opened(certificate, _FORMAT, "problem selected value bound prices")
        self.problem, selected, value, bound, prices = values
        self._read_problem(self.problem)
        self.selected = wholes(selected, "selected", len(self.jobs), 0)
        self.value, self.bound = whole(value, "value"), whole(bound, "bound")
        denominator, gpu_prices, debt_prices = fields(prices, "prices", "denominator gpus debt")
        self.denominator = whole(denominator, "prices.denominator", 1)
        self.gpu_prices = wholes(gpu_prices, "prices.gpus", len(self.gpus), 0)
        self.debt_prices = wholes(debt_prices, "prices.debt", len(self.budgets), 0)
        if any(price for price, budget in zip(self.debt_prices, self.budgets, strict=True) if budget is None):
            raise MalformedError("prices.debt must be 0 where there is no budget")

    def _read_problem(self, record: object) -> None:
        gpus, budgets, jobs = fields(record, "problem", "gpus budgets jobs")
        self.gpus = wholes(gpus, "problem.gpus", least=0)
        self.budgets = [
            None if budget is None else whole(budget, f"problem.budgets[{i}]", 0)
            for i, budget in enumerate(listed(budgets, "problem.budgets"))
        ]
        self.jobs = [self._job(job, f"problem.jobs[{i}]") for i, job in enumerate(listed(jobs, "problem.jobs"))]

    def _job(self, record: object, path: str) -> tuple[int, list[tuple[int, int, int, int]]]:
        """Tenant and options of a job."""
        tenant, rows = fields(record, path, "tenant options")
        options = []
        for i, option in enumerate(listed(rows, f"{path}.options")):
            kind, gpus, value, debt = wholes(option, f"{path}.options[{i}]", 4)
            if not 0 <= kind < len(self.gpus) or gpus < 0 or debt < 0:
                raise MalformedError(f"{path}.options[{i}] must have a GPU type that there is, and no amount below 0")
            options.append((kind, gpus, value, debt))
        if not options or options[0][1] or options[0][3]:
            raise MalformedError(f"{path}.options must begin with one that takes nothing")
        if whole(tenant, f"{path}.tenant", 0) >= len(self.budgets):
            raise MalformedError(f"{path}.tenant={tenant} must have a budget or null")
        return tenant, options

    def faults(self, problem: Mapping[str, Any] | None) -> Iterator[CertificateFault]:
        """What is wrong with it."""
        if not self.intact:
            yield CertificateFault(ChoiceFaultKind.DAMAGED, "its content does not match its SHA-256")
        if problem is not None and digest(problem) != digest(self.problem):
            yield CertificateFault(ChoiceFaultKind.OTHER_PROBLEM, "it is about another problem")
        missing = [j for j, (_, options) in enumerate(self.jobs) if self.selected[j] >= len(options)]
        yield from (CertificateFault(ChoiceFaultKind.OVER_LIMIT, f"job {j} has no such option") for j in missing)
        if not missing:
            yield from self._choice_faults()
        proved = self._proved_bound()
        if proved > self.bound:
            text = f"the prices prove a bound of {proved}, not {self.bound}"
            yield CertificateFault(ChoiceFaultKind.UNPROVED, text)

    def _choice_faults(self) -> Iterator[CertificateFault]:
        """Limits that the choice exceeds, and a value that it is not worth."""
        taken, owed, value = [0] * len(self.gpus), [0] * len(self.budgets), 0
        for (tenant, options), number in zip(self.jobs, self.selected, strict=True):
            kind, gpus, worth, debt = options[number]
            taken[kind] += gpus
            owed[tenant] += debt
            value += worth
        for kind, (used, most) in enumerate(zip(taken, self.gpus, strict=True)):
            if used > most:
                yield CertificateFault(ChoiceFaultKind.OVER_LIMIT, f"GPU type {kind}: {used} of {most} GPUs taken")
        for tenant, (debt, budget) in enumerate(zip(owed, self.budgets, strict=True)):
            if budget is not None and debt > budget:
                yield CertificateFault(ChoiceFaultKind.OVER_LIMIT, f"tenant {tenant}: debt of {debt}, budget {budget}")
        if value != self.value:
            yield CertificateFault(ChoiceFaultKind.WRONG_VALUE, f"the choice is worth {value}, not {self.value}")

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
        """What it proves, in a sentence."""
        end = ": it is optimal" if self.value == self.bound else ""
        return f"no choice is worth more than {self.bound} steps, and this one is worth {self.value}{end}"
