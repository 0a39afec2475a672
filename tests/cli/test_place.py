"""``frostline place``."""

from __future__ import annotations

import json
import sys

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


SPLIT = ("bert_large", "--stages", 4, "--replicas", "4,4,4,4", "--cluster", "4x8", "--free", "8,5,3,8")


def test_exact_proves_the_example_of_the_readme(run_json):
    document = run_json("place", *SPLIT, "--exact")
    assert document["proved_optimal"] is True
    assert document["gap"] == 0
    assert document["iteration_s"] == document["bound_s"]
    heuristic = run_json("place", *SPLIT, "--method", "heavy-edge")
    assert heuristic["iteration_s"] >= document["iteration_s"]


@pytest.mark.parametrize("method", ["heavy-edge", "best-fit", "contiguous", "local-search"])
def test_exact_cannot_go_with_a_method_that_proves_nothing(refused, method):
    assert "proves nothing" in refused("place", *SPLIT, "--exact", "--method", method)


def test_exact_keeps_to_the_time_limit(run_json):
    document = run_json("place", *SPLIT, "--exact", "--time-limit", "0")
    assert document["iteration_s"] >= document["bound_s"]
    assert sum(map(sum, document["placement"])) == 16


def test_traffic_adds_up_to_the_cut(run_json):
    document = run_json("place", *SPLIT)
    between = sum(item["cut_bytes"] for item in document["traffic"])
    assert between == pytest.approx(document["cut_bytes"], abs=len(document["traffic"]))
    assert [item["stages"] for item in document["traffic"]] == [[0, 1], [1, 2], [2, 3], [0], [1], [2], [3]]
    assert all(item["cut_bytes"] <= item["bytes"] for item in document["traffic"])


def test_servers_are_drawn_as_boxes_of_stages(run):
    lines = run("place", *SPLIT).stdout.splitlines()
    top = next(i for i, line in enumerate(lines) if line.startswith("┌ s0 "))
    boxes = lines[top + 1]
    letters = {letter: boxes.count(f"{letter} ") for letter in "ABCD"}
    assert letters == dict.fromkeys("ABCD", 4)
    assert boxes.count("# ") == 8  # busy: 32 GPUs of which 24 are free
    assert boxes.count("· ") == 8  # free, and still free: 24 of which 16 are taken
    assert sum("ring" in line for line in lines) == 4
    assert any(line.startswith("B ── C") for line in lines)


def test_quiet_and_json_draw_nothing(run, run_json):
    assert "┌" not in run("place", *SPLIT, "--quiet").stdout
    assert "┌" not in run("place", *SPLIT, "--json").stdout


def test_plot_is_written(run, tmp_path):
    pytest.importorskip("matplotlib")
    result = run("place", *SPLIT, "--plot", tmp_path / "p.png")
    assert result.exit_code == 0
    assert (tmp_path / "p.png").read_bytes().startswith(b"\x89PNG")
    assert f"drawn to {tmp_path / 'p.png'}" in result.stdout


def test_a_bad_plot_is_refused_before_anything_is_searched(refused, tmp_path):
    assert "must end in .png, .pdf or .svg" in refused("place", *SPLIT, "--plot", tmp_path / "p.bmp")


def test_plot_without_matplotlib_names_the_extra(refused, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert "pip install 'frostline[plot]'" in refused("place", *SPLIT, "--plot", tmp_path / "p.png")


@pytest.mark.parametrize("name", ["c.json", "c.json.gz"])
def test_certificate_is_written_and_checked(run, run_json, tmp_path, name):
    document = run_json("place", *SPLIT, "--method", "patterns", "--certificate", tmp_path / name)
    checked = run_json("check", tmp_path / name)
    assert checked["valid"] is True
    assert checked["faults"] == []
    assert f"{round(1e9 * document['iteration_s'])} ns: it is optimal" in checked["proved"][0]
    assert run("check", tmp_path / name).stdout.splitlines()[0] == "valid"


def test_the_certificate_of_a_heuristic_proves_a_gap(run_json, tmp_path):
    document = run_json("place", *SPLIT, "--method", "heavy-edge", "--certificate", tmp_path / "c.json")
    assert document["gap"] > 0
    assert "from optimal" in run_json("check", tmp_path / "c.json")["proved"][0]


@pytest.mark.parametrize(
    ("field", "value", "kind"),
    [
        ("iteration_ns", 1, "wrong_time"),
        ("bound_ns", 10**12, "unproved"),
        ("placement", [[0, [4, 4, 0, 0]], [1, [0, 0, 4, 4]]], "misplaced"),
        ("placement", "everywhere", "malformed"),
        ("extra", 1, "malformed"),
    ],
)
def test_a_changed_certificate_is_found_out(run, run_json, tmp_path, field, value, kind):
    path = tmp_path / "c.json"
    run("place", *SPLIT, "--method", "patterns", "--certificate", path)
    path.write_text(json.dumps(json.loads(path.read_text("utf-8")) | {field: value}), encoding="utf-8")
    checked = run_json("check", path, code=1)
    assert checked["valid"] is False
    assert checked["proved"] == []
    assert kind in {fault["kind"] for fault in checked["faults"]}
    assert "not valid" in run("check", path).stdout


def test_bad_certificate_options(refused, run, tmp_path):
    assert "must end in .json or .json.gz" in refused("place", *SPLIT, "--certificate", tmp_path / "c.txt")
    run("place", *SPLIT, "--certificate", tmp_path / "c.json")
    words = ("check", tmp_path / "c.json", "--instance", tmp_path / "i.json")
    assert "--instance goes with a schedule" in refused(*words)


def test_nothing_is_written_where_nothing_fits(run, tmp_path):
    words = ("--gpus", 16, "--cluster", "1x8", "--certificate", tmp_path / "c.json")
    assert run("place", "gpt2", *words).exit_code == 1
    assert not list(tmp_path.iterdir())


def test_replicas_of_several_gpus_stay_in_one_server(run, run_json):
    words = ("bert_large", "--stages", 3, "--replicas", "2,3,1", "--gpus-per-replica", "2,1,4", "--cluster", "3x4")
    document = run_json("place", *words, "--exact")
    assert document["gpus"] == 11
    assert document["global_batch"] == 32 * 11
    assert [stage["gpus_per_replica"] for stage in document["stages"]] == [2, 1, 4]
    assert document["proved_optimal"] is True
    loads = [2 * a + b + 4 * c for a, b, c in document["placement"]]
    assert sum(loads) == 11
    assert max(loads) <= 4
    text = run("place", *words).stdout
    assert "C-C-C-C" in text
    assert text.count("A-A") == 2
    assert "2 of 2 GPUs" in text


def test_one_size_of_replicas_goes_for_all_stages(run_json):
    document = run_json("place", "gpt2", "--gpus", 8, "--stages", 2, "--gpus-per-replica", 2, "--cluster", "2x4")
    assert [stage["gpus_per_replica"] for stage in document["stages"]] == [2, 2]
    assert sum(stage["replicas"] for stage in document["stages"]) == 4
    typed = run_json("place", "gpt2", "--replicas", "2,2", "--gpus-per-replica", 2, "--cluster", "2x4")
    assert typed["iteration_s"] == document["iteration_s"]


def test_replicas_that_no_server_holds_do_not_fit(run_json):
    words = ("--replicas", "1,1", "--gpus-per-replica", "4", "--cluster", "4x4", "--free", "3,3,3,3")
    document = run_json("place", "gpt2", *words, code=1)
    assert document["placement"] is None
    assert "in one server" in document["why"]
    assert set(document) == set(run_json("place", "gpt2", *words[:6]))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--gpus", "5", "--gpus-per-replica", "2"), "multiple of 2"),
        (("--gpus", "6", "--gpus-per-replica", "2,1"), "goes with --replicas"),
        (("--replicas", "2,2", "--gpus-per-replica", "1,2,3"), "one for each of 2 stages"),
        (("--replicas", "2,2", "--gpus-per-replica", "2", "--gpus", "4"), "must be the 8"),
        (("--replicas", "2,2", "--gpus-per-replica", "0"), "at least 1"),
        (("--gpus", "2", "--gap", "-1"), "at least 0"),
        (("--gpus", "2", "--gap", "wide"), "not a number"),
    ],
)
def test_bad_sizes_and_gaps(refused, words, said):
    assert said in refused("place", "gpt2", *words, "--cluster", "2x8")


def test_a_gap_that_is_wide_enough_ends_the_search(run_json):
    document = run_json("place", *SPLIT, "--exact", "--gap", 0.5)
    assert document["gap"] <= 0.5


def test_one_gpu_type_for_all_replicas(run_json, tmp_path):
    from frostline.problem import Cluster, Server, gpu_type

    kinds = ("V100-SXM2-16", "A100-SXM-80", "V100-SXM2-16")
    save(
        Cluster(servers=[Server(id=f"s{i}", gpus=4, gpu_type=gpu_type(kind)) for i, kind in enumerate(kinds)]),
        tmp_path / "c.json",
    )
    small = run_json("place", "gpt2", "--gpus", 4, "--cluster", tmp_path / "c.json")
    assert [sum(row) for row in small["placement"]] == [0, 4, 0]  # the faster type
    large = run_json("place", "gpt2", "--gpus", 8, "--cluster", tmp_path / "c.json")
    assert [sum(row) for row in large["placement"]] == [4, 0, 4]
    assert large["stages"][0]["compute_s"] > 2 * small["stages"][0]["compute_s"]
    assert large["iteration_s"] >= large["stages"][0]["compute_s"]
