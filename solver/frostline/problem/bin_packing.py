"""Small bin packing: pieces of a few sizes that must each stay inside one bin of a given room."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise

import numpy as np
import numpy.typing as npt

__all__ = ["MAX_STEPS", "pack", "pack_replicas"]

Counts = tuple[int, ...]
"""Pieces of each size."""

MAX_STEPS = 200_000
"""Steps after which a search gives up."""


def pack(room: Sequence[int], sizes: Sequence[int], counts: Sequence[int]) -> tuple[list[Counts] | None, bool]:
    """Packing of pieces into bins of unequal room, and whether the answer is certain.

    The largest pieces first, each in the tightest bin, finds a packing if there is one where every size divides the
    next larger one: a piece then takes the same share of room wherever it is. Elsewhere bins are filled in turn, the
    tightest first, with sets of pieces that leave no room for another one, least waste first; what failed once is
    remembered. To put another piece that fits into an earlier bin never hurts, so that this is exact. It gives up after
    :data:`MAX_STEPS`, far more than jobs of a few sizes take.

    Parameters
    ----------
    room : sequence of int, shape (bins,)
        Room of each bin.
    sizes : sequence of int, shape (kinds,)
        Sizes of the pieces, descending and all different.
    counts : sequence of int, shape (kinds,)
        Number of pieces of each size.

    Returns
    -------
    list of tuple of int, shape (bins, kinds), or None
        Pieces of each size in each bin; None if no packing was found.
    bool
        Whether that is certain: True unless the search gave up.

    Examples
    --------
    >>> pack([53, 31], [50, 30], [1, 1])
    ([(1, 0), (0, 1)], True)
    >>> pack([8, 16, 16], [16, 8], [2, 1])
    ([(0, 1), (1, 0), (1, 0)], True)
    >>> pack([6, 8], [4, 3], [2, 2]), pack([6, 7], [4, 3], [2, 2])
    (([(0, 2), (2, 0)], True), (None, True))
    """
    found = _greedy(room, sizes, counts)
    divisible = all(larger % smaller == 0 for larger, smaller in pairwise(sizes))
    if found is not None or divisible:
        return found, True
    return _searched(room, sizes, counts)


def pack_replicas(
    room: Sequence[int], gpus_per_replica: Sequence[int], replicas: Sequence[int]
) -> tuple[npt.NDArray[np.int64] | None, bool]:
    """Replicas of each stage in each bin, shape (bins, stages), or None; and whether that is certain.

    Of stages with equal replicas, the bins get those of the first stages first.

    Examples
    --------
    >>> matrix, certain = pack_replicas([4, 3], [1, 2, 2], [1, 1, 2])
    >>> matrix.tolist(), certain
    ([[0, 1, 1], [1, 0, 1]], True)
    """
    sizes = sorted(set(gpus_per_replica), reverse=True)
    alike = [[s for s, gpus in enumerate(gpus_per_replica) if gpus == size] for size in sizes]
    bins, certain = pack(room, sizes, [sum(replicas[s] for s in stages) for stages in alike])
    if bins is None:
        return None, certain
    matrix, left = np.zeros((len(room), len(replicas)), np.int64), list(replicas)
    for row, pieces in enumerate(bins):
        for stages, count in zip(alike, pieces, strict=True):
            for s in stages:
                taken = min(count, left[s])
                matrix[row, s], left[s], count = taken, left[s] - taken, count - taken
    return matrix, certain


def _greedy(room: Sequence[int], sizes: Sequence[int], counts: Sequence[int]) -> list[Counts] | None:
    """Largest pieces first, each in the tightest bin that holds it."""
    left = list(room)
    found = [[0] * len(sizes) for _ in room]
    for kind, (size, count) in enumerate(zip(sizes, counts, strict=True)):
        for bin_ in sorted((b for b, free in enumerate(left) if free >= size), key=lambda b: (left[b], b)):
            taken = min(count, left[bin_] // size)
            found[bin_][kind] = taken
            left[bin_] -= taken * size
            count -= taken
        if count:
            return None
    return [tuple(pieces) for pieces in found]


def _searched(room: Sequence[int], sizes: Sequence[int], counts: Sequence[int]) -> tuple[list[Counts] | None, bool]:
    """Depth-first search over the bins, tightest first."""
    order = sorted(range(len(room)), key=lambda b: (room[b], b))
    rest = _Rest([room[b] for b in order], sizes)
    failed: set[tuple[int, Counts]] = set()
    left: list[Counts] = [tuple(counts)]
    untried = [rest.fillings(0, left[0])]
    chosen: list[Counts] = []
    steps = len(untried[0])
    while untried and any(left[-1]):
        if steps > MAX_STEPS:
            return None, False
        if not untried[-1]:
            untried.pop()
            failed.add((len(untried), left.pop()))
            chosen = chosen[:-1]
            continue
        filling = untried[-1].pop()
        bin_, after = len(untried), tuple(a - b for a, b in zip(left[-1], filling, strict=True))
        if (bin_, after) not in failed and rest.may_hold(bin_, after):
            chosen.append(filling)
            left.append(after)
            untried.append(rest.fillings(bin_, after))
            steps += len(untried[-1])
    if not untried:
        return None, True
    nothing = (0,) * len(sizes)
    by_bin = dict(zip(order, chosen, strict=False))
    return [by_bin.get(b, nothing) for b in range(len(room))], True


class _Rest:
    """The bins from each on."""

    def __init__(self, bins: Sequence[int], sizes: Sequence[int]) -> None:
        self._bins, self._sizes = bins, sizes
        self._room = [sum(bins[b:]) for b in range(len(bins) + 1)]
        self._most = [[sum(free // size for free in bins[b:]) for size in sizes] for b in range(len(bins) + 1)]

    def may_hold(self, bin_: int, left: Counts) -> bool:
        """Whether pieces may fit: those of one size or a larger one take the room of a piece of that size each."""
        if sum(count * size for count, size in zip(left, self._sizes, strict=True)) > self._room[bin_]:
            return False
        return all(larger <= most for larger, most in zip(accumulate(left), self._most[bin_], strict=True))

    def fillings(self, bin_: int, left: Counts) -> list[Counts]:
        """Sets of pieces for a bin that leave no room for a further piece, least waste last."""
        if bin_ == len(self._bins):
            return []
        found = []
        for filling, waste in _choices(self._bins[bin_], self._sizes, left):
            more = (size for size, count, taken in zip(self._sizes, left, filling, strict=True) if count > taken)
            if waste < min(more, default=waste + 1):
                found.append((-waste, filling))
                if len(found) > MAX_STEPS:
                    break
        return [filling for _, filling in sorted(found)]


def _choices(room: int, sizes: Sequence[int], left: Counts) -> Iterator[tuple[Counts, int]]:
    """Sets of pieces within a room, as many of the last size as fit, with the room they waste."""
    if not sizes:
        yield (), room
        return
    most = min(left[0], room // sizes[0])
    for taken in range(most, -1 if len(sizes) > 1 else most - 1, -1):
        for rest, waste in _choices(room - taken * sizes[0], sizes[1:], left[1:]):
            yield (taken, *rest), waste
