"""Traces: readers of public formats, our own format, summaries and generators.

Examples
--------
>>> import tempfile, pathlib
>>> path = pathlib.Path(tempfile.mkdtemp()) / "trace.csv.gz"
>>> write_trace(path, generate_jobs(100, seed=1, gpus=64))
>>> trace = read_trace(path)
>>> round(summarise(trace, gpus=64).load, 6)
0.9
"""

from frostline.traces.draws import GPU_HISTOGRAMS
from frostline.traces.formats import TRACE_FORMATS, TraceFormat
from frostline.traces.generate import generate_jobs
from frostline.traces.job_names import template_of
from frostline.traces.reader import read_trace
from frostline.traces.recurring import generate_recurring_jobs
from frostline.traces.rules import RULES, Fault
from frostline.traces.summary import TraceSummary, summarise
from frostline.traces.trace import ReadReport, Trace
from frostline.traces.workload import in_order, offered_load, rescale_load, take
from frostline.traces.writer import TRACE_COLUMNS, write_trace

__all__ = [
    "GPU_HISTOGRAMS",
    "RULES",
    "TRACE_COLUMNS",
    "TRACE_FORMATS",
    "Fault",
    "ReadReport",
    "Trace",
    "TraceFormat",
    "TraceSummary",
    "generate_jobs",
    "generate_recurring_jobs",
    "in_order",
    "offered_load",
    "read_trace",
    "rescale_load",
    "summarise",
    "take",
    "template_of",
    "write_trace",
]
