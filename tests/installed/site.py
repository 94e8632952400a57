# SPDX-License-Identifier: BSD-3-Clause
"""Aim: the documentation site of an installed copy is whole, needs no network, and is found by quoit docs; the program on each
page of the API shows every routine of its family and is right. Method: Site follows every link of every page, from the first one on;
Api compiles the programs of docs/api with the copy and runs them, which check their own results."""
import functools
import glob
import html.parser
import os
import re
import shutil
import subprocess
import sys
import urllib.parse
import xml.etree.ElementTree

import installed

sys.path.insert(1, os.path.join(installed.SOURCE, "cmake"))
import families  # noqa: E402  (its folder is known now)
import inventory  # noqa: E402

SHAPES = (["-n", 4], ["--hosts", 3, "-n", 5])
# A browser that says what it was given.
BROWSER = "#!/bin/sh\necho \"opened $1\"\n"


class Page(html.parser.HTMLParser):
    """The links of a page, the files that it takes in, and what can be linked to in it."""

    def __init__(self, path):
        super().__init__()
        self.links, self.taken, self.names, self.text = [], [], set(), []
        with open(path, encoding="utf-8") as file:
            self.feed(file.read())

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        self.names.update(value for key, value in attributes if key in ("id", "name") and value)
        if tag == "a" and found.get("href"):
            self.links.append(found["href"])
        elif tag in ("link", "script", "img", "source", "iframe") and found.get("rel") not in ("next", "prev", "index", "search"):
            self.taken += [found[key] for key in ("href", "src") if found.get(key)]

    def handle_data(self, data):
        self.text.append(data)


@functools.cache
def pages_of(folder):
    """{path below the site: Page}"""
    paths = glob.glob(os.path.join(folder, "**", "*.html"), recursive=True)
    return {os.path.relpath(path, folder): Page(path) for path in paths}


class Site(installed.Case):
    def setUp(self):
        super().setUp()
        self.folder = os.path.join(self.prefix, "share", "doc", "quoit", "html")
        if not os.path.exists(os.path.join(self.folder, "index.html")):
            self.skipTest("no site was built: no sphinx-build with myst_parser, furo, sphinx_inline_tabs and sphinx_copybutton")

    def pages(self):
        return pages_of(self.folder)

    def test_links(self):
        pages, reached = self.pages(), {"index.html", "search.html", "genindex.html"}
        self.assertGreater(len(pages), 100)
        for name, page in pages.items():
            for link in page.links:
                target, _, part = link.partition("#")
                if re.match(r"[a-z]+:", link):
                    self.assertRegex(link, r"^https?://", name)
                    continue
                path = os.path.normpath(os.path.join(os.path.dirname(name), urllib.parse.unquote(target))) if target else name
                self.assertTrue(os.path.exists(os.path.join(self.folder, path)), f"{name}: {link}")
                reached.add(path)
                if part and path in pages:
                    self.assertIn(part, pages[path].names, f"{name}: {link}")
        self.assertEqual(set(pages) - reached, set(), "no page leads there")

    def test_lists_at_the_side(self):
        """Each page lists all; one that was left from an earlier build does not."""
        pages = self.pages()
        for name, page in pages.items():
            linked = {os.path.normpath(os.path.join(os.path.dirname(name), link.partition("#")[0] or os.path.basename(name)))
                      for link in page.links}
            self.assertEqual(set(pages) - linked - {"search.html", "genindex.html"}, set(), name)

    def test_needs_no_network(self):
        for name, page in self.pages().items():
            for taken in page.taken:
                self.assertNotRegex(taken, r"^([a-z]+:)?//", name)
                path = os.path.normpath(os.path.join(self.folder, os.path.dirname(name), taken.split("?")[0]))
                self.assertTrue(os.path.exists(path), f"{name}: {taken}")
        pictures = glob.glob(os.path.join(self.folder, "_images", "*.svg"))
        self.assertGreater(len(pictures), 0)
        for path in pictures:
            self.assertEqual(xml.etree.ElementTree.parse(path).getroot().tag, "{http://www.w3.org/2000/svg}svg", path)
        for path in glob.glob(os.path.join(self.folder, "_static", "**", "*.css"), recursive=True):
            with open(path, encoding="utf-8") as file:
                self.assertNotRegex(file.read(), r"url\(['\"]?([a-z]+:/)?/", path)  # nor one at the root of a server

    def test_theme_is_whole(self):
        """Scripts run as they are, from files too, and colours follow the system; where there is a browser, it shows that."""
        static = os.path.join(self.folder, "_static")
        for taken in self.pages()["index.html"].taken:
            if taken.endswith(".js"):
                with open(os.path.join(self.folder, taken), encoding="utf-8") as file:
                    self.assertNotRegex(file.read(), r"(?m)^(import|export) ", taken)
        with open(os.path.join(static, "styles", "furo.css"), encoding="utf-8") as file:
            self.assertRegex(file.read(), r"prefers-color-scheme: ?dark")
        browser = shutil.which("chromium")
        if browser:
            done = subprocess.run(
                [browser, "--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=2000", "--dump-dom",
                 f"--user-data-dir={self.work}/browser", f"file://{self.folder}/index.html"],
                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False, timeout=300)
            self.assertRegex(done.stdout, r"<html(?![^>]*no-js)[^>]*>")  # the script of the theme takes that class away

    def test_everything_has_a_page(self):
        pages = self.pages()
        for path in glob.glob(os.path.join(installed.SOURCE, "docs", "messages", "Q*.md")):
            self.assertIn(f"messages/{os.path.basename(path)[:-3]}.html", pages)
        text = " ".join(" ".join(page.text) for name, page in pages.items() if name.startswith("api/"))
        words = set(re.findall(r"\w+", text))
        for routine in inventory.routines():
            form, _ = families.general_form(routine)
            self.assertIn(re.search(r"(\w+)\(", form)[1], words)
        self.assertLessEqual({"dsm_malloc", "dsm_barrier_all", "shmemx_trace_begin"}, words)
        shown = " ".join(pages["options.html"].text)
        for option in re.findall(r"(?m)^(--[a-z-]+)", self.command("oshrun", "--options")):
            self.assertIn(option, shown)

    def test_languages_are_tabs(self):
        with open(os.path.join(self.folder, "learn.html"), encoding="utf-8") as file:
            labels = re.findall(r'class="tab-label"[^>]*>([^<]*)<', file.read())
        self.assertGreaterEqual(len(labels), 18)
        self.assertEqual(labels, ["C", "C++", "Python"] * (len(labels) // 3))

    def test_search(self):
        """The index of words is a script, which a page from a file may read."""
        with open(os.path.join(self.folder, "searchindex.js"), encoding="utf-8") as file:
            index = file.read()
        self.assertTrue(index.startswith("Search.setIndex("))
        with open(os.path.join(self.folder, "_static", "documentation_options.js"), encoding="utf-8") as file:
            self.assertIn("SHOW_SEARCH_SUMMARY: false", file.read())  # a summary is fetched
        for word in ("signal", "barrier", "cluster", "q0116"):
            self.assertRegex(index, rf'"?\b{word}\b"?:')

    def test_quoit_docs(self):
        for prefix in self.prefixes():
            site = os.path.join(os.path.realpath(prefix), "share", "doc", "quoit", "html")
            for page, file in (((), "index.html"), (("learn",), "learn.html"), (("messages/Q0116",), "messages/Q0116.html"),
                               (("Q0116",), "messages/Q0116.html"), (("shmem_put",), "api/shmem_put.html"),
                               (("api",), "api/index.html"), (("messages",), "messages/README.html"),
                               (("deadlock",), "design/deadlock.html"), (("dsm",), "dsm.html")):
                self.assertEqual(self.command("quoit", "docs", *page), f"{site}/{file}\n")
            os.makedirs(os.path.join(self.work, "bin"), exist_ok=True)
            browser = os.path.join(self.work, "bin", "xdg-open")
            with open(browser, "w", encoding="utf-8") as script:
                script.write(BROWSER)
            os.chmod(browser, 0o755)
            env = {"PATH": f"{prefix}/bin:{self.work}/bin:{installed.SYSTEM_PATH}", "DISPLAY": ":7"}
            self.assertEqual(self.command("quoit", "docs", "learn", env=env), f"opened {site}/learn.html\n")
            with open(browser, "w", encoding="utf-8") as script:
                script.write("#!/bin/sh\nexit 3\n")  # no browser after all
            self.assertEqual(self.command("quoit", "docs", "learn", env=env), f"{site}/learn.html\n")
        done = self.run_command("quoit", "docs", "nothing")
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn('there is no page "nothing"', done.stderr)
        for wrong in ("../index", "/etc/passwd", "a//b", "a b", ""):
            self.assertEqual(self.run_command("quoit", "docs", wrong).returncode, 2, wrong)
        self.assertEqual(self.run_command("quoit", "docs", "learn", "install").returncode, 2)


class Api(installed.Case):
    def test_examples_show_all(self):
        """Each routine that is not deprecated, with or without a context, of one type or size."""
        routines_of, _ = families.read_families()
        for page in families.PAGES:
            text = families.example(page)
            for _, status, group in families.forms(routines_of[page[0]]):
                for form in group if status != "deprecated" else []:
                    name = re.search(r"(\w+)\(", form)[1].replace("shmem_ctx_", "shmem_(ctx_)?")
                    if "shmem_(ctx_)?" not in name:
                        name = name.replace("shmem_", "shmem_(ctx_)?", 1)
                    pattern = name.replace("TYPE_", "([a-z]+_)?").replace("SIZE", r"\d+")
                    self.assertRegex(text, rf"\b{pattern}\(", f"docs/api/{page[0]}.c does not show {form}")

    def test_examples_are_right(self):
        for page in families.PAGES:
            with self.subTest(page=page[0]):
                self.bring(os.path.join(installed.SOURCE, "docs", "api", f"{page[0]}.c"))
                self.command("oshcc", "-Wall", "-Wextra", "-Wno-deprecated-declarations", "-Werror", f"{page[0]}.c", "-o", page[0])
                for shape in SHAPES:
                    self.command("oshrun", *shape, f"./{page[0]}")


if __name__ == "__main__":
    installed.main()
