"""GPUs of a job where a trace tells them otherwise than as one whole number.

Every function takes the texts of cells, and whether fractions are rounded up by instance of a task; it returns a whole
number or raises ``BrokenRuleError``.
"""

from __future__ import annotations

import math
from fractions import Fraction

from frostline.traces.cells import MISSING, MOST_GPUS, gpu_count, number
from frostline.traces.rules import BrokenRuleError

__all__ = ["first_gpus", "percent_gpus", "shared_gpus", "slurm_gpus"]

_GPU = "gres/gpu"


def first_gpus(allocated: str, requested: str, by_instance: bool = False) -> int:
    """GPUs that a job held or, where that is not known, those it asked for.

    Examples
    --------
    >>> first_gpus("4", "8"), first_gpus("", "8")
    (4, 8)
    """
    return gpu_count(requested if allocated.strip() in MISSING else allocated)


def slurm_gpus(allocated: str, requested: str, by_instance: bool = False) -> int:
    """GPUs among the trackable resources of Slurm that a job held or, where none are told, those it asked for.

    GPUs of a type are added up where no total is told.

    Examples
    --------
    >>> slurm_gpus("billing=97,cpu=1,gres/gpu=8,node=1", ""), slurm_gpus("", "gres/gpu:a100=2,gres/gpu:h100=1")
    (8, 3)
    """
    told = requested if allocated.strip() in MISSING else allocated
    if told.strip() in MISSING:
        raise BrokenRuleError("missing_value")
    counts = dict(part.partition("=")[::2] for part in told.strip().split(","))
    if _GPU in counts:
        return gpu_count(counts[_GPU])
    typed = [_whole(count) for name, count in counts.items() if name.startswith(f"{_GPU}:")]
    return gpu_count(str(sum(typed)))


def percent_gpus(percent: str, instances: str, by_instance: bool = False) -> int:
    """GPUs of a task of PAI: hundredths of a GPU that each instance asks for, and the number of instances.

    Examples
    --------
    >>> percent_gpus("50", "4"), percent_gpus("800.0", "2")
    (2, 16)
    """
    if percent.strip() in MISSING:
        raise BrokenRuleError("cpu_only")
    if number(percent, "bad_gpus", "bad_gpus") == 0:
        raise BrokenRuleError("cpu_only")
    share, count = Fraction(percent.strip()) / 100, _whole(instances)
    if not 0 < share * count <= MOST_GPUS:
        raise BrokenRuleError("bad_gpus")
    if (share if by_instance else share * count).denominator != 1:
        raise BrokenRuleError("fractional_gpus", math.ceil(share) * count if by_instance else math.ceil(share * count))
    return int(share * count)


def shared_gpus(gpus: str, milli: str, by_instance: bool = False) -> int:
    """GPUs of a pod of openb: whole ones, but thousandths of a GPU count where it asks for one.

    Examples
    --------
    >>> shared_gpus("8", "1000"), shared_gpus("1", "1000")
    (8, 1)
    """
    whole = gpu_count(gpus)
    if whole != 1 or milli.strip() in MISSING:
        return whole
    share = number(milli, "bad_gpus", "bad_gpus") / 1000
    if share > 1:
        raise BrokenRuleError("bad_gpus")
    return gpu_count(str(share))


def _whole(text: str) -> int:
    """Whole number of which something else is made, so that nothing can stand in for it."""
    value = number(text, "bad_gpus", "bad_gpus")
    if value < 0 or value != int(value):
        raise BrokenRuleError("bad_gpus")
    return int(value)
