"""The library of instances on the command line: what is known, checks, comparisons, proofs; families made anew."""

from __future__ import annotations

import json

import pytest

from frostline.records import library_folder, read_records
from frostline.traces.library import instance_entry, instance_names, matching_names


def test_the_table_shows_what_is_known(run, run_json):
    text = run("bench", "--only", "q06,tiny").stdout
    assert "q06              " in text
    count = len(matching_names(["q06", "tiny"]))
    assert text.endswith(f"{count} instances, {count} proved optimal by a certificate\n")
    rows = run_json("bench", "--only", "q06")["records"]
    assert [(row["name"], row["total_flow_s"], row["gap"], row["proved"]) for row in rows] == [("q06", 135, 0, True)]
    assert len(run_json("bench")["records"]) == len(instance_names())


def test_policies_are_compared_with_the_best_known(run, run_json):
    (row,) = run_json("bench", "--only", "q06", "--policy", "fifo,easy")["results"]
    assert row == {"name": "q06", "best_flow_s": 135.0, "flow_s": {"fifo": 322.0, "easy": 214.0}}
    assert "138.5 %" in run("bench", "--only", "q06", "--policy", "fifo").stdout


def test_checks_pass_and_fail(run, run_json, tmp_path):
    assert run_json("bench", "--check", "--only", "q*")["faults"] == []
    records = json.loads((library_folder() / "bounds.json").read_text())
    records["records"] = records["records"][:1]
    (tmp_path / "bounds.json").write_text(json.dumps(records))
    document = run_json("bench", "--check", "--only", "q06", "--folder", tmp_path, code=1)
    assert not document["valid"]
    assert {fault["name"] for fault in document["faults"]} == {"q06"}
    result = run("bench", "--check", "--only", "q06", "--folder", tmp_path)
    assert "q06: " in result.stdout
    assert "no such file" in result.stdout


def test_reproving_fills_a_folder_and_goes_on_where_it_was(run, run_json, tmp_path):
    words = ("bench", "--reprove", "--only", "q06,q09", "--work", "1", "--nodes", "50", "--folder", tmp_path)
    result = run(*words)
    assert result.exit_code == 0
    assert "q06: new, total flow 135 s, proved" in result.stdout
    assert [row["verdict"] for row in run_json(*words)["results"]] == ["skipped", "skipped"]
    assert [row["verdict"] for row in run_json(*words, "--again")["results"]] == ["same", "same"]
    assert list(read_records(tmp_path)) == ["q06", "q09"]


def test_a_family_is_made_to_the_byte(run, run_json, tmp_path):
    document = run_json("generate", "--family", "tiny", "--out", tmp_path / "made")
    assert document["as_recorded"]
    assert [row["name"] for row in document["instances"]] == list(matching_names(["tiny"]))
    for row in document["instances"]:
        assert (tmp_path / "made" / f"{row['name']}.json").read_bytes() == (
            library_folder() / f"{row['name']}.json"
        ).read_bytes()
    stored = run_json("generate", "--family", "medium", "--stored", "--out", tmp_path / "stored")["instances"]
    names = [name for name in matching_names(["medium"]) if instance_entry(name).file]
    assert [row["name"] for row in stored] == names


def test_an_instance_that_comes_out_otherwise_is_told(run, tmp_path, monkeypatch):
    from frostline.cli import families
    from frostline.traces.library import made_instance

    monkeypatch.setattr(families, "made_instance", lambda name: made_instance(name).replace(name="other"))
    result = run("generate", "--family", "tiny", "--out", tmp_path)
    assert result.exit_code == 1
    assert "tiny/pool-01 is not what was recorded" in result.stdout


def test_shipped_instances_go_by_name(run_json):
    assert run_json("solve", "tiny/pool-01", "--objective", "flow", "--work", "1")["status"] == "optimal"
    assert run_json("bound", "small/pool-08")["method"]


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("bench", "--only", "tinny"), "did you mean 'tiny'"),
        (("bench", "--check", "--reprove"), "give one of --policy, --check and --reprove"),
        (("bench", "--policy", "fito", "--only", "q06"), "did you mean 'fifo'"),
        (("bench", "--reprove", "--work", "-1", "--only", "q06"), "work=-1.0"),
        (("bench", "--reprove", "--nodes", "0", "--only", "q06"), "nodes=0"),
        (("generate", "--family", "tinny", "--out", "x"), "did you mean 'tiny'"),
        (("generate", "--family", "tiny", "--seed", "3", "--out", "x"), "--seed does not go with --family"),
        (("generate", "--family", "tiny", "--jobs", "3", "--out", "x"), "--jobs does not go with --family"),
        (("generate", "--stored", "--jobs", "3", "--out", "x.json"), "--stored goes with --family"),
        (("generate", "--out", "x.json"), "give --jobs, or --family"),
        (("solve", "tiny/pool-99"), "did you mean 'tiny/pool-09'"),
        (("solve", "tiny/pool-01.json"), "no such file"),
    ],
)
def test_mistakes_are_told(refused, words, problem):
    assert problem in refused(*words)


def test_a_file_is_no_folder(refused, tmp_path):
    (tmp_path / "file").write_text("")
    assert "must be a folder" in refused("generate", "--family", "tiny", "--out", tmp_path / "file")
    (tmp_path / "bounds.json").write_text("{}")
    assert "bounds.json" in refused("bench", "--folder", tmp_path)
