"""What a problem is: cluster, network, plan, job, instance, placement and schedule, and their files."""

from frostline.problem.cluster import Cluster, GpuType, Server, gpu_type, gpu_types
from frostline.problem.elastic import Elastic
from frostline.problem.files import digest, load, load_cluster, load_instance, load_network, load_schedule, save
from frostline.problem.instance import Instance
from frostline.problem.job import Fixed, Job, Locality, PlacementClass, Profiled, Training, Work
from frostline.problem.library import network_names, shipped_network
from frostline.problem.network import Edge, Layer, LayerId, Network, SharedParams, network_from_dict, network_to_dict
from frostline.problem.order import natural_key
from frostline.problem.outage import Outage
from frostline.problem.placement import Placement
from frostline.problem.plan import TrainingPlan, balanced_ranges, balanced_replicas
from frostline.problem.refusal import Reason, Refusal, never_fits
from frostline.problem.schedule import Schedule, Segment

__all__ = [
    "Cluster",
    "Edge",
    "Elastic",
    "Fixed",
    "GpuType",
    "Instance",
    "Job",
    "Layer",
    "LayerId",
    "Locality",
    "Network",
    "Outage",
    "Placement",
    "PlacementClass",
    "Profiled",
    "Reason",
    "Refusal",
    "Schedule",
    "Segment",
    "Server",
    "SharedParams",
    "Training",
    "TrainingPlan",
    "Work",
    "balanced_ranges",
    "balanced_replicas",
    "digest",
    "gpu_type",
    "gpu_types",
    "load",
    "load_cluster",
    "load_instance",
    "load_network",
    "load_schedule",
    "natural_key",
    "network_from_dict",
    "network_names",
    "network_to_dict",
    "never_fits",
    "save",
    "shipped_network",
]
