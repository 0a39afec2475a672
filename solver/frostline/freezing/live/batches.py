"""Running a model on a batch without leaving a trace."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from frostline.errors import InvalidValueError

__all__ = [
    "Batch",
    "Loss",
    "as_batch",
    "bare",
    "loss_of",
    "outputs_of",
    "samples_in",
    "tensors_in",
    "untouched",
    "with_tensors",
]

Batch = tuple[Any, Any]
"""Inputs and targets. Inputs are a tensor, a tuple of positional arguments, or a mapping of keyword arguments."""

Loss = Callable[[Any, Any], Tensor]
"""Scalar loss of outputs and targets."""


def bare(model: nn.Module) -> nn.Module:
    """The model inside a data-parallel wrapper, or the model itself."""
    if isinstance(model, (nn.DataParallel, nn.parallel.DistributedDataParallel)):
        return model.module
    if not isinstance(model, nn.Module):
        raise InvalidValueError("live model", "model", type(model).__name__, "must be a torch.nn.Module")
    return model


def as_batch(batch: object) -> Batch:
    """A batch, checked: a pair of inputs and targets, with a tensor of samples among the inputs."""
    if not isinstance(batch, (tuple, list)) or len(batch) != 2:
        raise InvalidValueError("live model", "example_batch", type(batch).__name__, "must be inputs and targets")
    inputs = next(iter(tensors_in(batch[0])), None)
    if inputs is None or inputs.dim() == 0 or len(inputs) == 0:
        raise InvalidValueError("live model", "example_batch", batch[0], "must hold a tensor of at least one sample")
    return batch[0], batch[1]


def samples_in(batch: Batch) -> int:
    """Samples of a batch: the first dimension of its first tensor."""
    return len(tensors_in(batch[0])[0])


def outputs_of(model: nn.Module, inputs: Any) -> Any:
    """What the model returns for the inputs of a batch."""
    if isinstance(inputs, Mapping):
        return model(**inputs)
    return model(*inputs) if isinstance(inputs, (tuple, list)) else model(inputs)


def loss_of(loss: Loss, outputs: Any, targets: Any) -> Tensor:
    """Loss of outputs, checked.

    Raises
    ------
    InvalidValueError
        It is no scalar tensor that depends on trained parameters.
    """
    value = loss(outputs, targets)
    if not isinstance(value, Tensor) or value.dim() != 0 or not value.requires_grad:
        raise InvalidValueError("live model", "loss", value, "must be a scalar tensor with a gradient")
    return value


def tensors_in(value: Any) -> list[Tensor]:
    """Tensors in a tensor, tuple, list or mapping, in order.

    Examples
    --------
    >>> len(tensors_in({"a": torch.zeros(1), "b": (torch.ones(2), None)}))
    2
    """
    if isinstance(value, Tensor):
        return [value]
    if isinstance(value, Mapping):
        return [tensor for part in value.values() for tensor in tensors_in(part)]
    return [tensor for part in value for tensor in tensors_in(part)] if isinstance(value, (tuple, list)) else []


def with_tensors(value: Any, change: Callable[[Tensor], Tensor]) -> Any:
    """The same structure with every tensor changed.

    Examples
    --------
    >>> with_tensors([torch.ones(()), None], lambda tensor: tensor + 1)
    [tensor(2.), None]
    """
    if isinstance(value, Tensor):
        return change(value)
    if isinstance(value, Mapping):
        return type(value)(**{name: with_tensors(part, change) for name, part in value.items()})
    if isinstance(value, (tuple, list)):
        parts = [with_tensors(part, change) for part in value]
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    return value


@contextmanager
def untouched(model: nn.Module) -> Iterator[None]:
    """Training mode whose effects on the model and on random numbers are undone at the end.

    Restored are buffers, such as running statistics, training modes, which parameters need gradients, and the state of
    the random number generators. A model that is in training mode keeps the modes of its modules.
    """
    buffers = [
        (module, name, tensor, tensor.detach().clone())
        for module in model.modules()
        for name, tensor in module.named_buffers(recurse=False)
    ]
    modes = [(module, module.training) for module in model.modules()]
    needs = [(parameter, parameter.requires_grad) for parameter in model.parameters()]
    devices = {tensor.device.index for tensor in model.parameters() if tensor.device.type == "cuda"}
    with torch.random.fork_rng(devices=sorted(devices)), torch.enable_grad():
        try:
            if not model.training:
                model.train()
            yield
        finally:
            with torch.no_grad():
                for module, name, tensor, before in buffers:
                    setattr(module, name, tensor.copy_(before))
            for module, mode in modes:
                module.training = mode
            for parameter, need in needs:
                parameter.requires_grad_(need)
