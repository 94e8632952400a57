# SPDX-License-Identifier: BSD-3-Clause
"""The pages of all commands: data as docs/report.md says, checked, and written as one HTML file with its style (page.css), its
plots (drawing.py) and what saves them (page.js)."""
import html
import itertools
import json
import os
import re
import sys

import drawing
import dsm_stats
import units
from arguments import Parser

HERE = os.path.dirname(os.path.realpath(__file__))


class Wrong(Exception):
    """The data are not as docs/report.md says; the text names the place."""


# What the data must look like: {key: (types, is_required)}

NUMBER = (int, float)
TEXT = {"text": (list, True)}
TABLE = {"title": (str, False), "columns": (list, True), "units": (list, False), "rows": (list, True)}
PLOT = {"title": (str, True), "text": (str, False), "y_label": (str, True), "y_unit": (str, False), "y_is_log": (bool, False),
        "series": (list, True), "bands": (list, False), "limits": (list, False)}
LINES = {**PLOT, "x_label": (str, True), "x_is_bytes": (bool, False), "x_is_log2": (bool, False)}
BARS = {**PLOT, "groups": (list, True), "is_stacked": (bool, False)}
SHAPES = {
    "page": {"title": (str, True), "text": (list, False), "sections": (list, True)},
    "section": {"title": (str, True), "items": (list, True)},
    "text": TEXT, "table": TABLE, "lines": LINES, "bars": BARS, "boxes": {"boxes": (list, True)},
    "box": {"title": (str, True), "mark": (str, False), "quote": (str, False), "facts": (list, True)},
    "lines series": {"name": (str, True), "points": (list, True), "is_dashed": (bool, False)},
    "lines band": {"name": (str, True), "low": (NUMBER, False), "high": (NUMBER, False), "points": (list, False)},
    "lines limit": {"name": (str, True), "y": (NUMBER, False), "points": (list, False)},
    "bars series": {"name": (str, True), "values": (list, True)},
    "bars band": {"name": (str, True), "group": (str, False), "low": (NUMBER, True), "high": (NUMBER, True)},
    "bars limit": {"name": (str, True), "y": (NUMBER, True)},
    "cell": {"value": ((str, int, float, type(None)), True), "mark": (str, False), "unit": (str, False)},
}
MARKS = ("good", "bad", "note")


def is_of(value, types):
    """Numbers are such as can be drawn; Python reads NaN, Infinity and any number of digits as numbers too."""
    if isinstance(value, NUMBER) and not isinstance(value, bool) and not -1e300 <= value <= 1e300:
        return False
    return isinstance(value, types) and (types is bool or not isinstance(value, bool) or types is str)


def check(value, shape, where, ignored=()):
    if not isinstance(value, dict):
        raise Wrong(f"{where} is not an object")
    known = SHAPES[shape]
    for key in value:
        if key not in known and key not in ignored:
            raise Wrong(f"{where}: there is no key {key!r} in a {shape}")
    for key, (types, is_required) in known.items():
        if key not in value and is_required:
            raise Wrong(f"{where}: {key!r} is missing")
        if key in value and not is_of(value[key], types):
            raise Wrong(f"{where}.{key} has the wrong type")


def check_rows(rows, width, where):
    for i, row in enumerate(rows):
        if not isinstance(row, list) or len(row) != width:
            raise Wrong(f"{where}[{i}] does not have {width} entries")


def check_numbers(values, where, may_be_null=False):
    for i, value in enumerate(values):
        if not is_of(value, NUMBER) and not (may_be_null and value is None):
            raise Wrong(f"{where}[{i}] is not a number")


# What stands for points where there are none; a series may be empty.
CONSTANTS = {"series": set(), "band": {"low", "high"}, "limit": {"y"}}


def check_points(points, width, where):
    check_rows(points, width, where)
    for i, point in enumerate(points):
        check_numbers(point, f"{where}[{i}]")


def check_plot(item, kind, where):
    check_texts(item.get("groups", []), f"{where}.groups")
    for part, plural in (("series", "series"), ("band", "bands"), ("limit", "limits")):
        for i, one in enumerate(item.get(plural, [])):
            at = f"{where}.{plural}[{i}]"
            check(one, f"{kind} {part}", at)
            if "points" in one:
                check_points(one["points"], 3 if part == "band" else 2, f"{at}.points")
            if kind == "lines" and not one.get("points") and not CONSTANTS[part] <= one.keys():
                raise Wrong(f"{at} has neither points nor a constant")
            if "values" in one:
                check_numbers(one["values"], f"{at}.values", may_be_null=True)
                check_rows([one["values"]], len(item["groups"]), f"{at}.values")
            if one.get("group", None) not in (None, *item.get("groups", [])):
                raise Wrong(f"{at}: there is no group {one['group']!r}")


def check_mark(value, where):
    if isinstance(value, dict) and value.get("mark", "good") not in MARKS:
        raise Wrong(f"{where}.mark is none of {', '.join(MARKS)}")


def check_texts(values, where):
    for i, value in enumerate(values):
        if not isinstance(value, str):
            raise Wrong(f"{where}[{i}] is not a text")


def check_boxes(boxes, where):
    for i, one in enumerate(boxes):
        at = f"{where}[{i}]"
        check(one, "box", at)
        check_mark(one, at)
        check_rows(one["facts"], 2, f"{at}.facts")
        check_texts([name for name, _ in one["facts"]], f"{at}.facts")
        check_cells([[fact] for _, fact in one["facts"]], f"{at}.facts")


def check_table(item, where):
    check_rows(item["rows"], len(item["columns"]), f"{where}.rows")
    check_cells(item["rows"], f"{where}.rows")
    if "units" in item:
        check_rows([item["units"]], len(item["columns"]), f"{where}.units")
        check_texts([unit for unit in item["units"] if unit is not None], f"{where}.units")


def check_cells(rows, where):
    for r, row in enumerate(rows):
        for c, value in enumerate(row):
            at = f"{where}[{r}][{c}]"
            check(value if isinstance(value, dict) else {"value": value}, "cell", at)
            check_mark(value, at)


def check_page(page):
    check(page, "page", "the report")
    for s, section in enumerate(page["sections"]):
        check(section, "section", f"sections[{s}]")
        for i, item in enumerate(section["items"]):
            where = f"sections[{s}].items[{i}]"
            kind = item.get("kind") if isinstance(item, dict) else None
            if kind not in ("text", "table", "lines", "bars", "boxes"):
                raise Wrong(f"{where}.kind is none of text, table, lines, bars, boxes")
            check(item, kind, where, ignored=("kind",))
            if kind == "table":
                check_table(item, where)
            elif kind == "boxes":
                check_boxes(item["boxes"], f"{where}.boxes")
            elif kind != "text":
                check_plot(item, kind, where)


# Tables and text

LONG_TEXT = 50  # letters, above which a cell is not squeezed into a column of single words

def escape(text):
    return html.escape(str(text), quote=True)


def cell(value, unit=None, raw=None, tag="td"):
    """A cell of a table; `raw` is its number for a CSV."""
    names = []
    if isinstance(value, dict):
        names = [value["mark"]] if "mark" in value else []
        value, unit = value["value"], value.get("unit", unit)
    if is_of(value, NUMBER):
        names.append("number")
    elif isinstance(value, str) and len(value) > LONG_TEXT:
        names.append("long")
    attribute = f' class="{" ".join(names)}"' if names else ""
    data = "" if raw is None else f' data-value="{escape(raw)}"'
    return f"<{tag}{attribute}{data}>{escape(units.text(value, unit))}</{tag}>"


def head(name, unit=None):
    mark = ' class="number"' if unit else ""
    return f"<th{mark}>{escape(name)}</th>"


def table(item):
    of = item.get("units") or [None] * len(item["columns"])
    out = ['<div class="wide"><table>']
    if "title" in item:
        out.append(f"<caption>{escape(item['title'])}</caption>")
    out.append("<thead><tr>" + "".join(map(head, item["columns"], of)) + "</tr></thead><tbody>")
    out += ["<tr>" + "".join(map(cell, row, of)) + "</tr>" for row in item["rows"]]
    out.append("</tbody></table></div>")
    return "\n".join(out)


def paragraphs(item):
    return "\n".join(f"<p>{escape(line)}</p>" for line in item["text"])


def box(one):
    mark = f" is-{one['mark']}" if "mark" in one else ""
    quote = f"<blockquote>{escape(one['quote'])}</blockquote>" if "quote" in one else ""
    facts = "".join(f"<dt>{escape(name)}</dt>{cell(fact, tag='dd')}" for name, fact in one["facts"])
    return f'<div class="box{mark}"><h3>{escape(one["title"])}</h3>{quote}<dl>{facts}</dl></div>'


def boxes(item):
    return '<div class="boxes">' + "\n".join(map(box, item["boxes"])) + "</div>"


# Plots

def columns_of(item):
    """What is drawn, as columns of numbers: (name, {x or group: value})."""
    for series in item["series"]:
        yield series["name"], dict(map(tuple, series["points"])) if item["kind"] == "lines" else \
            dict(zip(item["groups"], series["values"]))
    for band in item.get("bands", []):
        for name, place in (("low", 1), ("high", 2)):
            if band.get("points"):
                yield f"{band['name']}, {name}", {point[0]: point[place] for point in band["points"]}
            else:
                groups = [band["group"]] if "group" in band else item.get("groups")
                yield f"{band['name']}, {name}", dict.fromkeys(groups, band[name]) if groups else band[name]
    for limit in item.get("limits", []):
        yield limit["name"], dict(map(tuple, limit["points"])) if limit.get("points") else limit["y"]


def data_table(item):
    """The numbers of a plot, for those who want them or cannot see it; with their unit in the head and bare in a CSV."""
    columns = list(columns_of(item))
    places = item["groups"] if item["kind"] == "bars" else \
        sorted({x for _, points in columns if isinstance(points, dict) for x in points})
    unit = item.get("y_unit")
    heads = "".join(f'<th class="number" data-value="{escape(f"{name} ({unit})" if unit else name)}">{escape(name)}</th>'
                    for name, _ in columns)
    out = ["<details><summary>numbers</summary>", '<div class="wide"><table><thead><tr>',
           f"{head(item.get('x_label', ''))}{heads}</tr></thead><tbody>"]
    for x in places:
        first = cell(x, "B" if item.get("x_is_bytes") else None, x if item["kind"] == "lines" else None)
        values = [points.get(x) if isinstance(points, dict) else points for _, points in columns]
        out.append(f"<tr>{first}{''.join(cell(value, unit, '' if value is None else value) for value in values)}</tr>")
    return "\n".join([*out, "</tbody></table></div></details>"])


def plot(item, number):
    caption = f"<figcaption>{escape(item['text'])}</figcaption>" if "text" in item else ""
    name = re.sub(r"[^a-z0-9]+", "-", item["title"].lower()).strip("-")[:60] or "plot"
    return f'<figure data-name="{name}">{drawing.svg(item, number)}{caption}\n{data_table(item)}</figure>'


# The page

def read(name):
    with open(os.path.join(HERE, name), encoding="utf-8") as file:
        return file.read()


def items_of(section, numbers):
    """Plots that follow each other stand side by side where there is room."""
    out, is_row = [], False
    for item in section["items"]:
        is_plot = item["kind"] in ("lines", "bars")
        if is_plot != is_row:
            out.append('<div class="plots">' if is_plot else "</div>")
        is_row = is_plot
        out.append(plot(item, next(numbers)) if is_plot else
                   {"text": paragraphs, "table": table, "boxes": boxes}[item["kind"]](item))
    return out + ["</div>"] * is_row


def page_of(page):
    numbers = itertools.count(1)
    out = ['<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"/>',
           '<meta name="viewport" content="width=device-width, initial-scale=1"/>',
           f"<title>{escape(page['title'])}</title><style>{read('page.css')}</style></head><body>",
           f"<h1>{escape(page['title'])}</h1>", paragraphs({"text": page.get("text", [])})]
    if len(page["sections"]) > 1:
        links = (f'<li><a href="#s{s}">{escape(one["title"])}</a></li>' for s, one in enumerate(page["sections"]))
        out.append(f"<nav><ul>{''.join(links)}</ul></nav>")
    for s, section in enumerate(page["sections"]):
        out += [f'<h2 id="s{s}">{escape(section["title"])}</h2>', *items_of(section, numbers)]
    out.append(f"<script>{read('page.js')}</script></body></html>\n")
    return "\n".join(out)


def write(page, target):
    """Raises OSError, or Wrong if the page is not as docs/report.md says; then no file is left behind."""
    check_page(page)
    try:
        data = page_of(page).encode("utf-8")
    except UnicodeEncodeError:
        raise Wrong("a text has half of a surrogate pair") from None
    part = f"{target}.part"
    with open(part, "wb") as file:
        file.write(data)
    os.replace(part, target)


def save(data, folder, name):
    """Writes FOLDER/NAME.json; returns its path."""
    path = os.path.join(folder, f"{name}.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump(data, file, indent=1)
    return path


def add_option(parser, name):
    """--html of a command that writes a page in any case."""
    parser.add_argument("--html", metavar="FILE", default=f"figures/{name}.html",
                        help=f"the page; its data beside it, with .json for .html (figures/{name}.html)")


def prepare(target):
    """Makes the folder of a page before anything is measured for it. Raises OSError."""
    os.makedirs(os.path.dirname(target) or ".", exist_ok=True)


def publish(page, target):
    """Writes the page, and its data beside it; returns a line that says where. Raises as write()."""
    folder, name = os.path.split(target)
    data_path = save(page, folder, name.removesuffix(".html"))
    write(page, target)
    return f"the page: {target}, its data: {data_path}"


def main(_quoit, arguments):
    parser = Parser("quoit report", description=(
        "Writes a report as one HTML page that opens offline. What the data hold is said in docs/report.md; they may also be what\n"
        "a job printed on stderr under DSM_STATS=json, blocks or pages: where the time of its PEs went. The same data give the\n"
        "same page, byte for byte. Wrong data: one line that names the place, status 1, no page."))
    parser.add_argument("data", metavar="DATA.json", help='the data; "-": standard input')
    parser.add_argument("--html", metavar="FILE", required=True, help="write the page there")
    options = parser.parse_args(arguments)
    drawing.find_matplotlib()
    try:
        with (sys.stdin if options.data == "-" else open(options.data, encoding="utf-8")) as file:
            text = file.read()
        write(dsm_stats.report(text) if dsm_stats.is_stats(text) else json.loads(text), options.html)
    except (OSError, ValueError, RecursionError, Wrong, dsm_stats.Wrong) as problem:
        sys.exit(f"quoit report: {problem}")
    return 0
