# SPDX-License-Identifier: BSD-3-Clause
"""quoit sim --calibrate: can the simulator say beforehand what emulated rings do on this machine?

Four steps, each written to a file before the next begins: the constants of the machine from micro-measurements alone
(machine.json, `quoit sim --machine`), what the simulator predicts with them (predicted.json), what quoit perf measures on
emulated rings (measured.json), and the page with both (calibration.html). No constant is fitted; how costs map
to operations was revised three times beside one loaded run's measurements, so only a fresh run tests it.
"""
import os
import sys
import tempfile

import page
import perf
from arguments import Parser
from hybrid import run as run_perf
from simulator import Book, Failed, Simulator

HOSTS = (2, 3, 4, 5)
SIZES = tuple(8 << shift for shift in range(0, 20, 3)) + (4 << 20,)  # 8 B to 4 MiB
GOAL, GOAL_SHARE = 25, 80  # percent of error, for so many percent of the points
SECONDS = 4.0  # of each ring
CALLS = ("barrier", "reduce", "alltoall")
REQUEST_NS = 120  # of sim/model.h: measured on the production code
SLICE_NS = 3000000  # base slice of the Linux scheduler


def model(machine, size):
    """Constants for transfers of one size. A window is memory here: what is written through it, or handed to a service thread,
    is seen by another processor after a cache line transfer. A doorbell is a store, and a call if somebody sleeps. All hosts
    share the processors."""
    copy_ns = {int(bytes_): ns for bytes_, ns in machine["copy_ns"].items()}
    copied = min(copy_ns, key=lambda bytes_: abs(bytes_ - min(size, 32768)))  # chunks; a direct put copies all at once
    whole = min(copy_ns, key=lambda bytes_: abs(bytes_ - size))
    line, store = machine["line_ns"], machine["store_ns"]
    constants = {
        "shared_core_count": machine["processors"], "core_count": machine["processors"],
        "memory_ps_per_byte": 1000 * copy_ns[copied] / copied if size >= 1024 else 0,
        "write_ps_per_byte": 1000 * copy_ns[whole] / whole if size >= 1024 else 0,
        "write_call_ns": copy_ns[64], "word_ns": store, "read_call_ns": store, "read_ps_per_byte": 0,
        "link_ps_per_byte": 0, "link_latency_ns": line, "posted_bytes": 1 << 30, "memory_bus_ps_per_byte": 0,
        "memory_turn_ns": 0, "register_read_ns": line, "register_write_ns": store, "scratchpad_read_ns": line,
        "scratchpad_write_ns": store, "interrupt_ns": machine["wake_call_ns"], "request_ns": REQUEST_NS + line, "doorbell_ring_ns": store,
        "wake_call_ns": machine["wake_call_ns"], "thread_wake_ns": machine["wake_ns"], "switch_ns": machine["switch_ns"],
        "slice_ns": SLICE_NS, "yield_ns": machine["yield_ns"], "sleep_call_ns": machine["sleep_call_ns"],
        "poll_ns": machine["pause_ns"]}
    least = {"yield_ns": 1, "poll_ns": 1, "slice_ns": 1}
    return [f"{name}={max(round(value), least.get(name, 0))}" for name, value in constants.items()]


def hops(hosts):
    return range(1, min(hosts // 2, 3) + 1)


def points():
    """(hosts, what, hops, bytes)"""
    for hosts in HOSTS:
        for hop in hops(hosts):
            for what in ("put", "get"):
                yield from ((hosts, what, hop, size) for size in SIZES)
        yield from ((hosts, what, 0, 8) for what in CALLS)


def predict(simulator, machine):
    """us by point."""
    def value(point):
        hosts, what, hop, size = point
        book = Book(simulator, model(machine, size))
        common = {"hosts": hosts, "bytes": max(size, 64), "direct": "posted", "dma_bytes": "never", "lanes": 2}
        if what in CALLS:
            return book.value(what, workload="calls", steps=50, **common)
        common["bytes"] = size
        if what == "put":
            return book.value("put, there", workload="put", hops=hop, issue="quiet", steps=20, **common)
        return book.value("get", workload="get", hops=hop, steps=20, **common)
    for point in points():
        value(point)
    simulator.make()
    return {point: value(point) for point in points()}


def measure(quoit):
    """us by point: medians of quoit perf."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for hosts in HOSTS:
            ring = ["--hosts", str(hosts), "-n", str(hosts), "--lanes", "2"]
            for hop in hops(hosts):
                result = run_perf(quoit, folder, SECONDS, *ring, "--peer", str(hop), "--tests", "put-quiet,get", "--buffers",
                                  "heap", "--cache", "warm", "--sizes", ",".join(map(str, SIZES)))
                for row in result["rows"]:
                    found[hosts, row["test"].removesuffix("-quiet"), hop, row["bytes"]] = row["ns"]["median"] / 1000
            result = run_perf(quoit, folder, SECONDS, *ring, "--tests", ",".join(CALLS), "--sizes", "8")
            for row in result["rows"]:
                found[hosts, row["test"], 0, 8] = row["ns"]["median"] / 1000
    return found


def as_rows(values):
    return [[*point, value] for point, value in values.items()]


def rows_of(predicted, measured):
    rows = []
    for point, guess in predicted.items():
        truth = measured.get(point)
        if truth:
            rows.append([*point, guess, truth, 100 * (guess / truth - 1)])
    return rows


def share(rows):
    return 100 * sum(abs(row[-1]) <= GOAL for row in rows) / len(rows) if rows else 0


# Why points miss. The first is shown by a measurement, the others are what the model does not have.
CAUSES = {
    "read-back": "A small put to a neighbour. Its read-back is charged as two transfers of a cache line, as on hardware; on an emulated "
                 "link it is a fence and a load of what the same processor wrote. The code of the put is charged as two stores. "
                 "quoit perf --hosts 2 --tests put,put-quiet, 8 bytes, least times on the machine of the run of 22 November 2026: the "
                 "put 50 ns (charged: 25), the quiet 70 ns (charged: 208). Not corrected: the simulator has no constant for a read "
                 "that does not cross.",
    "processors": "Gets, puts over two hops and collectives hand work from process to process. Which of several ready processes gets "
                  "a processor next, and on which it wakes, is the scheduler's; the model takes the one that has waited longest. "
                  "Measured gets of one size differ by a factor of 1.9 between rings (4.3 and 8.1 us for 512 bytes), the "
                  "predicted ones by 1.4. Not shown by a measurement of its own.",
    "caches": "Large transfers through proxies. A copy is charged what one process needs that copies the same two buffers over and "
              "over; here two processors copy in turn through slots that one has just written and the other holds in its cache. Not "
              "shown by a measurement of its own."}


def lacking(row):
    """The cause of CAUSES for a point that misses."""
    _, what, hop, size, *_, error = row
    if abs(error) <= GOAL:
        return ""
    if what == "put" and hop == 1 and size < 4096:
        return "read-back"
    return "processors" if what in CALLS or size < 65536 else "caches"


def report(machine, predicted, measured):
    rows = rows_of(predicted, measured)
    kinds = [("all points", rows)] + [(what, [row for row in rows if row[1] == what]) for what in ("put", "get", *CALLS)]
    kinds += [(f"{hosts} hosts", [row for row in rows if row[0] == hosts]) for hosts in HOSTS]
    is_reached = share(rows) >= GOAL_SHARE
    plots = [{"kind": "lines", "title": f"{what}, {hosts} hosts, {hop} hop{'s' * (hop > 1)}", "x_label": "bytes",
              "x_is_bytes": True, "y_is_log": True, "y_label": "us", "series": [
                  {"name": name, "is_dashed": name == "predicted", "points": [
                      [size, of[hosts, what, hop, size]] for size in SIZES if (hosts, what, hop, size) in of]}
                  for name, of in (("predicted", predicted), ("measured", measured))]}
             for hosts in HOSTS for hop in hops(hosts) for what in ("put", "get")]
    return {"title": "Emulated rings on this machine: predicted, then measured",
            "text": [f"{'Reached' if is_reached else 'NOT REACHED'}: {share(rows):.0f} % of {len(rows)} points are within {GOAL} % "
                     f"(asked: {GOAL_SHARE} %). Constants come from micro-measurements alone; how costs map to operations was revised beside an earlier run. The prediction "
                     "was written to predicted.json before anything was measured.",
                     "A machine that does something else meanwhile spoils both.",
                     *[f"{name}: {cause}" for name, cause in CAUSES.items()]],
            "sections": [
                {"title": "How many points are within the goal", "items": [
                    {"kind": "table", "columns": ["points", "count", f"within {GOAL} %, in %"],
                     "rows": [[name, len(of), share(of)] for name, of in kinds]}]},
                {"title": "The machine", "items": [{"kind": "table", "columns": ["", "ns"], "rows": [
                    [name, value] for name, value in machine.items() if not isinstance(value, dict)] +
                    [[f"copy of {size} bytes", ns] for size, ns in machine["copy_ns"].items()]}]},
                {"title": "Every point", "items": [
                    {"kind": "table", "columns": ["hosts", "call", "hops", "bytes", "predicted, us", "measured, us", "error, %",
                                                  "cause, above"],
                     "rows": [[*row[:-1], {"value": row[-1], "mark": "good" if abs(row[-1]) <= GOAL else "bad"}, lacking(row)]
                              for row in rows]}]},
                {"title": "Plots", "items": plots}]}


def main(quoit, arguments):
    parser = Parser("quoit sim --calibrate")
    parser.add_argument("folder")
    folder = parser.parse_args(arguments).folder
    page.find_matplotlib()
    simulator = Simulator(quoit)
    try:
        os.makedirs(folder, exist_ok=True)
        machine = simulator.call(["--machine"])
        page.save(machine, folder, "machine")
        predicted = predict(simulator, machine)
        print(f"predicted: {page.save(as_rows(predicted), folder, 'predicted')}", flush=True)
        measured = measure(quoit)
        print(f"measured: {page.save(as_rows(measured), folder, 'measured')}")
        data = report(machine, predicted, measured)
        where = page.publish(data, folder, "calibration")
    except (OSError, Failed, perf.Wrong, page.Wrong) as problem:
        sys.exit(f"quoit sim --calibrate: {problem}")
    print(f"{data['text'][0]}\n{where}")
    return 0
