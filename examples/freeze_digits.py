"""Train small networks on handwritten digits as the freeze optimizer says, and compare with what it predicted.

For each network the units of the live model are profiled, the step times of all levels predicted from two measured ones
and the profile, and the fastest levels planned that the prior debt law of its family allows within a quality budget.
Then the network is trained with and without freezing, from the same start on the same batches, epoch by epoch in turns.

    python examples/freeze_digits.py --network mlp --seeds 5

Times are CPU times of one thread, of training steps and level changes. The exit status is 1 if the mean speed-up is not
within 15 % of the predicted one, or the mean loss of accuracy exceeds the budget.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from statistics import mean, stdev

import numpy as np
import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import Tensor, nn

from frostline.freezing import (
    FreezeLevels,
    FreezeState,
    FreezeTerms,
    LevelTimes,
    Trajectory,
    debt_prior,
    freeze_trajectory,
)
from frostline.freezing.live import FreezeController, ModelUnits, profile_units, step_seconds

BATCH = 64
TOLERANCE = 0.15  # of the predicted speed-up


class Residual(nn.Module):
    """Two convolutions with a way around them."""

    def __init__(self, channels: int, width: int, stride: int = 1) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(channels, width, 3, stride, 1, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU(),
            nn.Conv2d(width, width, 3, 1, 1, bias=False),
            nn.BatchNorm2d(width),
        )
        self.around = nn.Conv2d(channels, width, 1, stride, bias=False) if channels != width else nn.Identity()

    def forward(self, images: Tensor) -> Tensor:
        """Images of the same or half the size."""
        return nn.functional.relu(self.around(images) + self.body(images))


def mlp(width: int = 256, hidden: int = 9) -> nn.Module:
    """Ten fully connected layers."""
    layers: list[nn.Module] = []
    for i in range(hidden):
        layers += [nn.Linear(width if i else 64, width), nn.ReLU()]
        nn.init.kaiming_normal_(layers[-2].weight, nonlinearity="relu")
    return nn.Sequential(*layers, nn.Linear(width, 10))


def cnn(width: int = 12, blocks: int = 4) -> nn.Module:
    """A residual network of ten units: a convolution, eight blocks, and a linear layer."""
    stem = [nn.Unflatten(1, (1, 8, 8)), nn.Conv2d(1, width, 3, 1, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU()]
    first = [Residual(width, width) for _ in range(blocks)]
    second = [Residual(2 * width if i else width, 2 * width, 1 if i else 2) for i in range(blocks)]
    return nn.Sequential(*stem, *first, *second, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2 * width, 10))


@dataclass(frozen=True, kw_only=True)
class Network:
    """A network to train, and how."""

    make: Callable[[], nn.Module]
    family: str
    learning_rate: float


NETWORKS = {
    "mlp": Network(make=mlp, family="mlp", learning_rate=0.02),
    "cnn": Network(make=cnn, family="cnn", learning_rate=0.05),
}


@dataclass(frozen=True)
class Digits:
    """The 1,797 digits of scikit-learn, a quarter of them for the test."""

    inputs: Tensor
    targets: Tensor
    test_inputs: Tensor
    test_targets: Tensor

    @classmethod
    def load(cls) -> Digits:
        """The digits, with mean 0 and variance 1."""
        images, labels = load_digits(return_X_y=True)
        images = ((images - images.mean()) / images.std()).astype(np.float32)
        parts = train_test_split(images, labels, test_size=0.25, random_state=0, stratify=labels)
        train, test, train_labels, test_labels = (torch.from_numpy(part) for part in parts)
        return cls(train, train_labels, test, test_labels)


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What the optimizer says."""

    units: ModelUnits
    levels: FreezeLevels
    times: LevelTimes
    trajectory: Trajectory
    epochs: int

    @property
    def level_of_epoch(self) -> list[int]:
        """Level at which each epoch is trained."""
        starts = np.array(self.trajectory.boundaries[:-1])
        phases = np.searchsorted(starts, np.arange(self.epochs) / self.epochs + 1e-9, side="right") - 1
        return [self.trajectory.levels[phase] for phase in phases]


def plan_freezing(network: Network, digits: Digits, epochs: int, budget_points: float) -> Plan:
    """Profile a network, and plan its levels."""
    torch.manual_seed(0)
    model = network.make()
    optimizer = sgd(model, network)
    batch = digits.inputs[:BATCH], digits.targets[:BATCH]
    loss = nn.functional.cross_entropy
    profile = profile_units(model, batch, loss, optimizer=optimizer)
    levels = FreezeLevels.evenly(profile.freeze_units())
    ends = (0, levels.frozen_units[-1])
    measured = step_seconds(model, batch, loss, optimizer, profile.model_units, ends, repeats=15)
    times = LevelTimes.two_point(levels, measured[ends[0]], measured[ends[1]])
    law = debt_prior(network.family)
    terms = FreezeTerms(
        shares=levels.compute_shares,
        law=law,
        quality_budget_points=budget_points,
        phases=epochs - round(law.warm_up * epochs),
        change_cost_s=change_seconds(model, profile.model_units, optimizer),
    )
    steps = epochs * (len(digits.inputs) // BATCH)
    totals = [steps * times.seconds(level) for level in range(len(times))]
    trajectory = freeze_trajectory(terms, FreezeState(), totals)
    return Plan(units=profile.model_units, levels=levels, times=times, trajectory=trajectory, epochs=epochs)


def change_seconds(model: nn.Module, units: ModelUnits, optimizer: torch.optim.Optimizer) -> float:
    """CPU time of a change of level."""
    controller = FreezeController(model, units, optimizer)
    start = time.thread_time()
    for frozen in (len(units) - 1, 0) * 5:
        controller.freeze(frozen)
    return (time.thread_time() - start) / 10


def sgd(model: nn.Module, network: Network) -> torch.optim.Optimizer:
    """Optimizer of all runs."""
    return torch.optim.SGD(model.parameters(), lr=network.learning_rate, momentum=0.9)


@dataclass
class Run:
    """A training run that goes on epoch by epoch."""

    network: Network
    digits: Digits
    plan: Plan
    levels: Sequence[int]
    seed: int
    spent_s: float = 0.0
    epoch_s: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        torch.manual_seed(self.seed)
        self.model = self.network.make()
        self.optimizer = sgd(self.model, self.network)
        self.schedule = torch.optim.lr_scheduler.CosineAnnealingLR(self.optimizer, self.steps * len(self.levels))
        self.controller = FreezeController(self.model, self.plan.units, self.optimizer, levels=self.plan.levels)

    @property
    def steps(self) -> int:
        """Steps of an epoch."""
        return len(self.digits.inputs) // BATCH

    def train_epoch(self, epoch: int) -> None:
        """Train one epoch at its level."""
        order = torch.randperm(
            len(self.digits.inputs), generator=torch.Generator().manual_seed(1000 * self.seed + epoch)
        )
        self.model.train()
        start = time.thread_time()
        self.controller.apply(self.levels[epoch])
        changed = time.thread_time()
        for step in range(self.steps):
            chosen = order[step * BATCH : (step + 1) * BATCH]
            loss = nn.functional.cross_entropy(self.model(self.digits.inputs[chosen]), self.digits.targets[chosen])
            self.optimizer.zero_grad(set_to_none=True)
            loss.backward()
            self.optimizer.step()
            self.schedule.step()
        self.spent_s += time.thread_time() - start
        self.epoch_s.append(time.thread_time() - changed)

    def accuracy(self) -> float:
        """Share of the test digits that are read right."""
        self.model.eval()
        with torch.no_grad():
            answers = self.model(self.digits.test_inputs).argmax(1)
        return float((answers == self.digits.test_targets).double().mean())

    def step_s(self) -> dict[int, float]:
        """Mean seconds of a step, by level."""
        epochs = {
            level: [s for at, s in zip(self.levels, self.epoch_s, strict=True) if at == level] for level in self.levels
        }
        return {level: mean(seconds) / self.steps for level, seconds in epochs.items()}


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Predicted and measured figures of one network."""

    network: str
    units: int
    budget_points: float
    levels: list[int]
    frozen_units: list[int]
    predicted_speed_up: float
    speed_up: float
    predicted_loss_points: float
    loss_points: float
    loss_points_deviation: float
    accuracy: float
    frozen_accuracy: float
    step_ms: dict[int, tuple[float, float]]
    speed_ups: list[float]
    losses_points: list[float]

    @property
    def holds(self) -> bool:
        """Whether the mean speed-up is as predicted, and the mean loss within its budget."""
        error = self.speed_up / self.predicted_speed_up - 1
        return abs(error) <= TOLERANCE and self.loss_points <= self.budget_points


def compare(name: str, digits: Digits, seeds: int, epochs: int, budget_points: float) -> Comparison:
    """Train a network with and without freezing."""
    network = NETWORKS[name]
    plan = plan_freezing(network, digits, epochs, budget_points)
    levels = plan.level_of_epoch
    pairs = []
    for seed in range(seeds):
        plain, frozen = (Run(network, digits, plan, each, seed) for each in ([0] * epochs, levels))
        for epoch in range(epochs):
            for run in (plain, frozen) if epoch % 2 else (frozen, plain):
                run.train_epoch(epoch)
        pairs.append((plain, frozen))
    accuracies = [(plain.accuracy(), frozen.accuracy()) for plain, frozen in pairs]
    losses = [100 * (without - with_freezing) for without, with_freezing in accuracies]
    speed_ups = [plain.spent_s / frozen.spent_s for plain, frozen in pairs]
    measured = {level: mean(run.step_s()[level] for _, run in pairs) for level in sorted(set(levels))}
    measured[0] = mean(run.step_s()[0] for run, _ in pairs)
    return Comparison(
        network=name,
        units=len(plan.units),
        budget_points=budget_points,
        levels=levels,
        frozen_units=list(plan.levels.frozen_units),
        predicted_speed_up=plan.times.seconds(0) * epochs * (len(digits.inputs) // BATCH) / plan.trajectory.time_s,
        speed_up=mean(speed_ups),
        predicted_loss_points=plan.trajectory.debt_points,
        loss_points=mean(losses),
        loss_points_deviation=stdev(losses) if seeds > 1 else 0.0,
        accuracy=100 * mean(without for without, _ in accuracies),
        frozen_accuracy=100 * mean(with_freezing for _, with_freezing in accuracies),
        step_ms={level: (1e3 * plan.times.seconds(level), 1e3 * seconds) for level, seconds in measured.items()},
        speed_ups=speed_ups,
        losses_points=losses,
    )


def show(result: Comparison, seeds: int) -> None:
    """Print a comparison."""
    print(f"{result.network}: {result.units} units, {len(result.levels)} epochs, {seeds} seeds")
    print(f"  units frozen by epoch  {' '.join(str(result.frozen_units[level]) for level in result.levels)}")
    print(f"  {'':24}{'predicted':>10}{'measured':>10}")
    for level, (predicted, measured) in result.step_ms.items():
        frozen = result.frozen_units[level]
        error = measured / predicted - 1
        print(f"  {f'step, {frozen} units frozen':24}{predicted:7.2f} ms{measured:7.2f} ms{error:+8.1%}")
    error = result.speed_up / result.predicted_speed_up - 1
    print(f"  {'speed-up':24}{result.predicted_speed_up:9.2f}x{result.speed_up:9.2f}x{error:+8.1%}")
    print(f"  {'accuracy lost, points':24}{result.predicted_loss_points:10.2f}{result.loss_points:10.2f}", end="")
    print(f"  (deviation {result.loss_points_deviation:.2f}, budget {result.budget_points:g})")
    print(f"  accuracy {result.accuracy:.2f} % without freezing, {result.frozen_accuracy:.2f} % with it")
    print(f"  {'holds' if result.holds else 'DOES NOT HOLD'}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare the networks, and say whether the predictions hold."""
    parser = argparse.ArgumentParser(description="Train on digits as the freeze optimizer says.")
    parser.add_argument("--network", choices=[*NETWORKS, "all"], default="all")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--epochs", type=int, default=25)
    parser.add_argument(
        "--budget", type=float, default=1.0, help="percentage points of accuracy that freezing may cost"
    )
    parser.add_argument("--json", action="store_true", help="print figures as JSON")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    digits = Digits.load()
    names = list(NETWORKS) if options.network == "all" else [options.network]
    results = [compare(name, digits, options.seeds, options.epochs, options.budget) for name in names]
    if options.json:
        print(json.dumps([asdict(result) | {"holds": result.holds} for result in results], indent=1))
    else:
        for result in results:
            show(result, options.seeds)
    return 0 if all(result.holds for result in results) else 1


if __name__ == "__main__":
    sys.exit(main())
