"""The parts of a network: layers, the edges between them, and parameters that layers hold in common."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Any

from frostline.errors import InvalidValueError
from frostline.problem.order import natural_key
from frostline.units import as_finite, as_int

__all__ = [
    "BACKWARD_RATIO",
    "Edge",
    "Layer",
    "LayerId",
    "SharedParams",
    "as_count",
    "as_elements",
    "as_layer_id",
    "as_text",
    "backward_flops",
    "edge_name",
    "layer_key",
]

LayerId = str | int | tuple[Any, ...]
"""Identifier of a layer: text, a whole number, or a tuple of these."""

BACKWARD_RATIO = 2.0
"""Backward over forward FLOPs where nothing was counted: one product for the weights' gradient, one for the input's."""

_LARGEST = 10**18


def layer_key(identifier: LayerId) -> tuple[Any, ...]:
    """Sort key of layer identifiers: numbers and text as people read them, then tuples by their parts.

    Examples
    --------
    >>> sorted(["block.10", 3, "block.2", (0, 1), 11, (0, "a")], key=layer_key)
    [3, 11, 'block.2', 'block.10', (0, 1), (0, 'a')]
    """
    if isinstance(identifier, tuple):
        return (1, tuple(layer_key(part) for part in identifier))
    return (0, ((0, identifier, ""),) if isinstance(identifier, int) else natural_key(identifier))


def backward_flops(forward_flops: int, ratio: float = BACKWARD_RATIO) -> int:
    """Backward FLOPs of a layer from its forward FLOPs, to the nearest whole number.

    Examples
    --------
    >>> backward_flops(10), backward_flops(10, 1.25)
    (20, 12)
    """
    return round(forward_flops * ratio) if ratio != BACKWARD_RATIO else 2 * forward_flops


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """A layer, or a block of layers that is never split. All figures but the parameters are per sample.

    Parameters
    ----------
    id : str, int or tuple of these
        Identifier, unique in its network.
    params : int
        Parameters it holds, those it shares with other layers included.
    forward_flops, backward_flops : int
        FLOPs of the two passes; a multiply-add is 2.
    output_elements : int
        Elements of its output.
    saved_bytes : int
        Activations kept for the backward pass, in bytes at fp32.
    kind : str
        What it is, such as ``"Bottleneck"``; empty where unknown.
    """

    id: LayerId
    params: int
    forward_flops: int
    backward_flops: int
    output_elements: int
    saved_bytes: int
    kind: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "id", as_layer_id(self.id, "layer", "id"))
        subject = f"layer {self.id!r}"
        for name in ("params", "forward_flops", "backward_flops", "output_elements", "saved_bytes"):
            object.__setattr__(self, name, as_count(getattr(self, name), subject, name))
        object.__setattr__(self, "kind", as_text(self.kind, subject, "kind"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Edge:
    """What one layer sends to another.

    Parameters
    ----------
    source, target : str, int or tuple of these
        Identifiers of the layers.
    elements : int or float
        Elements per sample in the forward pass, at least 0; their gradients flow back.
    """

    source: LayerId
    target: LayerId
    elements: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "source", as_layer_id(self.source, "edge", "source"))
        object.__setattr__(self, "target", as_layer_id(self.target, "edge", "target"))
        elements = as_elements(self.elements, edge_name(self.source, self.target), "elements")
        object.__setattr__(self, "elements", elements)


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedParams:
    """Parameters that several layers hold in common, such as a tied embedding.

    They are stored once, and their gradients are summed over all these layers wherever they are placed.

    Parameters
    ----------
    layers : sequence of layer identifiers
        The layers, at least two.
    params : int
        Number of parameters in common, at least 1.
    """

    layers: tuple[LayerId, ...]
    params: int

    def __post_init__(self) -> None:
        layers = tuple(as_layer_id(layer, "shared_params", "layers") for layer in self.layers)
        if len(set(layers)) < max(2, len(layers)):
            raise InvalidValueError("shared_params", "layers", layers, "must name at least two different layers")
        object.__setattr__(self, "layers", tuple(sorted(layers, key=layer_key)))
        object.__setattr__(self, "params", as_int(self.params, f"shared_params of {layers!r}", "params", 1))


def as_count(value: object, subject: str, name: str) -> int:
    """Whole number from 0 to 10^18, as given by callers and files."""
    number = as_int(value, subject, name, 0)
    if number > _LARGEST:
        raise InvalidValueError(subject, name, value, f"must be at most {_LARGEST}")
    return number


def as_elements(value: object, subject: str, name: str) -> float:
    """Number from 0 to 10^18; a whole one becomes an int, so that sums stay exact."""
    if isinstance(value, Integral):
        return as_count(value, subject, name)
    number = as_finite(value, subject, name, 0.0, float(_LARGEST))
    return int(number) if number.is_integer() else number


def as_text(value: object, subject: str, name: str) -> str:
    """Text, numpy strings included."""
    if not isinstance(value, str):
        raise InvalidValueError(subject, name, value, "must be text")
    return str(value)


def as_layer_id(value: object, subject: str, name: str) -> LayerId:
    """Identifier of a layer in plain Python types, numpy scalars included."""
    if isinstance(value, str) and value:
        return str(value)
    if isinstance(value, Integral) and not isinstance(value, bool):
        return int(value)
    if isinstance(value, tuple) and value:
        return tuple(as_layer_id(part, subject, name) for part in value)
    raise InvalidValueError(subject, name, value, "must be a non-empty string, a whole number or a tuple of these")


def edge_name(source: LayerId, target: LayerId) -> str:
    """How errors call an edge."""
    return f"edge {source!r} -> {target!r}"
