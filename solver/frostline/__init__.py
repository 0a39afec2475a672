"""frostline decides how deep-learning training jobs share a GPU cluster."""
