"""Numbers for names: counts of their trigrams and words, and one number for a whole text."""

from __future__ import annotations

import re
import zlib
from functools import lru_cache

__all__ = ["BUCKETS", "code_of", "ngrams"]

BUCKETS = 8
"""Buckets into which trigrams and words fall by their checksums."""


def _bucket(piece: bytes) -> int:
    return zlib.crc32(piece) % BUCKETS


_word_bucket = lru_cache(maxsize=2**16)(_bucket)
_LETTERS = bytes(code if chr(code).isalpha() and code < 128 else 32 for code in range(256))
# A checksum is linear in its bits, so that of three bytes is the exclusive or of what each of them contributes.
_FIRST, _SECOND, _THIRD = (
    bytes(_bucket(before + bytes([code]) + after) ^ (_bucket(bytes(3)) if before else 0) for code in range(256))
    for before, after in ((b"", bytes(2)), (bytes(1), bytes(1)), (bytes(2), b""))
)


def ngrams(name: str) -> list[float]:
    """How often trigrams and words of a name fall into each bucket.

    Examples
    --------
    >>> sum(ngrams("bert")), ngrams("")
    (5.0, [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0])
    """
    if not name:
        return [0.0] * BUCKETS
    text = f" {name.lower()} "
    if not text.isascii():
        return _ngrams_of_any(text)
    raw = text.encode()
    parts = (raw[:-2].translate(_FIRST), raw[1:-1].translate(_SECOND), raw[2:].translate(_THIRD))
    first, second, third = (int.from_bytes(part) for part in parts)
    buckets = (first ^ second ^ third).to_bytes(len(raw) - 2)
    counts: list[float] = [*map(buckets.count, range(BUCKETS))]
    for word in raw.translate(_LETTERS).split():
        counts[_word_bucket(word)] += 1.0
    return counts


def _ngrams_of_any(text: str) -> list[float]:
    """The same in no hurry, for letters that are more than a byte."""
    counts = [0.0] * BUCKETS
    pieces = [text[start : start + 3] for start in range(len(text) - 2)]
    for piece in pieces + re.findall(r"[^\W\d_]+", text):
        counts[_bucket(piece.encode("utf-8", "surrogatepass"))] += 1.0
    return counts


@lru_cache(maxsize=2**16)
def code_of(text: str) -> float:
    """A number for a text, the same in every process, exact in single precision; 0 where there is none.

    Examples
    --------
    >>> code_of(""), code_of("alice") == code_of("alice")
    (0.0, True)
    """
    return float(1 + (zlib.crc32(text.encode("utf-8", "surrogatepass")) >> 9)) if text else 0.0
