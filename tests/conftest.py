"""Fixtures for all tests."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("ci", deadline=None, max_examples=60, derandomize=True)
settings.register_profile("thorough", deadline=None, max_examples=2000)
settings.load_profile(os.environ.get("FROSTLINE_PROFILE", "ci"))


@pytest.fixture(scope="session")
def shared() -> Path:
    """Folder of public traces and tables; tests that need it are skipped where it is absent."""
    folder = Path(os.environ.get("FROSTLINE_SHARED", Path(__file__).parents[2] / "shared"))
    if not folder.is_dir():
        pytest.skip(f"no folder {folder}; set FROSTLINE_SHARED")
    return folder
