"""Profiles of the foundation models of Titan, from step times of fine-tuning on V100 and A100 GPUs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from frostline.errors import UnknownNameError
from frostline.freezing.levels import FreezeLevels
from frostline.freezing.network_units import freeze_units
from frostline.problem.library import shipped_network
from frostline.traces.elastic_profile import (
    DEFAULT_WIDTHS,
    Application,
    BatchPlan,
    ElasticProfile,
    encoder_levels,
    profile_of,
)
from frostline.traces.step_tables import read_steps, table_path
from frostline.units import as_int

__all__ = ["TITAN_APPLICATIONS", "TITAN_GPUS", "titan_profile", "titan_profiles"]

TITAN_GPUS = ("V100", "A100")
"""GPU types of the tables."""


def _vit_base() -> FreezeLevels:
    return FreezeLevels.evenly(freeze_units(shipped_network("vit_b_16")).units)


def _vit_large() -> FreezeLevels:
    return encoder_levels(24, 1024, 197)


def _roberta_base() -> FreezeLevels:
    return encoder_levels(12, 768, 512)


def _roberta_large() -> FreezeLevels:
    return encoder_levels(24, 1024, 512)


def _fine_tuning(
    name: str, network: str, hours: tuple[float, float], levels: Callable[[], FreezeLevels], batch: int
) -> Application:
    return Application(name=name, network=network, family="fine-tuning", gpu_hours=hours, levels=levels, batch=batch)


TITAN_APPLICATIONS: Mapping[str, Application] = MappingProxyType(
    {
        application.name: application
        for application in (
            _fine_tuning("vit", "ViT-B/16", (0.0, 1.0), _vit_base, 192),
            _fine_tuning("roberta-base", "RoBERTa-base", (0.0, 1.0), _roberta_base, 128),
            _fine_tuning("vit-large", "ViT-L/16", (1.0, 10.0), _vit_large, 192),
            _fine_tuning("roberta-large", "RoBERTa-large", (1.0, 10.0), _roberta_large, 128),
        )
    }
)
"""The models; their batches are among those of the workloads of Titan, their GPU-time classes are assumed."""


def titan_profiles(
    folder: Path | str,
    gpu_type: str = "V100",
    models: Iterable[str] | None = None,
    *,
    widths: Sequence[int] = DEFAULT_WIDTHS,
    comm: str = "static",
) -> dict[str, ElasticProfile]:
    """Profiles of several models by name, ``MODEL@GPU``; see :func:`titan_profile`.

    Parameters
    ----------
    folder : Path or str
        Folder with one folder per GPU type.
    gpu_type : str
        One of ``TITAN_GPUS``.
    models : iterable of str, optional
        Names, by default all.
    widths, comm
        See :func:`~frostline.traces.elastic_profile.profile_of`.
    """
    names = TITAN_APPLICATIONS if models is None else models
    made = [titan_profile(folder, name, gpu_type, widths=widths, comm=comm) for name in names]
    return {profile.name: profile for profile in made}


def titan_profile(
    folder: Path | str,
    model: str | Application,
    gpu_type: str = "V100",
    *,
    batch: int | None = None,
    widths: Sequence[int] = DEFAULT_WIDTHS,
    comm: str = "static",
) -> ElasticProfile:
    """Profile of fine-tuning a model of Titan at a fixed global batch.

    The tables do not tell what a larger batch is worth, nor how long a training takes: the profile has no number of
    iterations of its own.

    Parameters
    ----------
    folder : Path or str
        Folder with one folder per GPU type.
    model : str or Application
        One of ``TITAN_APPLICATIONS``, or another one of this form.
    gpu_type : str
        One of ``TITAN_GPUS``.
    batch : int, optional
        Global batch in samples, by default that of the application.
    widths, comm
        See :func:`~frostline.traces.elastic_profile.profile_of`.

    Raises
    ------
    FileError
        A table is missing or cannot be read, or a value in it is wrong; the message names the line.
    InvalidValueError
        No width was measured with this batch.
    UnknownNameError
        An unknown model, GPU type or exchange.

    References
    ----------
    Gao et al., *Titan: A Scheduler for Foundation Model Fine-tuning Workloads*, SoCC 2022; tables of
    github.com/gaow0007/TitanSched.
    """
    if isinstance(model, str):
        if model not in TITAN_APPLICATIONS:
            raise UnknownNameError("model", model, TITAN_APPLICATIONS)
        model = TITAN_APPLICATIONS[model]
    if gpu_type not in TITAN_GPUS:
        raise UnknownNameError("GPU type of Titan", gpu_type, TITAN_GPUS)
    home = Path(folder) / gpu_type
    tables = [table_path(home, f"{model.name}_{table}") for table in ("placements", "scalability")]
    samples = as_int(model.batch if batch is None else batch, f"model {model.name!r}", "batch", 1)
    plan = BatchPlan(reference=samples, iterations={samples: 1.0})
    name = f"{model.name}@{gpu_type}"
    return profile_of(model, read_steps(*tables), plan, gpu_type=gpu_type, name=name, widths=widths, comm=comm)
