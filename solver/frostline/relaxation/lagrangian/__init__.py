"""Capacity prices: what a GPU is worth over time, and the lower bound that follows from it."""

from frostline.relaxation.lagrangian.ascent import SCALES, Ascent, best_prices, one_shot
from frostline.relaxation.lagrangian.certificate import certificate_of
from frostline.relaxation.lagrangian.last import prove_last
from frostline.relaxation.lagrangian.prices import Evaluation, Prices, evaluate
from frostline.relaxation.lagrangian.problem import Option, PriceProblem, price_problem
from frostline.relaxation.lagrangian.tree import Leaf, Split, Tighten, Tree, prove
from frostline.relaxation.lagrangian.windows import Windows

__all__ = [
    "SCALES",
    "Ascent",
    "Evaluation",
    "Leaf",
    "Option",
    "PriceProblem",
    "Prices",
    "Split",
    "Tighten",
    "Tree",
    "Windows",
    "best_prices",
    "certificate_of",
    "evaluate",
    "one_shot",
    "price_problem",
    "prove",
    "prove_last",
]
