"""What is not collected where an extra is missing."""

from importlib.util import find_spec

collect_ignore_glob = [] if find_spec("torch") else ["solver/frostline/freezing/live/*"]
