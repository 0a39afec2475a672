"""Applying a freeze level to a model that is being trained, and taking it back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.optim import Optimizer

from frostline.errors import InvalidValueError
from frostline.freezing.frozen_graph import GradientExchange
from frostline.freezing.levels import FreezeLevels
from frostline.freezing.live.batches import bare
from frostline.freezing.live.model_units import ModelUnits

__all__ = ["FreezeController"]

_SUBJECT = "freeze controller"


class FreezeController:
    """Freezes the first units of a live model between epochs, and unfreezes them.

    At a level, the parameters of the frozen units need no gradient and have left the optimizer's groups; what the
    optimizer knows of them, such as momentum, is kept for their return. Normalisation with running statistics in frozen
    units is in evaluation mode whatever ``model.train()`` says. Going to a level and back changes nothing at all, and
    at level 0 training is that without a controller, bit by bit. Parameters that needed no gradient when the controller
    was made are left alone.

    Parameters
    ----------
    model : torch.nn.Module
        The model, or a data-parallel wrapper around it.
    units : ModelUnits or sequence of torch.nn.Module, optional
        Its units, such as those of :func:`~frostline.freezing.live.find_units`; modules, or the children of a
        Sequential, are taken at their word, see :meth:`~frostline.freezing.live.ModelUnits.of`.
    optimizer : torch.optim.Optimizer
        The optimizer. While a controller holds it, no one else may change which parameters its groups have.
    levels : FreezeLevels, optional
        The levels; by default level k freezes k units.
    rewrap : callable, optional
        Called with the bare model after each change; returns it in a new data-parallel wrapper, which then exchanges
        gradients of trained units only. Without it, a wrapper stays and exchanges all gradients at every level
        (``static``).

    Raises
    ------
    InvalidValueError
        Units or levels of another model, or a static wrapper that fails where parameters have no gradients.

    Examples
    --------
    >>> import torch
    >>> model = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 3), nn.ReLU(), nn.Linear(3, 2))
    >>> optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    >>> controller = FreezeController(model, None, optimizer)
    >>> controller.apply(2), controller.apply(2), [parameter.requires_grad for parameter in model.parameters()]
    (True, False, [False, False, False, False, True, True])
    >>> controller.apply(3)
    Traceback (most recent call last):
    frostline.errors.InvalidValueError: model units: frozen=3 must be at most 2, all units but the head
    """

    def __init__(
        self,
        model: nn.Module,
        units: ModelUnits | Sequence[nn.Module] | None,
        optimizer: Optimizer,
        *,
        levels: FreezeLevels | None = None,
        rewrap: Callable[[nn.Module], nn.Module] | None = None,
    ) -> None:
        self._bare = bare(model)
        self._model, self._rewrap, self._optimizer = model, rewrap, optimizer
        self.units = units if isinstance(units, ModelUnits) else ModelUnits.of(self._bare, units)
        self.levels = levels
        if levels is not None and len(levels.units) != len(self.units):
            raise InvalidValueError(_SUBJECT, "levels", len(levels.units), f"must be of {len(self.units)} units")
        if rewrap is None:
            _check_static(model)
        self._trained = self.units.trained(self._bare)
        self._groups = [list(group["params"]) for group in optimizer.param_groups]
        self._names = [list(group.get("param_names", ())) for group in optimizer.param_groups]
        self._kept: dict[Any, Any] = {}
        self._evaluating: dict[nn.Module, tuple[Any, bool]] = {}
        self._frozen = 0

    @property
    def model(self) -> nn.Module:
        """The model to train, in its present wrapper."""
        return self._model

    @property
    def frozen(self) -> int:
        """Number of units that are frozen."""
        return self._frozen

    @property
    def exchange(self) -> GradientExchange:
        """Whether gradients of frozen units are exchanged all the same, or the wrapper is rebuilt."""
        return GradientExchange.STATIC if self._rewrap is None else GradientExchange.REBUILD

    def apply(self, level: object) -> bool:
        """Go to a level: between epochs, after the optimizer's step.

        Parameters
        ----------
        level : int
            One of the levels.

        Returns
        -------
        bool
            Whether anything changed; :attr:`model` may be another wrapper then.

        Raises
        ------
        InvalidValueError
            No such level, or the optimizer's groups were changed by someone else.
        """
        return self.freeze(level if self.levels is None else self.levels.frozen_at(level))

    def freeze(self, frozen: object) -> bool:
        """Freeze units by number, or as a set of positions, and no others; see :meth:`apply`.

        Raises
        ------
        InvalidValueError
            Not the first units, or the head among them.
        """
        count = self.units.frozen(frozen)
        if count == self._frozen:
            return False
        self._check_groups()
        for position, unit in enumerate(self._trained):
            for parameter in unit:
                parameter.requires_grad_(position >= count)
                if position < count:
                    parameter.grad = None
        self._evaluate(count)
        self._fill(count)
        self._frozen = count
        if self._rewrap is not None:
            self._model = self._rewrap(self._bare)
        return True

    def optimizer_state(self) -> dict[str, Any]:
        """State of the optimizer with all its parameters, whatever the level: what belongs in a checkpoint.

        To resume, load it at level 0, and then apply the level.
        """
        self._check_groups()
        self._fill(0)
        try:
            state: dict[str, Any] = self._optimizer.state_dict()
        finally:
            self._fill(self._frozen)
        return state

    def _frozen_ids(self, count: int) -> set[int]:
        return {id(parameter) for unit in self._trained[:count] for parameter in unit}

    def _fill(self, count: int) -> None:
        """Give the optimizer the parameters that are not frozen, and what it knew of them."""
        frozen, state = self._frozen_ids(count), self._optimizer.state
        for group, every, names in zip(self._optimizer.param_groups, self._groups, self._names, strict=False):
            group["params"] = [parameter for parameter in every if id(parameter) not in frozen]
            if names:
                kept = zip(names, every, strict=True)
                group["param_names"] = [name for name, parameter in kept if id(parameter) not in frozen]
            for parameter in every:
                source, target = (state, self._kept) if id(parameter) in frozen else (self._kept, state)
                if parameter in source:
                    target[parameter] = source.pop(parameter)

    def _check_groups(self) -> None:
        frozen = self._frozen_ids(self._frozen)
        held = [[id(parameter) for parameter in every if id(parameter) not in frozen] for every in self._groups]
        present = [[id(parameter) for parameter in group["params"]] for group in self._optimizer.param_groups]
        if present[: len(held)] != held:
            rule = f"must be {[len(group) for group in held]} parameters: no one else may change them"
            raise InvalidValueError(_SUBJECT, "optimizer.param_groups", [len(group) for group in present], rule)

    def _evaluate(self, count: int) -> None:
        """Keep running statistics of frozen units as they are, and let go those of the others."""
        modules = dict(self._bare.named_modules())
        names = {name for unit in self.units.units[:count] for name in unit.modules}
        held = {modules[name] for name in names if getattr(modules[name], "track_running_stats", False)}
        for module in self._evaluating.keys() - held:
            handle, evaluating = self._evaluating.pop(module)
            handle.remove()
            module.training = self._bare.training and not evaluating
        for module in held - self._evaluating.keys():
            evaluating = self._bare.training and not module.training
            self._evaluating[module] = (module.register_forward_pre_hook(_to_evaluation), evaluating)
            module.eval()


def _to_evaluation(module: nn.Module, inputs: Any) -> None:
    if module.training:
        module.eval()


def _check_static(model: nn.Module) -> None:
    if isinstance(model, DistributedDataParallel) and (model.static_graph or not model.find_unused_parameters):
        rule = "must look for unused parameters, with no static graph, where the wrapper is not built anew"
        raise InvalidValueError(_SUBJECT, "model", type(model).__name__, rule)
