"""Step times of jobs that are known by measurement, by freeze level."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from frostline.errors import InvalidValueError
from frostline.freezing.frozen_graph import GradientExchange, as_exchange
from frostline.freezing.levels import FreezeLevels
from frostline.problem.job import PlacementClass, Profiled
from frostline.units import as_finite

__all__ = ["LevelTimes", "frozen_work"]

_SUBJECT = "level times"
_LARGEST_GAMMA = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelTimes:
    """Step time by freeze level, ``T(k) = (C(k)^γ + N(k)^γ)^(1/γ)``: the form of Pollux with both parts by level.

    Parameters
    ----------
    compute_s : sequence of float, shape (levels,)
        Seconds C of computing at each level, at least 0.
    exchange_s : sequence of float, shape (levels,)
        Seconds N of exchanging gradients at each level, at least 0; none by default.
    gamma : float
        How far the two overlap, from 1 (one after the other) to 10 (nearly the longer one alone).

    Raises
    ------
    InvalidValueError
        No level, unequal lengths, or a value out of range.

    References
    ----------
    Qiao et al., *Pollux*, OSDI 2021, equation 11.

    Examples
    --------
    >>> times = LevelTimes(compute_s=[0.3, 0.1], exchange_s=[0.4, 0.4], gamma=2)
    >>> [round(times.seconds(level), 4) for level in (0, 1)]
    [0.5, 0.4123]
    """

    compute_s: tuple[float, ...]
    exchange_s: tuple[float, ...] = ()
    gamma: float = 1.0

    def __post_init__(self) -> None:
        compute_s = _seconds(self.compute_s, "compute_s")
        exchange_s = _seconds(self.exchange_s, "exchange_s") or (0.0,) * len(compute_s)
        if not compute_s:
            raise InvalidValueError(_SUBJECT, "compute_s", (), "must have at least level 0")
        if len(exchange_s) != len(compute_s):
            rule = f"must have one entry for each of {len(compute_s)} levels"
            raise InvalidValueError(_SUBJECT, "exchange_s", exchange_s, rule)
        object.__setattr__(self, "compute_s", compute_s)
        object.__setattr__(self, "exchange_s", exchange_s)
        object.__setattr__(self, "gamma", as_finite(self.gamma, _SUBJECT, "gamma", 1.0, _LARGEST_GAMMA))

    @classmethod
    def two_point(
        cls,
        levels: FreezeLevels,
        first_s: float,
        last_s: float,
        *,
        exchange_s: float = 0.0,
        gamma: float = 1.0,
        comm: str = "static",
        cached: bool = False,
    ) -> LevelTimes:
        """Step times of all levels from those of level 0 and of the last level.

        Computing time is affine in the work of a step, ``C(k) = a + b · compute(k)``, through both points. That is what
        measurements bear out: the share of the parameters says nothing about time.

        Parameters
        ----------
        levels : FreezeLevels
            The levels; the work of their units is FLOPs, or seconds of a profile.
        first_s, last_s : float
            Measured seconds of a step at level 0 and at the last level; equal where there is one level.
        exchange_s : float
            Seconds of exchanging all gradients, below ``first_s``.
        gamma : float
            Overlap.
        comm : {"static", "rebuild"}
            Whether all gradients are exchanged at every level, or those of the trained units: then the time goes with
            their parameters.
        cached : bool
            Whether frozen units are read from a cache, at no cost, rather than computed.

        Raises
        ------
        InvalidValueError
            A value out of range, or a step that is shorter than its exchange.
        UnknownNameError
            Another exchange.

        Examples
        --------
        >>> from frostline.freezing.units import FreezeUnit, FreezeUnits
        >>> levels = FreezeLevels.evenly(FreezeUnits([FreezeUnit(forward=1)] * 12), 3)
        >>> [round(seconds, 3) for seconds in LevelTimes.two_point(levels, 0.36, 0.14).compute_s]
        [0.36, 0.28, 0.22, 0.14]
        """
        known = as_finite(exchange_s, _SUBJECT, "exchange_s", 0.0)
        gamma = as_finite(gamma, _SUBJECT, "gamma", 1.0, _LARGEST_GAMMA)
        exchange = [known * share for share in _exchanged(levels, comm)]
        first = _without(as_finite(first_s, _SUBJECT, "first_s", 0.0), exchange[0], gamma, "first_s")
        last = _without(as_finite(last_s, _SUBJECT, "last_s", 0.0), exchange[-1], gamma, "last_s")
        read = 0 if cached else None
        work = [levels.units.compute(frozen, read) for frozen in levels.frozen_units]
        span = work[0] - work[-1]
        done = [(work[0] - amount) / span if span else float(i > 0) for i, amount in enumerate(work)]
        compute = [first * (1 - share) + last * share for share in done]
        return cls(compute_s=tuple(compute), exchange_s=tuple(exchange), gamma=gamma)

    def __len__(self) -> int:
        return len(self.compute_s)

    def seconds(self, level: int) -> float:
        """Seconds of a step at a level.

        Raises
        ------
        InvalidValueError
            No such level.
        """
        if type(level) is not int or not 0 <= level < len(self.compute_s):
            rule = f"must be a level, from 0 to {len(self.compute_s) - 1}"
            raise InvalidValueError(_SUBJECT, "level", level, rule)
        compute, exchange = self.compute_s[level], self.exchange_s[level]
        longest = max(compute, exchange)
        if longest == 0:
            return 0.0
        return float(
            longest * ((compute / longest) ** self.gamma + (exchange / longest) ** self.gamma) ** (1 / self.gamma)
        )


def frozen_work(work: Profiled, times: Mapping[PlacementClass, LevelTimes], level: int) -> Profiled:
    """Profiled work at a freeze level: the seconds of its iterations where they are known by level.

    Level 0 is the work itself. The ratio between two levels differs from one class of placement to the other, since
    exchanging gradients does not get faster by freezing as computing does.

    Parameters
    ----------
    work : Profiled
        The work without freezing.
    times : mapping of PlacementClass to LevelTimes
        Step times by level, for each class of placement of the work.
    level : int
        The level.

    Raises
    ------
    InvalidValueError
        A class of placement without times, or no such level.

    Examples
    --------
    >>> work = Profiled(iterations=10, seconds_per_iteration={PlacementClass.ONE_SERVER: 0.5})
    >>> times = {PlacementClass.ONE_SERVER: LevelTimes(compute_s=[0.5, 0.2])}
    >>> dict(frozen_work(work, times, 1).seconds_per_iteration)
    {<PlacementClass.ONE_SERVER: 'one_server'>: 0.2}
    """
    for where in work.seconds_per_iteration:
        if where not in times:
            raise InvalidValueError("frozen work", "times", sorted(times), f"must have those of {where.value!r}")
    table = {where: times[where].seconds(level) for where in work.seconds_per_iteration}
    return Profiled(iterations=work.iterations, seconds_per_iteration=table) if level else work


def _seconds(values: Sequence[float], name: str) -> tuple[float, ...]:
    return tuple(as_finite(value, _SUBJECT, f"{name}[{level}]", 0.0) for level, value in enumerate(values))


def _exchanged(levels: FreezeLevels, comm: str) -> list[float]:
    """Share of the gradients that is exchanged at each level."""
    params = [levels.units.params(frozen) for frozen in levels.frozen_units]
    if as_exchange(comm) is GradientExchange.STATIC or params[0] == 0:
        return [1.0] * len(params)
    return [count / params[0] for count in params]


def _without(total_s: float, exchange_s: float, gamma: float, name: str) -> float:
    """Computing seconds of a step of which the exchange is known."""
    if total_s < exchange_s:
        raise InvalidValueError(_SUBJECT, name, total_s, f"must be at least {exchange_s:g}, that of its exchange")
    if total_s == 0:
        return 0.0
    return float(total_s * (1 - (exchange_s / total_s) ** gamma) ** (1 / gamma))
