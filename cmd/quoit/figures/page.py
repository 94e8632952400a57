# SPDX-License-Identifier: BSD-3-Clause
"""The page of a report: data as docs/report.md says, checked, drawn by matplotlib, written as one HTML file."""
import html
import importlib.util
import io
import json
import os
import re
import sys

import dsm_stats

DEBIAN_PYTHON = "/usr/bin/python3"  # for which the package installs, whatever other python3 comes first
MISSING = "quoit report: matplotlib is missing; on Debian: apt-get install python3-matplotlib"
COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000", "#999933"]
MARKERS = "osD^vPX*"
LIMIT_LINES = ["--", "-.", ":"]
STYLE = """
body { font: 15px/1.5 sans-serif; color: #222; max-width: 64em; margin: 2em auto; padding: 0 1em; }
table { border-collapse: collapse; margin: 0.5em 0 1.5em; }
th, td { border-bottom: 1px solid #ccc; padding: 0.2em 0.8em; text-align: left; vertical-align: top; }
td.number { text-align: right; font-variant-numeric: tabular-nums; }
caption { text-align: left; font-weight: bold; padding: 0.3em 0; }
figure { margin: 1em 0; } figcaption { color: #555; } svg { max-width: 100%; height: auto; }
.good { color: #00663d; } .bad { color: #b00020; font-weight: bold; } .note { color: #777; }
details { margin-bottom: 1.5em; } summary { color: #555; cursor: pointer; }
"""


class Wrong(Exception):
    """The data are not as docs/report.md says; the text names the place."""


def find_matplotlib():
    """Goes on with the Python that has it, before anything is read or measured."""
    if importlib.util.find_spec("matplotlib") is None:
        if os.access(DEBIAN_PYTHON, os.X_OK) and os.path.realpath(sys.executable) != os.path.realpath(DEBIAN_PYTHON):
            os.execv(DEBIAN_PYTHON, [DEBIAN_PYTHON, "-B", *sys.argv])
        sys.exit(MISSING)
    load_matplotlib()


def load_matplotlib():
    try:
        import matplotlib
    except ImportError:
        sys.exit(MISSING)
    matplotlib.use("svg")
    matplotlib.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "quoit", "font.size": 10, "axes.grid": True,
                                "grid.color": "#e0e0e0", "axes.axisbelow": True, "legend.fontsize": 8})


# What the data must look like: {key: (types, is_required)}

NUMBER = (int, float)
TEXT = {"text": (list, True)}
TABLE = {"title": (str, False), "columns": (list, True), "rows": (list, True)}
PLOT = {"title": (str, True), "text": (str, False), "y_label": (str, True), "y_is_log": (bool, False),
        "series": (list, True), "bands": (list, False), "limits": (list, False)}
LINES = {**PLOT, "x_label": (str, True), "x_is_bytes": (bool, False), "x_is_log2": (bool, False)}
BARS = {**PLOT, "groups": (list, True), "is_stacked": (bool, False)}
SHAPES = {
    "page": {"title": (str, True), "text": (list, False), "sections": (list, True)},
    "section": {"title": (str, True), "items": (list, True)},
    "text": TEXT, "table": TABLE, "lines": LINES, "bars": BARS,
    "lines series": {"name": (str, True), "points": (list, True), "is_dashed": (bool, False)},
    "lines band": {"name": (str, True), "low": (NUMBER, False), "high": (NUMBER, False), "points": (list, False)},
    "lines limit": {"name": (str, True), "y": (NUMBER, False), "points": (list, False)},
    "bars series": {"name": (str, True), "values": (list, True)},
    "bars band": {"name": (str, True), "group": (str, False), "low": (NUMBER, True), "high": (NUMBER, True)},
    "bars limit": {"name": (str, True), "y": (NUMBER, True)},
    "cell": {"value": ((str, int, float, type(None)), True), "mark": (str, False)},
}


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


def check_cells(rows, where):
    for r, row in enumerate(rows):
        for c, value in enumerate(row):
            at = f"{where}[{r}][{c}]"
            check(value if isinstance(value, dict) else {"value": value}, "cell", at)
            if isinstance(value, dict) and value.get("mark", "good") not in ("good", "bad", "note"):
                raise Wrong(f"{at}.mark is none of good, bad, note")


def check_page(page):
    check(page, "page", "the report")
    for s, section in enumerate(page["sections"]):
        check(section, "section", f"sections[{s}]")
        for i, item in enumerate(section["items"]):
            where = f"sections[{s}].items[{i}]"
            kind = item.get("kind") if isinstance(item, dict) else None
            if kind not in ("text", "table", "lines", "bars"):
                raise Wrong(f"{where}.kind is none of text, table, lines, bars")
            check(item, kind, where, ignored=("kind",))
            if kind == "table":
                check_rows(item["rows"], len(item["columns"]), f"{where}.rows")
                check_cells(item["rows"], f"{where}.rows")
            elif kind != "text":
                check_plot(item, kind, where)


# Tables and text

def escape(text):
    return html.escape(str(text), quote=True)


def shown(value):
    if value is None:
        return "\u2013"
    if isinstance(value, float):
        return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.4g}"
    return str(value)


def cell(value):
    names = []
    if isinstance(value, dict):
        names = [value["mark"]] if "mark" in value else []
        value = value["value"]
    if is_of(value, NUMBER):
        names.append("number")
    attribute = f' class="{" ".join(names)}"' if names else ""
    return f"<td{attribute}>{escape(shown(value))}</td>"


def table(item):
    out = ["<table>"]
    if "title" in item:
        out.append(f"<caption>{escape(item['title'])}</caption>")
    out.append("<thead><tr>" + "".join(f"<th>{escape(name)}</th>" for name in item["columns"]) + "</tr></thead><tbody>")
    out += ["<tr>" + "".join(cell(value) for value in row) + "</tr>" for row in item["rows"]]
    out.append("</tbody></table>")
    return "\n".join(out)


def paragraphs(lines):
    return "\n".join(f"<p>{escape(line)}</p>" for line in lines)


def data_table(item):
    """The numbers of a plot, for those who want them or cannot see it."""
    if item["kind"] == "bars":
        columns = [""] + [series["name"] for series in item["series"]]
        rows = [[group] + [series["values"][g] for series in item["series"]] for g, group in enumerate(item["groups"])]
    else:
        columns = [item["x_label"]] + [series["name"] for series in item["series"]]
        by_series = [dict(map(tuple, series["points"])) for series in item["series"]]
        xs = sorted({x for points in by_series for x in points})
        label = bytes_text if item.get("x_is_bytes") else shown
        rows = [[label(x)] + [points.get(x) for points in by_series] for x in xs]
    return f"<details><summary>numbers</summary>{table({'columns': columns, 'rows': rows})}</details>"


# Plots

def bytes_text(value, _position=None):
    for unit, factor in (("G", 1 << 30), ("M", 1 << 20), ("K", 1 << 10)):
        if value >= factor:
            return f"{value / factor:.4g} {unit}"
    return f"{value:.4g}"


def draw_band(axes, band, colour, span):
    """A range over all x, over some, or at one, which becomes a bar with ends."""
    points = sorted(band.get("points", []))
    if len(points) == 1:
        x, low, high = points[0]
        axes.errorbar([x], [(low + high) / 2], yerr=[(high - low) / 2], fmt="none", ecolor=colour, elinewidth=6,
                      alpha=0.35, capsize=7, label=band["name"])
    elif points:
        axes.fill_between([p[0] for p in points], [p[1] for p in points], [p[2] for p in points], color=colour,
                          alpha=0.2, linewidth=0, label=band["name"])
    else:
        axes.fill_between(span, [band["low"]] * 2, [band["high"]] * 2, color=colour, alpha=0.2, linewidth=0,
                          label=band["name"])


def draw_lines(axes, item):
    from matplotlib import ticker
    for i, series in enumerate(item["series"]):
        points = sorted(series["points"])
        axes.plot([p[0] for p in points], [p[1] for p in points], "--" if series.get("is_dashed") else "-",
                  color=COLOURS[i % len(COLOURS)], marker=MARKERS[i % len(MARKERS)], markersize=4, linewidth=1.4,
                  label=series["name"])
    xs = sorted({p[0] for series in item["series"] for p in series["points"]}) or [0, 1]
    for i, band in enumerate(item.get("bands", [])):
        draw_band(axes, band, COLOURS[-1 - i % len(COLOURS)], (xs[0], xs[-1]))
    for i, limit in enumerate(item.get("limits", [])):
        points = sorted(limit.get("points", [])) or [(xs[0], limit["y"]), (xs[-1], limit["y"])]
        axes.plot([p[0] for p in points], [p[1] for p in points], LIMIT_LINES[i % len(LIMIT_LINES)], color="#555555",
                  linewidth=1.2, label=limit["name"])
    if item.get("x_is_bytes") or item.get("x_is_log2"):
        axes.set_xscale("log", base=2)
    if item.get("x_is_bytes"):
        axes.xaxis.set_major_formatter(ticker.FuncFormatter(bytes_text))
    if len(xs) <= 12:
        axes.set_xticks(xs, [(bytes_text if item.get("x_is_bytes") else shown)(x) for x in xs])
    axes.tick_params(axis="x", labelsize=8)
    axes.xaxis.set_minor_locator(ticker.NullLocator())
    axes.set_xlabel(item["x_label"])


def draw_bars(axes, item):
    places = range(len(item["groups"]))
    is_stacked = item.get("is_stacked", False)
    width = 0.6 if is_stacked else 0.8 / max(len(item["series"]), 1)
    base = [0.0] * len(item["groups"])
    for i, series in enumerate(item["series"]):
        values = [value or 0 for value in series["values"]]
        shift = 0 if is_stacked else (i - (len(item["series"]) - 1) / 2) * width
        axes.bar([place + shift for place in places], values, width, bottom=base if is_stacked else None,
                 color=COLOURS[i % len(COLOURS)], label=series["name"])
        if is_stacked:
            base = [below + value for below, value in zip(base, values)]
    for i, band in enumerate(item.get("bands", [])):
        middle = item["groups"].index(band["group"]) if "group" in band else None
        span = (-0.5, len(item["groups"]) - 0.5) if middle is None else (middle - 0.45, middle + 0.45)
        draw_band(axes, {"name": band["name"], "low": band["low"], "high": band["high"]},
                  COLOURS[-1 - i % len(COLOURS)], span)
    for i, limit in enumerate(item.get("limits", [])):
        axes.axhline(limit["y"], linestyle=LIMIT_LINES[i % len(LIMIT_LINES)], color="#555555",
                     linewidth=1.2, label=limit["name"])
    axes.set_xticks(list(places), item["groups"])
    if len(item["groups"]) > 6:
        axes.tick_params(axis="x", rotation=30, labelsize=8)


def svg_of(figure, number):
    """The picture as part of a page: no prologue, no outside names, identifiers of its own."""
    out = io.StringIO()
    figure.savefig(out, format="svg", metadata={key: None for key in ("Creator", "Date", "Format", "Type")})
    text = out.getvalue()
    text = text[text.index("<svg"):]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.S)
    text = re.sub(r' xmlns(:\w+)?="[^"]*"', "", text).replace("xlink:href", "href")
    text = re.sub(r'\bid="', f'id="p{number}-', text)
    text = re.sub(r'(href="|url\()#', rf"\1#p{number}-", text)
    return text


def plot(item, number):
    from matplotlib.figure import Figure
    figure = Figure(figsize=(8, 4.2), layout="constrained")
    axes = figure.add_subplot()
    (draw_lines if item["kind"] == "lines" else draw_bars)(axes, item)
    if item.get("y_is_log"):
        axes.set_yscale("log")
    else:
        axes.set_ylim(bottom=min(0, axes.get_ylim()[0]))
    axes.set_ylabel(item["y_label"])
    axes.set_title(item["title"])
    if axes.get_legend_handles_labels()[0]:
        axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False)
    caption = f"<figcaption>{escape(item['text'])}</figcaption>" if "text" in item else ""
    return f"<figure>{svg_of(figure, number)}{caption}</figure>\n{data_table(item)}"


# The page

def page_of(page):
    out = ['<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"/>',
           '<meta name="viewport" content="width=device-width"/>',
           f"<title>{escape(page['title'])}</title><style>{STYLE}</style></head><body>",
           f"<h1>{escape(page['title'])}</h1>", paragraphs(page.get("text", []))]
    if len(page["sections"]) > 1:
        links = (f'<li><a href="#s{s}">{escape(one["title"])}</a></li>' for s, one in enumerate(page["sections"]))
        out.append(f"<ul>{''.join(links)}</ul>")
    plot_count = 0
    for s, section in enumerate(page["sections"]):
        out.append(f'<h2 id="s{s}">{escape(section["title"])}</h2>')
        for item in section["items"]:
            if item["kind"] == "text":
                out.append(paragraphs(item["text"]))
            elif item["kind"] == "table":
                out.append(table(item))
            else:
                plot_count += 1
                out.append(plot(item, plot_count))
    out.append("</body></html>\n")
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


def publish(page, folder, name):
    """Writes the data and the page side by side; returns a line that says where. Raises as write()."""
    data_path, target = save(page, folder, name), os.path.join(folder, f"{name}.html")
    write(page, target)
    return f"the page: {target}, its data: {data_path}"


USAGE = """usage: quoit report DATA.json PAGE.html

Writes a report as one HTML page that opens offline ("-": standard input). What DATA.json holds is said in docs/report.md.
DATA.json may also be what a job printed on stderr under DSM_STATS=json, blocks or pages: where the time of its PEs went.
Plots become SVG within the page, and nothing in it leads elsewhere. The same data gives the same page, byte for byte. Wrong
data: one line that names the place, status 1, no page."""


def main(_quoit, arguments):
    if arguments in (["--help"], ["-h"]):
        print(USAGE)
        return 0
    if len(arguments) != 2:
        print(USAGE, file=sys.stderr)
        return 2
    source, target = arguments
    find_matplotlib()
    try:
        with (sys.stdin if source == "-" else open(source, encoding="utf-8")) as file:
            text = file.read()
        write(dsm_stats.report(text) if dsm_stats.is_stats(text) else json.loads(text), target)
    except (OSError, ValueError, RecursionError, Wrong, dsm_stats.Wrong) as problem:
        sys.exit(f"quoit report: {problem}")
    return 0
