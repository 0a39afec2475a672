"""Options that an optimal choice may still take, by what prices prove of the others."""

from __future__ import annotations

from frostline.freezing.optimizer.knapsack import Dual, Knapsack

__all__ = ["core_of"]


def core_of(knapsack: Knapsack, dual: Dual, value: int) -> Knapsack:
    """Knapsack of the options that some choice of at least a value may have.

    A choice is worth at most the dual less the losses of its options (reduced-cost fixing), so that an option that
    loses more than the dual exceeds the value is in none. Where the value is reached by a choice, its options stay.

    Parameters
    ----------
    knapsack : Knapsack
        All options.
    dual : Dual
        What everyone would choose at some prices.
    value : int
        A value that a choice reaches.

    Examples
    --------
    >>> from frostline.freezing.optimizer.knapsack import knapsack_of
    >>> from frostline.freezing.optimizer.menus import Menus
    >>> menus = Menus(first=[0, 2, 4, 6], gpus=[0, 1, 0, 1, 0, 1], value=[0, 9, 0, 5, 0, 4])
    >>> knapsack = knapsack_of(menus, [2], [-1])
    >>> core_of(knapsack, knapsack.dual([5], 1), 14).origin.tolist()
    [1, 2, 3, 4]
    """
    return knapsack.only(dual.loss(knapsack.job) <= dual.total - dual.denominator * value)
