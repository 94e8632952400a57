# SPDX-License-Identifier: BSD-3-Clause
"""The plots of a page (docs/report.md), drawn by matplotlib as SVG for a page of either theme: colours are variables of its
style sheet (page.css), beside which stands the colour of the light theme, for an SVG that is saved."""
import importlib.util
import io
import os
import re
import sys
import textwrap

import units

DEBIAN_PYTHON = "/usr/bin/python3"  # for which the package installs, whatever other python3 comes first
MISSING = "quoit report: matplotlib is missing; on Debian: apt-get install python3-matplotlib"
COLOURS = ["#0072b2", "#d55e00", "#00805f", "#b3468c", "#8a5a00", "#007f8c", "#6b4c9a", "#66661a"]
INK, GRID, LIMIT = "#24292f", "#dfe3e8", "#5a626b"
VARIABLES = {**{colour: f"c{i}" for i, colour in enumerate(COLOURS)}, INK: "ink", GRID: "grid", LIMIT: "limit"}
MARKERS = "osD^vPX*"
LIMIT_LINES = ["--", "-.", ":"]
FONT = 9  # of the least text; a plot that fills a screen of 360 px shows it at 11 px and more
WIDTH, HEIGHT, TURNED, LEGEND_ROW = 3.4, 2.3, 0.6, 0.2  # inches; TURNED: more, where names of groups are turned
MARGIN = 0.02  # of the width
NAME_MAX, SHORT_MAX, TITLE_MAX, TICKS_MAX, GROUPS_MAX = 44, 18, 40, 6, 34  # letters, but TICKS_MAX


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
    matplotlib.rcParams.update({
        "svg.fonttype": "none", "svg.hashsalt": "quoit", "font.size": FONT, "font.family": "sans-serif", "axes.grid": True,
        "grid.color": GRID, "axes.axisbelow": True, "legend.fontsize": FONT, "legend.frameon": False, "xtick.labelsize": FONT,
        "ytick.labelsize": FONT, "figure.titlesize": 10, "axes.spines.top": False,
        "axes.spines.right": False, **{f"{part}.color": INK for part in ("text", "xtick", "ytick")}, "axes.edgecolor": INK,
        "axes.labelcolor": INK})


def wrap(text, width=NAME_MAX):
    return textwrap.fill(text, width).replace("$", r"\$")  # which begins a formula


def draw_band(axes, band, colour, span):
    """A range over all x, over some, or at one, which becomes a bar with ends."""
    points = sorted(band.get("points", []))
    name = wrap(band["name"])
    if len(points) == 1:
        x, low, high = points[0]
        axes.errorbar([x], [(low + high) / 2], yerr=[abs(high - low) / 2], fmt="none", ecolor=colour, elinewidth=6,
                      alpha=0.35, capsize=7, label=name)
    elif points:
        axes.fill_between([p[0] for p in points], [p[1] for p in points], [p[2] for p in points], color=colour,
                          alpha=0.2, linewidth=0, label=name)
    else:
        axes.fill_between(span, [band["low"]] * 2, [band["high"]] * 2, color=colour, alpha=0.2, linewidth=0, label=name)


def set_x(axes, item, xs):
    from matplotlib import ticker
    label = units.size if item.get("x_is_bytes") else units.plain
    if item.get("x_is_bytes") or item.get("x_is_log2"):
        axes.set_xscale("log", base=2)
    if item.get("x_is_bytes"):
        axes.xaxis.set_major_formatter(ticker.FuncFormatter(units.size))
    if len(xs) <= 2 * TICKS_MAX:
        shown = xs[::-2][::-1] if len(xs) > TICKS_MAX else xs
        axes.set_xticks(shown, [label(x) for x in shown])
    axes.xaxis.set_minor_locator(ticker.NullLocator())
    axes.set_xlabel(wrap(item["x_label"]))


def draw_lines(axes, item):
    for i, series in enumerate(item["series"]):
        points = sorted(series["points"])
        axes.plot([p[0] for p in points], [p[1] for p in points], "--" if series.get("is_dashed") else "-",
                  color=COLOURS[i % len(COLOURS)], marker=MARKERS[i % len(MARKERS)], markersize=4, linewidth=1.4,
                  label=wrap(series["name"]))
    xs = sorted({p[0] for series in item["series"] for p in series["points"]}) or [0, 1]
    for i, band in enumerate(item.get("bands", [])):
        draw_band(axes, band, COLOURS[-1 - i % len(COLOURS)], (xs[0], xs[-1]))
    for i, limit in enumerate(item.get("limits", [])):
        points = sorted(limit.get("points", [])) or [(xs[0], limit["y"]), (xs[-1], limit["y"])]
        axes.plot([p[0] for p in points], [p[1] for p in points], LIMIT_LINES[i % len(LIMIT_LINES)], color=LIMIT,
                  linewidth=1.2, label=wrap(limit["name"]))
    set_x(axes, item, xs)


def is_crowded(item):
    """Whether the names of groups need to be turned."""
    return sum(len(str(group)) + 2 for group in item.get("groups", [])) > GROUPS_MAX


def draw_bars(axes, item):
    places = range(len(item["groups"]))
    is_stacked = item.get("is_stacked", False)
    width = 0.6 if is_stacked else 0.8 / max(len(item["series"]), 1)
    base = [0.0] * len(item["groups"])
    for i, series in enumerate(item["series"]):
        values = [value or 0 for value in series["values"]]
        shift = 0 if is_stacked else (i - (len(item["series"]) - 1) / 2) * width
        axes.bar([place + shift for place in places], values, width, bottom=base if is_stacked else None,
                 color=COLOURS[i % len(COLOURS)], label=wrap(series["name"]))
        if is_stacked:
            base = [below + value for below, value in zip(base, values)]
    for i, band in enumerate(item.get("bands", [])):
        middle = item["groups"].index(band["group"]) if "group" in band else None
        span = (-0.5, len(item["groups"]) - 0.5) if middle is None else (middle - 0.45, middle + 0.45)
        draw_band(axes, {"name": band["name"], "low": band["low"], "high": band["high"]},
                  COLOURS[-1 - i % len(COLOURS)], span)
    for i, limit in enumerate(item.get("limits", [])):
        axes.axhline(limit["y"], linestyle=LIMIT_LINES[i % len(LIMIT_LINES)], color=LIMIT,
                     linewidth=1.2, label=wrap(limit["name"]))
    axes.set_xticks(list(places), [group.replace("$", r"\$") for group in map(str, item["groups"])])
    if is_crowded(item):
        axes.tick_params(axis="x", rotation=40)
        for label in axes.get_xticklabels():
            label.set_horizontalalignment("right")


def spans_decade(item):
    values = [value for one in item["series"] for value in one.get("values", [p[1] for p in one.get("points", [])]) if value]
    return bool(values) and max(values) >= 10 * min(values)


def set_y(axes, item):
    from matplotlib import ticker
    if item.get("y_is_log") and spans_decade(item):
        axes.set_yscale("log")
        low, high = axes.get_ylim()
        if high < 100 * low:  # with so few decades their tenths are marked too
            axes.yaxis.set_major_locator(ticker.LogLocator(base=10, subs=(1, 2, 5)))
        axes.yaxis.set_minor_formatter(ticker.NullFormatter())
    else:
        axes.set_ylim(bottom=min(0, axes.get_ylim()[0]))
    axes.yaxis.set_major_formatter(ticker.FuncFormatter(lambda value, _: units.text(value, item.get("y_unit"))))
    axes.set_ylabel(wrap(item["y_label"], 30))


def svg_of(figure, number):
    """The picture as part of a page: no prologue, no outside names, identifiers of its own, colours of the theme."""
    out = io.StringIO()
    figure.savefig(out, format="svg", transparent=True, metadata={key: None for key in ("Creator", "Date", "Format", "Type")})
    text = out.getvalue()
    text = text[text.index("<svg"):]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.S)
    text = re.sub(r' xmlns(:\w+)?="[^"]*"', "", text).replace("xlink:href", "href")
    text = re.sub(r'\bid="', f'id="p{number}-', text)
    text = re.sub(r'(href="|url\()#', rf"\1#p{number}-", text)
    text = text.replace("'sans-serif'", "sans-serif")  # the family of the machine that shows it, not one of that name
    return re.sub("|".join(VARIABLES), lambda found: f"var(--{VARIABLES[found.group()]}, {found.group()})", text)


def svg(item, number):
    """One plot; its identifiers begin with its number on the page."""
    from matplotlib.figure import Figure
    from matplotlib.transforms import blended_transform_factory
    names = [one["name"] for plural in ("series", "bands", "limits") for one in item.get(plural, [])]
    columns = 2 if names and max(map(len, names)) <= SHORT_MAX else 1
    rows = -(-len(names) // 2) if columns == 2 else sum(wrap(name).count("\n") + 1 for name in names)
    below, above = LEGEND_ROW * rows + 0.05, HEIGHT + TURNED * is_crowded(item)
    figure = Figure(figsize=(WIDTH, above + below), layout="constrained")
    axes, legend = figure.subplots(2, gridspec_kw={"height_ratios": (above, below)})
    legend.axis("off")
    (draw_lines if item["kind"] == "lines" else draw_bars)(axes, item)
    set_y(axes, item)
    figure.suptitle(wrap(item["title"], TITLE_MAX), x=MARGIN, horizontalalignment="left")
    handles, labels = axes.get_legend_handles_labels()
    if handles:
        legend.legend(handles, labels, loc="upper left", borderaxespad=0, ncol=columns, bbox_to_anchor=(MARGIN, 1),
                      bbox_transform=blended_transform_factory(figure.transFigure, legend.transAxes))
    figure.draw_without_rendering()  # which may change the ticks, and with them the room that they need
    return svg_of(figure, number)
