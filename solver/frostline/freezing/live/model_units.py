"""The freeze units of a live model: which parameters and modules each holds, and where it ends."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from torch import nn

from frostline.errors import InvalidValueError
from frostline.freezing.live.autograd_graph import Cut, ForwardRecord, record_forward
from frostline.freezing.live.batches import Loss, as_batch, bare
from frostline.freezing.units import FreezeUnit, FreezeUnits
from frostline.units import as_int

__all__ = ["ModelUnit", "ModelUnits", "find_units"]

_SUBJECT = "model units"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelUnit:
    """Part of a live model that is frozen or trained whole.

    Parameters
    ----------
    end : str
        Name of the module whose output ends the unit; empty for the head, which ends with the loss.
    parameters : tuple of str
        Names of its parameters, those that are not trained included.
    modules : tuple of str
        Names of the modules that run in it.
    """

    end: str
    parameters: tuple[str, ...]
    modules: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ModelUnits:
    """The freeze units of a live model in the order of its forward pass; the last one is the head.

    Names are those of the model without a data-parallel wrapper. :func:`find_units` finds units, and proves that each
    cut between them is one; :meth:`of` takes modules at their word.

    Parameters
    ----------
    units : tuple of ModelUnit
        The units, at least one.
    """

    units: tuple[ModelUnit, ...]

    @classmethod
    def of(cls, model: nn.Module, modules: Sequence[nn.Module] | None = None) -> ModelUnits:
        """Units that are modules, or the children of a Sequential.

        Children of a Sequential within it count as its own. A child without parameters, such as an activation, joins
        the unit before it.

        Parameters
        ----------
        model : torch.nn.Module
            The model.
        modules : sequence of torch.nn.Module, optional
            Modules that run one after the other, each on nothing but the output of the one before, and that hold all
            parameters. The last one is the head.

        Raises
        ------
        InvalidValueError
            No modules and no Sequential, a module of another model, one inside another, or parameters that several
            units hold, or none.

        Examples
        --------
        >>> model = nn.Sequential(nn.Flatten(), nn.Linear(4, 3), nn.ReLU(), nn.Sequential(nn.Linear(3, 3), nn.ReLU()))
        >>> [unit.end for unit in ModelUnits.of(nn.Sequential(model, nn.Linear(3, 2)))]
        ['0.2', '0.3.1', '']
        """
        inner = bare(model)
        names = {id(module): name for name, module in inner.named_modules()}
        groups = _joined(_chain(inner)) if modules is None else [[module] for module in modules]
        for module in (module for group in groups for module in group):
            if names.get(id(module), "") == "" and module is not inner:
                raise InvalidValueError(_SUBJECT, "modules", type(module).__name__, "must be modules of the model")
        units = [_unit([names[id(module)] for module in group], inner) for group in groups]
        if not units:
            raise InvalidValueError(_SUBJECT, "modules", [], "must be at least one module with parameters")
        _check_owners(inner, units)
        return cls((*units[:-1], ModelUnit(end="", parameters=units[-1].parameters, modules=units[-1].modules)))

    def __len__(self) -> int:
        return len(self.units)

    def __iter__(self) -> Iterator[ModelUnit]:
        return iter(self.units)

    def frozen(self, frozen: object) -> int:
        """Number of leading units that a number or a set of units amounts to.

        Parameters
        ----------
        frozen : int or iterable of int
            How many units, or which ones by position from 0.

        Raises
        ------
        InvalidValueError
            Not the first units, the head among them, or no whole numbers.

        Examples
        --------
        >>> units = ModelUnits.of(nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2)))
        >>> units.frozen({0}), units.frozen(1)
        (1, 1)
        >>> units.frozen(2)
        Traceback (most recent call last):
        frostline.errors.InvalidValueError: model units: frozen=2 must be at most 1, all units but the head
        """
        if isinstance(frozen, Iterable) and not isinstance(frozen, (str, bytes)):
            frozen = tuple(frozen)
            count = FreezeUnits((FreezeUnit(forward=1),) * len(self.units)).prefix(frozen)
        else:
            count = as_int(frozen, _SUBJECT, "frozen", 0)
        if count >= len(self.units):
            rule = f"must be at most {len(self.units) - 1}, all units but the head"
            raise InvalidValueError(_SUBJECT, "frozen", frozen, rule)
        return count

    def trained(self, model: nn.Module) -> list[list[nn.Parameter]]:
        """Parameters of each unit that need a gradient at present.

        Raises
        ------
        InvalidValueError
            The model has no such parameters.
        """
        known = dict(bare(model).named_parameters())
        for name in (name for unit in self.units for name in unit.parameters):
            if name not in known:
                raise InvalidValueError(_SUBJECT, "parameters", name, "must be parameters of the model")
        return [[known[name] for name in unit.parameters if known[name].requires_grad] for unit in self.units]


def find_units(
    model: nn.Module, example_batch: object, loss: Loss, modules: Sequence[nn.Module] | None = None
) -> ModelUnits:
    """The freeze units of a model, from the autograd graph of one forward pass.

    The model is cut after every module whose output all paths cross: the frozen part then reaches the loss, and the
    trained part what is frozen, by that output only. Residual blocks stay whole, and so does all that parameters hold
    together by serving in several places. A part without parameters joins the unit before it. Parameters that the loss
    does not depend on belong to the head, which is never frozen.

    The model, its running statistics and the random numbers are left as they were.

    Parameters
    ----------
    model : torch.nn.Module
        The model.
    example_batch : (inputs, targets)
        A batch; inputs are a tensor, a tuple of arguments, or a mapping of keyword arguments.
    loss : callable
        Scalar loss of outputs and targets.
    modules : sequence of torch.nn.Module, optional
        Modules that shall end units, in order; the last unit begins after the last but one of them.

    Raises
    ------
    InvalidValueError
        A module ends at no cut or out of order, or the batch or the loss is none.

    Examples
    --------
    >>> import torch
    >>> class Residual(nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.inner = nn.Sequential(nn.Linear(3, 3), nn.ReLU(), nn.Linear(3, 3))
    ...     def forward(self, x):
    ...         return x + self.inner(x)
    >>> model = nn.Sequential(nn.Linear(4, 3), Residual(), Residual(), nn.Linear(3, 2))
    >>> batch = (torch.zeros(5, 4), torch.zeros(5, dtype=torch.long))
    >>> [unit.end for unit in find_units(model, batch, nn.functional.cross_entropy)]
    ['0', '1', '2', '']
    """
    inner, batch = bare(model), as_batch(example_batch)
    record = record_forward(inner, batch, loss)
    if modules is None:
        cuts = _with_parameters(record)
    else:
        names = {id(module): name for name, module in inner.named_modules()}
        cuts = _declared(record, [names.get(id(module), "") for module in modules[:-1]])
    return ModelUnits(tuple(_units(inner, record, cuts)))


def check_cuts(model: nn.Module, example_batch: object, loss: Loss, units: ModelUnits) -> None:
    """Refuse units that do not end where every path crosses.

    Raises
    ------
    InvalidValueError
        A unit ends elsewhere.
    """
    record = record_forward(bare(model), as_batch(example_batch), loss)
    _declared(record, [unit.end for unit in units.units[:-1]])


def _chain(model: nn.Module) -> list[nn.Module]:
    """Children of a Sequential, those of Sequentials within it in their place."""
    if not _is_chain(model):
        rule = "must be a Sequential where no modules are given; find_units finds the units of others"
        raise InvalidValueError(_SUBJECT, "model", type(model).__name__, rule)
    children: list[nn.Module] = []
    for child in model.children():
        children += _chain(child) if _is_chain(child) and len(child) else [child]
    return children


def _is_chain(module: nn.Module) -> bool:
    return isinstance(module, nn.Sequential) and type(module).forward is nn.Sequential.forward


def _joined(children: Iterable[nn.Module]) -> list[list[nn.Module]]:
    """Children in groups, each with parameters in its first one, but for what comes before the first of all."""
    groups: list[list[nn.Module]] = []
    for child in children:
        if not groups or (_holds_parameters(child) and any(map(_holds_parameters, groups[-1]))):
            groups.append([])
        groups[-1].append(child)
    return groups


def _holds_parameters(module: nn.Module) -> bool:
    return next(module.parameters(), None) is not None


def _unit(names: Sequence[str], model: nn.Module) -> ModelUnit:
    """Unit of modules and all that is inside them."""

    def inside(name: str) -> bool:
        return any(not module or name == module or name.startswith(module + ".") for module in names)

    held = {id(tensor) for name, tensor in model.named_parameters(remove_duplicate=False) if inside(name)}
    parameters = tuple(name for name, tensor in model.named_parameters() if id(tensor) in held)
    modules = tuple(name for name, _ in model.named_modules() if inside(name))
    return ModelUnit(end=names[-1], parameters=parameters, modules=modules)


def _check_owners(model: nn.Module, units: Sequence[ModelUnit]) -> None:
    owners = Counter(name for unit in units for name in unit.parameters)
    for name, _ in model.named_parameters():
        if owners[name] != 1:
            raise InvalidValueError(_SUBJECT, "parameters", name, f"must belong to one unit, not {owners[name]}")


def _declared(record: ForwardRecord, names: Sequence[str]) -> list[Cut]:
    """Ends of named modules, checked to be cuts in order."""
    known, cuts = record.places(), list[Cut]()
    for name in names:
        cut = record.cut(known[name]) if name in known else None
        if cut is None:
            raise InvalidValueError(_SUBJECT, "end", name, "must be a module of the model that all paths cross once")
        if cuts and not cut.follows(cuts[-1]):
            raise InvalidValueError(_SUBJECT, "end", name, f"must depend on {cuts[-1].end.module!r}")
        cuts.append(cut)
    return cuts


def _with_parameters(record: ForwardRecord) -> list[Cut]:
    """Cuts that have parameters between them and the next one."""
    cuts = record.cuts()
    parts = record.parameters(cuts)
    return [cut for cut, following in zip(cuts, parts[1:], strict=True) if following]


def _units(model: nn.Module, record: ForwardRecord, cuts: Sequence[Cut]) -> Iterator[ModelUnit]:
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    parts = [[names[id(leaf)] for leaf in part if id(leaf) in names] for part in record.parameters(cuts)]
    reached = {name for part in parts for name in part}
    parts[-1] += [name for name in names.values() if name not in reached]
    place = {name: i for i, name in enumerate(names.values())}
    modules: list[list[str]] = [[] for _ in parts]
    for name, _ in model.named_modules():
        order = record.last_order(name)
        if order is not None:
            modules[sum(cut.end.order < order for cut in cuts)].append(name)
    for part, inside, end in zip(parts, modules, [*(cut.end.module for cut in cuts), ""], strict=True):
        yield ModelUnit(end=end, parameters=tuple(sorted(part, key=place.__getitem__)), modules=tuple(inside))
