"""``frostline freeze``: the menu of a job, its best level, its plot, and what is refused."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from frostline.freezing import FreezeState, FreezeTerms, choose_level, debt_prior
from frostline.problem import Edge, Layer, Network, SharedParams, save

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "freezing.md").read_text("utf-8")
LEVEL = {
    "level",
    "frozen_units",
    "compute_share",
    "compute_flops",
    "gradient_bytes",
    "iteration_s",
    "speed_up",
    "penalty",
    "effective_progress_per_s",
    "memory_bytes",
    "fits",
    "placement",
}
RESNET = ("freeze", "resnet50", "--gpus", 8, "--cluster", "2x4", "--family", "cnn")
BERT = ("freeze", "bert_large", "--gpus", 8, "--cluster", "2x4", "--family", "fine-tuning")


def layer(position, params, forward_flops, kind=""):
    return Layer(
        id=position,
        params=params,
        forward_flops=forward_flops,
        backward_flops=2 * forward_flops,
        output_elements=4,
        saved_bytes=16,
        kind=kind,
    )


def save_network(path, layers, edges, **fields):
    links = tuple(Edge(source=s, target=t, elements=4) for s, t in edges)
    save(Network(name="mine", layers=tuple(layers), edges=links, **fields), path)
    return path


def test_levels_are_those_of_the_menu(run_json):
    document = run_json(*RESNET, "--comm", "rebuild")
    levels = document["levels"]
    assert all(set(row) == LEVEL for row in levels)
    assert [row["level"] for row in levels] == list(range(9))
    assert [row["frozen_units"] for row in levels] == [0, 3, 5, 7, 9, 11, 13, 15, 17]
    assert len(document["units"]) == 18
    for name in ("compute_flops", "gradient_bytes", "iteration_s", "memory_bytes"):
        values = [row[name] for row in levels]
        assert values == sorted(values, reverse=True) and values[-1] < values[0]
    for row in levels:
        assert row["effective_progress_per_s"] == pytest.approx(document["global_batch"] / row["iteration_s"])
        assert row["speed_up"] == pytest.approx(levels[0]["iteration_s"] / row["iteration_s"])
        assert sum(map(sum, row["placement"])) == 8


def test_level_0_is_the_job_as_place_times_it(run_json):
    first = run_json(*RESNET)["levels"][0]
    placed = run_json("place", *RESNET[1:6])
    assert (first["penalty"], first["speed_up"]) == (0.0, 1.0)
    assert (first["iteration_s"], first["placement"]) == (placed["iteration_s"], placed["placement"])


def test_static_exchanges_all_gradients(run_json):
    static, rebuilt = (run_json(*RESNET, "--comm", comm)["levels"] for comm in ("static", "rebuild"))
    assert len({row["gradient_bytes"] for row in static}) == 1
    assert static[0]["iteration_s"] == rebuilt[0]["iteration_s"]
    assert static[-1]["iteration_s"] > rebuilt[-1]["iteration_s"]


def test_penalty_is_the_density_of_the_family(run_json):
    document = run_json(*RESNET, "--progress", 0.4)
    law = debt_prior("cnn")
    assert document["law"] == {"a": law.a, "A": law.A, "c": law.c, "B_0": law.B_0, "warm_up": law.warm_up}
    for row in document["levels"]:
        assert row["penalty"] == law.density_points(row["compute_share"], 0.4)
    later = run_json(*RESNET, "--progress", 0.9)
    assert later["levels"][-1]["penalty"] < document["levels"][-1]["penalty"]


@pytest.mark.parametrize(("budget", "progress"), [(1, 0.2), (0.1, 0.2), (0.5, 0.6), (0, 0.5), (100, 0.3)])
def test_best_is_where_the_exact_plan_begins(run_json, budget, progress):
    document = run_json(*BERT, "--budget", budget, "--progress", progress)
    levels = document["levels"]
    shares = [row["compute_share"] for row in levels]
    terms = FreezeTerms(
        shares=shares, law=debt_prior("fine-tuning"), quality_budget_points=budget, change_cost_s=0, hysteresis=0
    )
    expected = choose_level(terms, FreezeState(progress=progress), [row["iteration_s"] for row in levels])
    phases = document["plan"]["phases"]
    assert document["best"] == expected.level == phases[0]["level"]
    assert (phases[0]["start"], phases[-1]["end"]) == (progress, 1)
    assert document["plan"]["debt_points"] == expected.plan.debt_points <= budget
    assert document["plan"]["proved_optimal"] is True
    spent = sum(levels[phase["level"]]["iteration_s"] * (phase["end"] - phase["start"]) for phase in phases)
    assert document["plan"]["speed_up"] == pytest.approx(levels[0]["iteration_s"] * (1 - progress) / spent)


def test_budgets_from_none_to_plenty(run_json):
    none, plenty = (run_json(*RESNET, "--budget", budget) for budget in (0, 100))
    assert (none["best"], none["plan"]["speed_up"], none["plan"]["debt_points"]) == (0, 1.0, 0.0)
    assert plenty["best"] == 8
    assert plenty["plan"]["speed_up"] == pytest.approx(plenty["levels"][8]["speed_up"])


def test_nothing_is_frozen_before_the_warm_up_ends(run_json):
    early = run_json(*RESNET, "--budget", 100, "--progress", 0.1)
    assert [row["penalty"] for row in early["levels"]] == [0.0, *[None] * 8]
    assert [(phase["level"], phase["end"]) for phase in early["plan"]["phases"]] == [(0, 0.2), (8, 1)]
    assert early["best"] == 0
    late = run_json(*RESNET, "--budget", 100, "--warm-up", 0.5)
    assert (late["progress"], late["law"]["warm_up"], late["best"]) == (0.5, 0.5, 8)
    none = run_json(*RESNET, "--budget", 100, "--warm-up", 0)
    assert (none["progress"], none["best"]) == (0, 8)


def test_stages_and_free_gpus_are_those_of_place(run_json):
    words = ("gpt2", "--stages", 2, "--replicas", "2,4", "--cluster", "2x8", "--free", "4,5", "--global-batch", 64)
    document, placed = run_json("freeze", *words), run_json("place", *words)
    assert document["stages"] == placed["stages"]
    assert document["levels"][0]["iteration_s"] == placed["iteration_s"]
    for row in document["levels"]:
        assert all(sum(server) <= free for server, free in zip(row["placement"], (4, 5), strict=True))
        assert [sum(column) for column in zip(*row["placement"], strict=True)] == [2, 4]


def test_text_is_a_table_with_one_star(run):
    result = run(*RESNET)
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    top = next(i for i, line in enumerate(lines) if line.startswith("level"))
    rows = lines[top + 1 : top + 10]
    assert [row.split()[0] for row in rows] == [str(level) for level in range(9)]
    assert [row.split()[0] for row in rows if row.endswith("*")] == ["1"]
    assert "best at progress 0.2: level 1" in lines
    assert any(line.startswith("plan: level 1 to 0.24, ") and line.endswith("to the end") for line in lines)
    assert any(line.startswith("debt rate: points of final accuracy per unit of progress") for line in lines)
    quiet = run(*RESNET, "--quiet").stdout.splitlines()
    assert quiet == lines[top : top + 13]


def test_before_the_warm_up_the_text_says_so(run):
    stdout = run(*RESNET, "--progress", 0.1).stdout
    assert "nothing may be frozen at progress 0.1: the warm-up ends at 0.2" in stdout


SMALL = ("--cluster", "2x4", "--gpu-type", "V100-SXM2-16")


def test_levels_that_do_not_fit_are_not_chosen(run_json):
    tight = run_json("freeze", "gpt2_xl", "--gpus", 8, *SMALL, "--global-batch", 8, code=1)
    assert [row["fits"] for row in tight["levels"]].count(False) >= 1
    assert tight["levels"][0]["fits"] is False
    assert (tight["best"], tight["plan"]) == (None, None)
    assert "memory" in tight["why"]


def test_text_of_what_does_not_fit_the_memory(run):
    result = run("freeze", "gpt2_xl", "--gpus", 8, *SMALL)
    assert result.exit_code == 1
    assert "  no" in result.stdout and "best at" not in result.stdout
    assert "does not fit the memory" in result.stderr


def test_more_gpus_than_the_cluster_is_infeasible(run, run_json):
    words = ("freeze", "gpt2", "--gpus", 9, "--cluster", "2x4")
    document = run_json(*words, code=1)
    assert (document["levels"], document["best"]) == ([], None)
    assert set(document) == set(run_json("freeze", "gpt2", "--gpus", 8, "--cluster", "2x4"))
    assert run(*words).stderr == f"error: {document['why']}\n"
    assert "9" in document["why"] and "8" in document["why"]
    halves = ("--replicas", 1, "--gpus-per-replica", 4, "--cluster", "2x4", "--free", "3,3")
    assert "one server" in run_json("freeze", "gpt2", *halves, code=1)["why"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--family", "cnns"), "did you mean 'cnn'"),
        (("--family", "x"), "cnn, fine-tuning, mlp, transformer, unknown"),
        (("--comm", "statik"), "did you mean 'static'"),
        (("--budget", "-1"), "option --budget: points=-1"),
        (("--budget", "nan"), "finite"),
        (("--budget", "much"), "not a number"),
        (("--progress", "1.5"), "option --progress: progress=1.5"),
        (("--progress", "1"), "must be below 1"),
        (("--progress", "-0.1"), "at least 0"),
        (("--warm-up", "1"), "option --warm-up"),
        (("--warm-up", "2"), "at most 1"),
        (("--replicas", "2,2", "--gpus", "5"), "must be the 4"),
        (("--free", "1"), "one entry for each of 2 servers"),
        (("--precision", "fp8"), "precision"),
        (("--time-limit", "-1"), "at least 0"),
        (("--plot", "menu.bmp"), "must end in .png, .pdf or .svg"),
    ],
)
def test_bad_options(refused, words, said):
    assert said in refused("freeze", "resnet50", "--gpus", 4, "--cluster", "2x4", *words)


def test_bad_networks(refused, tmp_path):
    assert "did you mean 'resnet50'" in refused("freeze", "resnet5", *RESNET[2:])
    assert "bert_large, dlrm_kaggle, gpt2" in refused("freeze", "zzz", *RESNET[2:])
    one = [layer(0, 5, 10)]
    message = refused("freeze", save_network(tmp_path / "one.json", one, []), *RESNET[2:])
    assert "network 'mine': freeze units=1 must be at least 2" in message
    none = [layer(i, 0, 10) for i in range(3)]
    assert "params=0" in refused("freeze", save_network(tmp_path / "none.json", none, [(0, 1), (1, 2)]), *RESNET[2:])


def test_a_network_whose_first_unit_saves_nothing(refused, tmp_path):
    layers = [layer("embedding", 5, 0), layer("block", 5, 10, "BertLayer")]
    tied = [SharedParams(layers=("embedding", "block"), params=5)]
    path = save_network(tmp_path / "tied.json", layers, [("embedding", "block")], shared_params=tied)
    assert "must have a level above 0" in refused("freeze", path, *RESNET[2:])


def test_a_network_of_two_units_has_one_level_above_0(run_json, tmp_path):
    layers = [layer(i, 1000, 10**12) for i in range(2)]
    path = save_network(tmp_path / "two.json", layers, [(0, 1)])
    levels = run_json("freeze", path, "--gpus", 2, "--cluster", "1x2")["levels"]
    assert [row["frozen_units"] for row in levels] == [0, 1]
    # both passes of two layers, less both gradients of the first, and the gradient of the second's input
    assert [row["compute_flops"] / 10**12 for row in levels] == [6, 3]


@pytest.mark.parametrize("ending", ["png", "svg"])
def test_plot_is_written_and_always_the_same(run, tmp_path, ending):
    pytest.importorskip("matplotlib")
    first, second = (tmp_path / f"{name}.{ending}" for name in "ab")
    result = run(*RESNET, "--plot", first)
    assert result.exit_code == 0
    assert f"drawn to {first}" in result.stdout
    assert run(*RESNET, "--plot", second, "--quiet").exit_code == 0
    assert first.read_bytes() == second.read_bytes()


def test_plot_without_matplotlib_names_the_extra(refused, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert "pip install 'frostline[plot]'" in refused(*RESNET, "--plot", tmp_path / "p.png")
    assert not list(tmp_path.iterdir())


def test_options_from_a_file(run_json, tmp_path):
    (tmp_path / "c.toml").write_text('[freeze]\nfamily = "mlp"\nbudget = 0.25\n', encoding="utf-8")
    document = run_json("freeze", "resnet50", "--gpus", 2, "--cluster", "1x2", "--config", tmp_path / "c.toml")
    assert (document["family"], document["budget_points"]) == ("mlp", 0.25)


def test_the_docs_show_what_is_printed(run):
    command = re.search(r"```console\n\$ frostline (freeze .*)\n```", PAGE)[1]
    shown = re.search(r"```text\n(.*?)```", PAGE, re.DOTALL)[1]
    assert run(*command.split()).stdout == shown


def test_the_docs_name_every_key(run_json):
    cells = re.findall(r"^\| (`.*?) \|", PAGE, re.MULTILINE)
    named = {key.removeprefix("levels[].") for cell in cells for key in re.findall(r"`([^`]*)`", cell)}
    assert named >= LEVEL
    document = run_json(*RESNET)
    assert named - LEVEL <= set(document)
