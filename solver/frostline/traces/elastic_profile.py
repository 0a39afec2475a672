"""Profiles of applications: from measured step times to elastic work."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import Any

from frostline.errors import InvalidValueError
from frostline.freezing.frozen_graph import GradientExchange, as_exchange
from frostline.freezing.levels import FreezeLevels
from frostline.freezing.network_units import freeze_units
from frostline.freezing.profiled import LevelTimes
from frostline.freezing.units import FreezeUnit, FreezeUnits
from frostline.problem.convolutions import resnet
from frostline.problem.families import bert
from frostline.problem.frozen import FrozenMap
from frostline.problem.job import Elastic, PlacementClass
from frostline.traces.step_tables import MeasuredSteps, StepCurve
from frostline.units import as_finite, as_int

__all__ = [
    "DEFAULT_WIDTHS",
    "Application",
    "BatchPlan",
    "ElasticProfile",
    "cifar_resnet_levels",
    "encoder_levels",
    "profile_of",
]

DEFAULT_WIDTHS = (1, 2, 4, 8, 12, 16, 24, 32)
"""Numbers of GPUs of a profile, as far as they were measured."""

_SUBJECT = "elastic profile"
_LONGEST_HOURS = 1e9


@dataclass(frozen=True, slots=True, kw_only=True)
class Application:
    """What is known of an application beside its tables.

    Parameters
    ----------
    name : str
        Name of its tables.
    network : str
        The network that it trains.
    family : str
        Family of the network, by which accuracy debt is judged.
    gpu_hours : tuple of float
        GPU-time class that it stands for in workloads: hours, from and below.
    levels : callable, optional
        Makes its freeze levels; without it the application cannot be frozen.
    batch : int, optional
        Global batch in samples, where the tables do not tell what others are worth.
    """

    name: str
    network: str
    family: str
    gpu_hours: tuple[float, float]
    levels: Callable[[], FreezeLevels] | None = None
    batch: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchPlan:
    """Global batches to choose from, and the iterations that one reference iteration takes with each.

    Parameters
    ----------
    reference : int
        Samples of a reference iteration.
    iterations : mapping of int to float
        Iterations by global batch, per reference iteration: below 1 for batches larger than the reference.
    """

    reference: int
    iterations: Mapping[int, float]

    @property
    def fixed(self) -> bool:
        """Whether there is one batch only."""
        return len(self.iterations) == 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ElasticProfile:
    """Measured application from which elastic work is made.

    Parameters
    ----------
    name : str
        Name.
    gpu_type : str
        GPU type it was measured on.
    network : str
        The network.
    template : Elastic
        Work of one reference iteration: seconds by class of placement, width and freeze level, shares and family.
    gpu_hours : tuple of float
        GPU-time class that it stands for in workloads: hours, from and below.
    reference_batch : int
        Samples of a reference iteration.
    batches : mapping of PlacementClass to mapping of int to int
        Global batch in samples by class and width: the one of highest goodput, or the same everywhere.
    iterations : int or None
        Reference iterations of the whole training, where the tables tell.
    gamma, gamma_error : float
        Overlap of computing and exchanging, and the root mean square of its logarithmic error in the measured times.

    Raises
    ------
    InvalidValueError
        The GPU-time class is not two rising numbers.
    """

    name: str
    gpu_type: str
    network: str
    template: Elastic
    gpu_hours: tuple[float, float]
    reference_batch: int
    batches: Mapping[PlacementClass, Mapping[int, int]] = field(hash=False)
    iterations: int | None = None
    gamma: float = 1.0
    gamma_error: float = 0.0

    def __post_init__(self) -> None:
        subject = f"{_SUBJECT} {self.name!r}"
        low, high = (as_finite(hours, subject, "gpu_hours", 0.0, _LONGEST_HOURS) for hours in self.gpu_hours)
        if low >= high:
            raise InvalidValueError(subject, "gpu_hours", self.gpu_hours, "must be two rising numbers of hours")
        object.__setattr__(self, "gpu_hours", (low, high))

    def replace(self, **changes: Any) -> ElasticProfile:
        """Copy with some fields changed."""
        return replace(self, **changes)

    @property
    def widths(self) -> tuple[int, ...]:
        """Numbers of GPUs that were measured, ascending."""
        return self.template.widths

    @property
    def batch_rule(self) -> str:
        """``"goodput"`` where the batch follows the width, else ``"fixed"``."""
        sizes = {batch for rows in self.batches.values() for batch in rows.values()}
        return "fixed" if sizes == {self.reference_batch} else "goodput"

    def best_s(self, gpus: int, level: int = 0) -> float:
        """Effective seconds of a reference iteration, in one server where that was measured."""
        return self.template.seconds(gpus, PlacementClass.ONE_SERVER, level)

    def work(
        self, iterations: int | None = None, *, quality_budget_points: float = 0.0, warm_up: float = 0.2
    ) -> Elastic:
        """Work of so many reference iterations, by default those of the whole training.

        Raises
        ------
        InvalidValueError
            No number of iterations is given or known, or a value is out of range.
        """
        count = self.iterations if iterations is None else iterations
        if count is None:
            rule = "must be given: its tables do not tell how long it trains"
            raise InvalidValueError(f"{_SUBJECT} {self.name!r}", "iterations", None, rule)
        return replace(self.template, iterations=count, quality_budget_points=quality_budget_points, warm_up=warm_up)


def profile_of(
    application: Application,
    steps: MeasuredSteps,
    batches: BatchPlan,
    *,
    gpu_type: str,
    name: str | None = None,
    widths: Sequence[int] = DEFAULT_WIDTHS,
    comm: str = "static",
    iterations: int | None = None,
) -> ElasticProfile:
    """Profile of an application.

    A step splits into computing C = step - exchange and the exchange N with ``T = (C^γ + N^γ)^(1/γ)``, γ fitted to the
    table. With k units frozen ``T(k) = (C(k)^γ + N(k)^γ)^(1/γ)``, where C(k) / C is the share of the FLOPs of a step
    that is left, and N(k) is N, or its share of trained parameters for ``comm="rebuild"``. A replica that cannot hold
    its share of the batch accumulates gradients over equal passes, the last of which exchanges them.

    Of several batches the one with the least effective seconds without freezing is taken for each width and class, the
    smaller of two as good, and kept at all levels. One server is that of the measurements; many servers are as few of
    them as hold the width, two at least. Times are whole nanoseconds.

    Parameters
    ----------
    application : Application
        The application.
    steps : MeasuredSteps
        Its step times.
    batches : BatchPlan
        Batches to choose from.
    gpu_type : str
        GPU type of the measurements.
    name : str, optional
        Name, by default that of the application.
    widths : sequence of int
        Numbers of GPUs to offer, as far as they were measured.
    comm : {"static", "rebuild"}
        Whether all gradients are exchanged at every level, or those of the trained units.
    iterations : int, optional
        Reference iterations of the whole training.

    Raises
    ------
    InvalidValueError
        None of the widths was measured with any of the batches.
    UnknownNameError
        Another exchange.

    References
    ----------
    Qiao et al., *Pollux: Co-adaptive Cluster Scheduling for Goodput-Optimized Deep Learning*, OSDI 2021, equation 11.
    """
    levels = application.levels() if application.levels else None
    gamma, error = steps.gamma()
    split = _Split(levels, gamma, as_exchange(comm), steps.samples)
    table: dict[PlacementClass, dict[int, tuple[float, ...]]] = {where: {} for where in PlacementClass}
    chosen: dict[PlacementClass, dict[int, int]] = {where: {} for where in PlacementClass}
    for gpus in sorted({as_int(width, _SUBJECT, "widths", 1) for width in widths}):
        for where in PlacementClass:
            curve = steps.curve(gpus, where)
            best = None if curve is None else split.best(curve, gpus, batches)
            if best is not None:
                chosen[where][gpus], table[where][gpus] = best
    if not any(table.values()):
        raise InvalidValueError(
            _SUBJECT, "widths", tuple(widths), f"has none that {application.name!r} was measured on"
        )
    template = Elastic(
        iterations=1,
        widths=tuple(sorted({gpus for rows in table.values() for gpus in rows})),
        seconds_per_iteration={where: rows for where, rows in table.items() if rows},
        compute_shares=levels.compute_shares if levels else (0.0,),
        family=application.family,
    )
    return ElasticProfile(
        name=name or application.name,
        gpu_type=gpu_type,
        network=application.network,
        template=template,
        gpu_hours=application.gpu_hours,
        reference_batch=batches.reference,
        batches=FrozenMap({where: FrozenMap(rows) for where, rows in chosen.items() if rows}),
        iterations=iterations,
        gamma=gamma,
        gamma_error=error,
    )


class _Split:
    """Times of a step by freeze level, from those of one without freezing."""

    def __init__(
        self, levels: FreezeLevels | None, gamma: float, comm: GradientExchange, samples: tuple[int, int]
    ) -> None:
        self._gamma, self._samples = gamma, samples
        self._work, self._sent = [1.0], [1.0]
        if levels is not None:
            units = levels.units
            self._work = [units.compute(frozen) / units.compute(0) for frozen in levels.frozen_units]
            self._sent = [1.0] * len(levels)
            if comm is GradientExchange.REBUILD and units.params():
                self._sent = [units.params(frozen) / units.params() for frozen in levels.frozen_units]

    def best(self, curve: StepCurve, gpus: int, batches: BatchPlan) -> tuple[int, tuple[float, ...]] | None:
        """Batch of the highest goodput and effective seconds by level; None where no batch was measured."""
        found = None
        for batch in sorted(batches.iterations):
            row = self._row(curve, gpus, batch, batches.iterations[batch])
            if row is not None and (found is None or row[0] < found[1][0]):
                found = batch, row
        return found

    def _row(self, curve: StepCurve, gpus: int, batch: int, iterations: float) -> tuple[float, ...] | None:
        samples = math.ceil(batch / gpus)
        passes = math.ceil(samples / min(curve.samples[-1], self._samples[1]))
        point = curve.at(math.ceil(samples / passes))
        if point is None:
            return None
        compute, step = point
        exchange = step * (1 - (compute / step) ** self._gamma) ** (1 / self._gamma)
        times = LevelTimes(
            compute_s=tuple(compute * share for share in self._work),
            exchange_s=tuple(exchange * share for share in self._sent),
            gamma=self._gamma,
        )
        seconds = (
            iterations * ((passes - 1) * times.compute_s[level] + times.seconds(level)) for level in range(len(times))
        )
        return tuple(accumulate((max(round(value, 9), 1e-9) for value in seconds), min))


def encoder_levels(blocks: int, width: int, tokens: int) -> FreezeLevels:
    """Freeze levels of a transformer encoder under a head of one dense layer, as in fine-tuning.

    The embedding belongs to the first block. The FLOPs are those of the blocks of BERT; a pre-trained head over the
    vocabulary, which fine-tuning replaces, is not among them.

    Parameters
    ----------
    blocks, width, tokens : int
        Number of blocks, their width, and tokens per sample.

    Examples
    --------
    >>> encoder_levels(12, 768, 384).frozen_units
    (0, 2, 3, 4, 6, 7, 9, 10, 12)
    """
    layers = bert(blocks, width, sequence=tokens).layers
    units = [
        FreezeUnit(
            forward=layer.forward_flops,
            weight_gradient=layer.backward_flops,
            input_gradient=0,
            params=layer.params + (0 if i else layers[0].params),
            name=str(layer.id),
        )
        for i, layer in enumerate(layer for layer in layers if layer.kind == "BertLayer")
    ]
    return FreezeLevels.evenly(FreezeUnits((*units, FreezeUnit(forward=2 * width * width, params=width * width))))


def cifar_resnet_levels() -> FreezeLevels:
    """Freeze levels of ResNet-18 on images of 32 × 32, whose first convolution keeps all pixels.

    Its blocks are those of ``resnet(18)`` at the resolution that 128 pixels leave them.

    Examples
    --------
    >>> cifar_resnet_levels().frozen_units
    (0, 2, 3, 4, 5, 6, 7, 8, 9)
    """
    weights, pixels = 3 * 64 * 9, 32 * 32
    flops = 2 * weights * pixels
    wide = freeze_units(resnet(18, image=128, classes=10)).units
    first = FreezeUnit(forward=flops, weight_gradient=flops, input_gradient=0, params=weights + 2 * 64, name="conv1")
    return FreezeLevels.evenly(FreezeUnits((first, *wide.units[1:])))
