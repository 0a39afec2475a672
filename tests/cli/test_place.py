"""``frostline place``."""

from __future__ import annotations

import pytest

from frostline.problem import load_network, save, shipped_network

KEYS = {"placement", "iteration_s", "bound_s", "proved_optimal", "method", "cut_bytes", "servers_used", "runtime_s"}


def test_fits_one_server(run_json):
    words = ("--stages", 4, "--replicas", "2,2,2,2", "--cluster", "4x8", "--free", "4,2,2,8")
    document = run_json("place", "bert_large", *words)
    assert set(document) >= KEYS
    assert document["placement"] == [[0] * 4, [0] * 4, [0] * 4, [2] * 4]
    assert document["cut_bytes"] == 0
    assert document["servers_used"] == 1
    assert document["proved_optimal"] is True
    assert document["iteration_s"] == document["bound_s"]
    assert [stage["replicas"] for stage in document["stages"]] == [2, 2, 2, 2]


def test_split_over_servers(run_json):
    document = run_json("place", "gpt2", "--stages", 2, "--replicas", "3,3", "--cluster", "2x8", "--free", "3,3")
    placement = document["placement"]
    assert [sum(row) for row in placement] == [3, 3]
    assert document["cut_bytes"] > 0
    assert document["iteration_s"] >= document["bound_s"]


def test_text_is_a_table_of_servers_and_stages(run):
    result = run("place", "bert_large", "--stages", 2, "--replicas", "2,4", "--cluster", "3x4")
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    header = next(line for line in lines if line.startswith("server"))
    assert header.split() == ["server", "stage", "0", "stage", "1", "GPUs"]
    assert lines[-2].startswith("iteration ")
    assert "proved optimal" in lines[-2]
    quiet = run("place", "bert_large", "--stages", 2, "--replicas", "2,4", "--cluster", "3x4", "--quiet")
    assert quiet.stdout.startswith("server")


@pytest.mark.parametrize("timing", ["contention", "overlap", "link"])
@pytest.mark.parametrize("method", ["auto", "contiguous", "heavy-edge"])
def test_every_method_and_timing(run_json, timing, method):
    words = ("--gpus", 6, "--stages", 3, "--cluster", "2x4", "--timing", timing, "--method", method)
    document = run_json("place", "resnet50", *words)
    assert document["method"] == method
    assert sum(map(sum, document["placement"])) == 6


def test_objective_seed_and_bandwidths(run_json):
    words = ("--gpus", 4, "--cluster", "4x4", "--free", "1,1,1,4", "--objective", "consolidate", "--seed", 5)
    document = run_json("place", "gpt2", *words, "--nic", "1GB/s", "--nvlink", "100GB/s", "--gpu-type", "V100-SXM2-16")
    assert document["servers_used"] == 1
    assert document["cluster"]["gpu_types"] == ["V100-SXM2-16"]


def test_slower_card_takes_longer(run_json):
    words = ("place", "vgg19", "--gpus", 8, "--stages", 1, "--cluster", "2x4", "--nic")
    fast, slow = (run_json(*words, card)["iteration_s"] for card in ("50GB/s", "1GB/s"))
    assert slow > fast


def test_batch_and_utilisation_scale_compute(run_json):
    words = ("place", "resnet50", "--gpus", 1, "--cluster", "1x1", "--global-batch")
    one, two = (run_json(*words, batch)["iteration_s"] for batch in (32, 64))
    assert two == pytest.approx(2 * one)
    half = run_json(*words, 32, "--utilisation", 0.2)["iteration_s"]
    assert half == pytest.approx(2 * one)


def test_network_file(run_json, tmp_path):

    save(shipped_network("gpt2"), tmp_path / "mine.json")
    assert load_network(tmp_path / "mine.json").name == "gpt2"
    document = run_json("place", tmp_path / "mine.json", "--gpus", 2, "--cluster", "1x2")
    assert document["model"] == "gpt2"


def test_what_does_not_fit_is_infeasible(run, run_json):
    words = ("place", "gpt2", "--gpus", 16, "--cluster", "2x8", "--free", "8,7")
    document = run_json(*words, code=1)
    assert document["placement"] is None
    assert document["feasible"] is False
    assert set(document) == set(run_json(*words[:2], "--gpus", 2, "--cluster", "2x8"))
    result = run(*words)
    assert result.exit_code == 1
    assert result.stderr.splitlines() == [f"error: {document['why']}"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--cluster", "2x8"), "--replicas or --gpus"),
        (("--gpus", "4"), "--cluster"),
        (("--gpus", "5", "--replicas", "2,2", "--cluster", "2x8"), "must be the 4"),
        (("--replicas", "2,x", "--cluster", "2x8"), "whole numbers"),
        (("--replicas", "2,0", "--cluster", "2x8"), "at least 1"),
        (("--replicas", "2,2", "--stages", "3", "--cluster", "2x8"), "3"),
        (("--gpus", "2", "--stages", "99", "--cluster", "2x8"), "stages=99"),
        (("--gpus", "2", "--cluster", "2x8", "--free", "1"), "one entry for each of 2 servers"),
        (("--gpus", "0", "--cluster", "2x8"), "at least 1"),
        (("--gpus", "2", "--cluster", "2x8", "--free", "9,0"), "at most its 8"),
        (("--gpus", "2", "--cluster", "2x8", "--free", "8,-1"), "at least 0"),
        (("--gpus", "2", "--cluster", "2x8", "--method", "heavy"), "did you mean 'heavy-edge'"),
        (("--gpus", "2", "--cluster", "2x8", "--objective", "speed"), "placement objective"),
        (("--gpus", "2", "--cluster", "2x8", "--timing", "links"), "did you mean 'link'"),
        (("--gpus", "2", "--cluster", "2x8", "--nic", "25GB"), "25GB/s"),
        (("--gpus", "2", "--cluster", "2x8", "--nic", "25/s"), "unit"),
        (("--gpus", "2", "--cluster", "2x8", "--gpu-type", "A100"), "GPU type"),
        (("--gpus", "2", "--cluster", "2x8", "--precision", "fp8"), "precision"),
        (("--gpus", "2", "--cluster", "2x8", "--utilisation", "nan"), "finite"),
        (("--gpus", "2", "--cluster", "2x8", "--time-limit", "-1"), "at least 0"),
        (("--gpus", "2", "--cluster", "2x8", "--global-batch", "0"), "at least 1"),
    ],
)
def test_bad_options(refused, words, said):
    assert said in refused("place", "gpt2", *words)


@pytest.mark.parametrize("words", [("--gpus", 10**9), ("--replicas", 10**17)])
def test_far_more_than_there_is_is_refused_at_once(run, words):
    assert run("place", "gpt2", *words, "--cluster", "1x8").exit_code == 1


def test_unknown_network(refused, tmp_path):
    assert "did you mean 'gpt2'" in refused("place", "gpt-2", "--gpus", 2, "--cluster", "1x2")
    assert "no such file" in refused("place", tmp_path / "no.json", "--gpus", 2, "--cluster", "1x2")


def test_attributes_do_not_go_with_a_cluster_file(refused, tmp_path):
    from frostline.problem import Cluster

    save(Cluster.uniform(2), tmp_path / "c.json")
    words = ("place", "gpt2", "--gpus", 2, "--cluster", tmp_path / "c.json", "--nic", "25GB/s")
    assert "cluster file" in refused(*words)
