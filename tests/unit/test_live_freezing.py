"""Freezing in live torch models: units, profile, controller."""

from __future__ import annotations

import copy
import json
import runpy
import subprocess
import sys
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch import Tensor, nn  # noqa: E402
from torch.nn.functional import cross_entropy  # noqa: E402
from torch.utils.flop_counter import FlopCounterMode  # noqa: E402

from frostline.errors import InvalidValueError  # noqa: E402
from frostline.freezing import DebtLaw, FreezeLevels, FreezeState, FreezeTerms  # noqa: E402
from frostline.freezing.frozen_graph import GradientExchange  # noqa: E402
from frostline.freezing.live import (  # noqa: E402
    FreezeController,
    GradientMeter,
    ModelUnits,
    batch_moments,
    find_units,
    profile_units,
    step_seconds,
)

Optimizers = {
    "sgd": lambda parameters: torch.optim.SGD(parameters, lr=0.05, momentum=0.9, weight_decay=1e-3),
    "adamw": lambda parameters: torch.optim.AdamW(parameters, lr=1e-2),
}


class Residual(nn.Module):
    """A block with a way around it."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.around = nn.Identity()
        self.body = nn.Sequential(nn.Linear(width, width), nn.BatchNorm1d(width), nn.ReLU(), nn.Linear(width, width))

    def forward(self, x: Tensor) -> Tensor:
        return self.around(x) + self.body(x)


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    yield
    torch.set_num_threads(threads)


def network(width: int = 6, blocks: int = 3) -> nn.Sequential:
    """Linear layer, normalisation, residual blocks, dropout, and head: blocks + 3 units."""
    stem = [nn.Linear(4, width), nn.BatchNorm1d(width), nn.ReLU(inplace=True)]
    return nn.Sequential(
        nn.Flatten(), *stem, *(Residual(width) for _ in range(blocks)), nn.Dropout(0.1), nn.Linear(width, 3)
    )


def batches(count: int, size: int = 12) -> list[tuple[Tensor, Tensor]]:
    generator = torch.Generator().manual_seed(7)
    return [
        (torch.randn(size, 4, generator=generator), torch.randint(0, 3, (size,), generator=generator))
        for _ in range(count)
    ]


def train(model: nn.Module, optimizer: Any, data: list[tuple[Tensor, Tensor]]) -> None:
    torch.manual_seed(3)
    model.train()
    for inputs, targets in data:
        optimizer.zero_grad()
        cross_entropy(model(inputs), targets).backward()
        optimizer.step()


def same(first: Any, second: Any) -> bool:
    """Whether two states hold the very same bits."""
    if isinstance(first, Tensor):
        return torch.equal(first, second)
    if isinstance(first, dict):
        return list(first) == list(second) and all(same(first[key], second[key]) for key in first)
    if isinstance(first, (list, tuple)):
        return len(first) == len(second) and all(map(same, first, second))
    return bool(first == second)


def states(model: nn.Module, optimizer: Any) -> Any:
    return copy.deepcopy((model.state_dict(), optimizer.state_dict()))


def units_of(model: nn.Module) -> ModelUnits:
    return find_units(model, batches(1)[0], cross_entropy)


@pytest.fixture(params=sorted(Optimizers))
def make_optimizer(request: pytest.FixtureRequest) -> Callable[[Any], Any]:
    return Optimizers[request.param]


def test_nothing_changes_at_level_0(make_optimizer: Callable[[Any], Any]) -> None:
    plain = network()
    held = copy.deepcopy(plain)
    optimizers = make_optimizer(plain.parameters()), make_optimizer(held.parameters())
    controller = FreezeController(held, units_of(held), optimizers[1])
    assert controller.apply(0) is False
    train(plain, optimizers[0], batches(8))
    train(held, optimizers[1], batches(8))
    assert same(states(plain, optimizers[0]), states(held, optimizers[1]))


def test_a_level_and_back_changes_nothing(make_optimizer: Callable[[Any], Any]) -> None:
    plain = network()
    held = copy.deepcopy(plain)
    optimizers = make_optimizer(plain.parameters()), make_optimizer(held.parameters())
    controller = FreezeController(held, units_of(held), optimizers[1])
    for part in (batches(10)[:5], batches(10)[5:]):
        train(plain, optimizers[0], part)
        train(held, optimizers[1], part)
        for level in (2, 4, 1, 0):
            assert controller.apply(level) is True
    assert held.state_dict().keys() == plain.state_dict().keys()
    for first, second in zip(states(plain, optimizers[0]), states(held, optimizers[1]), strict=True):
        assert first.keys() == second.keys()
        assert all(same(first[key], second[key]) for key in first if key != "state")
    before, after = optimizers[0].state_dict()["state"], optimizers[1].state_dict()["state"]
    assert before.keys() == after.keys()
    assert all(same(before[key], after[key]) for key in before)


def test_frozen_units_stay_and_others_train(make_optimizer: Callable[[Any], Any]) -> None:
    model = network()
    optimizer = make_optimizer(model.parameters())
    units = units_of(model)
    controller = FreezeController(model, units, optimizer)
    train(model, optimizer, batches(3))
    moving = {name: copy.deepcopy(optimizer.state[tensor]) for name, tensor in model.named_parameters()}
    before = copy.deepcopy(model.state_dict())
    controller.apply(2)
    train(model, optimizer, batches(4))
    frozen = {name for unit in units.units[:2] for name in unit.parameters}
    for name, tensor in model.named_parameters():
        assert torch.equal(tensor, before[name]) == (name in frozen)
        assert tensor.requires_grad == (name not in frozen)
        assert tensor.grad is None or name not in frozen
    modules = {name for unit in units.units[:2] for name in unit.modules}
    for name, buffer in model.named_buffers():
        assert torch.equal(buffer, before[name]) == (name.rpartition(".")[0] in modules)
    controller.apply(0)
    assert all(same(optimizer.state[dict(model.named_parameters())[name]], moving[name]) for name in frozen)


def test_normalisation_stays_in_evaluation() -> None:
    model = network()
    model[2].eval()
    controller = FreezeController(model, units_of(model), Optimizers["sgd"](model.parameters()))
    norms = [module for module in model.modules() if isinstance(module, nn.BatchNorm1d)]
    controller.apply(4)
    assert [norm.training for norm in norms] == [False, False, False, True]
    model.train()
    model(batches(1)[0][0])
    assert [norm.training for norm in norms] == [False, False, False, True]
    assert model[-2].training
    controller.apply(1)
    assert [norm.training for norm in norms] == [False, True, True, True]
    controller.apply(0)
    assert [norm.training for norm in norms] == [False, True, True, True]  # the first was so before
    model.train()
    model(batches(1)[0][0])
    assert all(norm.training for norm in norms)
    controller.apply(3)
    model.eval()
    controller.apply(0)
    assert not any(norm.training for norm in norms)


@pytest.mark.parametrize(
    "level", [-1, 6, 4.5, 2.5, 2.0001, None, True, "2", [0, 2], {1}, {0, 1, 2, 3, 4, 5}, [0, -1], [0.5]]
)
def test_other_levels_are_refused(level: object) -> None:
    model = network()
    optimizer = Optimizers["sgd"](model.parameters())
    controller = FreezeController(model, units_of(model), optimizer)
    controller.apply(2)
    before = states(model, optimizer)
    with pytest.raises(InvalidValueError):
        controller.freeze(level)
    if not isinstance(level, (list, set)):
        with pytest.raises(InvalidValueError):
            controller.apply(level)
    assert controller.frozen == 2
    assert same(states(model, optimizer), before)


def test_levels_of_a_job() -> None:
    model = network()
    batch = batches(1)[0]
    optimizer = Optimizers["sgd"](model.parameters())
    profile = profile_units(model, batch, cross_entropy, repeats=1)
    levels = FreezeLevels(units=profile.freeze_units(), frozen_units=[0, 1, 4])
    controller = FreezeController(model, profile.model_units, optimizer, levels=levels)
    controller.apply(2)
    assert controller.frozen == 4
    with pytest.raises(InvalidValueError, match="must be at most 2"):
        controller.apply(3)
    with pytest.raises(InvalidValueError, match="must be of 2 units"):
        FreezeController(nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2)), None, optimizer, levels=levels)


def test_groups_of_the_optimizer_are_filtered() -> None:
    model = network()
    weights = [(name, tensor) for name, tensor in model.named_parameters() if tensor.dim() > 1]
    others = [(name, tensor) for name, tensor in model.named_parameters() if tensor.dim() == 1]
    optimizer = torch.optim.SGD([{"params": weights}, {"params": others, "lr": 0.2}], lr=0.1, momentum=0.9)
    units = units_of(model)
    controller = FreezeController(model, units, optimizer)
    controller.apply(5)
    head = dict(model[-1].named_parameters())
    assert [len(group["params"]) for group in optimizer.param_groups] == [1, 1]
    assert optimizer.param_groups[0]["params"][0] is head["weight"]
    assert [group["param_names"] for group in optimizer.param_groups] == [["8.weight"], ["8.bias"]]
    assert [group["lr"] for group in optimizer.param_groups] == [0.1, 0.2]
    controller.apply(0)
    assert [group["param_names"] for group in optimizer.param_groups] == [
        [name for name, _ in weights],
        [name for name, _ in others],
    ]


def test_a_group_may_be_frozen_whole(make_optimizer: Callable[[Any], Any]) -> None:
    model = network()
    optimizer = make_optimizer([{"params": list(child.parameters())} for child in model if list(child.parameters())])
    controller = FreezeController(model, units_of(model), optimizer)
    controller.apply(5)
    train(model, optimizer, batches(2))
    assert [len(group["params"]) for group in optimizer.param_groups] == [0] * 5 + [2]


def test_groups_changed_by_others_are_refused() -> None:
    model = network()
    optimizer = Optimizers["sgd"](model.parameters())
    controller = FreezeController(model, units_of(model), optimizer)
    controller.apply(1)
    optimizer.param_groups[0]["params"].pop()
    with pytest.raises(InvalidValueError, match="no one else may change them"):
        controller.apply(2)


def test_training_goes_on_from_a_checkpoint(make_optimizer: Callable[[Any], Any]) -> None:
    model = network()
    optimizer = make_optimizer(model.parameters())
    controller = FreezeController(model, units_of(model), optimizer)
    train(model, optimizer, batches(2))
    controller.apply(3)
    train(model, optimizer, batches(2))
    saved = copy.deepcopy((model.state_dict(), controller.optimizer_state(), controller.frozen))
    other = network()
    fresh = make_optimizer(other.parameters())
    resumed = FreezeController(other, units_of(other), fresh)
    other.load_state_dict(saved[0])
    fresh.load_state_dict(saved[1])
    resumed.apply(saved[2])
    for level in (3, 1):
        for each, held, keeper in ((model, optimizer, controller), (other, fresh, resumed)):
            keeper.apply(level)
            train(each, held, batches(3))
    assert same(model.state_dict(), other.state_dict())
    assert len(saved[1]["state"]) == len(list(model.parameters()))


def test_parameters_that_were_not_trained_are_left_alone() -> None:
    model = network()
    model[1].bias.requires_grad_(False)
    controller = FreezeController(model, units_of(model), Optimizers["sgd"](model.parameters()))
    controller.apply(2)
    controller.apply(0)
    assert [name for name, tensor in model.named_parameters() if not tensor.requires_grad] == ["1.bias"]


def test_the_wrapper_is_built_anew_once_a_change() -> None:
    model = network()
    made: list[list[bool]] = []

    def wrap(inner: nn.Module) -> nn.Module:
        assert inner is model
        made.append([parameter.requires_grad for parameter in inner.parameters()])
        return nn.DataParallel(inner)

    controller = FreezeController(
        nn.DataParallel(model), units_of(model), Optimizers["sgd"](model.parameters()), rewrap=wrap
    )
    assert [controller.apply(level) for level in (0, 2, 2, 0)] == [False, True, False, True]
    assert [sum(needs) for needs in made] == [20, 24]
    assert isinstance(controller.model, nn.DataParallel)
    assert controller.exchange is GradientExchange.REBUILD


@pytest.fixture
def one_rank(tmp_path: Path) -> Iterator[None]:
    distributed = torch.distributed
    distributed.init_process_group("gloo", init_method=f"file://{tmp_path / 'ranks'}", rank=0, world_size=1)
    yield
    distributed.destroy_process_group()


def exchanged_bytes(model: Any) -> int:
    """Bytes that one step exchanges."""
    seen: list[int] = []

    def hook(state: None, bucket: Any) -> Any:
        seen.append(bucket.buffer().nbytes)
        future = torch.futures.Future()
        future.set_result(bucket.buffer())
        return future

    hook.__annotations__.clear()  # it would check them, as text
    model.register_comm_hook(None, hook)
    inputs, targets = batches(1)[0]
    cross_entropy(model(inputs), targets).backward()
    return sum(seen)


@pytest.mark.usefixtures("one_rank")
def test_gradients_exchanged_are_those_of_trained_units_where_the_wrapper_is_rebuilt() -> None:
    wrap = nn.parallel.DistributedDataParallel
    model = network()
    active = sum(tensor.nbytes for tensor in (*model[6].parameters(), *model[8].parameters()))
    controller = FreezeController(wrap(model), units_of(model), Optimizers["sgd"](model.parameters()), rewrap=wrap)
    controller.apply(4)
    assert exchanged_bytes(controller.model) == active
    controller.apply(0)
    assert exchanged_bytes(controller.model) == sum(tensor.nbytes for tensor in model.parameters())


@pytest.mark.usefixtures("one_rank")
def test_a_static_wrapper_exchanges_all() -> None:
    wrap = nn.parallel.DistributedDataParallel
    model = network()
    optimizer = Optimizers["sgd"](model.parameters())
    with pytest.raises(InvalidValueError, match="unused parameters"):
        FreezeController(wrap(model), units_of(model), optimizer)
    wrapped = wrap(model, find_unused_parameters=True)
    controller = FreezeController(wrapped, units_of(wrapped), optimizer)
    assert controller.exchange is GradientExchange.STATIC
    controller.apply(3)
    assert controller.model is wrapped
    assert exchanged_bytes(wrapped) == sum(tensor.nbytes for tensor in model.parameters())


def test_units_end_where_every_path_crosses() -> None:
    model = network()
    found = find_units(model, batches(1)[0], cross_entropy)
    assert [unit.end for unit in found] == ["1", "3", "4", "5", "7", ""]
    assert found.units[0].parameters == ("1.weight", "1.bias")
    declared = ModelUnits.of(model)
    assert [unit.parameters for unit in declared] == [unit.parameters for unit in found]
    assert find_units(model, batches(1)[0], cross_entropy, list(model[4:])).units[0].parameters[:3] == (
        "1.weight",
        "1.bias",
        "2.weight",
    )


class Paths(nn.Module):
    """Four layers, and a choice of ways around them."""

    def __init__(self, way: str) -> None:
        super().__init__()
        self.way = way
        self.a, self.b, self.c, self.d = (nn.Linear(4, 4) for _ in range(4))
        if way == "tied":
            self.c.weight = self.a.weight

    def forward(self, x: Tensor) -> Tensor:
        a = self.a(x)
        b = self.b(a)
        c = self.c(b + a if self.way == "over b" else b)
        if self.way == "twice":
            c = self.c(c)
        return self.d(c + x if self.way == "data" else c + a if self.way == "over b and c" else c)


@pytest.mark.parametrize(
    ("way", "ends"),
    [
        ("", ["a", "b", "c", ""]),
        ("over b", ["a", "c", ""]),
        ("over b and c", ["a", ""]),
        ("tied", ["c", ""]),
        ("twice", ["a", "b", ""]),
        ("data", [""]),
    ],
)
def test_ways_around_are_no_cuts(way: str, ends: list[str]) -> None:
    model = Paths(way)
    assert [unit.end for unit in find_units(model, batches(1)[0], cross_entropy)] == ends
    wrong = next(name for name in "abc" if name not in ends) if len(ends) < 4 else None
    if wrong:
        with pytest.raises(InvalidValueError, match="that all paths cross once"):
            find_units(model, batches(1)[0], cross_entropy, [getattr(model, wrong), model.d])


class Offset(nn.Module):
    """Something learned that does not depend on the data."""

    def __init__(self) -> None:
        super().__init__()
        self.offset = nn.Parameter(torch.zeros(4))

    def forward(self) -> Tensor:
        return self.offset * 1


class InPlace(nn.Module):
    """A layer that changes its input, and adds an offset made before."""

    def __init__(self) -> None:
        super().__init__()
        self.offset, self.first, self.second, self.head = Offset(), nn.Linear(4, 4), Changing(), nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        offset = self.offset()
        return self.head(self.second(self.first(x)) + offset)


class Changing(nn.Linear):
    """A layer that changes its input in place."""

    def __init__(self) -> None:
        super().__init__(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x.relu_())


def test_what_changes_its_input_is_a_unit_and_what_does_not_see_the_data_is_none() -> None:
    model = InPlace()
    profile = profile_units(model, batches(1)[0], cross_entropy, repeats=1)
    assert [unit.end for unit in profile.model_units] == ["first", "second", ""]
    assert profile.model_units.units[-1].parameters == ("offset.offset", "head.weight", "head.bias")
    with pytest.raises(InvalidValueError, match="that all paths cross once"):
        find_units(model, batches(1)[0], cross_entropy, [model.offset, model.head])


def test_modules_out_of_order_are_refused() -> None:
    model = Paths("")
    with pytest.raises(InvalidValueError, match="must depend on 'b'"):
        find_units(model, batches(1)[0], cross_entropy, [model.b, model.a, model.d])
    declared = ModelUnits.of(model, [model.b, model.a, model.c, model.d])
    with pytest.raises(InvalidValueError, match="must depend on 'b'"):
        profile_units(model, batches(1)[0], cross_entropy, declared)


class Transformer(nn.Module):
    """Tokens and positions, blocks that return tuples, called with keywords."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens, self.positions = nn.Embedding(11, 8), nn.Embedding(5, 8)
        self.blocks = nn.ModuleList(Block() for _ in range(2))
        self.head = nn.Linear(8, 11)
        self.unused = nn.Linear(2, 2)

    def forward(self, ids: Tensor) -> dict[str, Tensor]:
        hidden = self.tokens(ids) + self.positions(torch.arange(ids.shape[1]))
        for block in self.blocks:
            hidden, _ = block(hidden)
        return {"logits": self.head(hidden)}


class Block(nn.Module):
    """Attention with a residual way."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.attention = nn.LayerNorm(8), nn.MultiheadAttention(8, 2, batch_first=True)

    def forward(self, x: Tensor) -> tuple[Tensor, None]:
        y = self.norm(x)
        return x + self.attention(y, y, y, need_weights=False)[0], None


def token_loss(outputs: dict[str, Tensor], targets: Tensor) -> Tensor:
    return cross_entropy(outputs["logits"].flatten(0, 1), targets.flatten())


def test_a_transformer_has_its_blocks_as_units() -> None:
    model = Transformer()
    ids = torch.randint(0, 11, (6, 5))
    batch = ({"ids": ids}, ids)
    units = find_units(model, batch, token_loss)
    assert [unit.end for unit in units] == ["tokens", "blocks.0", "blocks.1", ""]
    assert units.units[1].parameters[0] == "positions.weight"
    assert units.units[-1].parameters == ("head.weight", "head.bias", "unused.weight", "unused.bias")
    profile = profile_units(model, batch, token_loss, units, repeats=1, micro_batches=3)
    assert [unit.output_elements for unit in profile.units] == [240, 240, 240, 330]
    assert [unit.params for unit in profile.units] == [88, 40 + 16 + 288, 16 + 288, 99 + 6]
    assert profile.units[0].input_gradient_s == 0.0


@pytest.mark.parametrize("training", [True, False])
def test_finding_and_profiling_leave_no_trace(training: bool) -> None:
    model = network()
    optimizer = Optimizers["sgd"](model.parameters())
    train(model, optimizer, batches(2))
    model.train(training)
    model[2].eval()
    model[1].bias.requires_grad_(False)
    grads = [None if tensor.grad is None else tensor.grad.clone() for tensor in model.parameters()]
    before, modes = states(model, optimizer), [module.training for module in model.modules()]
    random = torch.get_rng_state()
    units = find_units(model, batches(1)[0], cross_entropy)
    profile_units(model, batches(1)[0], cross_entropy, units, repeats=2, optimizer=optimizer)
    step_seconds(model, batches(1)[0], cross_entropy, optimizer, units, (0, 4), repeats=1)
    assert same(states(model, optimizer), before)
    assert [module.training for module in model.modules()] == modes
    assert torch.equal(torch.get_rng_state(), random)
    assert [name for name, tensor in model.named_parameters() if not tensor.requires_grad] == ["1.bias"]
    for tensor, grad in zip(model.parameters(), grads, strict=True):
        assert (tensor.grad is None) == (grad is None)
        assert grad is None or torch.equal(tensor.grad, grad)
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in model.modules())


def backward_flops(model: nn.Module, batch: tuple[Tensor, Tensor]) -> int:
    value = cross_entropy(model(batch[0]), batch[1])
    with FlopCounterMode(display=False) as counter:
        value.backward()
    return int(counter.get_total_flops())


def test_a_level_saves_the_backward_work_that_the_law_says() -> None:
    widths = [4, 16, 8, 32, 8, 3]
    model = nn.Sequential(*(nn.Linear(a, b) for a, b in pairwise(widths)))
    batch = batches(1)[0]
    controller = FreezeController(model, None, Optimizers["sgd"](model.parameters()))
    products = [2 * 12 * a * b for a, b in pairwise(widths)]
    for frozen in range(5):
        controller.apply(frozen)
        assert backward_flops(model, batch) == sum(products[frozen:]) + sum(products[frozen + 1 :])


def test_saved_bytes_are_those_of_the_trained_units() -> None:
    model = network()
    batch = batches(1)[0]
    optimizer = Optimizers["sgd"](model.parameters())
    profile = profile_units(model, batch, cross_entropy, repeats=1, optimizer=optimizer)
    controller = FreezeController(model, profile.model_units, optimizer)
    own = {tensor.data_ptr() for tensor in (*model.parameters(), *model.buffers())}
    for frozen in range(5):
        controller.apply(frozen)
        model.train()
        kept: dict[int, int] = {}

        def save(tensor: Tensor, kept: dict[int, int] = kept) -> Tensor:
            storage = tensor.untyped_storage()
            kept |= {} if storage.data_ptr() in own else {storage.data_ptr(): storage.nbytes()}
            return tensor

        with torch.autograd.graph.saved_tensors_hooks(save, lambda tensor: tensor):
            value = cross_entropy(model(batch[0]), batch[1])
        assert sum(kept.values()) == sum(unit.saved_bytes for unit in profile.units[frozen:])
        del value


def test_a_profile_has_the_sizes_of_the_model() -> None:
    model = network()
    profile = profile_units(
        model, batches(1)[0], cross_entropy, repeats=2, optimizer=Optimizers["adamw"](model.parameters())
    )
    assert [unit.name for unit in profile.units] == ["1", "3", "4", "5", "7", "head"]
    assert sum(unit.params for unit in profile.units) == sum(tensor.numel() for tensor in model.parameters())
    assert [unit.parameter_bytes for unit in profile.units] == [4 * unit.params for unit in profile.units]
    assert [unit.output_bytes for unit in profile.units] == [12 * 6 * 4] * 5 + [12 * 3 * 4]
    for unit in profile.units:
        assert min(unit.forward_s, unit.weight_gradient_s) > 0
        assert min(unit.input_gradient_s, unit.optimizer_s) >= 0
    units = profile.freeze_units()
    assert [unit.output_elements for unit in units] == [6, 6, 6, 6, 6, 3]
    assert [unit.saved_bytes for unit in units] == [-(-unit.saved_bytes // 12) for unit in profile.units]
    work = [units.compute(frozen) for frozen in range(6)]
    assert work == sorted(work, reverse=True)


def test_moments_of_a_profile_are_evidence() -> None:
    profile = profile_units(network(), batches(1)[0], cross_entropy, repeats=1)
    levels = FreezeLevels.evenly(profile.freeze_units())
    terms = FreezeTerms(
        shares=levels.compute_shares,
        frozen_units=levels.frozen_units,
        law=DebtLaw(a=1, A=10, c=5, B_0=1),
        quality_budget_points=1,
    )
    factors = FreezeState().observed(profile.moments).debt_factors(terms)
    assert factors is not None
    assert len(factors) == len(levels)
    assert min(factors) >= 1


def linear() -> nn.Sequential:
    model = nn.Sequential(nn.Linear(1, 1, bias=False), nn.Linear(1, 1, bias=False))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.fill_(1.0)
    return model


def output_mean(outputs: Tensor, targets: Tensor) -> Tensor:
    return outputs.mean()


def test_moments_of_a_batch_by_hand() -> None:
    model = linear()  # both gradients are the mean of the inputs: 1, 3 of the halves, 2 of the batch
    inputs = torch.tensor([[0.0], [2.0], [2.0], [4.0], [100.0]])
    found = batch_moments(model, (inputs, inputs), output_mean, ModelUnits.of(model), micro_batches=2)
    assert found == ((2 * 4 - 5, 1.0), (2 * 4 - 5, 1.0))
    with pytest.raises(InvalidValueError, match="must be at most the samples"):
        batch_moments(model, (inputs, inputs), output_mean, ModelUnits.of(model), micro_batches=6)


def test_moments_of_consecutive_gradients_by_hand() -> None:
    model = linear()
    units = ModelUnits.of(model)
    meter = GradientMeter(model, units)
    controller = FreezeController(model, units, torch.optim.SGD(model.parameters(), lr=0.0))
    seen = []
    for value, level in ((1.0, 0), (3.0, 0), (3.0, 1), (5.0, 1), (5.0, 0), (5.0, 0)):
        controller.apply(level)
        model.zero_grad()
        model(torch.tensor([[value]])).mean().backward()
        seen.append(meter.observe())
    both, still = (2 * 4 - 5.0, 2 * 1.0), (9.0, 0.0)
    assert seen[:3] == [(None, None), (both, both), (None, still)]
    assert seen[3] == (None, (2 * 16 - 17.0, 2 * 1.0))
    assert seen[4:] == [(None, (25.0, 0.0)), ((25.0, 0.0), (25.0, 0.0))]


def test_step_times_are_of_the_numbers_asked_for() -> None:
    model = network(width=64)
    optimizer = Optimizers["sgd"](model.parameters())
    seconds = step_seconds(model, batches(1)[0], cross_entropy, optimizer, units_of(model), (4, 0), repeats=2)
    assert list(seconds) == [0, 4]
    assert min(seconds.values()) > 0


@pytest.mark.parametrize(
    ("batch", "loss", "message"),
    [
        (torch.zeros(2, 4), cross_entropy, "must be inputs and targets"),
        ((torch.zeros(0, 4), torch.zeros(0)), cross_entropy, "at least one sample"),
        ((torch.zeros(2, 4), torch.zeros(2, dtype=torch.long)), lambda outputs, targets: outputs, "scalar"),
        ((torch.zeros(2, 4), torch.zeros(2)), lambda outputs, targets: targets.mean(), "with a gradient"),
    ],
)
def test_bad_batches_and_losses_are_refused(batch: object, loss: Any, message: str) -> None:
    with pytest.raises(InvalidValueError, match=message):
        find_units(network(), batch, loss)


def test_bad_modules_are_refused() -> None:
    model = Paths("")
    with pytest.raises(InvalidValueError, match="must be a Sequential"):
        ModelUnits.of(model)
    with pytest.raises(InvalidValueError, match="must belong to one unit, not 0"):
        ModelUnits.of(model, [model.a, model.b])
    with pytest.raises(InvalidValueError, match="must belong to one unit, not 2"):
        tied = Paths("tied")
        ModelUnits.of(tied, list(tied.children()))
    with pytest.raises(InvalidValueError, match="must be modules of the model"):
        ModelUnits.of(model, [nn.Linear(2, 2)])
    with pytest.raises(InvalidValueError, match="must be parameters of the model"):
        ModelUnits.of(network()).trained(model)
    with pytest.raises(InvalidValueError, match=r"must be a torch.nn.Module"):
        ModelUnits.of(len)  # type: ignore[arg-type]


def test_the_example_trains_as_the_optimizer_says(capsys: pytest.CaptureFixture[str]) -> None:
    path = Path(__file__).parents[2] / "examples" / "freeze_digits.py"
    example = runpy.run_path(str(path))
    status = example["main"](["--network", "mlp", "--seeds", "2", "--epochs", "10", "--json"])
    (result,) = json.loads(capsys.readouterr().out)
    assert status == (0 if result["holds"] else 1)
    assert result["levels"][:2] == [0, 0]  # warm-up
    assert result["levels"] == sorted(result["levels"])
    assert 0 < result["levels"][-1] < len(result["frozen_units"])
    assert 0 < result["predicted_loss_points"] <= result["budget_points"] == 1
    assert result["predicted_speed_up"] > 1
    assert min(result["accuracy"], result["frozen_accuracy"]) > 90


def run_python(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def test_torch_is_imported_for_live_models_only() -> None:
    assert run_python("import sys, frostline, frostline.freezing; print('torch' in sys.modules)") == "False"


def test_without_torch_the_error_says_what_brings_it() -> None:
    code = """
import sys
sys.modules["torch"] = None
try:
    import frostline.freezing.live
except ImportError as error:
    print(type(error).__name__, error)
"""
    assert run_python(code).startswith("MissingExtraError freezing a live model needs torch")
