"""What each unit of a live model takes: time by part of a step, bytes, and gradient statistics."""

from __future__ import annotations

import copy
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from statistics import median
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from frostline.freezing.live.batches import (
    Batch,
    Loss,
    as_batch,
    bare,
    loss_of,
    outputs_of,
    samples_in,
    tensors_in,
    untouched,
    with_tensors,
)
from frostline.freezing.live.clock import Clock
from frostline.freezing.live.gradients import Moments, batch_moments
from frostline.freezing.live.model_units import ModelUnits, check_cuts, find_units
from frostline.freezing.units import FreezeUnit, FreezeUnits
from frostline.units import as_int

__all__ = ["ModelProfile", "UnitProfile", "profile_units"]

_WARM_UP = 3
_FP32 = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitProfile:
    """What one unit takes in one step of a batch.

    Parameters
    ----------
    name : str
        Name of the module that ends the unit, ``"head"`` for the last one.
    forward_s : float
        Seconds of the forward pass.
    weight_gradient_s : float
        Seconds of the backward pass where no unit before this one is trained.
    input_gradient_s : float
        Seconds that the gradient of its input adds.
    optimizer_s : float
        Seconds of the optimizer on its parameters.
    params : int
        Its trained parameters.
    parameter_bytes : int
        Bytes of these.
    saved_bytes : int
        Bytes of activations kept for its backward pass; what two units read is kept for the later one.
    output_bytes, output_elements : int
        Size of its output.
    moments : (float, float) or None
        Square of its true gradient, and the variance of that of the batch; None without trained parameters.
    """

    name: str
    forward_s: float
    weight_gradient_s: float
    input_gradient_s: float
    optimizer_s: float
    params: int
    parameter_bytes: int
    saved_bytes: int
    output_bytes: int
    output_elements: int
    moments: tuple[float, float] | None

    def freeze_unit(self, samples: int) -> FreezeUnit:
        """The unit with seconds of a step as its work; sizes per sample, activations as at fp32."""
        at_fp32 = self.saved_bytes * _FP32 * self.output_elements
        return FreezeUnit(
            forward=self.forward_s,
            weight_gradient=self.weight_gradient_s,
            input_gradient=self.input_gradient_s,
            optimizer=self.optimizer_s,
            params=self.params,
            saved_bytes=-(-at_fp32 // (samples * max(self.output_bytes, 1))),
            output_elements=-(-self.output_elements // samples),
            name=self.name,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelProfile:
    """Profile of the units of a live model.

    Parameters
    ----------
    model_units : ModelUnits
        The units.
    units : tuple of UnitProfile
        What each takes.
    samples : int
        Samples of the batch.
    """

    model_units: ModelUnits
    units: tuple[UnitProfile, ...]
    samples: int

    def freeze_units(self) -> FreezeUnits:
        """The units for the choice of levels, with seconds of a step as their work."""
        return FreezeUnits(tuple(unit.freeze_unit(self.samples) for unit in self.units))

    @property
    def moments(self) -> Moments:
        """Gradient moments by unit, as :meth:`~frostline.freezing.evidence.GradientEvidence.observe` takes them."""
        return tuple(unit.moments for unit in self.units)


def profile_units(
    model: nn.Module,
    example_batch: object,
    loss: Loss,
    units: ModelUnits | Sequence[nn.Module] | None = None,
    repeats: int = 20,
    *,
    optimizer: Optimizer | None = None,
    micro_batches: int = 4,
) -> ModelProfile:
    """Profile each freeze unit of a live model in training mode.

    Each unit's backward pass is run on its own, with and without the gradient of its input. Times are medians: CPU time
    of the calling thread, or CUDA events on a GPU. The model, its gradients, running statistics, random numbers and the
    optimizer are left as they were.

    Parameters
    ----------
    model : torch.nn.Module
        The model, nothing of it frozen by a controller.
    example_batch : (inputs, targets)
        A batch; inputs are a tensor, a tuple of arguments, or a mapping of keyword arguments.
    loss : callable
        Mean loss of outputs and targets.
    units : ModelUnits or sequence of torch.nn.Module, optional
        Units, or modules that end them; by default those of :func:`~frostline.freezing.live.find_units`. Each has to
        end where every path crosses.
    repeats : int, default 20
        Steps measured, after three that do not count.
    optimizer : torch.optim.Optimizer, optional
        Its time is measured, with a state of its own; without one that time is 0.
    micro_batches : int, default 4
        Parts of the batch for the gradient moments, at least 2.

    Raises
    ------
    InvalidValueError
        A unit ends elsewhere, or the batch or the loss is none.

    Examples
    --------
    >>> model = nn.Sequential(nn.Linear(8, 4), nn.ReLU(), nn.Linear(4, 2))
    >>> batch = (torch.zeros(16, 8), torch.zeros(16, dtype=torch.long))
    >>> profile = profile_units(model, batch, nn.functional.cross_entropy, repeats=2)
    >>> [(unit.name, unit.params, unit.saved_bytes, unit.output_bytes) for unit in profile.units]
    [('1', 36, 512, 256), ('head', 10, 516, 128)]
    """
    inner, batch = bare(model), as_batch(example_batch)
    rounds = as_int(repeats, "profile", "repeats", 1)
    found = _checked(inner, batch, loss, units)
    clock = Clock(tensors_in(list(inner.parameters()))[0].device)
    trained = found.trained(inner)
    with untouched(inner):
        times = _Times.measured(inner, batch, loss, found, clock, rounds)
        sizes = _sizes(inner, batch, loss, found)
    optimizing = [0.0] * len(found) if optimizer is None else _optimizer_s(optimizer, trained, clock, rounds)
    moments = batch_moments(inner, batch, loss, found, micro_batches)
    profiles = [
        UnitProfile(
            name=unit.end or "head",
            forward_s=median(times.forward_s[i]),
            weight_gradient_s=max(median(times.weight_s[i]) - times.call_s, 0.0),
            input_gradient_s=median(times.input_s[i]),
            optimizer_s=optimizing[i],
            params=sum(parameter.numel() for parameter in trained[i]),
            parameter_bytes=sum(parameter.nbytes for parameter in trained[i]),
            saved_bytes=sizes.saved[i],
            output_bytes=sizes.output[i],
            output_elements=sizes.elements[i],
            moments=moments[i],
        )
        for i, unit in enumerate(found)
    ]
    return ModelProfile(model_units=found, units=tuple(profiles), samples=samples_in(batch))


def _checked(model: nn.Module, batch: Batch, loss: Loss, units: ModelUnits | Sequence[nn.Module] | None) -> ModelUnits:
    if not isinstance(units, ModelUnits):
        return find_units(model, batch, loss, units)
    check_cuts(model, batch, loss, units)
    return units


@contextmanager
def _hooked(model: nn.Module, units: ModelUnits, hook: Callable[[Any], Any]) -> Iterator[None]:
    """Call a hook with the outputs at the end of every unit but the head; what it returns replaces them."""
    ends = [model.get_submodule(unit.end) for unit in units.units[:-1]]
    handles = [end.register_forward_hook(lambda module, inputs, outputs: hook(outputs)) for end in ends]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


@dataclass(slots=True)
class _Pass:
    """A forward pass whose graph is parted at the ends of units.

    ``outputs[u]`` are what unit u returns, ``inputs[u]`` the leaves that it starts from, without those of the data.
    """

    clock: Clock
    marks: list[Any] = field(default_factory=list)
    outputs: list[list[Tensor]] = field(default_factory=list)
    inputs: list[list[Tensor]] = field(default_factory=lambda: [[]])

    @classmethod
    def run(cls, model: nn.Module, batch: Batch, loss: Loss, units: ModelUnits, clock: Clock) -> _Pass:
        """Forward pass of a batch, the loss included."""
        record = cls(clock)
        with _hooked(model, units, record.end_unit):
            record.marks.append(clock.now())
            value = loss_of(loss, outputs_of(model, batch[0]), batch[1])
            record.marks.append(clock.now())
        record.outputs.append([value])
        return record

    def end_unit(self, outputs: Any) -> Any:
        """Part the graph; the copy protects outputs from being changed in place by the next unit."""
        self.marks.append(self.clock.now())
        self.outputs.append([])
        self.inputs.append([])
        parted = with_tensors(outputs, self._part)
        self.marks.append(self.clock.now())
        return parted

    def _part(self, tensor: Tensor) -> Tensor:
        if not tensor.is_floating_point():
            return tensor
        leaf = tensor.detach().requires_grad_()
        self.outputs[-1].append(tensor)
        self.inputs[-1].append(leaf)
        return leaf.clone()

    def forward_s(self) -> list[float]:
        """Seconds of each unit."""
        marks = iter(self.marks)
        return [self.clock.seconds(start, end) for start, end in zip(marks, marks, strict=True)]


@dataclass(slots=True)
class _Times:
    """Seconds of each unit by part, one per round, and those of calling autograd at all."""

    forward_s: list[list[float]]
    weight_s: list[list[float]]
    input_s: list[list[float]]
    call_s: float

    @classmethod
    def measured(
        cls, model: nn.Module, batch: Batch, loss: Loss, units: ModelUnits, clock: Clock, rounds: int
    ) -> _Times:
        """Run so many rounds, after some that do not count."""
        trained = units.trained(model)
        times = cls(_empty(trained), _empty(trained), _empty(trained), _call_s(model, clock, rounds))
        for turn in range(_WARM_UP + rounds):
            run = _Pass.run(model, batch, loss, units, clock)
            backward = _backward_s(run, trained, weights_first=turn % 2 == 0)
            if turn >= _WARM_UP:
                for unit, seconds in enumerate(run.forward_s()):
                    times.forward_s[unit].append(seconds)
                for unit, (weight, both) in enumerate(backward):
                    times.weight_s[unit].append(weight)
                    times.input_s[unit].append(max(both - weight, 0.0))
        return times


def _empty(units: Sequence[object]) -> list[list[float]]:
    return [[] for _ in units]


def _backward_s(run: _Pass, trained: Sequence[Sequence[Tensor]], weights_first: bool) -> list[tuple[float, float]]:
    """Seconds of each unit's backward pass without and with the gradient of its input."""
    seconds: list[tuple[float, float]] = []
    arriving: Sequence[Tensor | None] = [torch.ones_like(run.outputs[-1][0])]
    for unit in reversed(range(len(trained))):
        weights, inputs = list(trained[unit]), run.inputs[unit]
        only = partial(_gradients, run.outputs[unit], arriving, weights)
        both = partial(_gradients, run.outputs[unit], arriving, weights + inputs)
        if weights_first:
            weight_s, (grads, both_s) = run.clock.timed(only)[1], run.clock.timed(both)
        else:
            (grads, both_s), weight_s = run.clock.timed(both), run.clock.timed(only)[1]
        arriving = grads[len(weights) :]
        weight_s = weight_s if weights else 0.0
        seconds.append((weight_s, both_s if inputs else weight_s))
    return seconds[::-1]


def _gradients(
    outputs: Sequence[Tensor], arriving: Sequence[Tensor | None], wanted: Sequence[Tensor]
) -> Sequence[Tensor | None]:
    """Gradients of tensors, given those that arrive at outputs; None where nothing arrives."""
    reached = [i for i, grad in enumerate(arriving) if grad is not None and outputs[i].requires_grad]
    if not wanted or not reached:
        return [None] * len(wanted)
    known = [arriving[i] for i in reached]
    grads: Sequence[Tensor | None] = torch.autograd.grad(
        [outputs[i] for i in reached], wanted, known, retain_graph=True, allow_unused=True
    )
    return grads


def _call_s(model: nn.Module, clock: Clock, rounds: int) -> float:
    """Seconds of a call of autograd that has next to nothing to do."""
    leaf = next(model.parameters()).detach().flatten()[:1].clone().requires_grad_()
    value = leaf.view(())
    calls = [clock.timed(lambda: torch.autograd.grad(value, leaf, retain_graph=True))[1] for _ in range(rounds + 10)]
    return median(calls)


@dataclass(slots=True)
class _Sizes:
    """Bytes saved for the backward pass, and size of the outputs, by unit."""

    saved: list[int]
    output: list[int]
    elements: list[int]


def _sizes(model: nn.Module, batch: Batch, loss: Loss, units: ModelUnits) -> _Sizes:
    """Count what autograd saves: every storage once, for the last unit that saves it, parameters and buffers not."""
    own = {tensor.untyped_storage().data_ptr() for tensor in (*model.parameters(), *model.buffers())}
    kept: dict[int, tuple[int, int]] = {}
    ended: list[Any] = []

    def save(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own:
            kept[storage.data_ptr()] = (len(ended), storage.nbytes())
        return tensor

    with _hooked(model, units, ended.append), torch.autograd.graph.saved_tensors_hooks(save, lambda tensor: tensor):
        outputs = outputs_of(model, batch[0])
        value = loss_of(loss, outputs, batch[1])
    saved = [sum(size for unit, size in kept.values() if unit == i) for i in range(len(units))]
    del value
    tensors = [tensors_in(output) for output in (*ended, outputs)]
    nbytes, elements = ([sum(map(size, unit)) for unit in tensors] for size in (_nbytes, torch.numel))
    return _Sizes(saved=saved, output=nbytes, elements=elements)


def _nbytes(tensor: Tensor) -> int:
    return int(tensor.nbytes)


def _optimizer_s(optimizer: Optimizer, trained: Sequence[Sequence[Tensor]], clock: Clock, rounds: int) -> list[float]:
    """Seconds of the optimizer on the parameters of each unit, what a step takes at least not counted."""
    steps = [_shadow(optimizer, unit) for unit in ((), *trained)]
    seconds: list[list[float]] = [[] for _ in steps]
    for turn in range(_WARM_UP + rounds):
        for times, shadow in zip(seconds, steps, strict=True):
            spent = clock.timed(shadow.step)[1]
            if turn >= _WARM_UP:
                times.append(spent)
    least, *others = (median(times) for times in seconds)
    return [max(other - least, 0.0) for other in others]


def _shadow(optimizer: Optimizer, parameters: Sequence[Tensor]) -> Optimizer:
    """An optimizer of the same kind over copies of some of its parameters, with gradients of zero and no past."""
    wanted = {id(parameter) for parameter in parameters}
    shadow = copy.copy(optimizer)
    shadow.state = defaultdict(dict)
    shadow.param_groups = []
    for group in optimizer.param_groups:
        copies = [nn.Parameter(tensor.detach().clone()) for tensor in group["params"] if id(tensor) in wanted]
        for tensor in copies:
            tensor.grad = torch.zeros_like(tensor)
        shadow.param_groups.append({**group, "params": copies})
    return shadow
