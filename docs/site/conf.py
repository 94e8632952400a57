# SPDX-License-Identifier: BSD-3-Clause
"""Settings of Sphinx for the documentation site, whose pages cmake/make_site.py puts together. Nothing of a page comes from the
network, and search, scripts and styles work on files (file://)."""
import os
import re

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
html_show_search_summary = False  # it fetches each page that it found, which browsers refuse for files
html_static_path = []
highlight_language = "none"

# Where Debian puts the style that its furo takes from the root of a web server.
NORMALIZE = "/usr/share/javascript/normalize.css/normalize.css"


def make_theme_whole(app, error):
    """Debian's furo has its sources in place of what is made from them: a script that is a module, which browsers refuse for
    files, a style at the root of a server, and no colours for a system that is dark. The theme of PyPI has none of these."""
    static = os.path.join(app.outdir, "_static")
    script, style = os.path.join(static, "scripts", "furo.js"), os.path.join(static, "styles", "furo.css")
    if error or not os.path.exists(script):
        return
    change(script, r'^import Gumshoe from "./gumshoe-patched.js";', lambda _: get(os.path.join(static, "scripts", "gumshoe-patched.js")))
    change(style, r"^@import url\(/javascript/normalize.css/normalize.css\);", lambda _: get(NORMALIZE) if os.path.exists(NORMALIZE) else "")
    if "prefers-color-scheme" not in get(style):
        change(style, r'(?s)\n  body\[data-theme="dark"\] (\{.*?\})', lambda found: found[0] + "\n  @media (prefers-color-scheme: dark) {\n"
               f'    body[data-theme="auto"] {found[1]} }}')


def get(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def change(path, pattern, text):
    whole = get(path)
    with open(path, "w", encoding="utf-8") as file:
        file.write(re.sub(pattern, text, whole, count=1))


def setup(app):
    app.connect("build-finished", make_theme_whole)
