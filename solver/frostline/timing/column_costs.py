"""Integer tables of a column function: what both built-in models of the iteration time are made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np
import numpy.typing as npt

__all__ = ["ColumnCosts", "ColumnKind"]

Pair = tuple[int, int, int]


class ColumnKind(StrEnum):
    """How the costs of a column make up its time."""

    EGRESS = "egress"  # the sum of all: one card after another
    SLOWEST = "slowest"  # the slowest of the stages it holds


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnCosts:
    """Nanoseconds f(c) of a server that holds the column c, in integers.

    With K_s replicas of stage s in all,

    - ``egress``: ``f(c) = Σ_(s,t) pair_st (c_s (K_t - c_t) + c_t (K_s - c_s)) + Σ_s ring_s [0 < c_s < K_s]``,
    - ``slowest``: ``f(c) = max over s with c_s > 0 of local_s + Σ_t pair_st (K_t - c_t) + ring_s [c_s < K_s]``, or 0 if
      that is more.

    Parameters
    ----------
    kind : ColumnKind
        Which of the two.
    counts : tuple of int
        Replicas of each stage, K_s.
    pairs : tuple of (int, int, int)
        Stages s < t that exchange traffic and the nanoseconds of it, for ``egress`` of half the traffic of one pair of
        replicas. Each pair of stages is named once.
    rings : tuple of int
        Nanoseconds of each stage that is split. Those and pairs may be negative for ``slowest``.
    local : tuple of int
        Nanoseconds of each stage where the whole job is in one server; zeros for ``egress``.

    Examples
    --------
    >>> card = ColumnCosts(kind=ColumnKind.EGRESS, counts=(2, 2), pairs=((0, 1, 5),), rings=(0, 7), local=(0, 0))
    >>> card.column_ns((2, 1)), card.columns_ns(np.array([[2, 1], [2, 2]])).tolist()
    (17, [17, 0])
    >>> link = ColumnCosts(kind=ColumnKind.SLOWEST, counts=(2, 2), pairs=((0, 1, 5),), rings=(0, 7), local=(30, 20))
    >>> link.column_ns((2, 1)), link.columns_ns(np.array([[0, 1], [0, 0]])).tolist()
    (35, [37, 0])
    """

    kind: ColumnKind
    counts: tuple[int, ...]
    pairs: tuple[Pair, ...]
    rings: tuple[int, ...]
    local: tuple[int, ...]
    remote: tuple[tuple[tuple[int, int], ...], ...] = field(init=False, compare=False, repr=False)
    """For each stage, the stages it shares traffic with and the nanoseconds of each."""
    _arrays: _Arrays = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        near: list[list[tuple[int, int]]] = [[] for _ in self.counts]
        for s, t, ns in self.pairs:
            near[s].append((t, ns))
            near[t].append((s, ns))
        object.__setattr__(self, "remote", tuple(tuple(sorted(pairs)) for pairs in near))
        object.__setattr__(self, "_arrays", _Arrays.of(self))

    def column_ns(self, column: Sequence[int]) -> int:
        """Nanoseconds of one column."""
        if self.kind is ColumnKind.EGRESS:
            return self._egress_ns(column)
        return max(0, max((self.stage_ns(column, s) for s, held in enumerate(column) if held), default=0))

    def stage_ns(self, column: Sequence[int], stage: int) -> int:
        """Nanoseconds of a stage that a column holds, for ``slowest``."""
        counts = self.counts
        far = sum(ns * (counts[t] - column[t]) for t, ns in self.remote[stage])
        return self.local[stage] + far + (self.rings[stage] if column[stage] < counts[stage] else 0)

    def columns_ns(self, columns: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Nanoseconds of many columns, shape (columns, stages) to shape (columns,)."""
        return self._arrays.egress(columns) if self.kind is ColumnKind.EGRESS else self._arrays.slowest(columns)

    def _egress_ns(self, column: Sequence[int]) -> int:
        counts, egress = self.counts, 0
        for s, t, ns in self.pairs:
            here, there = column[s], column[t]
            if here or there:
                egress += ns * (here * (counts[t] - there) + there * (counts[s] - here))
        return egress + sum(
            ring for ring, held, count in zip(self.rings, column, counts, strict=True) if 0 < held < count
        )


@dataclass(frozen=True, slots=True)
class _Arrays:
    """The same tables as arrays; ``full`` is what a replica costs that is alone."""

    counts: npt.NDArray[np.int64]
    ends: npt.NDArray[np.int64]
    pairs: npt.NDArray[np.int64]
    rings: npt.NDArray[np.int64]
    remote: npt.NDArray[np.int64]
    full: npt.NDArray[np.int64]

    @classmethod
    def of(cls, costs: ColumnCosts) -> _Arrays:
        counts = np.array(costs.counts, np.int64)
        ends = np.array([(s, t) for s, t, _ in costs.pairs], np.int64).reshape(-1, 2).T
        pairs = np.array([ns for *_, ns in costs.pairs], np.int64)
        remote = np.zeros((len(counts), len(counts)), np.int64)
        remote[ends[0], ends[1]] = remote[ends[1], ends[0]] = pairs
        full = np.array(costs.local, np.int64) + remote @ counts
        return cls(counts, ends, pairs, np.array(costs.rings, np.int64), remote, full)

    def egress(self, columns: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        inside = (columns[:, self.ends[0]] * columns[:, self.ends[1]]) @ self.pairs
        split = (columns > 0) & (columns < self.counts)
        total: npt.NDArray[np.int64] = columns @ self.full - 2 * inside + split @ self.rings
        return total

    def slowest(self, columns: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        time_ns = self.full - columns @ self.remote + self.rings * (columns < self.counts)
        slowest: npt.NDArray[np.int64] = np.where(columns > 0, time_ns, 0).max(axis=1, initial=0)
        return slowest
