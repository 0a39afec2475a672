"""Measured step times of a live model at some freeze levels."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from statistics import median

from torch import nn
from torch.optim import Optimizer

from frostline.freezing.live.batches import Batch, Loss, as_batch, bare, loss_of, outputs_of, untouched
from frostline.freezing.live.clock import Clock
from frostline.freezing.live.controller import FreezeController
from frostline.freezing.live.model_units import ModelUnits
from frostline.units import as_int

__all__ = ["step_seconds"]

_TURN = 4


def step_seconds(
    model: nn.Module,
    example_batch: object,
    loss: Loss,
    optimizer: Optimizer,
    units: ModelUnits,
    frozen: Iterable[int],
    repeats: int = 10,
) -> dict[int, float]:
    """Seconds of a training step by number of frozen units: forward, backward and optimizer, without data or exchange.

    Those of nothing and of all units but the head calibrate
    :meth:`~frostline.freezing.profiled.LevelTimes.two_point`. Numbers of units take turns of four steps, so that what
    disturbs the machine disturbs all alike; the first step of a turn does not count, since caches still hold what
    another number used. Steps are made by a copy of the model and of the optimizer.

    Parameters
    ----------
    model : torch.nn.Module
        The model, nothing of it frozen by a controller.
    example_batch : (inputs, targets)
        A batch.
    loss : callable
        Scalar loss of outputs and targets.
    optimizer : torch.optim.Optimizer
        The optimizer.
    units : ModelUnits
        The units.
    frozen : iterable of int
        Numbers of frozen units.
    repeats : int, default 10
        Turns of each, after one that does not count; the median step is taken.

    Returns
    -------
    dict of int to float
        Seconds, by number of frozen units.

    Examples
    --------
    >>> import torch
    >>> model = nn.Sequential(nn.Linear(4, 3), nn.Linear(3, 2))
    >>> batch = (torch.zeros(8, 4), torch.zeros(8, dtype=torch.long))
    >>> optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    >>> sorted(step_seconds(model, batch, nn.functional.cross_entropy, optimizer, ModelUnits.of(model), (0, 1)))
    [0, 1]
    """
    batch = as_batch(example_batch)
    rounds = as_int(repeats, "step time", "repeats", 1)
    counts = sorted({units.frozen(count) for count in frozen})
    inner, own = copy.deepcopy((bare(model), optimizer))
    controller = FreezeController(inner, units, own)
    clock = Clock(next(inner.parameters()).device)
    seconds: dict[int, list[float]] = {count: [] for count in counts}
    with untouched(inner):
        for _ in range(rounds + 1):
            for count in counts:
                controller.freeze(count)
                turn = [clock.timed(lambda: _step(inner, batch, loss, own))[1] for _ in range(_TURN)]
                seconds[count] += turn[1:]
    return {count: median(times[_TURN - 1 :]) for count, times in seconds.items()}


def _step(model: nn.Module, batch: Batch, loss: Loss, optimizer: Optimizer) -> None:
    value = loss_of(loss, outputs_of(model, batch[0]), batch[1])
    optimizer.zero_grad(set_to_none=True)
    value.backward()
    optimizer.step()
