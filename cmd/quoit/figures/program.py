# SPDX-License-Identifier: BSD-3-Clause
"""quoit predict PROGRAM: runs a program by `oshrun --virtual` on each number of hosts, and says what its time is, where that goes,
and which link is fullest (docs/virtual.md)."""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap
import time

import units
from arguments import oshrun_of

HOSTS = "1,2,4,8"
HOSTS_MAX = 1024  # of oshrun --hosts
PES_MAX = 4096
TEXT_COLUMNS = 112
PROGRESS_S = 2  # until the first line that says what runs; each further one comes after twice the time
LINES_MAX = 20  # of what a job that failed wrote, without
SUMMARY = re.compile(r"^oshrun: where the time of .*?^  all of it: .*?$\n|^oshrun: there is no profile.*\n", re.M | re.S)
WARNING = re.compile(r"^oshrun: warning: .*$", re.M)
# The first that a routine's name has decides; what has none is "other".
CLASSES = (("wait", re.compile("wait|test|lock|quiet|fence")),
           ("collectives", re.compile("barrier|sync|broadcast|collect|alltoall|reduce|to_all|scan|team|alloc|align|free|finalize")),
           ("atomics", re.compile("atomic|(fadd|finc|add|inc|swap|fetch|set)$")),
           ("put", re.compile("put|_p$")),
           ("get", re.compile("get|_g$")))
SHARES = ("compute", "put", "get", "atomics", "collectives", "wait", "other")
COLUMNS = (("hosts", None), ("PEs", None), ("time", "ns"), ("speed-up", None), ("efficiency", "%"), *((name, "%") for name in SHARES),
           ("fullest link", None), ("busy", "%"))
FAILED = [None] * (len(COLUMNS) - 2)


def read(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


class Wrong(Exception):
    """What was asked for cannot be run; the text says why."""


def class_of(routine):
    return next((name for name, words in CLASSES if words.search(routine)), "other")


def find(name):
    """The program as oshrun takes it: a path, or a name of PATH."""
    path = name if "/" in name else f"./{name}" if os.path.isfile(name) else shutil.which(name)
    if not path or not os.path.isfile(path):
        raise Wrong(f"there is no program {name}")
    if not os.access(path, os.X_OK):
        raise Wrong(f"{name} is not executable")
    return path


class Model:
    """A machine, as `quoit model show` prints it."""

    def __init__(self, quoit, name, changes):
        shown = subprocess.run([quoit, "model", "show", name, *(["--set", changes] if changes else [])], capture_output=True,
                               text=True, check=False)
        if shown.returncode != 0:
            raise Wrong(shown.stderr.strip().removeprefix("quoit model: "))
        lines = shown.stdout.splitlines()
        self.name, self.changes, self.about = name, changes, lines[1]
        self.link_rate = float(re.search(r"^link_rate +(\S+)", shown.stdout, re.M)[1])

    def text(self):
        return f"{self.name}: {self.about}" + (f"; {self.changes}" if self.changes else "")


class Runs:
    """The jobs of one program, one after the other: they may write files, and what they compute may be measured."""

    def __init__(self, quoit, options, words):
        self.oshrun, self.options, self.words, self.problems = oshrun_of(quoit), options, words, []

    @staticmethod
    def wait(process, name, said):
        """Until it ends; what takes long is named, with the warnings in the file `said`. A process that this one leaves is ended
        first."""
        begin, limit_s, seen = time.monotonic(), PROGRESS_S, 0
        try:
            while process.poll() is None:
                try:
                    process.wait(timeout=max(begin + limit_s - time.monotonic(), 0))
                except subprocess.TimeoutExpired:
                    warnings = WARNING.findall(read(said))
                    print(f"quoit predict: {name}: {limit_s} s so far", *warnings[seen:], sep="\n  ", file=sys.stderr, flush=True)
                    limit_s, seen = limit_s * 2, len(warnings)
        finally:
            if process.poll() is None:
                process.terminate()
                process.wait()

    def run(self, model, hosts):
        """Its virtual time, the time of each class of routines summed over PEs, and the bytes that links carried."""
        pes = hosts * self.options.pes_per_host
        name = f"{model.name}, {hosts} host{'s' * (hosts > 1)}, {pes} PE{'s' * (pes > 1)}"
        with tempfile.TemporaryDirectory(prefix="quoit-predict-") as folder:
            profile, stats, errors = (os.path.join(folder, part) for part in ("profile", "stats", "errors"))
            command = [self.oshrun, "--virtual", model.name, *(["--set", model.changes] if model.changes else []), "--compute",
                       self.options.compute, "--hosts", str(hosts), "-n", str(pes), "--profile", profile, "--stats-json", stats,
                       *self.words]
            with open(errors, "w", encoding="utf-8") as file:
                process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=file)
            self.wait(process, name, errors)
            said = read(errors)
            if process.returncode != 0:
                self.fail(f"{name}: status {process.returncode}", said)
                return None
            rows, carried = json.loads(read(profile))["rows"], json.loads(read(stats))
        if not rows:
            self.fail(f"{name}: no PE has called shmem_init", said)
            return None
        return carried["virtual_ns"], rows, carried["links"]

    def fail(self, what, said):
        self.problems.append(what)
        lines = [line for line in SUMMARY.sub("", said).splitlines() if line.strip()]
        print(f"quoit predict: {what}", *(f"  {line}" for line in lines[:LINES_MAX]), sep="\n", file=sys.stderr, flush=True)

    def shares(self, time_ns, rows, pes):
        """In percent of the time of all PEs, in the order of SHARES."""
        spent = dict.fromkeys(SHARES, 0)
        for row in rows:
            spent[class_of(row["routine"])] += row["all"]["ns"]
        whole = time_ns * pes or 1
        spent["compute"] = max(whole - sum(spent.values()), 0)
        return [round(100 * spent[name] / whole, 2) for name in SHARES]

    def rows(self, model):
        """A row of the table for each number of hosts; speed-up is against the first that was run."""
        rows, first = [], None
        for hosts in self.options.hosts:
            pes, found = hosts * self.options.pes_per_host, self.run(model, hosts)
            if not found:
                rows.append([hosts, pes, *FAILED])
                continue
            time_ns, calls, links = found
            first = first or (time_ns, pes)
            speed_up = first[0] / time_ns if time_ns else 1.0
            fullest = max(links, key=lambda link: link["bytes"], default=None)
            link = [f"host{fullest['from']} -> host{fullest['to']}",
                    round(100e9 * fullest["bytes"] / model.link_rate / (time_ns or 1), 2)] if fullest else [None, None]
            rows.append([hosts, pes, time_ns, round(speed_up, 3), round(100 * speed_up * first[1] / pes, 2),
                         *self.shares(time_ns, calls, pes), *link])
        return rows


def place(name):
    return [one for one, _ in COLUMNS].index(name)


def points(rows, name):
    """By hosts, of the runs that succeeded; what is 0 has no place on a logarithmic axis."""
    return [[row[0], row[place(name)]] for row in rows if row[place(name)]]


def plots(rows_of, options):
    """The time and the speed-up of each model, and where the time goes."""
    first = min((row for rows in rows_of.values() for row in rows if row[place("time")] is not None), default=None)
    ideal = {"name": "as many times as PEs", "points": [[hosts, hosts / first[0]] for hosts in options.hosts if hosts >= first[0]]}
    items = []
    for title, label, more in (("time", "virtual time", {"y_unit": "ns"}), ("speed-up", "against the first", {"limits": [ideal]})):
        series = [{"name": name, "points": points(rows, title)} for name, rows in rows_of.items()]
        items.append({"kind": "lines", "title": title, "x_label": "hosts", "y_label": label, "x_is_log2": True,
                      "y_is_log": any(one["points"] for one in series), "series": series, **more})
    for name, rows in rows_of.items():
        items.append({"kind": "bars", "title": f"Where the time goes, {name}", "y_label": "of the time of all PEs", "y_unit": "%",
                      "is_stacked": True, "groups": list(map(str, options.hosts)),
                      "series": [{"name": share, "values": [row[place(share)] for row in rows]} for share in SHARES]})
    return items


def report(options, words, models, rows_of):
    computing = {"zero": "Computing takes no time (--compute measured charges for it): the speed-up is that of communication alone.",
                 "measured": "Computing takes the processor time that this machine needs for it, and repeats only as that does."}
    columns, kinds = map(list, zip(*COLUMNS))
    tables = [{"kind": "table", "title": name, "columns": columns, "units": kinds, "rows": rows} for name, rows in rows_of.items()]
    return {"title": "A program on other machines, predicted", "text": [
        f"Program: {' '.join(words)}", *(f"Model {model.text()}" for model in models), computing[options.compute],
        "Times are virtual, from shmem_init to shmem_finalize; nothing was measured on such machines. Shares are of the time of all "
        "PEs; wait has waits, tests, locks, quiet and fence, collectives barriers and allocations too. A link is busy as long as its "
        "payload takes at the link's rate."],
        "sections": [{"title": "Hosts", "items": [*tables, *plots(rows_of, options)]}]}


def print_table(data):
    """Without what is empty in all rows."""
    command, *texts = data["text"]
    print("\n".join([command, *(textwrap.fill(text, TEXT_COLUMNS, break_on_hyphens=False) for text in texts)]))
    for table in (item for item in data["sections"][0]["items"] if item["kind"] == "table"):
        used = [at for at, name in enumerate(table["columns"]) if name != "other" or any(row[at] for row in table["rows"])]
        lines = [[table["columns"][at] for at in used]]
        lines += [[units.text(row[at], table["units"][at]) for at in used] for row in table["rows"]]
        widths = [max(map(len, cells)) for cells in zip(*lines)]
        print(f"\n{table['title']}")
        for cells in lines:
            print("  ".join(f"{cell:>{width}}" for cell, width in zip(cells, widths)).rstrip())


def predict(quoit, options, words, parser):
    """The report of all runs, and how many failed."""
    try:
        words = [find(words[0]), *words[1:]]
        models = [Model(quoit, name, ",".join(options.set)) for name in dict.fromkeys(options.model)]
    except Wrong as problem:
        parser.error(str(problem))
    runs = Runs(quoit, options, words)
    rows_of = {model.name: runs.rows(model) for model in models}
    if all(row[2] is None for rows in rows_of.values() for row in rows):
        return None, runs.problems
    return report(options, words, models, rows_of), runs.problems
