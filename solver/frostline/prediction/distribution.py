"""What is believed of a job's size: a few equally likely values."""

from __future__ import annotations

import math
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from frostline.errors import InvalidValueError
from frostline.prediction.size import on_grid

__all__ = ["SizeDistribution"]

_MARGIN = 1.00001
_POWERS = np.array([float(10**places) for places in range(23)])


class SizeDistribution:
    """Equally likely sizes of a job, sorted.

    Parameters
    ----------
    points : iterable of float
        The sizes, at least one, each positive and finite, in iterations or in seconds.

    Raises
    ------
    InvalidValueError
        There is no point, or one of them is no positive number.

    Examples
    --------
    >>> sizes = SizeDistribution([30, 10, 20, 1000, 40])
    >>> sizes.median, sizes.quantile(0.9), sizes.beyond(35).points, sizes.beyond(5000).points
    (30.0, 1000.0, (40.0, 1000.0), (10000.0,))
    """

    __slots__ = ("_base", "_done", "_first", "_scale")

    def __init__(self, points: Iterable[float]) -> None:
        base = sorted(map(on_grid, points))
        for point in base[:1] + base[-1:]:
            if not 0.0 < point < math.inf:
                raise InvalidValueError("size distribution", "points", point, "must be positive and finite")
        if not base:
            raise InvalidValueError("size distribution", "points", [], "must not be empty")
        self._base: Sequence[float] = base
        self._scale, self._first, self._done = 0.0, 0, 0.0  # scale 0: the base is on the grid

    @classmethod
    def scaled(cls, ratios: Sequence[float], centre: float) -> SizeDistribution:
        """Points at a centre times each of some ascending ratios, which are worked out only when they are looked at.

        Examples
        --------
        >>> SizeDistribution.scaled((0.5, 1.0, 3.0), 20.0)
        SizeDistribution([10.0, 20.0, 60.0])
        """
        sizes = cls.__new__(cls)
        sizes._base, sizes._scale, sizes._first, sizes._done = ratios, centre, 0, 0.0
        if not (ratios and ratios[0] * centre > 0.0 and ratios[-1] * centre < math.inf):
            raise InvalidValueError("size distribution", "points", [centre, *ratios], "must be positive and finite")
        return sizes

    def _at(self, index: int) -> float:
        """The point at a rank of the base."""
        point = on_grid(self._base[index] * self._scale) if self._scale else self._base[index]
        return on_grid(point - self._done) if self._done else point

    @property
    def points(self) -> tuple[float, ...]:
        """All points, in order."""
        return tuple(map(self._at, range(self._first, len(self._base))))

    def __len__(self) -> int:
        return len(self._base) - self._first

    @classmethod
    def of_rows(cls, rows: NDArray[np.float64]) -> list[SizeDistribution]:
        """One distribution per row of a matrix, as if made of the row's values, but many at once.

        Raises
        ------
        InvalidValueError
            There is no column, or a value is no positive number.

        Examples
        --------
        >>> SizeDistribution.of_rows(np.array([[30.0, 10.0], [1234.56789, 5.0]]))
        [SizeDistribution([10.0, 30.0]), SizeDistribution([5.0, 1234.57])]
        """
        bad = rows[~((rows > 0.0) & (rows < math.inf))]
        if bad.size or not rows.shape[1]:
            shown: object = float(bad[0]) if bad.size else []
            raise InvalidValueError("size distribution", "points", shown, "must be positive, finite and not empty")
        made, points, width = [], np.sort(_all_on_grid(rows), axis=1).tobytes(), rows.shape[1] * rows.itemsize
        for start in range(0, len(points), width):
            one = cls.__new__(cls)
            one._base, one._scale, one._first, one._done = array("d", points[start : start + width]), 0.0, 0, 0.0
            made.append(one)
        return made

    def quantile(self, share: float) -> float:
        """Least point such that at least this share of the points, from 0 to 1, is not above it."""
        first = self._first
        count = len(self._base) - first
        rank = math.ceil(share * count - 1e-9)
        return self._at(first + (1 if rank < 1 else count if rank > count else rank) - 1)

    def within(self, least: float, most: float) -> bool:
        """Whether no point lies below ``least`` or above ``most``.

        Examples
        --------
        >>> [SizeDistribution([10, 20]).within(*limits) for limits in ((10, 20), (10, 19), (11, 20))]
        [True, False, False]
        """
        base, first = self._base, self._first
        if self._scale and not self._done:
            low, high = base[first] * self._scale, base[-1] * self._scale
            if least * _MARGIN <= low and high * _MARGIN <= most:
                return True  # and rounding to the grid cannot change that
        return least <= self._at(first) and self._at(len(base) - 1) <= most

    @property
    def median(self) -> float:
        """Middle point; the geometric mean of the middle two where their number is even."""
        middle, odd = divmod(len(self._base) - self._first, 2)
        upper = self._at(self._first + middle)
        return upper if odd else on_grid(math.sqrt(self._at(self._first + middle - 1)) * math.sqrt(upper))

    def beyond(self, done: float) -> SizeDistribution:
        """Distribution given that the size is above ``done``.

        Where no point is, the job is believed to be half done: the longer it has run, the longer it will.
        """
        first = bisect_right(range(len(self._base)), done, self._first, key=self._at)
        if first == len(self._base):
            return SizeDistribution((2.0 * done,))
        rest = SizeDistribution.__new__(SizeDistribution)
        rest._base, rest._scale, rest._first, rest._done = self._base, self._scale, first, self._done
        return rest

    def left_after(self, done: float) -> SizeDistribution:
        """Distribution of what is left, given that the size is above ``done``.

        Examples
        --------
        >>> SizeDistribution([10, 30, 50]).left_after(20)
        SizeDistribution([10.0, 30.0])
        """
        rest = self.beyond(done)
        rest._done += done
        return rest if rest._at(rest._first) > 0.0 else SizeDistribution((done,))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SizeDistribution) and self.points == other.points

    def __hash__(self) -> int:
        return hash(self.points)

    def __repr__(self) -> str:
        return f"SizeDistribution({list(self.points)})"


def _all_on_grid(sizes: NDArray[np.float64]) -> NDArray[np.float64]:
    """Sizes rounded to six significant digits.

    Powers of ten up to 10^22 and whole numbers of six digits are exact, and one of the two powers is 1, so the one
    multiplication or division that puts them together rounds as reading the decimal would.
    """
    places = 5 - np.floor(np.log10(sizes)).astype(np.int64)
    up, down = _POWERS[np.clip(places, 0, 22)], _POWERS[np.clip(-places, 0, 22)]
    rounded: NDArray[np.float64] = np.rint(sizes * up / down) / up * down
    return rounded
