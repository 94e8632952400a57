#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Puts the pages of the documentation site together, in an empty folder that Sphinx reads: those of docs/ in the order of SITE,
and the pages that come from the code: the API from the headers, with the programs of docs/api as examples, and the options from
oshrun. Blocks of code in several languages that follow each other become tabs.

Use: make_site.py FOLDER OPTIONS    OPTIONS: a file with the output of oshrun --man-options
"""
import os
import re
import sys

import families
import inventory

DOCS = os.path.join(inventory.ROOT, "docs")

# Caption, and pages below docs/ without their ending; "@" marks one that is made here. Each page of docs/ is in one row; those of
# docs/messages and docs/design are below the README of their folder.
SITE = [
    ("Begin", ["learn", "install", "python"]),
    ("Find", ["find-a-bug", "debug", "find-the-time", "troubleshoot"]),
    ("Run", ["cluster", "ring", "build-a-ring", "dsm", "prediction", "virtual"]),
    ("Look up", ["@api/index", "@options", "messages/README", "profile", "trace", "perf", "performance", "report"]),
    ("Behind it", ["design/README", "papers", "sources", "wire-format", "write-a-port"]),
]
LANGUAGES = {"c": "C", "cpp": "C++", "python": "Python"}
# Headers that are their own reference: page, header, what it is.
HEADERS = [
    ("shmemx", "shmemx.h", "extensions: slices of a program's own in a trace"),
    ("dsm", "dsm.h", "shared pages, [libqdsm](../dsm.md)"),
]


def get(name, folder=DOCS):
    with open(os.path.join(folder, name), encoding="utf-8") as file:
        return file.read()


def tabs(text):
    """Two blocks or more in different languages with nothing between them: one tab for each."""
    block = r"```(?:" + "|".join(LANGUAGES) + r")\n(?:(?!```).*\n)*```\n"

    def group(found):
        blocks = re.findall(r"```(\w+)\n(.*?)```\n", found[0], re.S)
        return "\n".join(f":::{{tab}} {LANGUAGES[language]}\n```{language}\n{body}```\n:::\n" for language, body in blocks)

    return re.sub(rf"(?m)^(?:{block}\n?){{2,}}", lambda found: group(found) + "\n", text)


def prose(text):
    """Text of a header or of oshrun as Markdown: names and options as code, everything else as it stands."""
    parts = re.split(r"`([^`]+)`|((?<![\w-])--[a-z][a-z-]*|\b\w*_\w+\b(?:\(\))?)", text)
    plain, spans = parts[::3], [code or name for code, name in zip(parts[1::3], parts[2::3])]
    escaped = [re.sub(r"([*<\[#])", r"\\\1", part) for part in plain]
    return escaped[0] + "".join(f"`{span}`{rest}" for span, rest in zip(spans, escaped[1:]))


def toctree(entries, caption=""):
    words = [":hidden:"] + ([f":caption: {caption}"] if caption else [])
    return "```{toctree}\n" + "\n".join(words + ["", *entries]) + "\n```\n"


def names_of(folder):
    """The pages of a folder of docs/, but for its README."""
    return sorted(name[:-3] for name in os.listdir(os.path.join(DOCS, folder)) if name.endswith(".md") and name != "README.md")


def messages():
    """The page of all codes, and the tree below it."""
    names = names_of("messages")
    titles = [get(f"messages/{name}.md").split("\n", 1)[0].split(": ", 1)[1] for name in names]
    rows = [f"| [{name}]({name}.md) | {title} |" for name, title in zip(names, titles)]
    return get("messages/README.md") + "\n## All codes\n\n| code | what happened |\n|---|---|\n" + "\n".join(rows) + "\n\n" + toctree(names)


def options(roff):
    """The options of oshrun, from the text that makes its manual page."""
    lines = ["# Options of `oshrun`", "", "Each can be set on the command line or, where it has one, by its variable.", ""]
    is_name = False
    for line in roff.replace("\\-", "-").replace("\\&", "").splitlines():
        if line.startswith(".SS "):
            lines += ["", f"## {line[4:]}", ""]
        elif line == ".TP":
            is_name = True
        elif is_name:
            lines += ["", f"### `{line.removeprefix('.B ')}`", ""]
            is_name = False
        else:
            lines += [prose(line)]
    return "\n".join(lines) + "\n"


def family(page, routines, texts):
    """A family of routines: what the header says, the example, prototypes."""
    lines = [f"# {page[0]}: {page[1]}", ""]
    for part in families.about(page, texts):
        lines += [prose(part), ""]
    lines += ["## Example", "", "```c", families.example(page).rstrip(), "```", "", "## Prototypes", ""]
    for words, status, group in families.forms(routines):
        if words[0] is not None:
            lines += [f"With {families.placeholder(words)} one of {', '.join(words)}"
                      f"{'; deprecated' if status == 'deprecated' else ''}:", ""]
        elif status == "deprecated":
            lines += ["Deprecated:", ""]
        lines += ["```c", *group, "```", ""]
    names = families.generics(routines)
    if names:
        lines += ["Type-generic, in C11 and C++, with or without a context before the other arguments where a form with ctx is above: "
                  + ", ".join(f"`{name}`" for name in names) + ".", ""]
    return "\n".join(lines)


def api():
    """{name: text} of the pages of the API."""
    routines_of, texts = families.read_families()
    pages = {f"api/{page[0]}.md": family(page, routines_of[page[0]], texts) for page in families.PAGES}
    rows = [f"| [{page[0]}]({page[0]}.md) | {page[1]} |" for page in families.PAGES]
    for name, header, what in HEADERS:
        text = get(header, os.path.join(inventory.ROOT, "include")).split("*/\n", 1)[1]
        pages[f"api/{name}.md"] = f"# {header}\n\n```c\n{text.strip()}\n```\n"
        rows.append(f"| [{header}]({name}.md) | {what} |")
    pages["api/index.md"] = (
        "# The API\n\nEvery routine of OpenSHMEM 1.6, by family. The same text is in the manual: `man shmem_put`.\n\n"
        "| family or header | what it does |\n|---|---|\n" + "\n".join(rows) + "\n\n"
        + toctree([page[0] for page in families.PAGES] + [name for name, _, _ in HEADERS]))
    return pages


def check_order():
    """Every page of docs/ has its place."""
    named = {name for _, pages in SITE for name in pages if not name.startswith("@")} | {"index"}
    there = {name[:-3] for name in os.listdir(DOCS) if name.endswith(".md")} | {"messages/README", "design/README"}
    if named != there:
        sys.exit(f"make_site: SITE and docs/ differ: {', '.join(sorted(named ^ there))}")


def collect(options_text):
    """{name: text} of all files of the site's source."""
    files = {"conf.py": get("site/conf.py")}
    for where, _, names in os.walk(DOCS):
        for name in (os.path.normpath(os.path.join(os.path.relpath(where, DOCS), name)) for name in names):
            if name.endswith(".md"):
                files[name] = tabs(get(name))
            elif name.endswith(".svg"):
                files[name] = get(name)
    trees = [toctree([name.lstrip("@") for name in pages], caption) for caption, pages in SITE]
    files.update(api())
    files.update({"options.md": options(options_text), "messages/README.md": messages(),
                  "design/README.md": files["design/README.md"] + "\n" + toctree(names_of("design")),
                  "index.md": files["index.md"] + "\n" + "\n".join(trees)})
    return files


def write(folder, files):
    for name, text in files.items():
        path = os.path.join(folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)


def main():
    folder, options_file = sys.argv[1:]
    check_order()
    write(folder, collect(get(os.path.abspath(options_file))))


main()
