"""Gradient statistics of the units of a live model, in the form of AdaScale."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from frostline.errors import InvalidValueError
from frostline.freezing.evidence import differenced_moments, gradient_moments
from frostline.freezing.live.batches import (
    Batch,
    Loss,
    as_batch,
    bare,
    loss_of,
    outputs_of,
    samples_in,
    untouched,
    with_tensors,
)
from frostline.freezing.live.model_units import ModelUnits
from frostline.units import as_int

__all__ = ["GradientMeter", "Moments", "batch_moments"]

Moments = tuple[tuple[float, float] | None, ...]
"""Square of the true gradient and variance at the batch, by unit; None where a unit has no gradient."""


class GradientMeter:
    """Gradient moments of each unit of a model while it trains, from consecutive gradients.

    Two consecutive gradients stand for two replicas, see
    :func:`~frostline.freezing.evidence.differenced_moments`; under a data-parallel wrapper they are gradients of the
    whole batch. A copy of the last gradient is kept.

    Parameters
    ----------
    model : torch.nn.Module
        The model.
    units : ModelUnits
        Its units.

    Examples
    --------
    >>> model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1))
    >>> meter = GradientMeter(model, ModelUnits.of(model))
    >>> for _ in range(2):
    ...     model.zero_grad()
    ...     model(torch.ones(3, 2)).mean().backward()
    ...     moments = meter.observe()
    >>> [variance for square, variance in moments]
    [0.0, 0.0]
    """

    def __init__(self, model: nn.Module, units: ModelUnits) -> None:
        self._parameters = units.trained(model)
        self._last: list[list[Tensor] | None] = [None] * len(units)

    def observe(self) -> Moments:
        """Moments after a backward pass, before gradients are set to zero.

        A unit that is frozen, or was in the pass before, has None.
        """
        return tuple(self._unit(position) for position in range(len(self._parameters)))

    def _unit(self, position: int) -> tuple[float, float] | None:
        grads = [parameter.grad for parameter in self._parameters[position]]
        last, now = self._last[position], [grad.detach().clone() for grad in grads if grad is not None]
        self._last[position] = now
        if not now or last is None or len(last) != len(now):
            return None
        mean = _square([(one + other) / 2 for one, other in zip(last, now, strict=True)])
        return differenced_moments(_square(last), _square(now), mean)


def batch_moments(
    model: nn.Module, example_batch: object, loss: Loss, units: ModelUnits, micro_batches: int = 4
) -> Moments:
    """Gradient moments of each unit from the parts of one batch.

    Each part stands for a replica, see :func:`~frostline.freezing.evidence.gradient_moments`; the variance is that of
    the gradient of the whole batch. Samples that make no whole part are left out. The model is left as it was.

    Parameters
    ----------
    model : torch.nn.Module
        The model.
    example_batch : (inputs, targets)
        A batch, samples along the first dimension of all its tensors.
    loss : callable
        Mean loss of outputs and targets.
    units : ModelUnits
        Its units.
    micro_batches : int, default 4
        Parts, at least 2.

    Raises
    ------
    InvalidValueError
        Fewer than two parts, or than one sample for each.

    Examples
    --------
    >>> model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1))
    >>> batch = (torch.ones(8, 2), torch.ones(8, 1))
    >>> [variance for square, variance in batch_moments(model, batch, nn.functional.mse_loss, ModelUnits.of(model))]
    [0.0, 0.0]
    """
    inner, batch = bare(model), as_batch(example_batch)
    count = as_int(micro_batches, "gradient", "micro_batches", 2)
    if samples_in(batch) < count:
        raise InvalidValueError("gradient", "micro_batches", micro_batches, "must be at most the samples of the batch")
    trained = units.trained(inner)
    with untouched(inner):
        grads = [_gradients(inner, part, loss, trained) for part in _parts(batch, count)]
    return tuple(_moments([part[position] for part in grads]) for position in range(len(units)))


def _parts(batch: Batch, count: int) -> list[Batch]:
    size = samples_in(batch) // count

    def part(i: int) -> Batch:
        inputs, targets = (with_tensors(side, lambda tensor: tensor[i * size : (i + 1) * size]) for side in batch)
        return inputs, targets

    return [part(i) for i in range(count)]


def _gradients(model: nn.Module, batch: Batch, loss: Loss, trained: Sequence[Sequence[Tensor]]) -> list[list[Tensor]]:
    """Gradients of each unit's parameters, zeros where the loss does not depend on one."""
    flat = [parameter for unit in trained for parameter in unit]
    value = loss_of(loss, outputs_of(model, batch[0]), batch[1])
    found = iter(torch.autograd.grad(value, flat, allow_unused=True, materialize_grads=True))
    return [[next(found) for _ in unit] for unit in trained]


def _moments(grads: Sequence[Sequence[Tensor]]) -> tuple[float, float] | None:
    if not grads[0]:
        return None
    mean = [sum(parts[1:], parts[0]) / len(grads) for parts in zip(*grads, strict=True)]
    mean_square = sum(_square(part) for part in grads) / len(grads)
    return gradient_moments(mean_square, _square(mean), len(grads))


def _square(tensors: Sequence[Tensor]) -> float:
    """Squared norm, in double precision."""
    squares = [torch.linalg.vector_norm(tensor, dtype=torch.float64) ** 2 for tensor in tensors]
    return float(torch.stack(squares).sum())
