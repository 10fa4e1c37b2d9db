"""The documentation site: `make docs` builds it into build/docs/html, and a warning ends the build."""

import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "docs")]

import fastapi  # noqa: E402, F401  # before autodoc, which has modules imported as type checkers would

import cndpm.baselines.others  # noqa: E402, F401  # as well: autodoc gives BaseModel annotations that it cannot read
from cndpm import __version__  # noqa: E402

project, author = "cndpm", "The cndpm developers"
version = release = __version__
html_title = f"cndpm {version}"
language = "en"

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "extensions.contents",
    "extensions.docstrings",
    "extensions.mathml",
    "extensions.notebooks",
    "extensions.reference",
]
source_suffix = {".md": "markdown", ".ipynb": "markdown", ".rst": "restructuredtext"}
root_doc = "index"
exclude_patterns = ["extensions/**"]
html_theme = "furo"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_search_scorer = str(ROOT / "docs" / "static" / "scorer.js")  # pages before names of the reference
html_favicon = "static/favicon.svg"
html_copy_source = False
html_show_copyright = html_show_sphinx = False
html_math_renderer = "mathml"
templates_path: list[str] = []

myst_enable_extensions = ["dollarmath", "amsmath", "deflist"]
myst_heading_anchors = 4
myst_links_external_new_tab = False

# Docstrings are Google's sections; a single pair of backticks is code.
default_role = "code"
napoleon_numpy_docstring = False
napoleon_use_ivar = True
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
autodoc_class_signature = "mixed"
python_maximum_signature_line_length = 100
add_module_names = False
toc_object_entries = False

# A reference to a function, method, module or constant, or to a class of this package, has to be found. Types of other
# packages are not looked up: a build needs no network.
suppress_warnings = ["ref.python"]  # nested classes share the name Settings
nitpicky = True
nitpick_ignore_regex = [
    ("py:(class|obj)", r"(?!cndpm\.).*|.*\.Annotated"),
    ("py:.*", r"(torch|numpy|sklearn|pydantic|typing)\..*"),
]
