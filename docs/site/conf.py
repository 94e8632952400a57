# SPDX-License-Identifier: BSD-3-Clause
"""Settings of Sphinx for the documentation site, whose pages cmake/make_site.py puts together. Nothing of a page comes from the
network, and the search works on files (file://)."""
import os

project = "Quoit"
release = version = os.environ["QUOIT_VERSION"]
extensions = ["myst_parser", "sphinx_inline_tabs", "sphinx_copybutton"]
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3
exclude_patterns = ["conf.py"]
smartquotes = False  # "--hosts" stays what it is
html_theme = "furo"
html_title = f"Quoit {version}"
html_show_copyright = html_show_sphinx = False
html_copy_source = False
html_static_path = []
highlight_language = "none"
