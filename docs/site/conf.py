"""The site: `make site`. Sphinx reads the whole repository, so that links between its folders hold."""

from __future__ import annotations

from typing import Final

import tlx

project: Final = "TLX"
author: Final = "The TLX developers"
project_copyright: Final = author
release: Final = tlx.__version__

extensions: Final = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_external_toc"]
external_toc_path: Final = "docs/site/contents.yml"
include_patterns: Final = [
    "*.md",
    "docs/**.md",
    "docs/**.rst",
    "examples/*/*.md",
]
myst_heading_anchors: Final = 4
default_role: Final = "code"  # docstrings are written with single backticks
highlight_language: Final = "text"
suppress_warnings: Final = ["misc.highlighting_failure"]  # Pygments does not know `elementtype`

html_theme: Final = "furo"
html_title: Final = f"TLX {release}"
html_extra_path: Final = ["index.html"]
html_static_path: Final = ["static"]
html_css_files: Final = ["keyboard.css"]
html_show_search_summary: Final = False  # it would be fetched from the pages, which browsers refuse for files
