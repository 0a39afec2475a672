"""A trained forest model on disk.

The file is a zip archive written by skops: numbers and text, nothing that is run when it is read. Trees are followed
by scikit-learn without looking, so they are checked when they are loaded.
"""

from __future__ import annotations

import io
import json
import platform
import warnings
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from frostline.errors import FileError, InvalidValueError, MissingExtraError
from frostline.prediction.forest_model import ForestModel
from frostline.problem.documents import check_ending, file_problem, write_bytes

__all__ = ["FORMAT", "FORMAT_VERSION", "load_model", "save_model"]

FORMAT = "frostline/size-model"
FORMAT_VERSION = 1
_ENDINGS = (".skops",)


def save_model(model: ForestModel, path: Path | str) -> None:
    """Write a forest model with all it has learned: all of the file or nothing.

    Parameters
    ----------
    model : ForestModel
        The model.
    path : Path or str
        Name of the file, which ends in ``.skops``.

    Raises
    ------
    InvalidValueError
        It is another kind of model; those learn again from the history in no time.
    FileError
        The name has another ending, or the file cannot be written.
    MissingExtraError
        skops is not installed.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "sizes.skops"
    >>> save_model(ForestModel(seed=7), path)
    >>> load_model(path).seed
    7
    """
    if not isinstance(model, ForestModel):
        raise InvalidValueError("saved model", "model", model, "must be a ForestModel")
    check_ending(path, _ENDINGS)
    plain, arrays = model.state()
    document = {
        "format": FORMAT,
        "version": FORMAT_VERSION,
        "model": model.name,
        "versions": _versions(),
        "plain": json.dumps(plain, allow_nan=False),
        "arrays": {name: np.ascontiguousarray(array) for name, array in arrays.items()},
    }
    buffer = io.BytesIO()
    _skops().dump(document, buffer)
    write_bytes(path, buffer.getvalue())


def load_model(path: Path | str) -> ForestModel:
    """Read what :func:`save_model` wrote; the model goes on as the one that was saved would have.

    Trees mean something only to the version of scikit-learn that grew them, so another one is refused.

    Parameters
    ----------
    path : Path or str
        The file.

    Raises
    ------
    FileError
        The file cannot be read, is damaged or of another format, holds something else than numbers and text, or was
        written with another version of scikit-learn.
    MissingExtraError
        skops is not installed.
    """
    skops = _skops()
    try:
        data = Path(path).read_bytes()
    except (OSError, ValueError) as error:
        raise FileError(path, f"cannot be read: {file_problem(error)}") from None
    document = _document(skops, path, data)
    _check_versions(path, document)
    try:
        return ForestModel.from_state(json.loads(document["plain"]), document["arrays"])
    except Exception as error:  # whatever the file holds, it is the file that is wrong
        raise FileError(path, f"does not hold what its format promises: {_shown(error)}") from None


def _document(skops: ModuleType, path: Path | str, data: bytes) -> dict[str, Any]:
    """What the archive holds, if that is one of ours."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            untrusted = skops.get_untrusted_types(data=data)
            document = None if untrusted else skops.loads(data)
    except Exception as error:  # zip, JSON and array readers fail in many ways
        raise FileError(path, f"is no saved model, or damaged: {_shown(error)}") from None
    if untrusted:
        raise FileError(path, f"holds objects that are not safe to load: {', '.join(untrusted)}")
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise FileError(path, f"is not of format {FORMAT!r}")
    return document


def _check_versions(path: Path | str, document: Mapping[str, Any]) -> None:
    if document.get("version") != FORMAT_VERSION:
        problem = f"is of version {document.get('version')!r} of its format, this frostline reads {FORMAT_VERSION}"
        raise FileError(path, f"{problem}; train the model again from the history")
    if document.get("model") != ForestModel.name:
        raise FileError(path, f"holds a model {document.get('model')!r}, not {ForestModel.name!r}")
    versions, here = document.get("versions"), _versions()
    written = versions.get("scikit-learn") if isinstance(versions, dict) else None
    if written != here["scikit-learn"]:
        problem = f"was written with scikit-learn {written}, and {here['scikit-learn']} is installed"
        raise FileError(path, f"{problem}; train the model again from the history, or install scikit-learn {written}")


def _versions() -> dict[str, str]:
    """Versions of what the file depends on."""
    found = {"python": platform.python_version()}
    for package in ("frostline", "scikit-learn", "numpy"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "unknown"
    return found


def _skops() -> ModuleType:
    try:
        import skops.io
    except ImportError:
        raise MissingExtraError("a saved model", "skops", "persist") from None
    module: ModuleType = skops.io
    return module


def _shown(error: Exception) -> str:
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text[:200]}" if text else type(error).__name__
