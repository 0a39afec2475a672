"""Residual networks of any depth, from the arithmetic of their convolutions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from types import MappingProxyType

from frostline.errors import InvalidValueError
from frostline.problem.layer import Edge, Layer
from frostline.problem.network import Network
from frostline.units import as_int

__all__ = ["RESNET_BLOCKS", "resnet"]

RESNET_BLOCKS: Mapping[int, tuple[int, ...]] = MappingProxyType(
    {18: (2, 2, 2, 2), 34: (3, 4, 6, 3), 50: (3, 4, 6, 3), 101: (3, 4, 23, 3), 152: (3, 8, 36, 3)}
)
"""Blocks of each group by depth (He et al., table 1); from 50 on they are bottlenecks."""

_FP32, _INT64 = 4, 8
_STEM, _EXPANSION = 64, 4
_LARGEST = 10**5


@dataclass(slots=True)
class _Block:
    """What a run of convolutions, each with its batch norm, adds up to."""

    params: int = 0
    flops: int = 0
    saved: int = 0

    def convolve(self, inputs: int, outputs: int, kernel: int, size: int) -> int:
        """Add a convolution to ``outputs`` channels of ``size`` × ``size`` pixels; the elements of its output.

        The batch norm has a scale and a shift per channel; it keeps its input, and two statistics per channel.
        """
        weights, elements = inputs * outputs * kernel * kernel, outputs * size * size
        self.params += weights + 2 * outputs
        self.flops += 2 * weights * size * size
        self.saved += _FP32 * (elements + 2 * outputs)
        return elements


def resnet(
    depth: int | Sequence[int] = 50,
    *,
    bottleneck: bool = True,
    image: int = 224,
    classes: int = 1000,
    name: str | None = None,
) -> Network:
    """Residual network for images, one layer per residual block; bottlenecks stride in their 3 × 3 convolution.

    Saved activations are those of eager fp32 training: each tensor is counted with the layer that saves it first.

    Parameters
    ----------
    depth : int or sequence of int
        A depth of :data:`RESNET_BLOCKS`, or the blocks of each group, the first of which has 64 channels and each
        further one twice as many at half the resolution.
    bottleneck : bool
        With blocks by group: whether they are bottlenecks (1 × 1, 3 × 3, 1 × 1) or pairs of 3 × 3 convolutions.
    image : int
        Height and width of an image in pixels.
    classes : int
        Classes.
    name : str, optional
        Name; ``resnet`` and the depth by default.

    Raises
    ------
    InvalidValueError
        An unknown depth or a size out of range.

    References
    ----------
    He et al., *Deep Residual Learning for Image Recognition*, CVPR 2016.

    Examples
    --------
    >>> resnet(50).params, resnet(50).forward_flops, resnet(18).params
    (25557032, 8178368512, 11689512)
    """
    groups, wide = _groups(depth, bottleneck)
    size = as_int(image, "resnet", "image", 1)
    outputs = as_int(classes, "resnet", "classes", 1)
    for field, value in (("image", size), ("classes", outputs)):
        if value > _LARGEST:
            raise InvalidValueError("resnet", field, value, f"must be at most {_LARGEST}")
    stem, size = _stem(size)
    layers, channels = [stem], _STEM
    for group, blocks in enumerate(groups):
        for block in range(blocks):
            identifier = f"layer{group + 1}.{block}"
            stride = 2 if group and not block else 1
            layer, channels, size = _residual(identifier, channels, _STEM << group, size, stride, wide)
            layers.append(layer)
    layers.append(_head(channels, outputs))
    label = name or f"resnet{2 + (3 if wide else 2) * sum(groups)}"
    return Network(
        name=label,
        layers=tuple(layers),
        edges=tuple(Edge(source=a.id, target=b.id, elements=a.output_elements) for a, b in pairwise(layers)),
        sample=f"image, {as_int(image, 'resnet', 'image')} x {as_int(image, 'resnet', 'image')}",
        provenance={"tool": "frostline, arithmetic of the convolutions"},
    )


def _groups(depth: int | Sequence[int], bottleneck: bool) -> tuple[tuple[int, ...], bool]:
    if isinstance(depth, (list, tuple)):
        if not 1 <= len(depth) <= 16:
            raise InvalidValueError("resnet", "depth", depth, "must have 1 to 16 groups of blocks")
        groups = tuple(as_int(blocks, "resnet", f"depth[{i}]", 1) for i, blocks in enumerate(depth))
        if sum(groups) > _LARGEST:
            raise InvalidValueError("resnet", "depth", depth, f"must have at most {_LARGEST} blocks")
        return groups, bottleneck
    known = as_int(depth, "resnet", "depth")
    if known not in RESNET_BLOCKS:
        rule = f"must be one of {', '.join(map(str, RESNET_BLOCKS))}, or the blocks of each group"
        raise InvalidValueError("resnet", "depth", depth, rule)
    return RESNET_BLOCKS[known], known >= 50


def _strided(size: int, kernel: int, stride: int) -> int:
    """Pixels that a convolution padded by half its kernel leaves of ``size``."""
    return (size + 2 * (kernel // 2) - kernel) // stride + 1


def _stem(image: int) -> tuple[Layer, int]:
    """First convolution 7 × 7 and the 3 × 3 maximum, each with stride 2. No gradient of the image is computed."""
    sums, size = _Block(), _strided(image, 7, 2)
    convolved = sums.convolve(3, _STEM, 7, size)
    pooled = _strided(size, 3, 2)
    output = _STEM * pooled * pooled
    saved = sums.saved + _FP32 * (3 * image * image + convolved) + _INT64 * output  # image, rectified, places of maxima
    return _layer("conv1", "Conv2d", sums.params, sums.flops, sums.flops, output, saved), pooled


def _residual(
    identifier: str, inputs: int, width: int, size: int, stride: int, bottleneck: bool
) -> tuple[Layer, int, int]:
    """A residual block, the channels and the pixels of its output."""
    sums, after, outputs = _Block(), _strided(size, 3, stride), width * (_EXPANSION if bottleneck else 1)
    if bottleneck:
        rectified = sums.convolve(inputs, width, 1, size) + sums.convolve(width, width, 3, after)
        output = sums.convolve(width, outputs, 1, after)
    else:
        rectified = sums.convolve(inputs, width, 3, after)
        output = sums.convolve(width, outputs, 3, after)
    if stride > 1 or inputs != outputs:
        sums.convolve(inputs, outputs, 1, after)
    saved = sums.saved + _FP32 * (rectified + output)
    if identifier == "layer1.0":
        saved += _FP32 * inputs * size * size  # its input is a maximum, which nothing else saved
    kind = "Bottleneck" if bottleneck else "BasicBlock"
    return _layer(identifier, kind, sums.params, sums.flops, 2 * sums.flops, output, saved), outputs, after


def _head(channels: int, classes: int) -> Layer:
    flops = 2 * channels * classes
    params = channels * classes + classes
    return _layer("avgpool", "AdaptiveAvgPool2d", params, flops, 2 * flops, classes, _FP32 * channels)


def _layer(identifier: str, kind: str, params: int, forward: int, backward: int, output: int, saved: int) -> Layer:
    return Layer(
        id=identifier,
        kind=kind,
        params=params,
        forward_flops=forward,
        backward_flops=backward,
        output_elements=output,
        saved_bytes=saved,
    )
