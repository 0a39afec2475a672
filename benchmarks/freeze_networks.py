"""The three networks whose steps were measured by freeze level, layer by layer, from their arithmetic.

Saved activations are those of eager fp32 training on a CPU, each tensor counted with the layer that saves it first; the
loss is part of the head. Attention takes no FLOPs: the counter that they are compared with does not see it there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from frostline.freezing.network_units import NetworkUnits
from frostline.problem import Edge, Layer, Network

_FP32, _INT64 = 4, 8


@dataclass(frozen=True, slots=True)
class Measured:
    """A network and the measured unit that each of its layers belongs to, by position in ``network.layers``."""

    network: Network
    block: tuple[int, ...]

    def frozen(self, units: NetworkUnits, level: int) -> int:
        """Number of our units that are frozen where the first ``level`` measured ones are: ours may be finer."""
        trained = (i for i, layer in enumerate(self.network.layers) if layer.params and self.block[i] >= level)
        first = min(trained)
        return next(count for count in range(len(units.ends)) if units.ends[count] > first)


class _Builder:
    """Adds layers one after another; the first one reads the data and computes no input gradient."""

    def __init__(self) -> None:
        self.layers: list[Layer] = []
        self.edges: list[Edge] = []
        self.block: dict[str, int] = {}
        self.blocks = -1

    def add(
        self, name: str, output: int, *, reads: Sequence[str] = (), params: int = 0, flops: int = 0, saved: int = 0
    ) -> str:
        """A layer of the present block that reads some others, by default the last one; its name."""
        for source in reads or [str(layer.id) for layer in self.layers[-1:]]:
            self.edges.append(Edge(source=source, target=name, elements=output))
        backward = 2 * flops if self.layers else flops
        self.layers.append(
            Layer(
                id=name,
                params=params,
                forward_flops=flops,
                backward_flops=backward,
                output_elements=output,
                saved_bytes=saved,
            )
        )
        self.block[name] = self.blocks
        return name

    def measured(self, name: str) -> Measured:
        network = Network(name=name, layers=tuple(self.layers), edges=tuple(self.edges))
        return Measured(network, tuple(self.block[str(layer.id)] for layer in network.layers))


def mlp(inputs: int = 256, width: int = 768, depth: int = 8, classes: int = 10) -> Measured:
    """Multilayer perceptron: linear layers, each rectified but the last."""
    build, size = _Builder(), inputs
    for i in range(depth):
        build.blocks, saved = i, 0 if i else _FP32 * inputs
        build.add(f"{i}.linear", width, params=size * width + width, flops=2 * size * width, saved=saved)
        build.add(f"{i}.relu", width, saved=_FP32 * width)
        size = width
    build.blocks, loss = depth, _FP32 * classes + _INT64
    build.add("head", classes, params=size * classes + classes, flops=2 * size * classes, saved=loss)
    return build.measured("mlp")


def resnet(width: int = 24, image: int = 32, classes: int = 10) -> Measured:
    """ResNet-18 for small images."""
    build, channels, elements = _Builder(), width, width * image * image
    build.blocks, weights = 0, 3 * width * 9
    saved = _FP32 * (3 * image * image + elements)
    build.add("stem", elements, params=weights + 2 * width, flops=2 * weights * image * image, saved=saved)
    last = build.add("stem.relu", elements, saved=_FP32 * elements)
    for group in range(4):
        for block in range(2):
            build.blocks += 1
            halves = block == 0 and group > 0
            image //= 2 if halves else 1
            last = _residual(build, f"{group}.{block}", last, channels, width << group, image, halves)
            channels = width << group
    build.blocks += 1
    build.add("pool", channels, reads=[last])
    build.add(
        "head",
        classes,
        params=channels * classes + classes,
        flops=2 * channels * classes,
        saved=_FP32 * (channels + classes) + _INT64,
    )
    return build.measured("resnet")


def _residual(build: _Builder, name: str, last: str, inputs: int, outputs: int, image: int, halves: bool) -> str:
    elements = outputs * image * image
    _normed(build, f"{name}.1", last, inputs, outputs, 3, image)
    inner = build.add(f"{name}.1.relu", elements, saved=_FP32 * elements)
    reads = [_normed(build, f"{name}.2", inner, outputs, outputs, 3, image)]
    reads.append(_normed(build, f"{name}.skip", last, inputs, outputs, 1, image) if halves else last)
    build.add(f"{name}.add", elements, reads=reads)
    return build.add(f"{name}.relu", elements, saved=_FP32 * elements)


def _normed(build: _Builder, name: str, last: str, inputs: int, outputs: int, kernel: int, image: int) -> str:
    """A convolution and its batch norm, which keeps its input."""
    weights, elements = inputs * outputs * kernel * kernel, outputs * image * image
    build.add(f"{name}.conv", elements, reads=[last], params=weights, flops=2 * weights * image * image)
    return build.add(f"{name}.norm", elements, params=2 * outputs, saved=_FP32 * elements)


def transformer(vocabulary: int = 1000, d: int = 128, depth: int = 8, tokens: int = 64, heads: int = 4) -> Measured:
    """Language model whose blocks begin with a norm."""
    build, wide = _Builder(), tokens * d
    build.blocks = 0
    last = build.add("embedding", wide, params=(vocabulary + tokens) * d, saved=_INT64 * tokens)
    for i in range(depth):
        build.blocks += 1
        _norm(build, f"{i}.norm1", tokens, d)
        _linear(build, f"{i}.qkv", tokens, d, 3 * d, _FP32 * wide)
        build.add(f"{i}.attention", wide, saved=_FP32 * (4 * wide + heads * tokens))
        _linear(build, f"{i}.out", tokens, d, d, 0)
        middle = build.add(f"{i}.add1", wide, reads=[f"{i}.out", last])
        _norm(build, f"{i}.norm2", tokens, d)
        _linear(build, f"{i}.up", tokens, d, 4 * d, _FP32 * wide)
        build.add(f"{i}.gelu", 4 * wide, saved=_FP32 * 4 * wide)
        _linear(build, f"{i}.down", tokens, 4 * d, d, _FP32 * 4 * wide)
        last = build.add(f"{i}.add2", wide, reads=[f"{i}.down", middle])
    build.blocks += 1
    _norm(build, "head.norm", tokens, d)
    _linear(build, "head.linear", tokens, d, vocabulary, _FP32 * tokens * (d + vocabulary) + _INT64 * tokens)
    return build.measured("tfm")


def _norm(build: _Builder, name: str, tokens: int, d: int) -> None:
    build.add(name, tokens * d, params=2 * d, saved=_FP32 * (tokens * d + 2 * tokens))


def _linear(build: _Builder, name: str, tokens: int, inputs: int, outputs: int, saved: int) -> None:
    params, flops = inputs * outputs + outputs, 2 * tokens * inputs * outputs
    build.add(name, tokens * outputs, params=params, flops=flops, saved=saved)


MAKERS = {"mlp": mlp, "resnet": resnet, "tfm": transformer}
"""Makers of the networks by the name that the measurements give them."""
