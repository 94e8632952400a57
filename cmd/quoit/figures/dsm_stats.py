# SPDX-License-Identifier: BSD-3-Clause
"""The lines that DSM_STATS=json, blocks and pages print, as a report: where the time of each PE went, what it counted, and
the blocks or pages with the most traffic."""
import json

MARK = '{"pe":'
PARTS = (("compute", "compute_ns"), ("page", "page_ns"), ("diff", "diff_ns"), ("lock wait", "lock_ns"),
         ("barrier wait", "barrier_ns"))
SERVICE = "service_ns"
PLACES = ("block", "page")
PLACES_MAX = 40


class Wrong(Exception):
    """A line is not as the library prints it; the text names the line."""


def is_stats(text):
    return any(line.startswith(MARK) for line in text.splitlines())


def read(text):
    """(the line of each PE, the lines of blocks and pages); other output of the job is left out."""
    pes, places = {}, []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.startswith(MARK):
            continue
        try:
            one = json.loads(line)
        except (ValueError, RecursionError) as problem:
            raise Wrong(f"line {number}: {problem}") from None
        kind = next((name for name in PLACES if name in one), None)
        names = [key for key in one if key != kind] if kind else ["pe", "wall_ns", SERVICE, *(key for _, key in PARTS), *one]
        for name in names:
            value = one.get(name)
            if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 1 << 64:
                raise Wrong(f"line {number}: {name!r} is not a count")
        if kind and not isinstance(one[kind], str):
            raise Wrong(f"line {number}: {kind!r} is not an address")
        if not kind and one["pe"] in pes:
            raise Wrong(f"line {number}: PE {one['pe']} is there twice; a report is of one run")
        if kind:
            places.append((kind, one))
        else:
            pes[one["pe"]] = one
    return [pes[pe] for pe in sorted(pes)], places


def bars(pes):
    groups = [f"PE {one['pe']}" for one in pes]
    items = [{"kind": "bars", "title": "Time of each PE", "y_label": "time", "y_unit": "s", "is_stacked": True, "groups": groups,
              "text": "The parts add up to the time between dsm_init and dsm_finalize.",
              "series": [{"name": name, "values": [one[key] / 1e9 for one in pes]} for name, key in PARTS]}]
    if any(one[SERVICE] for one in pes):
        items.append({"kind": "bars", "title": "Service", "y_label": "time", "y_unit": "s", "groups": groups,
                      "text": "Time of each PE's handler, a thread of its own beside the parts above.",
                      "series": [{"name": "service", "values": [one[SERVICE] / 1e9 for one in pes]}]})
    return items


def shares(pes):
    rows = [[name, sum(one[key] for one in pes) / len(pes) / 1e9,
             100 * sum(one[key] for one in pes) / max(1, sum(one["wall_ns"] for one in pes))] for name, key in PARTS]
    return {"kind": "table", "title": "Mean of the PEs", "columns": ["", "time", "share"], "units": [None, "s", "%"], "rows": rows}


def counts(pes):
    times = {"pe", "wall_ns", SERVICE, *(key for _, key in PARTS)}
    names = [name for name in pes[0] if name not in times and any(one.get(name) for one in pes)]
    return {"kind": "table", "columns": ["", *[f"PE {one['pe']}" for one in pes]],
            "rows": [[name.replace("_", " "), *[one.get(name) for one in pes]] for name in names]}


def traffic(one):
    return one.get("fetches", 0) + one.get("diffs", 0) + one.get("false_sharing", 0)


def table_of_places(places):
    """Those with the most fetches and diffs first; where several PEs wrote at once is marked."""
    names = [name for name in places[0][1] if name not in ("pe", *PLACES)]
    rows = []
    for kind, one in sorted(places, key=lambda place: -traffic(place[1]))[:PLACES_MAX]:
        cells = [{"value": one.get(name), "mark": "bad"} if name == "false_sharing" and one.get(name) else one.get(name)
                 for name in names]
        rows.append([f"{kind} {one[kind]}", one["pe"], *cells])
    return {"kind": "table", "columns": ["", "PE", *[name.replace("_", " ") for name in names]], "rows": rows}


def report(text):
    pes, places = read(text)
    sections = []
    if pes:
        sections += [{"title": "Where the time went", "items": [*bars(pes), shares(pes)]},
                     {"title": "Counts", "items": [counts(pes)]}]
    if places:
        shown = min(len(places), PLACES_MAX)
        sections.append({"title": "Blocks and pages", "items": [
            {"kind": "text", "text": [f"The {shown} of {len(places)} with the most fetches and diffs. Where false sharing is "
                                      "marked, two PEs wrote one page between two barriers."]}, table_of_places(places)]})
    return {"title": "Shared pages", "sections": sections}
