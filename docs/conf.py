"""How the site is built: `make docs`, or `sphinx-build -W docs docs/_build/html`."""

import os
import sys
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")
sys.path[:0] = [str(Path(__file__).parent.parent), str(Path(__file__).parent / "_extensions")]

import ahofm_keras  # noqa: E402

project = "ahofm_keras"
author = "the authors of ahofm_keras"
copyright = author
version = release = ahofm_keras.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "mathml",
]
exclude_patterns = ["_build"]

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
# Pages are read on GitHub too, where `text` and `console` need no lexer.
highlight_language = "text"
pygments_dark_style = "github-dark"
# A single backtick in a docstring is code, as in Markdown.
default_role = "literal"

autodoc_typehints = "none"
autodoc_member_order = "bysource"
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_rtype = False

# The browser draws formulas itself: no script, no network.
html_math_renderer = "mathml"
html_theme = "furo"
html_title = "ahofm_keras"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sphinx = False
html_show_copyright = False
html_copy_source = False
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#0072B2", "color-brand-content": "#0072B2"},
    "dark_css_variables": {"color-brand-primary": "#56B4E9", "color-brand-content": "#56B4E9"},
}
copybutton_exclude = ".linenos, .gp, .go"
