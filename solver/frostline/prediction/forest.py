"""A random forest of job sizes that says how sure it is.

The module imports scikit-learn: import it inside functions only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.ensemble import RandomForestRegressor
from sklearn.tree._tree import Tree
from sklearn.utils import check_random_state
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_is_fitted, validate_data

from frostline.errors import InvalidValueError

__all__ = ["IterationForest"]

_FEW = 2**17
"""Rows times trees below which workers cost more than they save."""


class IterationForest(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Random forest on the logarithm of a positive target, with quantiles.

    Each tree answers one training target out of the leaf a row falls into, so a forest of T trees answers T equally
    likely values per row: a draw of the quantile regression forest of Meinshausen (JMLR 7, 2006), where every
    training row counts in its leaf. The draw is stratified: tree t takes the quantile (s_t + 1/2) / T of its leaf,
    s being a random order of 0 … T - 1.

    Answers are the same to the last bit for any number of workers, and never leave the range of the targets.

    Parameters
    ----------
    n_estimators : int
        Trees, and values per row.
    min_samples_leaf : int
        Rows that each leaf keeps at least.
    max_features : int, float or str
        Features looked at per split, as in scikit-learn.
    max_samples : int or None
        Rows drawn per tree, as many as there are by default.
    max_depth : int or None
        Depth of a tree at most.
    n_jobs : int or None
        Workers, as in scikit-learn.
    random_state : int, RandomState or None
        Seed.

    Attributes
    ----------
    trees_ : list of sklearn.tree._tree.Tree
        The trees.
    leaf_values_ : list of ndarray of float
        For each tree, its answer by node; 0 at nodes that are no leaves.
    target_range_ : tuple of float
        Least and largest target.
    n_features_in_ : int
        Columns.

    Examples
    --------
    >>> X = np.arange(200.0)[:, None]
    >>> forest = IterationForest(n_estimators=20, random_state=0).fit(X, 10.0 * np.exp(X[:, 0] / 50.0))
    >>> bool(abs(np.log(forest.predict([[100.0]])[0] / 10.0) - 2.0) < 0.1)
    True
    >>> forest.predict_quantiles([[100.0]], [0.0, 1.0]).shape, forest.predict_points([[100.0]]).shape
    ((1, 2), (1, 20))
    """

    def __init__(
        self,
        n_estimators: int = 100,
        *,
        min_samples_leaf: int = 5,
        max_features: int | float | str = 0.33,
        max_samples: int | None = None,
        max_depth: int | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.n_estimators = n_estimators
        self.min_samples_leaf = min_samples_leaf
        self.max_features = max_features
        self.max_samples = max_samples
        self.max_depth = max_depth
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: ArrayLike) -> IterationForest:
        """Learn.

        Parameters
        ----------
        X : array of shape (rows, features)
            Finite numbers.
        y : array of shape (rows,)
            Targets, positive and finite.

        Raises
        ------
        InvalidValueError
            A target is not positive.
        ValueError
            What scikit-learn says of arrays of another kind, among them targets that are NaN.
        """
        rows, targets = validate_data(self, X, y, dtype=np.float32, y_numeric=True)
        targets = np.asarray(targets, dtype=np.float64)
        if not targets.min() > 0.0:
            raise InvalidValueError("forest", "y", float(targets.min()), "must be positive")
        random = check_random_state(self.random_state)
        forest = RandomForestRegressor(
            self.n_estimators,
            min_samples_leaf=self.min_samples_leaf,
            max_features=self.max_features,
            max_samples=None if self.max_samples is None else min(self.max_samples, len(targets)),
            max_depth=self.max_depth,
            n_jobs=self.n_jobs,
            random_state=random.randint(2**31 - 1),
        ).fit(rows, np.log(targets))
        self.trees_ = [tree.tree_ for tree in forest.estimators_]
        by_size = np.argsort(targets, kind="stable")
        targets = targets[by_size]
        self.target_range_ = (float(targets[0]), float(targets[-1]))
        strata = random.permutation(self.n_estimators).tolist()
        leaves = self._leaves(rows[by_size])
        self.leaf_values_ = [
            _leaf_values(tree.node_count, leaf, targets, stratum, self.n_estimators)
            for tree, leaf, stratum in zip(self.trees_, leaves, strata, strict=True)
        ]
        return self

    def predict(self, X: ArrayLike) -> NDArray[np.float64]:
        """Median of each row: the middle value, the geometric mean of the middle two where their number is even.

        Parameters
        ----------
        X : array of shape (rows, features)
            Finite numbers.

        Returns
        -------
        ndarray of shape (rows,)
            Within the range of the targets.
        """
        points = self.predict_points(X)
        count = points.shape[1]
        below, above = points[:, (count - 1) // 2], points[:, count // 2]
        middle: NDArray[np.float64] = np.clip(np.sqrt(below) * np.sqrt(above), below, above)
        return middle

    def predict_quantiles(self, X: ArrayLike, quantiles: Sequence[float]) -> NDArray[np.float64]:
        """Least value of each row such that at least this share of its values is not above it.

        Parameters
        ----------
        X : array of shape (rows, features)
            Finite numbers.
        quantiles : sequence of float
            Shares from 0 to 1.

        Returns
        -------
        ndarray of shape (rows, quantiles)
            Not decreasing in the quantile.

        Raises
        ------
        InvalidValueError
            A share is not from 0 to 1.
        """
        points = self.predict_points(X)
        for share in quantiles:
            if not 0.0 <= share <= 1.0:
                raise InvalidValueError("forest", "quantiles", share, "must be from 0 to 1")
        count = points.shape[1]
        ranks = np.ceil(np.asarray(quantiles, np.float64) * count - 1e-9).astype(np.int64)
        return points[:, np.clip(ranks, 1, count) - 1]

    def predict_points(self, X: ArrayLike) -> NDArray[np.float64]:
        """Equally likely values of each row, sorted.

        Parameters
        ----------
        X : array of shape (rows, features)
            Finite numbers.

        Returns
        -------
        ndarray of shape (rows, n_estimators)
            Each is one of the targets.
        """
        check_is_fitted(self)
        rows = validate_data(self, X, dtype=np.float32, reset=False)
        answers = np.empty((len(self.trees_), len(rows)))
        for leaf, values, answer in zip(self._leaves(rows), self.leaf_values_, answers, strict=True):
            np.take(values, leaf, out=answer)
        points = np.ascontiguousarray(answers.T)
        points.sort(axis=1)
        return points

    @property
    def feature_importances_(self) -> NDArray[np.float64]:
        """Mean decrease of the variance of the logarithm by feature, of sum 1 unless nothing was split."""
        check_is_fitted(self)
        total = np.zeros(self.n_features_in_)
        for tree in self.trees_:
            total += tree.compute_feature_importances()
        return total / total.sum() if total.sum() > 0.0 else total

    def _leaves(self, rows: NDArray[np.float32]) -> list[NDArray[np.int64]]:
        """Leaf of each row, by tree."""
        rows = np.ascontiguousarray(rows)
        if len(rows) * len(self.trees_) < _FEW:
            return [tree.apply(rows) for tree in self.trees_]
        workers = Parallel(n_jobs=self.n_jobs, require="sharedmem")
        return list(workers(delayed(tree.apply)(rows) for tree in self.trees_))

    def state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """What a fitted forest knows, as plain data for JSON and as arrays.

        Raises
        ------
        InvalidValueError
            ``random_state`` is a generator and not a number.
        """
        check_is_fitted(self)
        parameters = self.get_params()
        if not isinstance(self.random_state, int | None):
            raise InvalidValueError("forest", "random_state", self.random_state, "must be a whole number to be kept")
        states = [tree.__getstate__() for tree in self.trees_]
        plain = {
            "parameters": parameters,
            "columns": self.n_features_in_,
            "target_range": list(self.target_range_),
            "depths": [state["max_depth"] for state in states],
        }
        arrays = {
            "counts": np.array([state["node_count"] for state in states], np.int64),
            "nodes": np.concatenate([state["nodes"] for state in states]),
            "node_means": np.concatenate([state["values"][:, 0, 0] for state in states]),
            "leaf_values": np.concatenate(self.leaf_values_),
        }
        return plain, arrays

    @classmethod
    def from_state(cls, plain: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> IterationForest:
        """The same forest again, from what :meth:`state` gave under the same version of scikit-learn.

        Raises
        ------
        ValueError, KeyError, TypeError
            The data are of another shape, or describe no trees.
        """
        self = cls(**plain["parameters"])
        self.n_features_in_ = columns = int(plain["columns"])
        low, high = map(float, plain["target_range"])
        self.target_range_ = (low, high)
        counts = arrays["counts"].tolist()
        if not counts or min(counts) < 1 or not sum(counts) == len(arrays["nodes"]) == len(arrays["leaf_values"]):
            raise ValueError("the trees are not as long as is said")
        self.trees_, self.leaf_values_ = [], []
        start = 0
        for count, depth in zip(counts, plain["depths"], strict=True):
            part = slice(start, start + count)
            self.trees_.append(_tree(arrays["nodes"][part], arrays["node_means"][part], int(depth), columns))
            self.leaf_values_.append(arrays["leaf_values"][part].astype(np.float64))
            answers = self.leaf_values_[-1][self.trees_[-1].children_left == -1]
            if not np.all((answers >= low) & (answers <= high)) or not 0.0 < low <= high < np.inf:
                raise ValueError("a leaf answers what is not in the range of the targets")
            start += count
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = True
        return tags


def _leaf_values(
    nodes: int, leaves: NDArray[np.int64], y: NDArray[np.float64], stratum: int, strata: int
) -> NDArray[np.float64]:
    """The quantile (stratum + 1/2) / strata of the targets of each leaf; the targets are sorted."""
    order = np.argsort(leaves, kind="stable")
    used, first, size = np.unique(leaves[order], return_index=True, return_counts=True)
    values = np.zeros(nodes)
    values[used] = y[order][first + (2 * stratum + 1) * size // (2 * strata)]
    return values


def _tree(nodes: NDArray[Any], means: NDArray[np.float64], depth: int, columns: int) -> Tree:
    """A tree from its nodes; scikit-learn follows them unchecked, so none may lead out of the tree or back."""
    count = len(nodes)
    left, right, feature = nodes["left_child"], nodes["right_child"], nodes["feature"]
    inner = left != -1
    for child in (left[inner], right[inner]):
        if np.any(child <= np.flatnonzero(inner)) or np.any(child >= count):
            raise ValueError("a node has a child that does not come after it")
    if np.any(right[~inner] != -1) or np.any(feature[inner] < 0) or np.any(feature[inner] >= columns):
        raise ValueError("a node asks for a feature that there is not")
    tree = Tree(columns, np.ones(1, np.intp), 1)
    values = np.ascontiguousarray(means, np.float64).reshape(count, 1, 1)
    tree.__setstate__({"max_depth": depth, "node_count": count, "nodes": np.ascontiguousarray(nodes), "values": values})
    return tree
