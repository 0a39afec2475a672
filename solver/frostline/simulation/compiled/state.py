"""Arrays that the loops of the compiled twin work on; times in microseconds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from frostline.simulation.compiled import kernel
from frostline.simulation.compiled.columns import Columns

__all__ = ["State", "state_of"]

Ints = npt.NDArray[np.int64]


class State(NamedTuple):
    """Who waits in which line, who runs where, and what has happened; columns are named in the kernel."""

    jobs: Ints
    """One row a job, in order of arrival."""
    lines: Ints
    """One row a line: the jobs of one shape, which wait in the order of the policy."""
    waits: Ints
    """Tree of least durations: of the job in each slot while it waits, then of 8 of them, and so on."""
    running: Ints
    """Ends and numbers of the running jobs, those that end first last."""
    loads: Ints
    """Servers and GPUs of all runs, in order of start."""
    free: Ints
    """Free GPUs now, and at the time that is reserved."""
    figures: Ints
    """Counters and the reservation."""


def state_of(columns: Columns, key: Ints, virtual_at: Ints, capacities: Sequence[int]) -> State:
    """State before the first job arrives.

    Parameters
    ----------
    columns : Columns
        The jobs, at least one.
    key : ndarray of int64, shape (n,)
        Key of each in the order of the policy, least first; ties go to the earlier one.
    virtual_at : ndarray of int64, shape (n,) or (0,)
        Virtual completion of each, in 1/G microseconds; empty where the policy does not ask.
    capacities : sequence of int
        GPUs of each server.
    """
    jobs = _jobs(columns, key)
    if len(virtual_at):
        jobs[:, kernel.DUE] = -(virtual_at // -sum(capacities))
        jobs[:, kernel.IN_VIRTUAL] = np.argsort(virtual_at, kind="stable")
    return State(
        jobs=jobs,
        lines=_lines(columns),
        waits=_tree(len(jobs)),
        running=np.empty((min(len(jobs), sum(capacities)), 2), np.int64),
        loads=np.empty((_most_loads(columns, len(capacities)), 2), np.int64),
        free=np.array([_all_free(capacities)] * 2),
        figures=_figures(),
    )


def _jobs(columns: Columns, key: Ints) -> Ints:
    """Jobs with their places in the order and their slots, which follow each other line by line."""
    count, order = len(key), np.argsort(key, kind="stable")
    in_slot = order[np.argsort(columns.line[order], kind="stable")]
    jobs = np.zeros((count, kernel.IN_VIRTUAL + 1), np.int64)
    jobs[:, kernel.RELEASE], jobs[:, kernel.DURATION] = columns.jobs.release_us, columns.jobs.duration_us
    jobs[:, kernel.LINE], jobs[:, kernel.IN_SLOT] = columns.line, in_slot
    jobs[in_slot, kernel.SLOT] = jobs[order, kernel.PLACE] = np.arange(count)
    return jobs


def _lines(columns: Columns) -> Ints:
    """Lines without anybody."""
    lines = np.zeros((len(columns.shapes), kernel.IN_ORDER + 1), np.int64)
    lines[:, kernel.GPUS] = [shape.gpus for shape in columns.shapes]
    lines[:, kernel.SERVERS] = [shape.most_servers for shape in columns.shapes]
    lines[:, kernel.LAST] = np.cumsum(np.bincount(columns.line, minlength=len(lines)))
    lines[:, kernel.HEAD], lines[:, kernel.RANK] = -1, kernel.NEVER
    lines[:, kernel.POSITION] = lines[:, kernel.IN_ORDER] = np.arange(len(lines))
    return lines


def _tree(slots: int) -> Ints:
    """Tree over so many slots, of whom nobody waits; every level is a multiple of 8 long."""
    begins, length = [kernel.TREE], slots
    while length > 1 or len(begins) == 1:
        length = -(length // -8)
        begins.append(begins[-1] + 8 * length)
    tree = np.full(begins[-1], kernel.NEVER, np.int64)
    tree[: kernel.TREE] = 0
    tree[: len(begins)] = begins
    return tree


def _most_loads(columns: Columns, servers: int) -> int:
    """Rows that the loads of all jobs, and of one more on offer, may take."""
    most = np.array([min(shape.gpus, shape.most_servers, servers) for shape in columns.shapes], np.int64)
    return int(most[columns.line].sum()) + servers


def _all_free(capacities: Sequence[int]) -> Ints:
    """Row of free GPUs where all are free."""
    servers, at_level = len(capacities), np.bincount(capacities)
    bits = np.zeros(-(len(at_level) * servers // -32) * 32, np.int64)
    bits[np.array(capacities) * servers + np.arange(servers)] = 1
    holes = (bits.reshape(-1, 32) << np.arange(32)).sum(axis=1)
    levels = kernel.BY_SERVER + servers
    head = [sum(capacities), servers, levels, levels + len(at_level)]
    return np.array([*head, *capacities, *at_level, *holes], np.int64)


def _figures() -> Ints:
    figures = np.zeros(kernel.ANYWHERE + 1, np.int64)
    figures[kernel.WAKE], figures[kernel.RESERVED] = kernel.NEVER, -1
    return figures
