"""The catalogue of GPU types, against the collected figures."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from frostline.problem.cluster import gpu_type, gpu_types


def entries() -> list[dict[str, Any]]:
    data = json.loads((files("frostline.problem") / "gpu_types.json").read_text("utf-8"))
    assert (data["format"], data["version"]) == ("frostline/gpu-types", 1)
    return list(data["gpu_types"])


def test_every_figure_is_that_of_the_catalogue(shared: Path) -> None:
    catalogue = json.loads((shared / "data" / "hardware" / "catalogue.json").read_text())["gpus"]
    named = {entry["name"]: entry for entry in entries()}
    expected = set()
    for name, gpu in catalogue.items():
        sizes = gpu["mem_gb"] if isinstance(gpu["mem_gb"], list) else [gpu["mem_gb"]]
        for size in sizes:
            entry = named[name if len(sizes) == 1 else f"{name}-{size}"]
            expected.add(entry["name"])
            assert entry["memory_bytes"] == size * 2**30
            assert entry["peak_flops"] == peaks(gpu)
            assert entry["nvlink_bytes_per_s"] == (None if gpu["nvlink_gbps"] is None else gpu["nvlink_gbps"] * 10**9)
    assert set(named) == expected


def peaks(gpu: dict[str, Any]) -> dict[str, int]:
    half = gpu.get("fp16_tensor") or gpu.get("fp16") or gpu.get("bf16")
    teraflops = {"fp32": gpu["fp32"], "tf32": gpu.get("tf32"), "fp16": half, "bf16": gpu.get("bf16")}
    return {precision: round(figure * 1e12) for precision, figure in teraflops.items() if figure}


@pytest.mark.parametrize("entry", entries(), ids=lambda entry: entry["name"])
def test_every_type_has_a_source_and_dense_peaks(entry: dict[str, Any]) -> None:
    assert entry["source"]
    kind = gpu_type(entry["name"])
    assert "fp32" in kind.peak_flops
    assert kind.peak_flops.get("bf16", kind.peak_flops.get("fp16")) == kind.peak_flops.get("fp16")
    assert max(kind.peak_flops.values()) <= 989e12  # 1,979 is the sparse figure of H100 and H200


def test_sizes_are_types_of_their_own() -> None:
    assert len(gpu_types()) == len(entries())
    assert gpu_type("V100-SXM2-32").memory_bytes == 2 * (gpu_type("V100-SXM2-16").memory_bytes or 0)
