"""Profiles of the applications of Pollux, from its measured step times and training runs on T4 GPUs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from frostline.errors import FileError, UnknownNameError
from frostline.freezing.levels import FreezeLevels
from frostline.freezing.network_units import freeze_units
from frostline.problem.library import shipped_network
from frostline.traces.elastic_profile import (
    DEFAULT_WIDTHS,
    Application,
    BatchPlan,
    ElasticProfile,
    cifar_resnet_levels,
    encoder_levels,
    profile_of,
)
from frostline.traces.step_tables import read_columns, read_steps, table_path

__all__ = ["POLLUX_APPLICATIONS", "pollux_profile", "pollux_profiles"]


def _resnet50() -> FreezeLevels:
    return FreezeLevels.evenly(freeze_units(shipped_network("resnet50")).units)


def _bert_base() -> FreezeLevels:
    return encoder_levels(12, 768, 384)


POLLUX_APPLICATIONS: Mapping[str, Application] = MappingProxyType(
    {
        application.name: application
        for application in (
            Application(
                name="cifar10", network="ResNet-18", family="cnn", gpu_hours=(0.0, 1.0), levels=cifar_resnet_levels
            ),
            Application(name="ncf", network="NeuMF", family="mlp", gpu_hours=(0.0, 1.0)),
            Application(
                name="bert", network="BERT-base", family="fine-tuning", gpu_hours=(1.0, 10.0), levels=_bert_base
            ),
            Application(name="deepspeech2", network="DeepSpeech2", family="unknown", gpu_hours=(1.0, 10.0)),
            Application(name="yolov3", network="YOLOv3", family="cnn", gpu_hours=(10.0, 100.0)),
            Application(
                name="imagenet", network="ResNet-50", family="cnn", gpu_hours=(100.0, 1000.0), levels=_resnet50
            ),
        )
    }
)
"""The applications, with the GPU-time classes in which Pollux samples them.

ResNet-50 is the network of that name that comes with frostline, ResNet-18 and BERT-base follow from closed forms. Of
NeuMF, DeepSpeech2 and YOLOv3 there is none; they are not frozen.
"""

_VALIDATION = ("progress", "iteration")


def pollux_profiles(
    folder: Path | str,
    applications: Iterable[str] | None = None,
    *,
    widths: Sequence[int] = DEFAULT_WIDTHS,
    comm: str = "static",
) -> dict[str, ElasticProfile]:
    """Profiles of several applications by name; see :func:`pollux_profile`.

    Parameters
    ----------
    folder : Path or str
        Folder with one folder per application.
    applications : iterable of str, optional
        Names, by default all.
    widths, comm
        See :func:`~frostline.traces.elastic_profile.profile_of`.
    """
    names = POLLUX_APPLICATIONS if applications is None else applications
    return {name: pollux_profile(folder, name, widths=widths, comm=comm) for name in names}


def pollux_profile(
    folder: Path | str,
    application: str | Application,
    *,
    widths: Sequence[int] = DEFAULT_WIDTHS,
    comm: str = "static",
) -> ElasticProfile:
    """Profile of an application of Pollux.

    ``placements`` and ``scalability`` give the step times. The tables ``validation-B``, one for each global batch B,
    give the iterations that training takes and its progress in iterations of the smallest one, the reference. Their
    ratio is what a batch costs: the statistical efficiency of Pollux as it was measured. Each width takes the batch of
    the highest goodput.

    Parameters
    ----------
    folder : Path or str
        Folder with one folder per application.
    application : str or Application
        One of ``POLLUX_APPLICATIONS``, or another one of this form.
    widths, comm
        See :func:`~frostline.traces.elastic_profile.profile_of`.

    Raises
    ------
    FileError
        A table is missing or cannot be read, or a value in it is wrong; the message names the line.
    UnknownNameError
        An unknown application or exchange.

    References
    ----------
    Qiao et al., *Pollux: Co-adaptive Cluster Scheduling for Goodput-Optimized Deep Learning*, OSDI 2021; tables of
    github.com/petuum/adaptdl, branch osdi21-artifact, simulator/traces.
    """
    if isinstance(application, str):
        if application not in POLLUX_APPLICATIONS:
            raise UnknownNameError("application", application, POLLUX_APPLICATIONS)
        application = POLLUX_APPLICATIONS[application]
    home = Path(folder) / application.name
    steps = read_steps(table_path(home, "placements"), table_path(home, "scalability"))
    plan, iterations = _batches(home)
    return profile_of(application, steps, plan, gpu_type="T4", widths=widths, comm=comm, iterations=iterations)


def _batches(home: Path) -> tuple[BatchPlan, int]:
    """Batches of the runs, and the iterations of the one with the smallest."""
    paths: dict[int, Path] = {}
    for path in sorted(home.glob("validation-*.csv*")):
        text = path.name.removeprefix("validation-").removesuffix(".gz").removesuffix(".csv")
        if not (text.isascii() and text.isdigit() and 0 < int(text) < 10**9):
            raise FileError(path, f"is named for the batch {text!r}, which must be a whole number above 0")
        if int(text) in paths:
            raise FileError(path, f"is for the same batch as {paths[int(text)].name}")
        paths[int(text)] = path
    if not paths:
        raise FileError(home, "has no table validation-BATCH.csv")
    runs = {batch: _last(paths[batch]) for batch in sorted(paths)}
    reference = min(runs)
    progress, count = runs[reference]
    cost = {batch: its / done * (progress / count) for batch, (done, its) in runs.items()}
    return BatchPlan(reference=reference, iterations=cost), round(count)


def _last(path: Path) -> tuple[float, float]:
    """Progress and iterations at the end of a run."""
    last = (0.0, 0.0)
    for line, cells in read_columns(path, _VALIDATION):
        values = [_positive(path, line, name, text) for name, text in zip(_VALIDATION, cells, strict=True)]
        for name, value, before in zip(_VALIDATION, values, last, strict=True):
            if value < before:
                raise FileError(path, f"line {line}: {name}: {value:g} must be at least {before:g}, that before it")
        last = (values[0], values[1])
    return last


def _positive(path: Path, line: int, name: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value < 1e15:
        raise FileError(path, f"line {line}: {name}: {text!r} must be a number above 0")
    return value
