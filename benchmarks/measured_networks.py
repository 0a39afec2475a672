"""Networks of the public tables of step times, from the closed forms of the library.

The tables name a network and a batch, not its FLOPs. What they leave open is assumed here: SQuAD with 384 tokens,
GLUE with 512 (the memory tables fit no shorter ones), 101 classes of food, and for CIFAR-10 the residual network whose
first convolution keeps all 32 × 32 pixels. Networks of other families in the tables (YOLOv3, DeepSpeech 2, NCF, a
translation transformer, an LSTM, an autoencoder) have no closed form here and are left out.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

from frostline.problem import Network
from frostline.problem.convolutions import resnet
from frostline.problem.families import bert
from frostline.problem.layer import Edge, Layer


def resnet50() -> Network:
    """ResNet-50 on images of 224 × 224."""
    return resnet(50)


def resnet18_cifar() -> Network:
    """ResNet-18 on images of 32 × 32: the blocks of ``resnet(18)`` at the resolution that 128 pixels leave them."""
    wide = resnet(18, image=128, classes=10)
    weights, pixels = 3 * 64 * 9, 32 * 32
    flops = 2 * weights * pixels
    first = Layer(
        id="conv1",
        kind="Conv2d",
        params=weights + 2 * 64,
        forward_flops=flops,
        backward_flops=flops,
        output_elements=64 * pixels,
        saved_bytes=4 * (3 + 2 * 64) * pixels,
    )
    return _chain("resnet18_cifar", [first, *wide.layers[1:]], "image, 32 x 32")


def bert_base() -> Network:
    """BERT-base with the answer head of SQuAD."""
    return _encoder("bert_base", 12, 768, 384, (30522 + 512 + 4) * 768, 0, 2 * 768 + 2, 2 * 2 * 768 * 384)


def roberta_base() -> Network:
    """RoBERTa-base with a head for two classes."""
    return _roberta("roberta_base", 12, 768)


def roberta_large() -> Network:
    """RoBERTa-large with a head for two classes."""
    return _roberta("roberta_large", 24, 1024)


def vit_b_16() -> Network:
    """Vision transformer of width 768 on images of 224 × 224."""
    return _vit("vit_b_16", 12, 768)


def vit_l_16() -> Network:
    """Vision transformer of width 1,024 on images of 224 × 224."""
    return _vit("vit_l_16", 24, 1024)


MAKERS: dict[str, Callable[[], Network]] = {
    maker.__name__: maker
    for maker in (resnet50, resnet18_cifar, bert_base, roberta_base, roberta_large, vit_b_16, vit_l_16)
}


def _roberta(name: str, blocks: int, width: int) -> Network:
    embedding, head = (50265 + 514 + 3) * width, width * width + width + 2 * width + 2
    return _encoder(name, blocks, width, 512, embedding, 0, head, 2 * width * width + 4 * width)


def _vit(name: str, blocks: int, width: int, classes: int = 101) -> Network:
    patches, patch = 14 * 14, 3 * 16 * 16
    stem = patch * width + width + (patches + 2) * width  # patches, class token, positions
    head = 2 * width + width * classes + classes  # last norm, classes
    return _encoder(name, blocks, width, patches + 1, stem, 2 * patch * width * patches, head, 2 * width * classes)


def _encoder(
    name: str, blocks: int, width: int, tokens: int, stem: int, stem_flops: int, head: int, head_flops: int
) -> Network:
    """Encoder blocks of :func:`bert` between a stem and a head of given parameters and forward FLOPs."""
    made = bert(blocks, width, sequence=tokens).layers
    inner = [layer for layer in made if layer.kind == "BertLayer"]
    first = Layer(
        id="stem",
        params=stem,
        forward_flops=stem_flops,
        backward_flops=stem_flops,
        output_elements=tokens * width,
        saved_bytes=4 * tokens * width,
    )
    last = Layer(
        id="head",
        params=head,
        forward_flops=head_flops,
        backward_flops=2 * head_flops,
        output_elements=1,
        saved_bytes=4 * tokens * width,
    )
    return _chain(name, [first, *inner, last], f"{tokens} tokens")


def _chain(name: str, layers: list[Layer], sample: str) -> Network:
    edges = [Edge(source=a.id, target=b.id, elements=a.output_elements) for a, b in pairwise(layers)]
    return Network(name=name, layers=tuple(layers), edges=tuple(edges), sample=sample)
