"""Reports: outcomes as plain JSON values and as tables for people."""

from frostline.report.certificate import fault_summary, fault_table, flow_text
from frostline.report.columns import Timeline, timeline
from frostline.report.freeze import FreezeAdvice, advice_summary, freeze_advice, freeze_table, level_summary
from frostline.report.network import network_report, network_summary, network_table
from frostline.report.picture_compare import plot_compare
from frostline.report.picture_flow import plot_flow
from frostline.report.picture_gantt import plot_gantt
from frostline.report.picture_usage import plot_usage
from frostline.report.pictures import PLOT_KINDS, save_plots
from frostline.report.placement import placement_lines, placement_summary, placement_table, stage_summary, stage_table
from frostline.report.prediction import predictions_csv, replay_summary, replay_table
from frostline.report.report_page import html_report, save_report
from frostline.report.simulation import (
    accuracy_text,
    bound_summary,
    guarantee_text,
    passed,
    result_summary,
    result_table,
    schedule_result,
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
    "PLOT_KINDS",
    "FreezeAdvice",
    "Table",
    "Timeline",
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
    "html_report",
    "instance_summary",
    "level_summary",
    "network_report",
    "network_summary",
    "network_table",
    "passed",
    "placement_lines",
    "placement_summary",
    "placement_table",
    "plot_compare",
    "plot_flow",
    "plot_gantt",
    "plot_usage",
    "predictions_csv",
    "refusal_summary",
    "refusal_text",
    "replay_summary",
    "replay_table",
    "result_summary",
    "result_table",
    "save_plots",
    "save_report",
    "schedule_result",
    "stage_summary",
    "stage_table",
    "timeline",
    "trace_lines",
    "trace_summary",
]
