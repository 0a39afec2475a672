"""How Sphinx builds these pages."""

from __future__ import annotations

import sys
from importlib.metadata import version as version_of
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))

project = "frostline"
author = "The frostline developers"
version = release = version_of("frostline")
extensions = ["myst_parser", "numpydoc", "sphinx.ext.autodoc", "sphinx_copybutton", "api", "reference", "repository"]
exclude_patterns = ["_build"]
nitpicky = True

html_theme = "furo"
html_title = f"frostline {version}"
html_show_copyright = False
html_copy_source = False

myst_heading_anchors = 4
highlight_options = {"python": {"stripnl": True}}
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

autodoc_default_options = {"members": True, "member-order": "bysource"}
autodoc_typehints_format = "short"
python_maximum_signature_line_length = 88
numpydoc_show_class_members = False
autodoc_mock_imports = ["torch"]

# Types of other packages, whose pages would have to be fetched.
nitpick_ignore_regex = [("py:.*", r"(?!frostline).*")]
