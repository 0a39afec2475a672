"""Free GPUs, best fit and saturation, by hand."""

from __future__ import annotations

import pytest

from frostline.placement.free_gpus import FreeGpus, Shape, shape_of
from frostline.placement.saturation import busy_when_blocked, saturation
from frostline.problem import Cluster, Fixed, Job, Server


def test_best_fit_leaves_large_holes_whole() -> None:
    free = FreeGpus([8, 8, 8])
    free.take(((0, 2), (1, 5)))
    assert free.best_fit(Shape(3, 3)) == ((1, 3),)
    assert free.best_fit(Shape(4, 3)) == ((0, 4),)
    assert free.best_fit(Shape(7, 3)) == ((2, 7),)


def test_equal_holes_go_to_the_lower_server() -> None:
    assert FreeGpus([4, 4, 4]).best_fit(Shape(4, 3)) == ((0, 4),)


def test_wide_job_takes_fewest_servers_and_the_tightest_rest() -> None:
    free = FreeGpus([8, 8, 8, 8])
    free.take(((0, 6), (1, 3)))
    assert free.best_fit(Shape(18, 4)) == ((0, 2), (2, 8), (3, 8))


def test_wide_job_when_holes_are_equal() -> None:
    assert FreeGpus([4, 4, 4]).best_fit(Shape(6, 3)) == ((0, 4), (1, 2))


def test_locality_is_shape_not_total() -> None:
    free = FreeGpus([8, 8])
    free.take(((0, 4), (1, 4)))
    assert free.fits(Shape(8, 2))
    assert not free.fits(Shape(8, 1))
    assert free.best_fit(Shape(8, 1)) is None


def test_fewest_servers_of_unequal_size() -> None:
    cluster = Cluster(servers=tuple(Server(id=f"s{i}", gpus=g) for i, g in enumerate((4, 8, 2))))
    job = Job(id="a", release_s=0, work=Fixed(duration_s=1), gpus=11, locality="fewest")
    assert shape_of(job, cluster) == Shape(11, 2)
    assert FreeGpus(cluster.capacities).best_fit(Shape(11, 2)) == ((0, 3), (1, 8))


def test_give_undoes_take() -> None:
    free = FreeGpus([8, 2])
    free.take(((0, 8), (1, 1)))
    assert (free.total, free.largest) == (1, 1)
    free.give(((0, 8), (1, 1)))
    assert (free.total, free.largest, free.by_server) == (10, 8, [8, 2])


def test_copy_is_independent() -> None:
    free = FreeGpus([8])
    twin = free.copy()
    twin.take(((0, 5),))
    assert (free.total, twin.total) == (8, 3)
    assert free.best_fit(Shape(8, 1)) == ((0, 8),)


def test_no_servers() -> None:
    free = FreeGpus([])
    assert (free.total, free.largest, free.fits(Shape(1, 1))) == (0, 0, False)


@pytest.mark.parametrize(
    ("shape", "busy"),
    [
        (Shape(1, 4), 32),  # one GPU, anywhere: blocked only when all are busy
        (Shape(32, 4), 1),
        (Shape(5, 1), 16),  # M (c − g + 1)
        (Shape(32, 32), 1),
        (Shape(24, 3), 2),  # whole servers: M − k + 1
    ],
)
def test_saturation_of_a_uniform_cluster(shape: Shape, busy: int) -> None:
    assert busy_when_blocked(shape, Cluster.uniform(4)) == busy


def test_saturation_is_the_least_over_shapes() -> None:
    cluster = Cluster.uniform(4)
    assert saturation([Shape(1, 4), Shape(5, 1), Shape(9, 4)], cluster) == 16
    assert saturation([], cluster) == 32
