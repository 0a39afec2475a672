"""What the work of each task is worth: the prices of work for which the mean completion time is least.

Let tasks with concave or any other speedups share GPUs, and nothing arrive. In an optimum the tasks take, at every
instant, GPUs k_i that maximise ``Σ p_i r_i(k_i)`` for prices p_i that stay the same until a task completes, and that
maximum is the number of tasks left (Pontryagin's principle: the Hamiltonian of ``∫ n(t) dt`` is 0). So the prices
depend on the order of completion alone: task m, the m-th from the last, has the least price at which

    ``max_k p_m r_m(k) + Φ_(m-1)(G - k) = m``,

Φ_(m-1)(g) being what those that complete later are worth on g GPUs. Where all speedups are ``k^p`` this is heSRPT (B.
Berg, R. Vesilo, M. Harchol-Balter, *heSRPT: Parallel scheduling to minimize mean slowdown*, Performance Evaluation 144,
2020); where they are linear it is SRPT. For whole GPUs and speedups that are measured it is a table of G entries.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from frostline.policies.elastic.options import Floats, Ints

__all__ = ["completion_order", "work_prices"]


def work_prices(order: Sequence[int], rates: Sequence[Floats], widths: Sequence[Ints], gpus: int) -> Floats:
    """Price of a unit of work of each task.

    Parameters
    ----------
    order : sequence of int, shape (tasks,)
        Tasks in the order of completion, the last one first.
    rates : sequence of ndarray of float64, each of shape (options,)
        Units of work a second of the options of each task.
    widths : sequence of ndarray of int64, each of shape (options,)
        Their GPUs, from 1 and at most all.
    gpus : int
        GPUs of the cluster.

    Returns
    -------
    ndarray of float64, shape (tasks,)

    Examples
    --------
    Linear speedups: the price is the number of tasks that wait for the work, over the GPUs.

    >>> linear = np.arange(1, 5)
    >>> (4 * work_prices([1, 0], [linear.astype(float)] * 2, [linear] * 2, 4)).tolist()
    [2.0, 1.0]
    """
    worth, prices = np.zeros(gpus + 1), np.zeros(len(order))
    for count, task in enumerate(order, 1):
        wide, rate = widths[task], rates[task]
        price = prices[task] = ((count - worth[gpus - wide]) / rate).min()
        better = worth.copy()
        for k, gain in zip(wide.tolist(), (price * rate).tolist(), strict=True):
            np.maximum(better[k:], worth[: gpus + 1 - k] + gain, out=better[k:])
        worth = better
    return prices


def completion_order(left: Floats, rates: Sequence[Floats], gpu_s: Floats, gpus: int) -> list[int]:
    """Tasks in the order in which they are expected to complete, the last one first; of equal ones the earlier one.

    That is by the time that a task would take on the whole cluster, if it lost nothing, and at its best width.

    Parameters
    ----------
    left, gpu_s : ndarray of float64, shape (tasks,)
        Units of work left, and GPU-seconds of one.
    rates : sequence of ndarray of float64
        Units of work a second of the options of each task.
    gpus : int
        GPUs of the cluster.
    """
    fastest = np.array([rate.max() for rate in rates])
    order: list[int] = np.argsort(-left * (gpu_s / gpus + 1.0 / fastest), kind="stable").tolist()
    return order
