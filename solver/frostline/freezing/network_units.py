"""The freeze units of a network: cut where every forward path crosses."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from frostline.errors import InvalidValueError
from frostline.freezing.units import FreezeUnit, FreezeUnits
from frostline.problem.layer import Layer, LayerId, as_count
from frostline.problem.network import Network

__all__ = ["BLOCK_KINDS", "NetworkUnits", "freeze_units"]

BLOCK_KINDS = frozenset(
    {
        "BasicBlock",
        "BertLayer",
        "BertPreTrainingHeads",
        "Bottleneck",
        "EncoderBlock",
        "GPT2Block",
        "InceptionA",
        "InceptionAux",
        "InceptionB",
        "InceptionC",
        "InceptionD",
        "InceptionE",
        "LlamaDecoderLayer",
        "RobertaLMHead",
        "RobertaLayer",
        "Sequential",
        "T5Block",
        "XLNetLayer",
    }
)
"""Kinds of layers that are blocks of several layers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkUnits:
    """The freeze units of a network, and which of its layers they are; :func:`freeze_units` makes them.

    Parameters
    ----------
    network : Network
        The network.
    units : FreezeUnits
        Its units; work is FLOPs per sample.
    ends : tuple of int, shape (units,)
        Position in ``network.layers`` at which each unit ends, itself excluded.
    first_backward_flops : tuple of int, shape (layers,)
        Backward FLOPs per sample of each layer where its unit is the first one that is trained.
    """

    network: Network
    units: FreezeUnits
    ends: tuple[int, ...]
    first_backward_flops: tuple[int, ...]

    def layers(self, frozen: int) -> int:
        """Number of leading layers that so many frozen units are."""
        count = self.units.checked(frozen)
        return self.ends[count - 1] if count else 0

    def backward_flops(self, frozen: int) -> tuple[int, ...]:
        """Backward FLOPs per sample of each layer with so many units frozen, shape (layers,).

        Their sum is :meth:`FreezeUnits.backward <frostline.freezing.units.FreezeUnits.backward>`.
        """
        start = self.layers(frozen)
        end = self.ends[frozen] if frozen < len(self.ends) else start
        later = (layer.backward_flops for layer in self.network.layers[end:])
        return (0,) * start + self.first_backward_flops[start:end] + tuple(later)

    def frozen_by(self, layers: Iterable[LayerId]) -> int:
        """Number of frozen units that a set of layers amounts to.

        Parameters
        ----------
        layers : iterable of layer identifiers
            The frozen layers.

        Raises
        ------
        InvalidValueError
            A layer that the network has not, or layers that are not those of the first units, all of them.

        Examples
        --------
        >>> from frostline.problem.library import shipped_network
        >>> units = freeze_units(shipped_network("gpt2"))
        >>> units.frozen_by(["transformer.wte", "transformer.h.0"])
        2
        >>> units.frozen_by(["transformer.h.0"])
        Traceback (most recent call last):
        frostline.errors.InvalidValueError: network 'gpt2': frozen layers=['transformer.h.0'] must be all layers of ...
        """
        chosen, subject = list(layers), f"network {self.network.name!r}"
        for layer in chosen:
            if layer not in self.network.positions:
                raise InvalidValueError(subject, "frozen layers", layer, "is not a layer of the network")
        members = {self.network.positions[layer] for layer in chosen}
        for frozen, end in enumerate((0, *self.ends)):
            if end == len(members) and members == set(range(end)):
                return frozen
        raise InvalidValueError(subject, "frozen layers", chosen, "must be all layers of the first units, and no other")


def freeze_units(network: Network, *, input_gradient_flops: Mapping[LayerId, int] | None = None) -> NetworkUnits:
    """Freeze units of a network: it is cut after each layer that every forward path crosses.

    Residual blocks stay whole, and so does all that a skip connection spans. Between two cuts there must be a layer
    with parameters, or else the part joins the unit before it: what follows frozen layers and has no parameters
    computes no gradient. A path starts at a layer with parameters; what depends on none, such as positions, is read
    like the data.

    The backward FLOPs of a layer are split in two. Its weight gradients take as many FLOPs as its forward pass, none
    without parameters, and the gradient of its input the rest. In a unit that is the first one trained, the layers
    with no trained layer of the unit above them compute no input gradient. The first unit reads the data: its
    backward FLOPs are those of its layers as they stand.

    In a block of several layers (:data:`BLOCK_KINDS`) only the first ones are spared their input gradients, none where
    a norm with parameters comes first. Such a layer is taken to spare none: exact for norms, and otherwise at worst
    those of one block too much work. ``input_gradient_flops`` tells what is known better.

    Parameters
    ----------
    network : Network
        The network.
    input_gradient_flops : mapping of layer identifier to int, optional
        FLOPs per sample that the gradient of a layer's input adds to its backward pass.

    Returns
    -------
    NetworkUnits
        Parameters that layers hold in common belong to the last unit that holds them: they are trained until it is
        frozen.

    Raises
    ------
    InvalidValueError
        A network without parameters, or input gradients of an unknown layer or above its backward FLOPs.

    Examples
    --------
    >>> from frostline.problem.library import shipped_network
    >>> resnet = freeze_units(shipped_network("resnet50"))
    >>> len(resnet.units), [unit.name for unit in resnet.units][:3]
    (18, ['conv1', 'layer1.0', 'layer1.1'])
    >>> resnet.units.compute(0) == resnet.network.forward_flops + resnet.network.backward_flops
    True
    """
    if network.params == 0:
        raise InvalidValueError(f"network {network.name!r}", "params", 0, "must be above 0 where layers are frozen")
    ends = _with_params(network, _cuts(network))
    first = _first_backward(network, ends, _input_gradients(network, input_gradient_flops or {}))
    params = _last_held(network)
    units = [_unit(range(start, end), network.layers, first, params, not start) for start, end in pairwise((0, *ends))]
    return NetworkUnits(
        network=network, units=FreezeUnits(tuple(units)), ends=tuple(ends), first_backward_flops=tuple(first)
    )


def _unit(
    span: range, layers: Sequence[Layer], first: Sequence[int], params: Sequence[int], reads_data: bool
) -> FreezeUnit:
    own = [layers[i] for i in span]
    weight = sum(first[i] for i in span)
    named = [layer.id for layer in own if layer.params]
    return FreezeUnit(
        forward=sum(layer.forward_flops for layer in own),
        weight_gradient=weight,
        input_gradient=0 if reads_data else sum(layer.backward_flops for layer in own) - weight,
        params=sum(params[i] for i in span),
        saved_bytes=sum(layer.saved_bytes for layer in own),
        output_elements=own[-1].output_elements,
        name=str(named[0]) if len(named) == 1 else f"{named[0]} … {named[-1]}",
    )


def _senders(network: Network) -> list[list[int]]:
    """Positions of the layers that each layer reads."""
    senders: list[list[int]] = [[] for _ in network.layers]
    for edge in network.edges:
        senders[network.positions[edge.target]].append(network.positions[edge.source])
    return senders


def _learned(network: Network, senders: Sequence[Sequence[int]]) -> list[bool]:
    """Whether the output of each layer depends on parameters."""
    learned: list[bool] = []
    for layer, above in zip(network.layers, senders, strict=True):
        learned.append(layer.params > 0 or any(learned[i] for i in above))
    return learned


def _cuts(network: Network) -> list[int]:
    """Positions after the layers that every forward path crosses, the end of the network last.

    Positions rise along a path, so a layer is on every path just where no edge passes over it, those from the data to
    the first layers and from the last layers to the loss included.
    """
    senders, size = _senders(network), len(network.layers)
    learned = _learned(network, senders)
    reads = [[i for i in above if learned[i]] for above in senders]
    sends = {i for position, above in enumerate(reads) if learned[position] for i in above}
    spans = [(i, position) for position, above in enumerate(reads) for i in above or [-1] if learned[position]]
    spans += [(i, size) for i in range(size) if learned[i] and i not in sends]
    change = [0] * (size + 2)
    for start, stop in spans:
        change[start + 1] += 1
        change[stop] -= 1
    passing = list(accumulate(change))
    cuts = [i + 1 for i in range(size) if learned[i] and not passing[i]]
    return cuts if cuts and cuts[-1] == size else [*cuts, size]


def _with_params(network: Network, cuts: Sequence[int]) -> list[int]:
    """Ends of the parts between cuts, those without parameters joined to the part before them, or else after them."""
    ends: list[int] = []
    start = 0
    for end in cuts:
        if any(layer.params for layer in network.layers[start:end]):
            ends.append(end)
        elif ends:
            ends[-1] = end
        start = end
    return ends


def _input_gradients(network: Network, given: Mapping[LayerId, int]) -> list[int]:
    """FLOPs that the gradient of each layer's input adds to its backward pass."""
    flops = [_input_gradient(layer) for layer in network.layers]
    for identifier, value in given.items():
        subject = f"layer {identifier!r}"
        if identifier not in network.positions:
            raise InvalidValueError(subject, "input_gradient_flops", value, f"is not a layer of {network.name!r}")
        position, count = network.positions[identifier], as_count(value, subject, "input_gradient_flops")
        if count > network.layers[position].backward_flops:
            rule = f"must be at most its {network.layers[position].backward_flops} backward FLOPs"
            raise InvalidValueError(subject, "input_gradient_flops", value, rule)
        flops[position] = count
    return flops


def _input_gradient(layer: Layer) -> int:
    if layer.kind in BLOCK_KINDS:
        return 0
    weights = min(layer.forward_flops, layer.backward_flops) if layer.params else 0
    return layer.backward_flops - weights


def _first_backward(network: Network, ends: Sequence[int], inputs: Sequence[int]) -> list[int]:
    """Backward FLOPs of each layer where its unit is the first one that is trained."""
    senders = _senders(network)
    flops = [layer.backward_flops for layer in network.layers[: ends[0]]]
    for start, end in pairwise(ends):
        trained: dict[int, bool] = {}
        for i in range(start, end):
            above = any(trained.get(sender, False) for sender in senders[i])
            layer = network.layers[i]
            trained[i] = above or layer.params > 0
            flops.append(layer.backward_flops - (0 if above else inputs[i]))
    return flops


def _last_held(network: Network) -> list[int]:
    """Parameters of each layer, those in common counted with the last layer that holds them."""
    params = [layer.params for layer in network.layers]
    for shared in network.shared_params:
        positions = sorted(network.positions[layer] for layer in shared.layers)
        for position in positions[:-1]:
            params[position] -= shared.params
    return params
