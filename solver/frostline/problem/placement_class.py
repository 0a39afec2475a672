"""Classes of placement that measured tables tell apart."""

from __future__ import annotations

from enum import StrEnum

__all__ = ["PlacementClass"]


class PlacementClass(StrEnum):
    """Classes of placement that measured tables tell apart."""

    ONE_SERVER = "one_server"
    MANY_SERVERS = "many_servers"
