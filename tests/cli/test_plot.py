"""``frostline plot``: pictures and reports of what ``simulate`` wrote, and everything that it refuses."""

from __future__ import annotations

import gzip
import json
import re
import shutil
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

from frostline.problem import Outage, Schedule, load_instance, load_schedule, save
from frostline.report import PLOT_KINDS

pytest.importorskip("matplotlib")

POLICIES = ("asrpt", "fifo", "sjf:discipline=strict")
_VOID = {"meta", "img", "link", "br", "hr", "input"}


class Page(HTMLParser):
    """What an HTML file holds: its tags with their attributes, its texts, and whether every tag is closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.texts: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in _VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)

    def named(self, tag: str) -> list[dict[str, str | None]]:
        """Attributes of all tags of a name."""
        return [attributes for name, attributes in self.tags if name == tag]


@pytest.fixture
def folder(run, trace, tmp_path) -> Path:
    """Output folder of a simulation, with an outage and under three policies."""
    (tmp_path / "outages.csv").write_text("server,start_s,end_s\ns0,50,60\n", encoding="utf-8")
    words = ("simulate", trace, "--cluster", "1x8", "--policy", ",".join(POLICIES), "--out", tmp_path / "run")
    assert run(*words, "--outages", tmp_path / "outages.csv").exit_code == 0
    return tmp_path / "run"


@pytest.fixture
def alone(folder, tmp_path) -> Path:
    """The same schedules without a summary."""
    shutil.copytree(folder, tmp_path / "alone")
    (tmp_path / "alone" / "summary.json").unlink()
    return tmp_path / "alone"


def test_a_report_holds_every_policy_and_nothing_from_outside(run_json, folder, tmp_path):
    out = tmp_path / "report.html"
    document = run_json("plot", folder, "--out", out)
    assert document["files"] == [str(out)]
    assert document["kinds"] == list(PLOT_KINDS)
    assert document["policies"] == list(POLICIES)
    assert document["instance"] == "trace"
    text = out.read_text("utf-8")
    page = Page(text)
    assert page.open == []
    assert text.startswith("<!DOCTYPE html>\n<html lang=")
    assert [tag for tag, _ in page.tags if tag in ("script", "link", "iframe", "object", "a", "base")] == []
    assert not re.search(r"url\(|@import|https?:", text)
    images = page.named("img")
    assert len(images) == 3 + len(POLICIES)
    assert all(image["src"].startswith("data:image/png;base64,iVBOR") and image["alt"] for image in images)
    assert {name for _, attributes in page.tags for name in attributes} <= {
        "lang", "charset", "name", "content", "class", "scope", "src", "alt"
    }  # fmt: skip
    assert all(policy in page.texts for policy in POLICIES)
    assert "color-scheme: light dark" in text
    assert "1 outage cut off" in text


def test_a_report_has_the_figures_of_the_console(run, folder, trace, tmp_path):
    shown = run("simulate", trace, "--cluster", "1x8", "--policy", "fifo", "--out", folder).stdout
    row = next(line for line in shown.splitlines() if line.startswith("fifo ")).split()
    assert run("plot", folder, "--out", tmp_path / "a.html", "--kind", "flow").exit_code == 0
    cells = "".join(f"<td>{cell}</td>" for cell in " ".join(row[1:]).replace(" %", "%").split())
    assert f'<tr><th scope="row">fifo</th>{cells.replace("%", " %")}</tr>' in (tmp_path / "a.html").read_text("utf-8")


@pytest.mark.parametrize("ending", ["png", "svg", "pdf", "html"])
def test_same_input_same_bytes(run, folder, tmp_path, ending):
    first, second = tmp_path / f"a.{ending}", tmp_path / f"b.{ending}"
    for path in (first, second):
        assert run("plot", folder, "--out", path, "--kind", "gantt,flow").exit_code == 0
    assert first.read_bytes() == second.read_bytes()
    start = {"png": b"\x89PNG", "pdf": b"%PDF", "svg": b"<?xml", "html": b"<!DOCTYPE html>"}[ending]
    assert first.read_bytes().startswith(start)


def test_kinds_and_policies_are_chosen_in_order(run_json, folder, tmp_path):
    words = ("plot", folder, "--out", tmp_path / "a.png")
    assert run_json(*words)["kinds"] == ["compare", "flow", "usage"]
    document = run_json(*words, "--kind", "usage, flow", "--policy", "fifo, asrpt")
    assert (document["kinds"], document["policies"]) == (["usage", "flow"], ["fifo", "asrpt"])


def test_text_quiet_and_configuration(run, folder, tmp_path):
    out = tmp_path / "a.svg"
    text = run("plot", folder, "--out", out, "--kind", "flow", "--policy", "fifo").stdout
    assert text == f"flow of fifo\nwritten to {out}\n"
    assert run("plot", folder, "--out", out, "--kind", "flow", "--quiet").stdout == f"written to {out}\n"
    (tmp_path / "o.toml").write_text(f"[plot]\nkind = ['flow', 'usage']\nout = {str(out)!r}\n", encoding="utf-8")
    assert run("plot", folder, "--config", tmp_path / "o.toml").stdout.startswith("flow, usage of asrpt, fifo")


def test_without_a_summary_figures_are_found_out(run, run_json, folder, alone, tmp_path):
    document = run_json("plot", alone, "--out", tmp_path / "alone.html", "--kind", "compare")
    assert document["policies"] == ["asrpt", "fifo", "sjf-discipline=strict"]
    assert run("plot", folder, "--out", tmp_path / "run.html", "--kind", "compare").exit_code == 0
    table = re.compile(r"<td>.*</td>")
    one, two = (table.findall((tmp_path / name).read_text("utf-8"))[:9] for name in ("alone.html", "run.html"))
    assert [line for line in one if "yes" in line] == [line for line in two if "yes" in line] != []


def test_single_files_and_several_folders(run_json, folder, alone, tmp_path):
    words = ("--kind", "flow", "--out", tmp_path / "a.png")
    schedule = folder / "schedule-fifo.json.gz"
    assert run_json("plot", schedule, *words)["policies"] == ["fifo"]
    mine = tmp_path / "mine.json"
    save(load_schedule(schedule), mine)
    assert run_json("plot", mine, "--instance", folder / "instance.json.gz", *words)["policies"] == ["mine"]
    document = run_json("plot", folder, alone, mine, "--instance", folder / "instance.json.gz", *words)
    assert document["policies"] == [
        "run/asrpt", "run/fifo", "sjf:discipline=strict", "alone/asrpt", "alone/fifo", "sjf-discipline=strict", "mine"
    ]  # fmt: skip


def test_shipped_instances(run, run_json, tmp_path):
    assert run("simulate", "q06", "--policy", "fifo", "--out", tmp_path / "q").exit_code == 0
    shutil.move(tmp_path / "q" / "schedule-fifo.json.gz", tmp_path / "s.json.gz")
    words = ("plot", tmp_path / "s.json.gz", "--instance", "q06", "--out", tmp_path / "a.png")
    assert run_json(*words)["instance"] == "q06"


def test_jobs_that_never_end_or_are_refused(run, run_json, trace, tmp_path):
    trace.write_text("id,submit_s,gpus,duration_s\na,0,99,5\n", encoding="utf-8")
    run("simulate", trace, "--cluster", "1x8", "--policy", "fifo", "--out", tmp_path / "none")
    run_json("plot", tmp_path / "none", "--out", tmp_path / "a.html")
    text = (tmp_path / "a.html").read_text("utf-8")
    assert "no job can run" in text
    assert "refused 1, never to fit" in text
    trace.write_text("id,submit_s,gpus,duration_s\n1,0,8,5\n", encoding="utf-8")
    (tmp_path / "o.csv").write_text("server,start_s,end_s\ns0,1,\n", encoding="utf-8")
    words = ("simulate", trace, "--cluster", "1x8", "--policy", "fifo", "--outages", tmp_path / "o.csv")
    assert run(*words, "--out", tmp_path / "never").exit_code == 1
    run_json("plot", tmp_path / "never", "--out", tmp_path / "b.html")
    assert "1 job waits for servers that never come back" in (tmp_path / "b.html").read_text("utf-8")


def test_a_schedule_that_breaks_rules_is_drawn_and_told(run, folder, tmp_path):
    instance = load_instance(folder / "instance.json.gz")
    found = load_schedule(folder / "schedule-fifo.json.gz")
    save(Schedule(segments=found.segments[:1], policy="fifo"), tmp_path / "mine.json", instance=instance)
    words = ("plot", tmp_path / "mine.json", "--instance", folder / "instance.json.gz", "--out", tmp_path / "a.html")
    assert run(*words).exit_code == 0
    assert re.search(r"<td>no: \d faults</td>", (tmp_path / "a.html").read_text("utf-8"))


@pytest.mark.parametrize("name", ["$a$ <b>&\"'", "_x", "作业 µ", "a\nb", "-", "c,d", "[1]", "schedule-"])
def test_odd_file_names(run, folder, tmp_path, name):
    path = tmp_path / name / f"schedule-{name}.json"
    path.parent.mkdir()
    shutil.copy(folder / "instance.json.gz", path.parent)
    save(load_schedule(folder / "schedule-fifo.json.gz"), path)
    for out in (tmp_path / name / f"{name}.html", tmp_path / name / "x.svg"):
        result = run("plot", path.parent, "--out", out, "--kind", "flow,compare,gantt,usage")
        assert (result.exit_code, result.stderr) == (0, "")
    page = Page((tmp_path / name / f"{name}.html").read_text("utf-8"))
    assert " ".join(name.split()) in page.texts
    assert page.open == []


def test_a_file_name_that_is_no_text(run, folder, tmp_path):
    path = tmp_path / "schedule-\udcff.json.gz"
    try:
        shutil.copy(folder / "schedule-fifo.json.gz", path)
    except (OSError, UnicodeError):
        pytest.skip("the file system takes texts only")
    words = ("plot", path, "--instance", folder / "instance.json.gz", "--out", tmp_path / "a.html", "--json")
    assert run(*words).exit_code == 0
    assert b'<th scope="row">?</th>' in (tmp_path / "a.html").read_bytes()


# -- what is refused ---------------------------------------------------------------------------------------------


@pytest.fixture
def refused_plot(refused, folder, tmp_path):
    """Run a plot that must fail; what was there is still there, and nothing else."""
    out = tmp_path / "kept.png"

    def message_of(*words, what=(folder,), out=out):
        before = "old" if out.parent.is_dir() else None
        if before:
            out.write_text(before, encoding="utf-8")
        names = sorted(path.name for path in tmp_path.iterdir())
        message = refused("plot", *what, "--out", out, *words)
        assert sorted(path.name for path in tmp_path.iterdir()) == names
        if before:
            assert out.read_text("utf-8") == before
        return message

    return message_of


def test_bad_options(refused_plot, tmp_path):
    assert "unknown kind of plot 'gant'; did you mean 'gantt'? Known: compare, flow, gantt, usage" in refused_plot(
        "--kind", "gant"
    )
    assert "kind='flow' is named twice" in refused_plot("--kind", "flow,flow")
    assert "unknown kind of plot ''" in refused_plot("--kind", "")
    assert "did you mean 'fifo'?" in refused_plot("--policy", "fif")
    assert "policy='fifo' is named twice" in refused_plot("--policy", "fifo,fifo")
    assert "must end in .png, .svg, .pdf or .html" in refused_plot(out=tmp_path / "a.jpg")
    assert "must end in .png, .svg, .pdf or .html" in refused_plot(out=tmp_path / "html")
    assert "cannot be written" in refused_plot(out=tmp_path / "none" / "a.html")
    assert "cannot be written" in refused_plot(out=tmp_path / "none" / "a.png")


def test_nothing_to_read(refused_plot, folder, tmp_path):
    assert "none: no such file or folder" in refused_plot(what=[tmp_path / "none"])
    (tmp_path / "empty").mkdir()
    assert "there is nothing to draw" in refused_plot(what=[tmp_path / "empty"])
    (tmp_path / "lost").mkdir()
    shutil.copy(folder / "schedule-fifo.json.gz", tmp_path / "lost")
    assert "instance.json.gz: no such file" in refused_plot(what=[tmp_path / "lost"])
    assert "give the instance" in refused_plot(what=[tmp_path / "lost" / "schedule-fifo.json.gz"])
    (folder / "schedule-fifo.json.gz").unlink()
    assert "schedule-fifo.json.gz: no such file or folder" in refused_plot()


def test_the_same_twice_and_other_instances(run, refused_plot, folder, tmp_path):
    assert "is given twice" in refused_plot(what=[folder, folder])
    assert run("simulate", "q06", "--policy", "fifo", "--out", tmp_path / "q").exit_code == 0
    assert "all schedules must be of one instance" in refused_plot(what=[folder, tmp_path / "q"])
    assert "is for the instance 'q06'" in refused_plot(
        "--instance", folder / "instance.json.gz", what=[tmp_path / "q" / "schedule-fifo.json.gz"]
    )


def test_faulty_schedules(refused_plot, folder, alone):
    path = alone / "schedule-fifo.json.gz"
    path.write_bytes(b"\x1f\x8bno")
    assert "fifo.json.gz: is gzip data that is truncated" in refused_plot(what=[alone])
    path.write_text("{}", encoding="utf-8")
    assert "$.format: is missing" in refused_plot(what=[alone])
    text = gzip.decompress((folder / "schedule-fifo.json.gz").read_bytes()).decode()
    path.write_text(text.replace('"job":"c"', '"job":"x"'), encoding="utf-8")
    assert "fifo.json.gz: cannot be drawn: schedule: job='x' must be a job of the instance" in refused_plot(
        what=[alone]
    )


def test_outages_of_servers_that_the_instance_lacks_are_passed_over(run, folder, tmp_path):
    found = load_schedule(folder / "schedule-fifo.json.gz")
    outages = [Outage(server="s9", start_s=0)]
    mine = Schedule(segments=found.segments, refused=found.refused, policy="fifo", outages=tuple(outages))
    save(mine, tmp_path / "mine.json")
    words = ("plot", tmp_path / "mine.json", "--instance", folder / "instance.json.gz", "--out", tmp_path / "a.png")
    assert run(*words, "--kind", "gantt,usage,flow,compare").exit_code == 0


def _changed(change):
    def changed(document):
        change(document)
        return json.dumps(document)

    return changed


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda _: "", "summary.json: is empty"),
        (lambda _: "[", "is not JSON"),
        (lambda _: '{"format": "frostline/bench", "version": 1}', "expected frostline/simulate"),
        (_changed(lambda d: d.pop("results")), "$.results: is missing"),
        (_changed(lambda d: d.update(results={})), "$.results: {} is nothing that simulate writes there"),
        (_changed(lambda d: d.update(results=[])), "it tells of no policy"),
        (_changed(lambda d: d.update(results=[3])), "$.results[0]: 3 must be an object"),
        (_changed(lambda d: d["results"][1].pop("policy")), "$.results[1].policy: is missing"),
        (_changed(lambda d: d["results"][0].update(mean_flow_s="9")), "$.results[0].mean_flow_s: '9' is nothing"),
        (_changed(lambda d: d["results"][0].update(valid=None)), "$.results[0].valid: None is nothing"),
        (_changed(lambda d: d["results"][0].update(guarantee=[])), "$.results[0].guarantee: [] must be an object"),
        (_changed(lambda d: d["results"][0].pop("lost_gpu_hours")), "$.results[0].lost_gpu_hours: is missing"),
        (_changed(lambda d: d["trace"].update(dropped={"x": "1"})), "$.trace.dropped: {'x': '1'} is nothing"),
        (_changed(lambda d: d.update(trace=1)), "$.trace: 1 must be an object"),
        (lambda d: json.dumps(d).replace('"span_s": 2.0', '"span_s": 1e999'), "$.trace.span_s: inf is nothing"),
        (_changed(lambda d: d["results"][1].update(mean_flow_s=1.5)), "but summary.json beside it says 1.5 s"),
        (_changed(lambda d: d["results"][1].update(policy="sjf")), "schedule-sjf.json.gz: no such file"),
        (_changed(lambda d: d["results"].append(d["results"][0])), "is given twice"),
    ],
)
def test_faulty_summaries(refused_plot, folder, change, said):
    path = folder / "summary.json"
    path.write_text(change(json.loads(path.read_text("utf-8"))), encoding="utf-8")
    assert said in refused_plot()


def test_without_matplotlib_the_extra_is_named_before_anything_is_read(refused_plot, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    for out in ("kept.png", "kept.html"):
        message = refused_plot(what=[tmp_path / "none"], out=tmp_path / out)
        assert "a plot needs matplotlib, which is not installed; pip install 'frostline[plot]' brings it" in message
