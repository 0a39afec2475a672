"""Debt laws to start from, by family of network; ``freezing/priors.json`` holds the figures and their sources."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from frostline.errors import UnknownNameError
from frostline.freezing.penalty import DebtLaw
from frostline.problem.frozen import FrozenMap

__all__ = ["DebtPrior", "debt_prior", "debt_priors"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DebtPrior:
    """Debt law of a family of networks, above what nearly all measured runs of it lost.

    Parameters
    ----------
    family : str
        Name of the family.
    law : DebtLaw
        The law.
    source : mapping of str to str
        Where the figures come from.
    """

    family: str
    law: DebtLaw
    source: Mapping[str, str]


@cache
def debt_priors() -> Mapping[str, DebtPrior]:
    """Priors that come with frostline, by family; ``unknown`` is above all others trained from scratch.

    Examples
    --------
    >>> sorted(debt_priors())
    ['cnn', 'fine-tuning', 'mlp', 'transformer', 'unknown']
    """
    data = json.loads(files("frostline.freezing").joinpath("priors.json").read_text("utf-8"))
    entries = [
        DebtPrior(family=entry["family"], law=DebtLaw(**entry["law"]), source=FrozenMap(entry["source"]))
        for entry in data["priors"]
    ]
    return FrozenMap({entry.family: entry for entry in entries})


def debt_prior(family: str = "unknown") -> DebtLaw:
    """Debt law of a family, to start from before a job has shown anything.

    Raises
    ------
    UnknownNameError
        No such family; a near miss is suggested.

    Examples
    --------
    >>> debt_prior("mlp").debt_points(1, 0.4, 1) < 1 < debt_prior().debt_points(1, 0.4, 1)
    True
    """
    try:
        return debt_priors()[family].law
    except KeyError:
        raise UnknownNameError("family", family, debt_priors()) from None
