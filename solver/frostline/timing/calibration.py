"""Utilisations and bandwidths fitted to measured step times, so that iteration times are those of real machines.

The fit and its hold-out errors are printed, and the shipped figures written, by ``benchmarks/timing_validation.py``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

from frostline.errors import InvalidValueError, UnknownNameError
from frostline.problem.cluster import Cluster, gpu_type
from frostline.problem.frozen import FrozenMap
from frostline.problem.plan import BYTES_PER_ELEMENT, TrainingPlan
from frostline.timing.contention import ContentionTime
from frostline.timing.stage_graph import stage_graph
from frostline.units import as_finite

__all__ = ["Calibration", "Saturation", "calibration", "calibrations"]

_MAX_BANDWIDTH = 1e18


@dataclass(frozen=True, slots=True, kw_only=True)
class Saturation:
    """How much of its peak a GPU reaches on one network: ``u(b) = utilisation · b / (b + half_batch)``.

    With b samples per replica an iteration then computes for ``F (b + half_batch) / (peak · utilisation)`` seconds, F
    being the FLOPs of one sample: each iteration costs what ``half_batch`` further samples would.

    Parameters
    ----------
    utilisation : float
        Share of the peak FLOPs that large batches reach, above 0 and at most 1.
    half_batch : float
        Samples per replica that reach half of it, at least 0.

    Examples
    --------
    >>> saturation = Saturation(utilisation=0.5, half_batch=8)
    >>> saturation.at(8), saturation.at(24)
    (0.25, 0.375)
    """

    utilisation: float
    half_batch: float

    def __post_init__(self) -> None:
        utilisation = as_finite(self.utilisation, "saturation", "utilisation", maximum=1.0)
        if utilisation <= 0:
            raise InvalidValueError("saturation", "utilisation", self.utilisation, "must be above 0")
        object.__setattr__(self, "utilisation", utilisation)
        object.__setattr__(self, "half_batch", as_finite(self.half_batch, "saturation", "half_batch", 0.0, 1e12))

    def at(self, samples: float) -> float:
        """Utilisation with so many samples per replica and iteration."""
        count = as_finite(samples, "saturation", "samples")
        if count <= 0:
            raise InvalidValueError("saturation", "samples", samples, "must be above 0")
        return self.utilisation * count / (count + self.half_batch)


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """What one kind of machine was measured to reach.

    The figures are effective ones: those under which :class:`~frostline.timing.contention.ContentionTime` comes
    nearest to the measured step times of data-parallel training. They were fitted to networks of a single stage; plans
    of several stages are timed with them, but were not measured.

    Parameters
    ----------
    name : str
        Name of the calibration.
    gpu_type : str
        Name of its GPU type in the catalogue.
    precision : str
        Precision of the measured training.
    nvlink_bytes_per_s, nic_bytes_per_s : float
        Bandwidth inside a server, and of a server's network card.
    overlap : bool
        Whether communication between servers overlaps computation.
    networks : mapping of str to Saturation
        The measured networks.
    source : mapping of str to str
        Where the figures come from.

    Examples
    --------
    >>> from frostline.problem.library import shipped_network
    >>> t4 = calibration("t4-fp32")
    >>> plan = TrainingPlan.balanced(shipped_network("resnet50"), 8, stages=1, global_batch=8 * 40)
    >>> t4.plan(plan).precision
    'fp32'
    >>> timing = t4.timing(plan, t4.cluster(4, gpus=4))
    >>> timing.column_ns((4,), 0) > 0
    True
    """

    name: str
    gpu_type: str
    precision: str
    nvlink_bytes_per_s: float
    nic_bytes_per_s: float
    overlap: bool
    networks: Mapping[str, Saturation] = field(hash=False)
    source: Mapping[str, str] = field(hash=False)

    def __post_init__(self) -> None:
        subject = f"calibration {self.name!r}"
        if self.precision not in BYTES_PER_ELEMENT:
            raise UnknownNameError("precision", str(self.precision), BYTES_PER_ELEMENT)
        gpu_type(self.gpu_type).peak(self.precision)
        for name in ("nvlink_bytes_per_s", "nic_bytes_per_s"):
            object.__setattr__(self, name, as_finite(getattr(self, name), subject, name, 1.0, _MAX_BANDWIDTH))
        if not self.networks:
            raise InvalidValueError(subject, "networks", {}, "must name at least one network")
        object.__setattr__(self, "networks", FrozenMap(dict(self.networks)))
        object.__setattr__(self, "source", FrozenMap(dict(self.source)))

    def utilisation(self, network: str, samples: float) -> float:
        """Utilisation of a measured network with so many samples per replica and iteration.

        Raises
        ------
        UnknownNameError
            The network was not measured.
        """
        if network not in self.networks:
            raise UnknownNameError(f"network of calibration {self.name!r}", str(network), self.networks)
        return self.networks[network].at(samples)

    def plan(self, plan: TrainingPlan, like: str | None = None) -> TrainingPlan:
        """The plan in the measured precision, at the measured utilisation.

        Parameters
        ----------
        plan : TrainingPlan
            The plan. The batch of a replica is that of the stage with most replicas, in one micro-batch.
        like : str, optional
            Measured network to take the utilisation from; by default the one with the name of the plan's network.

        Raises
        ------
        UnknownNameError
            That network was not measured.
        """
        samples = plan.global_batch / (max(plan.replicas) * plan.micro_batches)
        name = plan.network.name if like is None else like
        return plan.replace(precision=self.precision, utilisation=self.utilisation(name, samples))

    def cluster(self, servers: int, gpus: int = 8) -> Cluster:
        """Equal servers with the measured GPUs and bandwidths."""
        bandwidths = {"nvlink_bytes_per_s": self.nvlink_bytes_per_s, "nic_bytes_per_s": self.nic_bytes_per_s}
        return Cluster.uniform(servers, gpus, gpu_type=gpu_type(self.gpu_type), **bandwidths)

    def timing(self, plan: TrainingPlan, cluster: Cluster, like: str | None = None) -> ContentionTime:
        """Iteration time of a plan, calibrated by :meth:`plan`, on the servers of a cluster such as :meth:`cluster`."""
        graph = stage_graph(self.plan(plan, like), gpu_type(self.gpu_type))
        return ContentionTime.of_cluster(graph, cluster, overlap=self.overlap)


@cache
def calibrations() -> Mapping[str, Calibration]:
    """Calibrations that come with frostline, by name; ``timing/calibrations.json`` holds the figures and their sources.

    Examples
    --------
    >>> sorted(calibrations())
    ['a100-fp16', 't4-fp32', 'v100-fp16', 'v100-fp32']
    """
    data = json.loads(files("frostline.timing").joinpath("calibrations.json").read_text("utf-8"))
    return FrozenMap({entry["name"]: _calibration(entry) for entry in data["calibrations"]})


def calibration(name: str) -> Calibration:
    """Calibration that comes with frostline.

    Raises
    ------
    UnknownNameError
        No such calibration; a near miss is suggested.

    Examples
    --------
    >>> calibration("t4-fp32").gpu_type
    'T4'
    """
    try:
        return calibrations()[name]
    except KeyError:
        raise UnknownNameError("calibration", name, calibrations()) from None


def _calibration(entry: Mapping[str, Any]) -> Calibration:
    networks = {name: Saturation(**figures) for name, figures in entry["networks"].items()}
    return Calibration(**{**entry, "networks": networks})
