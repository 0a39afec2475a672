"""Which engine runs a simulation: the reference, or its compiled twin."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from types import ModuleType

import numpy as np

from frostline.errors import InvalidValueError, UnknownNameError
from frostline.placement.jit import compiled, compiled_or_none
from frostline.policies.base import Policy
from frostline.policies.registry import make_policy
from frostline.problem.cluster import Cluster
from frostline.problem.instance import Instance
from frostline.problem.job import Fixed, Job
from frostline.relaxation.lagrangian import kernel as lagrangian
from frostline.simulation.compiled import NotCoveredError, Twin, kernel

__all__ = ["ENGINES", "loops_of", "twin_of"]

ENGINES = ("reference", "compiled", "auto")
"""Engines by name: the reference, its compiled twin, and the twin where it can be and there are jobs enough."""

_MANY = 10_000  # jobs from which on loading compiled code pays


def loops_of(engine: str, jobs: int) -> ModuleType | None:
    """Compiled loops for an engine and so many jobs; None where the reference is to run.

    Raises
    ------
    UnknownNameError
        No such engine.
    InvalidValueError
        The compiled engine is asked for, and nothing can be compiled.
    """
    if engine not in ENGINES:
        raise UnknownNameError("engine", str(engine), ENGINES)
    if engine == "reference" or (engine == "auto" and jobs < _MANY):
        return None
    loops = compiled_or_none(kernel)
    if loops is not None:
        _compile(loops)
    elif engine == "compiled":
        rule = "needs numba, which the extra fast brings, and that FROSTLINE_JIT is not 0"
        raise InvalidValueError("simulation", "engine", engine, rule)
    return loops


def twin_of(
    engine: str, loops: ModuleType | None, instance: Instance, policy: Policy, beyond: Iterable[str]
) -> Twin | None:
    """The compiled twin, before its run; None where the reference is to run.

    Parameters
    ----------
    engine : str
        One of :data:`ENGINES`.
    loops : module or None
        Compiled loops, see :func:`loops_of`.
    instance : Instance
        Cluster and jobs.
    policy : Policy
        The policy.
    beyond : iterable of str
        What else is asked for that the twin does not cover.

    Raises
    ------
    NotCoveredError
        The compiled engine is asked for and does not cover the case.
    """
    if loops is None:
        return None
    try:
        for what in beyond:
            raise NotCoveredError(what)
        return Twin(instance, policy, loops)
    except NotCoveredError:
        if engine == "compiled":
            raise
        return None


@cache
def _compile(loops: ModuleType) -> None:
    """Compile the loops now if they are not, and those of the virtual machine."""
    job = Job(id="a", release_s=0, work=Fixed(duration_s=1), gpus=1)
    Twin(Instance(cluster=Cluster.pool(1), jobs=(job,)), make_policy("fifo"), loops).run()
    compiled(lagrangian).shortest_remaining(np.zeros(1, np.int64), np.ones(1, np.int64))
