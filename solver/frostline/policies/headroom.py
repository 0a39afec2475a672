"""Graded headroom: GPUs that must stay free beside a large job when it starts."""

from __future__ import annotations

from fractions import Fraction

__all__ = ["headroom_gpus"]


def headroom_gpus(size: int, small: int, share: Fraction, others: int) -> int:
    """GPUs to be left free beside a job: a share of the others for each doubling of its size.

    Small jobs come often and wait little if a few GPUs are kept for them; a large job is rare, holds its GPUs for
    long, and loses little by waiting for them. Telephony knows the idea as trunk reservation.

    Parameters
    ----------
    size : int
        Size of the job.
    small : int
        Size up to which no headroom is asked, in the same unit, above 0.
    share : Fraction
        Share of the others for each doubling of the size beyond ``small``; doublings count in eighths, rounded down,
        so that the result is exact.
    others : int
        GPUs of the cluster beside those of the job; the headroom never exceeds them.

    Examples
    --------
    >>> [headroom_gpus(size, 10, Fraction(1, 100), 400) for size in (10, 20, 30, 40, 2**50, 2**200)]
    [0, 4, 6, 8, 186, 400]
    """
    if size <= small:
        return 0
    eighths = (size**8 // small**8).bit_length() - 1
    return min(share.numerator * eighths * others // (8 * share.denominator), others)
