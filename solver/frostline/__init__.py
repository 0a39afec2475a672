"""frostline decides how deep-learning training jobs share a GPU cluster.

It places a job's replicas on servers, orders jobs with A-SRPT and rival policies, simulates them on traces, and
checks every schedule against a proved lower bound and the per-job guarantees.

Examples
--------
>>> import frostline as fl
>>> jobs = [fl.Job(id="a", release_s=0, work=fl.Fixed(duration_s=60), gpus=4),
...         fl.Job(id="b", release_s=5, work=fl.Fixed(duration_s=20), gpus=8)]
>>> instance = fl.Instance(cluster=fl.Cluster.uniform(1, gpus=8), jobs=jobs)
>>> result = fl.simulate(instance, "asrpt")
>>> result.metrics.mean_flow_s, fl.lower_bound(instance).mean_flow_s, fl.check_schedule(instance, result.schedule).valid
(67.5, 40.0, True)
"""

from frostline.errors import FrostlineError
from frostline.placement import place
from frostline.policies import make_policy, policy_names
from frostline.prediction import OnlinePredictor
from frostline.problem import (
    Cluster,
    Elastic,
    Fixed,
    GpuType,
    Instance,
    Job,
    Locality,
    Network,
    Outage,
    Placement,
    Profiled,
    Refusal,
    Schedule,
    Segment,
    Server,
    Training,
    TrainingPlan,
    load,
    save,
    shipped_network,
)
from frostline.relaxation import Bound, lower_bound
from frostline.scheduler import Scheduler
from frostline.simulation import Metrics, Result, measure, simulate
from frostline.timing import StageGraph, stage_graph
from frostline.traces import generate_jobs, generate_recurring_jobs, read_trace, write_trace
from frostline.traces.library import instance_names, load_named_instance
from frostline.verify import check_schedule

__all__ = [
    "Bound",
    "Cluster",
    "Elastic",
    "Fixed",
    "FrostlineError",
    "GpuType",
    "Instance",
    "Job",
    "Locality",
    "Metrics",
    "Network",
    "OnlinePredictor",
    "Outage",
    "Placement",
    "Profiled",
    "Refusal",
    "Result",
    "Schedule",
    "Scheduler",
    "Segment",
    "Server",
    "StageGraph",
    "Training",
    "TrainingPlan",
    "check_schedule",
    "generate_jobs",
    "generate_recurring_jobs",
    "instance_names",
    "load",
    "load_named_instance",
    "lower_bound",
    "make_policy",
    "measure",
    "place",
    "policy_names",
    "read_trace",
    "save",
    "shipped_network",
    "simulate",
    "stage_graph",
    "write_trace",
]

__version__ = "0.1.0"
