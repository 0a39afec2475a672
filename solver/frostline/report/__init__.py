"""Reports: outcomes as plain JSON values and as tables for people."""

from frostline.report.certificate import fault_summary, fault_table, flow_text
from frostline.report.freeze import FreezeAdvice, advice_summary, freeze_advice, freeze_table, level_summary
from frostline.report.network import network_report, network_summary, network_table
from frostline.report.placement import placement_lines, placement_summary, placement_table, stage_summary, stage_table
from frostline.report.prediction import predictions_csv, replay_summary, replay_table
from frostline.report.simulation import (
    accuracy_text,
    bound_summary,
    guarantee_text,
    passed,
    result_summary,
    result_table,
)
from frostline.report.table import Table
from frostline.report.workload import (
    cluster_summary,
    histogram_table,
    instance_summary,
    refusal_summary,
    refusal_text,
    trace_lines,
    trace_summary,
)

__all__ = [
    "FreezeAdvice",
    "Table",
    "accuracy_text",
    "advice_summary",
    "bound_summary",
    "cluster_summary",
    "fault_summary",
    "fault_table",
    "flow_text",
    "freeze_advice",
    "freeze_table",
    "guarantee_text",
    "histogram_table",
    "instance_summary",
    "level_summary",
    "network_report",
    "network_summary",
    "network_table",
    "passed",
    "placement_lines",
    "placement_summary",
    "placement_table",
    "predictions_csv",
    "refusal_summary",
    "refusal_text",
    "replay_summary",
    "replay_table",
    "result_summary",
    "result_table",
    "stage_summary",
    "stage_table",
    "trace_lines",
    "trace_summary",
]
