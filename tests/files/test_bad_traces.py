"""One bad trace a fault: what strict mode says of it, and what repair makes of it."""

from __future__ import annotations

import gzip
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import pytest

from frostline.errors import FileError, TraceError
from frostline.traces import RULES, TRACE_FORMATS, read_trace

HEAD = "id,submit_s,gpus,duration_s\n"
ENDS = "job_id,submit,start,end,n_gpu\n"
PHILLY = "timestamp,duration,num_gpus,gpu_time,cluster\n"
PAI_TASK = "good,w,1,Terminated,0,60,600,9,100,T4\n"
SWF_REST = " ".join(["-1"] * 13)
SACCT = (
    "JobID|State|Submit|Start|End|Elapsed|AllocTRES\n"
    "good|COMPLETED|2023-01-01T00:00:00|2023-01-01T00:00:00|2023-01-01T00:01:00|00:01:00|gres/gpu=1\n"
)
GOOD = "good,0,1,60\n"
GOOD_ENDS = "good,0,0,60,1\n"
GOOD_PHILLY = "2017-10-09 07:01:55,66.0,1,66.0,11cb48\n"


@dataclass(frozen=True)
class Case:
    """Content of a file, what strict mode says, and what repair drops, repairs and keeps."""

    content: str | bytes
    says: tuple[str, ...]
    dropped: dict[str, int] = field(default_factory=dict)
    repaired: dict[str, int] = field(default_factory=dict)
    kept: tuple[str, ...] = ("good",)

    def write(self, folder: Path) -> Path:
        path = folder / "bad.csv"
        path.write_bytes(self.content if isinstance(self.content, bytes) else self.content.encode())
        return path


def gpus(cell: str, rule: str, line: int = 3) -> Case:
    """Case of a bad cell of GPUs."""
    return Case(f"{HEAD}{GOOD}b,0,{cell},9\n", (f"line {line}: gpus={cell!r} ", f"({rule})"), {rule: 1})


def duration(cell: str, rule: str) -> Case:
    """Case of a bad duration."""
    return Case(f"{HEAD}{GOOD}b,0,1,{cell}\n", (f"line 3: duration_s={cell!r} ", f"({rule})"), {rule: 1})


def submit(cell: str, rule: str) -> Case:
    """Case of a bad submission."""
    return Case(f"{HEAD}{GOOD}b,{cell},1,9\n", (f"line 3: submit_s={cell!r} ", f"({rule})"), {rule: 1})


def job_log(*jobs: str) -> str:
    """Job log of Philly with a good job on its second line and others on those that follow."""
    attempt = '{"start_time":"2017-10-09 07:01:55","end_time":"2017-10-09 07:02:55","detail":[{"gpus":["gpu0"]}]}'
    good = f'{{"jobid":"good","submitted_time":"2017-10-09 07:01:55","attempts":[{attempt}]}}'
    return "[\n" + ",\n".join([good, *(job.replace("ATTEMPT", attempt) for job in jobs)]) + "\n]\n"


def stamp(cell: str, rule: str = "bad_timestamp") -> Case:
    """Case of a bad timestamp."""
    content = f"{PHILLY}{GOOD_PHILLY}{cell},66.0,1,66.0,11cb48\n"
    return Case(content, (f"line 3: timestamp={cell!r} ", f"({rule})"), {rule: 1}, kept=("1",))


CASES = {
    "missing_end_and_inverted": Case(
        ENDS + "a,0,10,70,1\nb,90,100,0,1\nc,90,100,40,1\n",
        ("line 3: end='0' must be known (missing_end)", "line 4: end='40' must not lie before the start (inverted)"),
        {"missing_end": 1, "inverted": 1},
        kept=("a",),
    ),
    "end_unknown": Case(ENDS + GOOD_ENDS + "b,0,5,Unknown,1\n", ("line 3: end='Unknown'",), {"missing_end": 1}),
    "end_empty": Case(ENDS + GOOD_ENDS + "b,0,5,,1\n", ("line 3: end=''",), {"missing_end": 1}),
    "end_nan": Case(ENDS + GOOD_ENDS + "b,0,5,nan,1\n", ("line 3: end='nan'",), {"missing_end": 1}),
    "end_text": Case(ENDS + GOOD_ENDS + "b,0,5,soon,1\n", ("end='soon' must be a finite number",), {"not_a_number": 1}),
    "start_missing": Case(ENDS + GOOD_ENDS + "b,0,None,9,1\n", ("line 3: start='None'",), {"missing_start": 1}),
    "start_alone": Case(
        "id,submit,start,duration,gpus\ngood,0,0,60,1\nb,0,soon,60,1\n",
        ("line 3: start='soon' must be a time (bad_start)",),
        repaired={"bad_start": 1},
        kept=("b", "good"),
    ),
    "start_alone_before_submit": Case(
        "id,submit,start,duration,gpus\ngood,0,0,60,1\nb,9,5,60,1\n",
        ("line 3: start='5' must not lie before the submission (start_before_submit)",),
        repaired={"start_before_submit": 1},
        kept=("good", "b"),
    ),
    "negative_wait": Case(
        "id,submit,wait,duration,gpus\ngood,0,0,60,1\nb,9,-5,60,1\n",
        ("line 3: wait='-5' must be a time of at least 0 (bad_wait)",),
        repaired={"bad_wait": 1},
        kept=("good", "b"),
    ),
    "negative_estimate": Case(
        f"{HEAD[:-1]},estimate_s\ngood,0,1,60,60\nb,0,1,60,-60\n",
        ("line 3: estimate_s='-60' must be a run time above 0 (bad_estimate)",),
        repaired={"bad_estimate": 1},
        kept=("b", "good"),
    ),
    "estimate_and_duration": Case(
        f"{HEAD[:-1]},estimate_s\n{GOOD[:-1]},\nb,0,1,0,word\n",
        ("estimate_s='word'", "duration_s='0'"),
        {"zero_duration": 1},
    ),
    "start_is_end": Case(
        ENDS + GOOD_ENDS + "b,0,5,5,1\n", ("line 3: end='5'", "(zero_duration)"), {"zero_duration": 1}
    ),
    "start_before_submit": Case(
        ENDS + GOOD_ENDS + "b,50,5,9,1\n",
        ("line 3: start='5' must not lie before the submission (start_before_submit)",),
        repaired={"start_before_submit": 1},
        kept=("good", "b"),
    ),
    "duration_mismatch": Case(
        "id,submit,start,end,duration,gpus\ngood,0,0,60,60.5,1\nb,0,0,60,70,1\n",
        ("line 3: duration='70' must be the time from start to end (duration_mismatch)",),
        repaired={"duration_mismatch": 1},
        kept=("b", "good"),
    ),
    "inverted_despite_duration": Case(
        "id,submit,start,end,duration,gpus\ngood,0,,,60,1\nb,0,20,10,10,1\n",
        ("line 3: end='10'", "(inverted)"),
        {"inverted": 1},
    ),
    "inverted_and_mendable": Case(
        "id,submit,start,end,duration,gpus\ngood,0,,,60,1\nb,0,20,10,10,0.5\n",
        ("line 3: end='10'", "line 3: gpus='0.5'"),
        {"inverted": 1},
    ),
    "negative_duration": duration("-1", "negative_duration"),
    "zero_duration": duration("0", "zero_duration"),
    "minus_zero_duration": duration("-0.0", "zero_duration"),
    "infinite_duration": duration("inf", "not_finite_duration"),
    "nan_duration": duration("nan", "not_finite_duration"),
    "overflowing_duration": duration("1e999", "not_finite_duration"),
    "endless_duration": duration("1e12", "out_of_range"),
    "missing_duration": duration("", "missing_value"),
    "none_duration": duration("None", "missing_value"),
    "word_duration": duration("long", "not_a_number"),
    "hexadecimal_duration": duration("0x10", "not_a_number"),
    "underscored_duration": duration("1_000", "not_a_number"),
    "foreign_digits": duration("٣", "not_a_number"),
    "missing_submit": submit("", "missing_value"),
    "word_submit": submit("noon", "not_a_number"),
    "nan_submit": submit("nan", "not_a_number"),
    "infinite_submit": submit("-inf", "not_a_number"),
    "microsecond_epoch": submit("1600000000000000", "out_of_range"),
    "unknown_gpus": gpus("-1", "missing_value"),
    "empty_gpus": gpus("", "missing_value"),
    "negative_gpus": gpus("-2", "bad_gpus"),
    "no_gpus": gpus("0", "cpu_only"),
    "hexadecimal_gpus": gpus("0x8", "bad_gpus"),
    "nan_gpus": gpus("nan", "bad_gpus"),
    "infinite_gpus": gpus("inf", "bad_gpus"),
    "true_gpus": gpus("True", "bad_gpus"),
    "too_many_gpus": gpus("1e9", "bad_gpus"),
    "negative_fraction": gpus("-0.5", "bad_gpus"),
    "fractional_gpus": Case(
        f"{HEAD}{GOOD}b,0,7.9999999,9\n",
        ("line 3: gpus='7.9999999' must be a whole number of GPUs (fractional_gpus)",),
        repaired={"fractional_gpus": 1},
        kept=("b", "good"),
    ),
    "repeated_id": Case(
        f"{HEAD}j1,0,1,60\n{GOOD}j1,5,8,60\n",
        ("line 2: id='j1'", "it is also on line 4 (repeated_id)", "line 4: id='j1'", "it is also on line 2"),
        {"repeated_id": 2},
    ),
    "blank_id": Case(f"{HEAD}{GOOD} ,0,1,60\n", ("line 3: id=' ' must not be missing",), {"missing_value": 1}),
    "id_with_blank": Case(
        f"{HEAD}{GOOD} b,0,1,60\n",
        ("line 3: id=' b' must not begin or end with a blank (id_blanks)",),
        repaired={"id_blanks": 1},
        kept=("b", "good"),
    ),
    "id_with_blank_collides": Case(f"{HEAD}{GOOD} good,0,1,60\n", ("line 3: id=' good'",), {"id_blanks": 1}),
    "ids_with_blanks_collide": Case(
        f"{HEAD}{GOOD} b,0,1,60\nb ,0,1,60\n", ("line 3: id=' b'", "line 4: id='b '"), {"id_blanks": 2}
    ),
    "short_row": Case(
        f"{HEAD}{GOOD}b,0,1\n", ("line 3: fields='3' must be as many as in the header (4)",), {"field_count": 1}
    ),
    "long_row": Case(f"{HEAD}{GOOD}b,0,1,2,3\n", ("line 3: fields='5'",), {"field_count": 1}),
    "invalid_bytes": Case(
        HEAD.encode() + GOOD.encode() + b"b\xff,0,1,9\n", ("line 3: id='b\\udcff' must be UTF-8",), {"invalid_bytes": 1}
    ),
    "nul_bytes": Case(f"{HEAD}{GOOD}b\0,0,1,9\n", ("line 3: id='b\\x00' must not hold NUL",), {"nul_bytes": 1}),
    "no_timestamp": stamp("", "missing_value"),
    "date_only": stamp("2017-10-09"),
    "impossible_date": stamp("2017-02-30 07:01:55"),
    "seconds_for_timestamp": stamp("1507532515"),
    "offset_only_here": stamp("2017-10-09 07:01:55+08:00"),
    "philly_json_without_attempts": Case(
        job_log('{"jobid":"b","submitted_time":"2017-10-09 07:01:55","attempts":[]}'),
        ("line 3: attempts='0' must have been started (never_started)",),
        {"never_started": 1},
    ),
    "philly_json_without_submission": Case(
        job_log('{"jobid":"b","submitted_time":null,"attempts":[ATTEMPT]}'),
        ("line 3: submitted_time='' must not be missing",),
        {"missing_value": 1},
    ),
    "philly_json_lone_surrogate": Case(
        job_log(r'{"jobid":"b","user":"\ud800","submitted_time":"2017-10-09 07:01:55","attempts":[ATTEMPT]}'),
        ("line 3: user='\\ud800' must be UTF-8 (invalid_bytes)",),
        repaired={"invalid_bytes": 1},
        kept=("b", "good"),
    ),
    "pai_running": Case(
        f"{PAI_TASK}b,w,1,Running,5,,600,9,100,T4\n",
        ("line 2: status='Running' must have ended (unfinished)",),
        {"unfinished": 1},
    ),
    "pai_waiting": Case(
        f"{PAI_TASK}b,w,1,Waiting,,,600,9,100,T4\n",
        ("line 2: status='Waiting' must have been started (never_started)",),
        {"never_started": 1},
    ),
    "pai_part_of_a_job": Case(
        f"{PAI_TASK}b,w,1,Failed,5,4,600,9,100,T4\nb,w,1,Terminated,5,9,600,9,100,T4\n",
        ("line 2: end_time='4' must not lie before the start (inverted)",),
        {"inverted": 1, "incomplete_job": 1},
    ),
    "pai_percent": Case(
        f"{PAI_TASK}b,w,3,Failed,5,9,600,9,25,T4\n",
        ("line 2: plan_gpu='25' must be a whole number of GPUs (fractional_gpus)",),
        repaired={"fractional_gpus": 1},
        kept=("good", "b"),
    ),
    "pai_no_gpu": Case(
        f"{PAI_TASK}b,w,3,Waiting,5,9,600,9,,T4\n",
        ("status='Waiting'", "line 2: plan_gpu='' must be at least 1 (cpu_only)"),
        {"cpu_only": 1},
    ),
    "swf_short_line": Case(
        f"; comment\n1 0 -1 60 1 {SWF_REST}\n2 0 -1 60\n",
        ("line 3: fields='4' must be as many as in the header (18)",),
        {"field_count": 1},
        kept=("1",),
    ),
    "swf_never_ran": Case(
        f"1 0 -1 60 1 {SWF_REST}\n2 0 -1 0 1 {SWF_REST}\n",
        ("line 2: run_time='0' must be above 0",),
        {"zero_duration": 1},
        kept=("1",),
    ),
    "sacct_running": Case(
        f"{SACCT}b|RUNNING|2023-01-01T00:00:00|2023-01-01T00:00:00|Unknown|00:09:00|gres/gpu=1\n",
        ("line 3: State='RUNNING' must have ended (unfinished)",),
        {"unfinished": 1},
    ),
    "sacct_elapsed": Case(
        f"{SACCT}b|FAILED|2023-01-01T00:00:00|2023-01-01T00:00:00|2023-01-01T00:01:00|00:00:0x|gres/gpu=1\n",
        ("line 3: Elapsed='00:00:0x' must be a finite number (not_a_number)",),
        {"not_a_number": 1},
    ),
    "sacct_cancelled_before_it_started": Case(
        f"{SACCT}b|CANCELLED by 7|2023-01-01T00:00:00|None|2023-01-01T00:01:00|00:00:00|gres/gpu=1\n",
        ("line 3: Elapsed='00:00:00' must be above 0 (zero_duration)",),
        {"zero_duration": 1},
    ),
    "gavel_unknown_model": Case(
        "A3C\tc\t-n\t1\t900\t6.0\t1\nB3D\tc\t-n\t1\t900\t6.0\t1\n",
        ("line 2: total_steps='900' must be steps of a job whose steps per second are known (unknown_throughput)",),
        {"unknown_throughput": 1},
        kept=("1",),
    ),
    "gavel_no_steps": Case(
        "A3C\tc\t-n\t1\t900\t6.0\t1\nA3C\tc\t-n\t1\t0\t6.0\t1\n",
        ("line 2: total_steps='0' must be above 0 (zero_duration)",),
        {"zero_duration": 1},
        kept=("1",),
    ),
    "several_in_one_row": Case(
        f"{HEAD}{GOOD}b,noon,0.5,-3\n",
        ("submit_s='noon'", "gpus='0.5'", "duration_s='-3'"),
        {"not_a_number": 1},
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_strict_names_every_fault(case: Case, tmp_path: Path) -> None:
    path = case.write(tmp_path)
    with pytest.raises(TraceError) as caught:
        read_trace(path)
    assert str(caught.value).startswith(str(path))
    for text in case.says:
        assert text in str(caught.value)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_repair_counts_every_row(case: Case, tmp_path: Path) -> None:
    trace = read_trace(case.write(tmp_path), mode="repair")
    report = trace.report
    assert (report.dropped, report.repaired) == (case.dropped, case.repaired)
    assert tuple(job.id for job in trace.jobs) == case.kept
    assert report.rows_read == report.rows_kept + sum(report.dropped.values())
    assert report.rows_kept == len(trace.jobs)


def test_every_rule_has_a_case() -> None:
    met = {rule for case in CASES.values() for rule in [*case.dropped, *case.repaired]}
    # Met in tests of options and formats, for they are no faults of a file alone.
    others = {"ambiguous_timestamp", "array_task", "duplicate_row", "job_part", "merged_task"}
    assert set(RULES) - met == others


def test_message_lists_twenty_and_counts_the_rest(tmp_path: Path) -> None:
    path = tmp_path / "bad.csv"
    path.write_text(HEAD + "".join(f"j{i},0,1,-1\n" for i in range(25)), encoding="utf-8")
    with pytest.raises(TraceError, match=r"line 21: .*; and 5 more$") as caught:
        read_trace(path)
    assert len(caught.value.faults) == 25
    assert "line 22" not in str(caught.value)


def test_lines_count_quoted_line_breaks_blank_lines_and_the_version(tmp_path: Path) -> None:
    path = tmp_path / "bad.csv"
    rows = '\n"g\nood",0,1,9\n\nb,0,1,-1\n'
    path.write_text(f"# frostline/trace version=1\n{HEAD}{rows}", encoding="utf-8")
    with pytest.raises(TraceError, match="line 7: duration_s"):
        read_trace(path)


def test_long_values_are_cut(tmp_path: Path) -> None:
    path = tmp_path / "bad.csv"
    path.write_text(f"{HEAD}b,0,{'x' * 1000},9\n", encoding="utf-8")
    with pytest.raises(TraceError, match="x…'") as caught:
        read_trace(path)
    assert len(str(caught.value)) < 300


TRUNCATED = gzip.compress(f"{HEAD}{GOOD}".encode())[:-12]
DAMAGED = bytearray(gzip.compress((HEAD + "".join(f"j{i},{i},1,60\n" for i in range(2000))).encode()))
DAMAGED[len(DAMAGED) // 2] ^= 0xFF

WHOLE_FILE = {
    "empty": ("bad.csv", b"", "is empty"),
    "empty_gzip": ("bad.csv.gz", b"", "is empty"),
    "blank_lines": ("bad.csv", b"\n\n\n", "is empty"),
    "version_only": ("bad.csv", b"# frostline/trace version=1\n", "is empty"),
    "header_only": ("bad.csv", HEAD.encode(), "holds no jobs: there is no row under the header"),
    "truncated_gzip": ("bad.csv.gz", TRUNCATED, "is gzip data that is truncated or damaged"),
    "damaged_gzip": ("bad.csv.gz", bytes(DAMAGED), "is gzip data that is truncated or damaged"),
    "no_gzip": ("bad.csv.gz", f"{HEAD}{GOOD}".encode(), "is gzip data that is truncated or damaged"),
    "utf16": ("bad.csv", f"{HEAD}{GOOD}".encode("utf-16"), "the header is not text"),
    "invalid_header": ("bad.csv", b"id,subm\xffit,gpus,duration\n", "line 1: the header is not text (invalid_bytes)"),
    "open_quote": ("bad.csv", f'{HEAD}{GOOD}"b,0,1,60\n{GOOD}'.encode(), "line 3: is quoted wrongly or too long"),
    "text_after_quote": ("bad.csv", f'{HEAD}{GOOD}"b"x,0,1,60\n'.encode(), "line 3: is quoted wrongly"),
    "huge_field": (
        "bad.csv",
        f"{HEAD}{GOOD}{'b' * 200_000},0,1,60\n".encode(),
        "line 3: is quoted wrongly or too long",
    ),
    "newer": ("bad.csv", b"# frostline/trace version=2\nid\n", "version 2 is newer than the 1 this frostline reads"),
    "version_zero": ("bad.csv", b"# frostline/trace version=0\nid\n", "0 is no version"),
    "comment": ("bad.csv", b"# my jobs\nid\n", "line 1: is neither a header nor '# frostline/trace version=1'"),
    "no_submit": (
        "bad.csv",
        b"job_id,schedule_delay_sec,duration,gpus\na,30,60,1\n",
        "no column 'submit_s' (or submit, submit_time, arrival_s, release_s); format 'frostline', "
        "columns of the file: job_id, schedule_delay_sec, duration, gpus",
    ),
    "several_missing": ("bad.csv", b"submit\n0\n", "no column 'id' (or job_id, jobid); no column 'gpus'"),
    "no_duration": ("bad.csv", b"id,submit,gpus\na,0,1\n", "no column 'duration_s'"),
    "no_end": ("bad.csv", b"id,submit,gpus,start\na,0,1,5\n", "no column 'end_s' (or end, end_time)"),
    "no_start": ("bad.csv", b"id,submit,gpus,end\na,0,1,5\n", "no column 'start_s'"),
    "no_duration_philly": (
        "bad.csv",
        b"timestamp,num_gpus\n2017-10-09 07:01:55,1\n",
        "no column 'duration'; format 'philly'",
    ),
    "twice": ("bad.csv", b"id,submit,submit_s,gpus,duration\na,0,5,1,9\n", "columns 'submit' and 'submit_s' both hold"),
    "swf_comments": ("bad.swf", b"; nothing\n;\n", "holds no jobs"),
    "sacct_header": ("bad.txt", b"JobID|State\xff|Submit\n", "line 1: the header is not text (invalid_bytes)"),
    "sacct_no_gpus": ("bad.txt", b"JobID|State|Submit|Elapsed\n", "no column 'alloctres' (or reqtres)"),
    "json_no_jobs": ("bad.json", b"[]", "holds no jobs"),
    "json_cut": ("bad.json", b'[\n{"jobid":', "is not JSON: Expecting value at line 2 column 10"),
    "json_no_comma": ("bad.json", b"[{}\n{}]", "is not JSON: Expecting ',' or ']' at line 2 column 1"),
    "json_comma_too_many": ("bad.json", b"[{},\n]", "is not JSON: Expecting value at line 2 column 1"),
    "json_rest": ("bad.json", b"[{}]\n[]", "is not JSON: Extra data at line 2 column 1"),
    "json_deep": ("bad.json", b"[" * 200_000, "is nested too deeply"),
    "json_digits": ("bad.json", b'[{"a":' + b"1" * 5000 + b"}]", "holds a whole number with too many digits"),
    "json_no_object": ("bad.json", b"[{},\n5]", "line 2: a job must be an object"),
    "json_twice": ("bad.json", b'[{"jobid":"a","jobid":"b"}]', "line 1: an object names a member twice"),
    "json_attempts": ("bad.json", b'[{"attempts":{}}]', "line 1: attempts must be a list of objects"),
    "json_gpus": ("bad.json", b'[{"attempts":[{"detail":[{"gpus":8}]}]}]', "line 1: gpus must be a list"),
    "semicolons": ("bad.csv", b"id;submit;gpus;duration\na;0;1;9\n", "columns of the file: id;submit;gpus;duration"),
}


@pytest.mark.parametrize("mode", ["strict", "repair"])
@pytest.mark.parametrize(("name", "content", "says"), WHOLE_FILE.values(), ids=WHOLE_FILE)
def test_a_bad_file_is_one_error_in_both_modes(
    name: str, content: bytes, says: str, mode: Literal["strict", "repair"], tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(FileError) as caught:
        read_trace(path, mode=mode)
    assert says in str(caught.value)
    assert type(caught.value) is FileError


@pytest.mark.parametrize("name", TRACE_FORMATS)
@pytest.mark.parametrize("content", ["", "\n\n", "{}", "x y\n\nz", "\0", "1\t2\n"])
@pytest.mark.parametrize("mode", ["strict", "repair"])
def test_a_file_of_another_format(name: str, content: str, mode: Literal["strict", "repair"], tmp_path: Path) -> None:
    path = tmp_path / "bad"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(FileError, match="bad: "):
        read_trace(path, format=name, mode=mode)


def test_nothing_left(tmp_path: Path) -> None:
    path = tmp_path / "bad.csv"
    path.write_text(f"{HEAD}a,0,0,60\n", encoding="utf-8")
    with pytest.raises(FileError, match="holds no job that can be kept: 1 rows, cpu_only: 1"):
        read_trace(path, mode="repair")


@pytest.mark.parametrize("mode", ["strict", "repair"])
def test_no_file(mode: Literal["strict", "repair"], tmp_path: Path) -> None:
    with pytest.raises(FileError, match="no such file or folder"):
        read_trace(tmp_path / "absent.csv", mode=mode)
    with pytest.raises(FileError, match="is a folder"):
        read_trace(tmp_path, mode=mode)
