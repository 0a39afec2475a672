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

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from frostline.traces.draws import GPU_HISTOGRAMS
from frostline.traces.formats import TRACE_FORMATS, TraceFormat
from frostline.traces.generate import generate_jobs
from frostline.traces.job_names import template_of
from frostline.traces.outages import OUTAGE_COLUMNS, read_outages
from frostline.traces.reader import read_trace
from frostline.traces.recurring import generate_recurring_jobs
from frostline.traces.rules import RULES, Fault
from frostline.traces.summary import TraceSummary, summarise
from frostline.traces.trace import ReadReport, Trace
from frostline.traces.workload import in_order, offered_load, rescale_load, take
from frostline.traces.writer import TRACE_COLUMNS, write_trace

if TYPE_CHECKING:
    from frostline.traces.elastic import elastic_jobs, elastic_load, tuned_widths
    from frostline.traces.elastic_profile import DEFAULT_WIDTHS, Application, ElasticProfile
    from frostline.traces.pollux import POLLUX_APPLICATIONS, pollux_profile, pollux_profiles
    from frostline.traces.titan import TITAN_APPLICATIONS, TITAN_GPUS, titan_profile, titan_profiles

__all__ = [
    "DEFAULT_WIDTHS",
    "GPU_HISTOGRAMS",
    "OUTAGE_COLUMNS",
    "POLLUX_APPLICATIONS",
    "RULES",
    "TITAN_APPLICATIONS",
    "TITAN_GPUS",
    "TRACE_COLUMNS",
    "TRACE_FORMATS",
    "Application",
    "ElasticProfile",
    "Fault",
    "ReadReport",
    "Trace",
    "TraceFormat",
    "TraceSummary",
    "elastic_jobs",
    "elastic_load",
    "generate_jobs",
    "generate_recurring_jobs",
    "in_order",
    "offered_load",
    "pollux_profile",
    "pollux_profiles",
    "read_outages",
    "read_trace",
    "rescale_load",
    "summarise",
    "take",
    "template_of",
    "titan_profile",
    "titan_profiles",
    "tuned_widths",
    "write_trace",
]

# Loaded when asked for, because they bring all of freezing.
_LAZY = {
    "DEFAULT_WIDTHS": "elastic_profile",
    "POLLUX_APPLICATIONS": "pollux",
    "TITAN_APPLICATIONS": "titan",
    "TITAN_GPUS": "titan",
    "Application": "elastic_profile",
    "ElasticProfile": "elastic_profile",
    "elastic_jobs": "elastic",
    "elastic_load": "elastic",
    "pollux_profile": "pollux",
    "pollux_profiles": "pollux",
    "titan_profile": "titan",
    "titan_profiles": "titan",
    "tuned_widths": "elastic",
}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_LAZY[name]}"), name)
