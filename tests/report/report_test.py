#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Aim: quoit report writes its data into a self-contained page, and rejects invalid data naming the place. Method: one
report with every kind of item and part; the page is read back as a tree and compared with the data; then copies of the
data with one error each."""
import copy
import json
import os
import subprocess
import sys
import tempfile

import page

REPORT = sys.argv[1]
SAMPLE = {
    "title": "A <sample> & \"more\"", "text": ["First & foremost."],
    "sections": [
        {"title": "Lines", "items": [
            {"kind": "text", "text": ["A paragraph."]},
            {"kind": "table", "title": "T", "columns": ["a", "b"],
             "rows": [["x<y", 1.25], [{"value": "off", "mark": "bad"}, None]]},
            {"kind": "lines", "title": "rate", "x_label": "size", "y_label": "speed", "y_unit": "MB/s", "x_is_bytes": True,
             "series": [{"name": "puts", "points": [[1024, 100], [4096, 321.5], [1048576, 6000]]},
                        {"name": "gets", "points": [[1024, 50], [1048576, 5000]], "is_dashed": True}],
             "bands": [{"name": "at one", "points": [[1048576, 4500, 5000]]},
                       {"name": "everywhere", "low": 2500, "high": 3750},
                       {"name": "somewhere", "points": [[1024, 10, 60], [4096, 100, 200]]}],
             "limits": [{"name": "the link", "y": 6410}, {"name": "a copy", "points": [[1024, 9], [1048576, 6200]]}]}]},
        {"title": "Bars", "items": [
            {"kind": "bars", "title": "time", "text": "caption", "y_label": "us", "groups": ["one", "two"],
             "is_stacked": True, "y_is_log": False,
             "series": [{"name": "p", "values": [1, None]}, {"name": "q", "values": [2, 3]}],
             "bands": [{"name": "told", "group": "two", "low": 2, "high": 2.5}], "limits": [{"name": "end", "y": 4}]},
            {"kind": "table", "columns": ["c", "d"], "units": ["ns", None],
             "rows": [[1234.5, {"value": 4096, "unit": "B"}], [999.96e6, {"value": 23920, "unit": "MB/s"}]]},
            {"kind": "boxes", "boxes": [{"title": "a box", "mark": "bad", "quote": "said so",
                                         "facts": [["is", {"value": 50, "unit": "%", "mark": "bad"}], ["was", "else"]]}]}]}]}


def write(data, folder):
    target = os.path.join(folder, "page.html")
    result = subprocess.run([sys.executable, "-B", REPORT, "report", "quoit", "-", "--html", target], input=json.dumps(data), text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=280)
    return result, target


def test_page():
    with tempfile.TemporaryDirectory() as folder:
        result, target = write(SAMPLE, folder)
        assert result.returncode == 0 and not result.stderr, result
        tree = page.check(target)
        assert os.listdir(folder) == ["page.html"]
        with open(target, "rb") as file:
            first = file.read()
        write(SAMPLE, folder)
        with open(target, "rb") as file:
            assert first == file.read(), "the same data gave another page"
    text = "".join(tree.itertext())
    for word in ("A <sample> & \"more\"", "First & foremost.", "A paragraph.", "puts", "gets", "at one", "everywhere",
                 "somewhere", "the link", "a copy", "told", "end", "caption", "size", "speed", "a box", "said so", "50 %", "else"):
        assert word in text, f"{word} is not on the page"
    assert len(list(tree.iter("svg"))) == 2
    own, lines, bars, scaled = page.tables(tree)
    assert own == [["a", "b"], ["x<y", "1.25"], ["off", "\u2013"]], own
    assert lines[0] == ["size", "puts", "gets", "at one, low", "at one, high", "everywhere, low", "everywhere, high",
                        "somewhere, low", "somewhere, high", "the link", "a copy"], lines
    assert [row[:3] for row in lines[1:]] == [["1 KiB", "100 MB/s", "50 MB/s"], ["4 KiB", "322 MB/s", "\u2013"],
                                              ["1 MiB", "6 GB/s", "5 GB/s"]], lines
    assert lines[3][3:7] == ["4.5 GB/s", "5 GB/s", "2.5 GB/s", "3.75 GB/s"] and lines[2][7:] == [
        "100 MB/s", "200 MB/s", "6.41 GB/s", "\u2013"], lines
    assert bars == [["", "p", "q", "told, low", "told, high", "end"], ["one", "1", "2", "\u2013", "\u2013", "4"],
                    ["two", "\u2013", "3", "2", "2.5", "4"]], bars
    assert scaled == [["c", "d"], ["1.23 us", "4 KiB"], ["1 s", "23.9 GB/s"]], scaled
    raw = [[cell.get("data-value", cell.text) for cell in row] for row in next(tree.iter("figure")).iter("tr")]
    assert raw[0][:2] == ["size", "puts (MB/s)"] and raw[2][:3] == ["4096", "321.5", ""], f"for a CSV: {raw}"


def test_wrong_data():
    def broken(change):
        data = copy.deepcopy(SAMPLE)
        change(data)
        return data

    lines, bars = (lambda data: data["sections"][0]["items"][2]), (lambda data: data["sections"][1]["items"][0])
    box = lambda data: data["sections"][1]["items"][2]["boxes"][0]
    cases = [
        (broken(lambda data: data.pop("title")), "'title' is missing"),
        (broken(lambda data: data.update(titel="x")), "no key 'titel'"),
        (broken(lambda data: data["sections"][0]["items"][0].update(kind="pie")), "sections[0].items[0].kind"),
        (broken(lambda data: data["sections"][0]["items"][1]["rows"][0].pop()), "items[1].rows[0]"),
        (broken(lambda data: data["sections"][0]["items"][1]["rows"][1][0].update(mark="x")), "rows[1][0].mark"),
        (broken(lambda data: lines(data)["series"][0]["points"].append([1, "2"])), "series[0].points[3][1]"),
        (broken(lambda data: lines(data)["bands"][1].pop("low")), "bands[1] has neither"),
        (broken(lambda data: lines(data).update(x_is_bytes=1)), "x_is_bytes has the wrong type"),
        (broken(lambda data: bars(data)["series"][0]["values"].pop()), "series[0].values"),
        (broken(lambda data: lines(data).update(bands=[{"name": "x", "points": []}])), "bands[0] has neither points nor a constant"),
        (broken(lambda data: lines(data).update(limits=[{"name": "x", "points": []}])), "limits[0] has neither points nor a constant"),
        (broken(lambda data: bars(data)["groups"].__setitem__(0, ["one"])), "groups[0] is not a text"),
        (broken(lambda data: bars(data)["bands"][0].update(group="three")), "no group 'three'"),
        (broken(lambda data: data["sections"][1]["items"][1]["units"].pop()), "items[1].units[0] does not have 2 entries"),
        (broken(lambda data: data["sections"][1]["items"][1]["units"].append(7)), "items[1].units"),
        (broken(lambda data: box(data).pop("facts")), "boxes[0]: 'facts' is missing"),
        (broken(lambda data: box(data)["facts"].append(["x", "y", "z"])), "boxes[0].facts[2]"),
        (broken(lambda data: box(data).update(mark="x")), "boxes[0].mark is none of"),
    ]
    with tempfile.TemporaryDirectory() as folder:
        for data, message in cases:
            result, target = write(data, folder)
            assert result.returncode == 1 and message in result.stderr, f"{message}: {result}"
            assert result.stderr.count("\n") == 1 and not os.listdir(folder), f"{message}: {result.stderr}"


STATS = '{"pe":%d,"wall_ns":%d,"compute_ns":1500000000,"page_ns":250000000,"diff_ns":0,"lock_ns":0,"barrier_ns":0,' \
        '"service_ns":%d,"read_faults":%d,"log_overruns":0}\n'
PLACE = '{"pe":0,"block":"0x200000000000","bytes":8192,"fetches":%d,"diffs":1,"false_sharing":%d}\n'


def write_text(text, folder):
    target = os.path.join(folder, "page.html")
    result = subprocess.run([sys.executable, "-B", REPORT, "report", "quoit", "-", "--html", target], input=text, text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=280, check=False)
    return result, target


def test_stats():
    """Lines of DSM_STATS among other output: each part of each PE's time is plotted, counts and places are in tables."""
    with tempfile.TemporaryDirectory() as folder:
        text = ("a line of the program\n" + STATS % (1, 1750000000, 0, 7) + STATS % (0, 1750000000, 125000000, 8)
                + PLACE % (3, 0) + PLACE % (9, 2))
        result, target = write_text(text, folder)
        assert result.returncode == 0 and not result.stderr, result
        tree = page.check(target)
    times, service, means, counts, places = page.tables(tree)
    assert times[0][1:] == ["compute", "page", "diff", "lock wait", "barrier wait"], times
    assert times[1:] == [["PE 0", "1.5 s", "250 ms", "0 s", "0 s", "0 s"],
                         ["PE 1", "1.5 s", "250 ms", "0 s", "0 s", "0 s"]], times
    assert service[1:] == [["PE 0", "125 ms"], ["PE 1", "0 s"]], service
    assert means[1] == ["compute", "1.5 s", "85.71 %"] and means[2] == ["page", "250 ms", "14.29 %"], means
    assert counts == [["", "PE 0", "PE 1"], ["read faults", "8", "7"]], counts
    assert [row[3] for row in places] == ["fetches", "9", "3"] and places[1][5] == "2", places


def test_wrong_stats():
    good = STATS % (0, 1, 0, 0)
    for text, message in ((good + good, "line 2: PE 0 is there twice"), (good.replace(":1,", ':"1",'), "line 1: 'wall_ns'"),
                          (good.replace('"diff_ns"', '"dif_ns"'), "'diff_ns' is not a count"), (good[:40], "line 1: "),
                          ((PLACE % (1, 0)).replace('"0x200000000000"', "[]"), "line 1: 'block' is not an address")):
        with tempfile.TemporaryDirectory() as folder:
            result, _ = write_text(text, folder)
            assert result.returncode == 1 and message in result.stderr, f"{message}: {result}"
            assert result.stderr.count("\n") == 1 and not os.listdir(folder), f"{message}: {result.stderr}"


def test_matplotlib_missing():
    """With a broken one that precedes it in PATH."""
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "matplotlib.py"), "w", encoding="utf-8") as file:
            file.write("raise ImportError('not here')\n")
        result = subprocess.run([sys.executable, "-B", REPORT, "report", "quoit", "-", "--html", "/dev/null"],
                                input=json.dumps(SAMPLE), text=True,
                                env={**os.environ, "PYTHONPATH": folder}, stderr=subprocess.PIPE, timeout=280)
        assert result.returncode == 1 and "python3-matplotlib" in result.stderr, result
        assert result.stderr.count("\n") == 1, result.stderr


for name, test in sorted(globals().items()):
    if name.startswith("test_"):
        test()
        print(f"report_test: {name} passed")
