"""Every registered benchmark runs at its smallest size and prints a table or a figure."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

RUN = Path(__file__).parents[2] / "benchmarks" / "run.py"
NEED_SHARED = {
    "bound-trace",
    "debt-law",
    "freeze-experiment",
    "freeze-steps",
    "not-knowing",
    "oracle-speed",
    "policy-quality",
    "prediction",
    "timing-validation",
}


def bench(*words: str, shared: Path | None = None) -> subprocess.CompletedProcess[str]:
    environment = dict(os.environ) | ({} if shared is None else {"FROSTLINE_SHARED": str(shared)})
    command = [sys.executable, str(RUN), *words]
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=600)


NAMES = bench("--list").stdout.split()


def test_some_are_registered_and_listed_in_their_readme():
    readme = (RUN.parent / "README.md").read_text("utf-8")
    assert {"simulator-speed", "policy-quality", "placement-inflation", "timing-validation"} <= set(NAMES)
    assert [name for name in NAMES if f"`{name}`" not in readme] == []


@pytest.mark.parametrize("name", NAMES)
def test_runs_quickly(name, request):
    shared = request.getfixturevalue("shared") if name in NEED_SHARED else None
    result = bench("--quick", name, shared=shared)
    assert result.returncode == 0, result.stderr
    assert f"## {name}" in result.stdout
    figures = result.stdout.partition(f"## {name}")[2]
    assert any(character.isdigit() for character in figures)


def test_an_unknown_one_is_refused():
    result = bench("no-such-benchmark")
    assert result.returncode == 2
    assert "no such benchmark" in result.stderr


def test_the_docs_show_the_shipped_calibrations():
    """The first table of the docs and the shipped figures are written together."""
    from frostline.timing.calibration import calibrations

    docs = (RUN.parents[1] / "docs" / "timing.md").read_text("utf-8")
    for name, found in calibrations().items():
        row = next(line for line in docs.splitlines() if line.startswith(f"| {name} | {found.gpu_type} |"))
        assert f"| {found.nvlink_bytes_per_s / 1e9:.3g} | {found.nic_bytes_per_s / 1e9:.3g} |" in row
        for network, figures in found.networks.items():
            assert f"{network} {figures.utilisation:.3g} ({figures.half_batch:.3g})" in row


@pytest.mark.parametrize(
    ("name", "params"),
    [
        ("resnet50", 25_557_032),
        ("resnet18_cifar", 11_173_962),
        ("bert_base", 108_893_186),
        ("roberta_base", 124_647_170),
        ("vit_b_16", 86_567_656 - 899 * 769),  # 101 classes in place of 1,000
        ("vit_l_16", 304_326_632 - 899 * 1025),
    ],
)
def test_measured_networks_have_their_published_parameters(name, params, monkeypatch):
    monkeypatch.syspath_prepend(RUN.parent)
    import measured_networks

    network = measured_networks.MAKERS[name]()
    assert network.params_of(range(len(network.layers))) == params
