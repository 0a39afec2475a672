"""Networks of any size from closed forms: the transformer families GPT, BERT and LLaMA.

With T tokens, width d and vocabulary V, and 2 FLOPs per multiply-add, a block of the first two takes 24Td² + 4T²d FLOPs
forward, a LLaMA block with feed-forward width f 8Td² + 6Tdf + 4T²d, and the logits take 2TdV; attention is counted in
full, without the half that a causal mask saves. Saved activations are those of eager fp32 training without dropout, an
upper bound: fused attention never stores the T² probabilities of each head.

The residual networks of :mod:`frostline.problem.convolutions` are the fourth family.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from frostline.errors import InvalidValueError
from frostline.problem.layer import Edge, Layer, SharedParams
from frostline.problem.network import Network
from frostline.units import as_int

__all__ = ["bert", "gpt", "llama"]

_FP32, _INT64 = 4, 8
_HEAD_WIDTH = 64
_LARGEST = 10**7


def gpt(
    layers: int = 12,
    width: int = 768,
    *,
    heads: int | None = None,
    sequence: int = 1024,
    vocabulary: int = 50257,
    positions: int | None = None,
    name: str | None = None,
) -> Network:
    """GPT-2 decoder with learned positions and a head tied to the embedding.

    Parameters
    ----------
    layers, width : int
        Number of blocks and width d.
    heads : int, optional
        Attention heads, a divisor of the width; by default of width 64.
    sequence, vocabulary : int
        Tokens per sample T and vocabulary V.
    positions : int, optional
        Learned positions; as many as tokens by default.
    name : str, optional
        Name; made of layers and width by default.

    Raises
    ------
    InvalidValueError
        A size below 1, heads that do not divide the width, or more tokens than positions.

    References
    ----------
    Radford et al., *Language Models are Unsupervised Multitask Learners*, 2019.

    Examples
    --------
    >>> gpt().params, gpt(48, 1600).params
    (124439808, 1557611200)
    """
    blocks, d, T, V = _sizes("gpt", layers=layers, width=width, sequence=sequence, vocabulary=vocabulary)
    h = _heads("gpt", heads, d)
    learned = _positions("gpt", positions, T)
    block = _block(T, d)
    # Per token: x and ln_1(x), q, k and v, the context, x and ln_2(x), and 5 × 4d of the GELU written as tanh.
    saved = _FP32 * (28 * T * d + h * T * T + 4 * T)
    chain = [
        _layer("transformer.wte", "Embedding", (V + learned) * d, 0, T * d, 2 * _INT64 * T),
        *(_layer(f"transformer.h.{i}", "GPT2Block", *block, saved) for i in range(blocks)),
        _layer("transformer.ln_f", "LayerNorm", 2 * d, 0, T * d, _FP32 * (T * d + 2 * T)),
        _layer("lm_head", "Linear", V * d, 2 * T * d * V, T * V, _FP32 * T * d),
    ]
    tied = SharedParams(layers=("transformer.wte", "lm_head"), params=V * d)
    return _network(name or f"gpt-{blocks}x{d}", chain, _chain(chain), T, "GPT-2", [tied])


def bert(
    layers: int = 24,
    width: int = 1024,
    *,
    heads: int | None = None,
    sequence: int = 512,
    vocabulary: int = 30522,
    positions: int = 512,
    name: str | None = None,
) -> Network:
    """BERT encoder with the two heads of its pre-training, the first tied to the embedding.

    Parameters
    ----------
    layers, width : int
        Number of blocks and width d.
    heads : int, optional
        Attention heads, a divisor of the width; by default of width 64.
    sequence, vocabulary, positions : int
        Tokens per sample T, vocabulary V and learned positions.
    name : str, optional
        Name; made of layers and width by default.

    Raises
    ------
    InvalidValueError
        A size below 1, heads that do not divide the width, or more tokens than positions.

    References
    ----------
    Devlin et al., *BERT: Pre-training of Deep Bidirectional Transformers*, NAACL 2019.

    Examples
    --------
    >>> bert().params, bert(12, 768).forward_flops
    (336226108, 121245404160)
    """
    blocks, d, T, V = _sizes("bert", layers=layers, width=width, sequence=sequence, vocabulary=vocabulary)
    h = _heads("bert", heads, d)
    learned = _positions("bert", positions, T)
    block = _block(T, d)
    # Per token: x, q, k and v, the context, both sums before a norm, the first norm, and 2 × 4d around the GELU.
    saved = _FP32 * (16 * T * d + h * T * T + 4 * T)
    norm = _FP32 * 2 * T  # mean and deviation of each token
    stem = [
        _layer(
            "bert.embeddings", "BertEmbeddings", (V + learned + 4) * d, 0, T * d, _FP32 * T * d + norm + 2 * _INT64 * T
        ),
        *(_layer(f"bert.encoder.layer.{i}", "BertLayer", *block, saved) for i in range(blocks)),
    ]
    pooler = _layer("bert.pooler", "BertPooler", d * d + d, 2 * d * d, d, _FP32 * (T * d + d))
    masked_tokens, next_sentence = d * d + 3 * d + V * d + V, 2 * d + 2
    flops = 2 * T * d * d + 2 * T * d * V + 4 * d
    head = _layer("cls", "BertPreTrainingHeads", masked_tokens + next_sentence, flops, T * V, 3 * _FP32 * T * d + norm)
    top = stem[-1].id
    edges = [
        *_chain(stem),
        Edge(source=top, target="bert.pooler", elements=d),
        Edge(source=top, target="cls", elements=T * d),
        Edge(source="bert.pooler", target="cls", elements=d),
    ]
    tied = SharedParams(layers=("bert.embeddings", "cls"), params=V * d)
    return _network(name or f"bert-{blocks}x{d}", [*stem, pooler, head], edges, T, "BERT", [tied])


def llama(
    layers: int = 32,
    width: int = 4096,
    *,
    heads: int | None = None,
    feed_forward: int | None = None,
    sequence: int = 2048,
    vocabulary: int = 32000,
    name: str | None = None,
) -> Network:
    """LLaMA decoder: gated feed-forward, rotary positions, RMS norms, a head of its own.

    Parameters
    ----------
    layers, width : int
        Number of blocks and width d.
    heads : int, optional
        Attention heads, a divisor of the width; by default of width 128.
    feed_forward : int, optional
        Feed-forward width f; by default 8d/3, rounded down to a whole number and then up to a multiple of 256.
    sequence, vocabulary : int
        Tokens per sample T and vocabulary V.
    name : str, optional
        Name; made of layers and width by default.

    Raises
    ------
    InvalidValueError
        A size below 1 or heads that do not divide the width.

    References
    ----------
    Touvron et al., *LLaMA: Open and Efficient Foundation Language Models*, arXiv 2302.13971.

    Examples
    --------
    >>> llama().params, llama(40, 5120).params
    (6738415616, 13015864320)
    """
    blocks, d, T, V = _sizes("llama", layers=layers, width=width, sequence=sequence, vocabulary=vocabulary)
    h = _heads("llama", heads, d, 2 * _HEAD_WIDTH)
    f = -(-(8 * d // 3) // 256) * 256 if feed_forward is None else _size("llama", "feed_forward", feed_forward)
    forward = 8 * T * d * d + 6 * T * d * f + 4 * T * T * d
    block = (4 * d * d + 3 * d * f + 2 * d, forward, T * d)
    # Per token: x, its normalised form and the input of the projections for both norms, q, k and v, the context; gate,
    # its SiLU, the other branch and their product of width f.
    saved = _FP32 * (T * (10 * d + 4 * f) + h * T * T + 2 * T)
    rotation = T * (d // h)
    first = saved + _FP32 * 2 * rotation  # cosines and sines, which all blocks share
    chain = [
        _layer("model.embed_tokens", "Embedding", V * d, 0, T * d, _INT64 * T),
        *(_layer(f"model.layers.{i}", "LlamaDecoderLayer", *block, saved if i else first) for i in range(blocks)),
        _layer("model.norm", "LlamaRMSNorm", d, 0, T * d, _FP32 * (2 * T * d + T)),
        _layer("lm_head", "Linear", V * d, 2 * T * d * V, T * V, _FP32 * T * d),
    ]
    rotary = _layer("model.rotary_emb", "LlamaRotaryEmbedding", 0, 0, rotation, 0)
    edges = [*_chain(chain), Edge(source=rotary.id, target="model.layers.0", elements=0)]
    return _network(name or f"llama-{blocks}x{d}", [*chain, rotary], edges, T, "LLaMA")


def _size(family: str, field: str, value: object) -> int:
    number = as_int(value, family, field, 1)
    if number > _LARGEST:
        raise InvalidValueError(family, field, value, f"must be at most {_LARGEST}")
    return number


def _sizes(family: str, **sizes: int) -> tuple[int, ...]:
    return tuple(_size(family, field, value) for field, value in sizes.items())


def _heads(family: str, heads: int | None, width: int, head_width: int = _HEAD_WIDTH) -> int:
    count = max(1, width // head_width) if heads is None else _size(family, "heads", heads)
    if width % count:
        raise InvalidValueError(family, "heads", count, f"must divide the width {width}")
    return count


def _positions(family: str, positions: int | None, sequence: int) -> int:
    count = sequence if positions is None else _size(family, "positions", positions)
    if sequence > count:
        raise InvalidValueError(family, "sequence", sequence, f"must be at most the {count} positions")
    return count


def _block(T: int, d: int) -> tuple[int, int, int]:
    """Parameters, forward FLOPs and output of a block with biases, two norms and a feed-forward width of 4d."""
    return 12 * d * d + 13 * d, 24 * T * d * d + 4 * T * T * d, T * d


def _layer(identifier: str, kind: str, params: int, forward: int, output: int, saved: int) -> Layer:
    return Layer(
        id=identifier,
        kind=kind,
        params=params,
        forward_flops=forward,
        backward_flops=2 * forward,
        output_elements=output,
        saved_bytes=saved,
    )


def _chain(layers: Sequence[Layer]) -> list[Edge]:
    return [Edge(source=a.id, target=b.id, elements=a.output_elements) for a, b in pairwise(layers)]


def _network(
    name: str,
    layers: Sequence[Layer],
    edges: Sequence[Edge],
    tokens: int,
    family: str,
    shared: Sequence[SharedParams] = (),
) -> Network:
    return Network(
        name=name,
        layers=tuple(layers),
        edges=tuple(edges),
        shared_params=tuple(shared),
        sample=f"{tokens} tokens",
        provenance={"tool": f"frostline, closed form of {family}"},
    )
