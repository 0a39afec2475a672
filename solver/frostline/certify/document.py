"""What all certificates are: JSON with exactly the fields they must have, whole numbers, a digest of the content."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


@dataclass(frozen=True, slots=True)
class CertificateFault:
    """One thing that is wrong with a certificate, a sentence about it, and the job that it concerns, if one does."""

    kind: StrEnum
    text: str
    job: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CertificateReport:
    """All faults of a certificate, and what it proves, in a sentence, if it has none."""

    faults: tuple[CertificateFault, ...]
    proved: str = ""

    @property
    def valid(self) -> bool:
        """Whether nothing is wrong."""
        return not self.faults


class MalformedError(Exception):
    """A field that breaks its rule."""


def opened(certificate: object, form: str, names: str) -> tuple[list[Any], bool]:
    """Values of the named fields of a certificate, and whether it is as it was written."""
    names = f"format version {names}"
    *values, sha256 = fields(certificate, "certificate", f"{names} sha256")
    if values[0] != form or whole(values[1], "version") != 1:
        raise MalformedError(f"certificate must have format {form!r} and version 1")
    return values[2:], sha256 == digest(dict(zip(names.split(), values, strict=True)))


def fields(record: object, path: str, names: str) -> list[Any]:
    """Values of an object that has exactly the named fields."""
    if type(record) is not dict or set(record) != set(names.split()):
        raise MalformedError(f"{path} must be an object with the fields {names}")
    return [record[name] for name in names.split()]


def whole(value: object, path: str, least: int | None = None) -> int:
    """A whole number."""
    if type(value) is not int or (least is not None and value < least):
        raise MalformedError(f"{path}={value!r} must be a whole number" + ("" if least is None else f" from {least}"))
    return value


def listed(value: object, path: str, length: int | None = None) -> list[Any]:
    """A list."""
    if type(value) is not list or (length is not None and len(value) != length):
        raise MalformedError(f"{path} must be a list" + ("" if length is None else f" of {length}"))
    return value


def wholes(value: object, path: str, length: int | None = None, least: int | None = None) -> list[int]:
    """A list of whole numbers."""
    entries = listed(value, path, length)
    if set(map(type, entries)) - {int} or (least is not None and entries and min(entries) < least):
        return [whole(entry, f"{path}[{i}]", least) for i, entry in enumerate(entries)]
    return entries


def digest(content: Mapping[str, Any]) -> str:
    """SHA-256 of a document, whatever the order of its fields."""
    return hashlib.sha256(json.dumps(content, sort_keys=True, separators=(",", ":"), default=repr).encode()).hexdigest()
