"""The training plan that a command line asks for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from frostline.cli.clusters import whole_numbers
from frostline.cli.group import UsageError
from frostline.errors import InvalidValueError
from frostline.problem import Network, TrainingPlan
from frostline.problem.files import load_network
from frostline.problem.library import shipped_network
from frostline.units import as_int

__all__ = ["PlanOptions", "network_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanOptions:
    """What is asked of the stages and replicas of a plan.

    Parameters
    ----------
    replicas : tuple of int or None
        Replicas of each stage.
    sizes : tuple of int
        GPUs of a replica of each stage; a single one is that of all stages.
    gpus : int or None
        GPUs of the plan; needed without replicas.
    stages : int or None
        Number of stages.

    Examples
    --------
    >>> PlanOptions.of(replicas="4,2", gpus=None, sizes="2", stages=None).need
    12
    """

    replicas: tuple[int, ...] | None
    sizes: tuple[int, ...]
    gpus: int | None
    stages: int | None

    @classmethod
    def of(cls, *, replicas: str | None, gpus: int | None, sizes: str | None, stages: int | None) -> PlanOptions:
        """Options as they are typed."""
        counts = whole_numbers(replicas, "--replicas", 1)
        per_replica = whole_numbers(sizes, "--gpus-per-replica", 1) or (1,)
        if counts is None and gpus is None:
            raise UsageError("give --replicas or --gpus")
        if counts is None and len(per_replica) > 1:
            raise UsageError("--gpus-per-replica of several stages goes with --replicas")
        if counts is not None and len(per_replica) not in (1, len(counts)):
            rule = f"must be one number, or one for each of {len(counts)} stages"
            raise InvalidValueError("option --gpus-per-replica", "gpus", sizes, rule)
        return cls(replicas=counts, sizes=per_replica, gpus=gpus, stages=stages)

    @property
    def need(self) -> int:
        """GPUs of the job."""
        if self.replicas is None:
            return as_int(self.gpus, "option --gpus", "gpus", 1)
        need = sum(count * size for count, size in zip(self.replicas, self._sizes(len(self.replicas)), strict=True))
        if self.gpus not in (None, need):
            raise InvalidValueError("option --gpus", "gpus", self.gpus, f"must be the {need} of --replicas")
        return need

    def plan(self, network: Network, global_batch: int | None, fields: Mapping[str, Any]) -> TrainingPlan:
        """Plan with stages of balanced compute and the replicas that were asked for, else balanced ones."""
        batch = {} if global_batch is None else {"global_batch": global_batch}
        if self.replicas is None:
            size = self.sizes[0]
            return TrainingPlan.balanced(
                network, self.need, stages=self.stages, gpus_per_replica=size, **batch, **fields
            )
        stages = len(self.replicas) if self.stages is None else self.stages
        sizes = self._sizes(len(self.replicas))
        plan = TrainingPlan.balanced(network, sum(self.replicas), stages=stages, **fields)
        samples = {"global_batch": plan.global_batch * self.need // sum(self.replicas)} | batch
        return plan.replace(replicas=self.replicas, gpus_per_replica=sizes, **samples)

    def _sizes(self, stages: int) -> tuple[int, ...]:
        return self.sizes * stages if len(self.sizes) == 1 else self.sizes


def network_of(model: str) -> Network:
    """Network of a file or of a name."""
    is_file = (model and Path(model).exists()) or model.endswith((".json", ".json.gz")) or Path(model).name != model
    return load_network(model) if is_file else shipped_network(model)
