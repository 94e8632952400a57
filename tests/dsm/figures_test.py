# SPDX-License-Identifier: BSD-3-Clause
"""quoit figures dsm with small sizes: the page shows every number of the paper's table 2 beside the measured one, each
relation is judged by its own range, and missing values are reported. The measured values depend on the machine and are
not judged here.
Use: figures_test.py QUOIT PROGRAMS"""
import json
import os
import re
import subprocess
import sys
import tempfile


def expect(is_right, what):
    if not is_right:
        sys.exit(f"figures dsm: {what}")


def run(quoit, *arguments):
    return subprocess.run([quoit, "figures", "dsm", *arguments], text=True, capture_output=True, timeout=280, check=False)


def main():
    quoit, programs = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        done = run(quoit, "--quick", "--html", os.path.join(folder, "dsm.html"), "--programs", programs)
        expect(done.returncode == 0, done.stderr)
        with open(os.path.join(folder, "dsm.json"), encoding="utf-8") as file:
            data = json.load(file)
        expect(os.path.getsize(os.path.join(folder, "dsm.html")) > 1000, "no page")
    pages, (times, parts), _ = [[item for item in section["items"] if item["kind"] == "table"]
                                      for section in data["sections"]]
    plots = {item["title"]: item for section in data["sections"] for item in section["items"] if item["kind"] == "bars"}
    expect(len(plots) == 7, f"{list(plots)}")
    for hosts, reported in ((2, [36, 33, 33, 27]), (4, [51, 50, 40, 41])):
        drawn = plots[f"Time of a page, {hosts} hosts (DSM, table 2)"]["series"]
        expect(drawn[0]["values"] == reported and min(drawn[1]["values"]) > 0, f"beside the paper's table: {drawn}")
    shares = plots["Where the time goes, NEWGENDSM (DSM, figure 9)"]["series"]
    expect(all(abs(sum(place) - 100) < 0.01 for place in zip(*(one["values"] for one in shares))), f"figure 9: {shares}")
    rows = pages[0]["rows"]
    expect(sorted(row[3] for row in rows if row[3]) == [27, 33, 33, 36, 40, 41, 50, 51], f"table 2: {rows}")
    expect(len(rows) == 12 and all(row[4] > 0 for row in rows), f"table 2: {rows}")
    expect([row[0] for row in times["rows"]] == ["Barnes", "3Dfft", "LU", "IS"], f"figure 8: {times}")
    for row in parts["rows"]:
        expect(abs(row[3] + row[5] + row[7] - 100) < 0.01 and min(row[2::2]) > 0, f"figure 9: {row}")
    judged = [dict(box["facts"]) for section in data["sections"] for item in section["items"] if item["kind"] == "boxes"
              for box in item["boxes"]]
    expect(len(judged) == 31, f"{len(judged)} relations")
    of_table = [round(facts["the paper's table"]["value"], 2) for facts in judged if "the paper's table" in facts]
    expect(of_table == [1.09, 1.02, 1.22, 0.98, 8.33, 8.33, 18.18, 21.57, 18.0, 13.24, -0.18], f"the paper's table: {of_table}")
    for facts in judged:
        low, high = re.match(r"(?:at least )?(\S+)(?: to (\S+))?(?: \S+)?$", facts["stated"]).groups()
        is_reached = facts["here"]["value"] >= float(low) and (high is None or facts["here"]["value"] <= float(high))
        verdict = facts[""]["value"].split(":")[0]
        expect(verdict in ("not counted", "cannot be judged", "reached" if is_reached else "NOT REACHED"), f"judged wrongly: {facts}")
    verdicts = [facts[""]["value"].split(":")[0] for facts in judged]
    expect(verdicts.count("not counted") == 2 and verdicts.count("cannot be judged") == 4, f"{verdicts}")
    expect(f"reached: {verdicts.count('reached')} of 25" in done.stdout, done.stdout)
    wrong = run(quoit, "--programs", "/nonexistent")
    expect(wrong.returncode == 2 and "/nonexistent/dsm_page" in wrong.stderr, wrong.stderr)
    print("PASSED")


main()
