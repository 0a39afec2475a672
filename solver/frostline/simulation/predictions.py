"""What predictions were like in a simulation, and what became of them."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from frostline.policies.guarantee import distortion
from frostline.problem.instance import Instance
from frostline.scheduler.scheduler import Scheduler

__all__ = ["PredictionFacts", "prediction_facts"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictionFacts:
    """Figures of the predictions of a simulation.

    Parameters
    ----------
    jobs : int
        Jobs that were predicted.
    cold_start_share : float or None
        Share of them of whose group and user nothing was known; None without jobs.
    overruns : int
        Jobs that outlived what was believed of them at its highest.
    repredictions : int
        How often the expected end of a running job was put off.
    most_out_of_order_gpus : int
        E′, the most GPUs that tasks started out of order held at one time.
    a, b, D : float or None
        Least and largest ŵ / w, the work that was fed to the virtual machine over the true work, and b / a; None
        without jobs.
    """

    jobs: int
    cold_start_share: float | None
    overruns: int
    repredictions: int
    most_out_of_order_gpus: int
    a: float | None
    b: float | None
    D: float | None

    def as_dict(self) -> dict[str, float | int | None]:
        """All figures by name."""
        return asdict(self)


def prediction_facts(instance: Instance, scheduler: Scheduler) -> PredictionFacts | None:
    """Figures of the predictions of a scheduler that all jobs of an instance have gone through; None without any."""
    outlook, beliefs = scheduler.outlook, scheduler.beliefs
    if outlook is None or beliefs is None:
        return None
    count, ratios = len(beliefs.jobs), distortion(instance, beliefs)
    return PredictionFacts(
        jobs=count,
        cold_start_share=outlook.cold_starts / count if count else None,
        overruns=len(outlook.outlived),
        repredictions=outlook.repredictions,
        most_out_of_order_gpus=beliefs.out_of_order_gpus,
        a=None if ratios is None else float(ratios[0]),
        b=None if ratios is None else float(ratios[1]),
        D=None if ratios is None else float(ratios[1] / ratios[0]),
    )
