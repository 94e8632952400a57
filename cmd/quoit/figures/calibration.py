# SPDX-License-Identifier: BSD-3-Clause
"""quoit sim --calibrate: can the simulator say beforehand what emulated rings do on this machine?

Four steps, each written to a file before the next begins: the constants of the machine from micro-measurements alone
(machine.json, `quoit sim --machine`), what the simulator predicts with them (predicted.json), what quoit perf measures on
emulated rings (measured.json), and the page with both (calibration.html). No constant is fitted; how costs map
to operations was revised beside earlier runs, so only a fresh run tests it.
"""
import os
import resource
import statistics
import sys
import tempfile
import time

import drawing
import page
import perf
from arguments import Parser
from hybrid import run as run_perf
from simulator import Book, Failed, Simulator

HOSTS = (2, 3, 4, 5)
SIZES = tuple(8 << shift for shift in range(0, 20, 3)) + (4 << 20,)  # 8 B to 4 MiB
GOAL, GOAL_SHARE = 25, 80  # percent of error, for so many percent of the points
QUIET = 3  # percent of the processors that others may take
PASSES = 10  # of the micro-measurements
PAUSE_S = 1  # between two of them: the processors are slower for seconds while neighbours of the machine are busy
ROUNDS = 5  # jobs of each ring, one after another through all rings
SECONDS = 1.0  # of each
CALLS = ("barrier", "reduce", "alltoall")
CHUNK_BYTES = 32768
JOURNAL_PUT_BYTES = 4096
FAR = ("far_read", "far_write", "far_both")
WRITES_A_STEP = 2 / 3  # of the three steps of a get two send a frame
WINDOW_COPY_LEAST = 128
JITTER_PERCENT = 10  # so that hosts do not run in step; longer as often as shorter
SEEDS = 5
CALLS_STEPS = 208  # whole runs between barriers
SLICE_NS = 3000000  # base slice of the Linux scheduler


def rate(machine, bytes_, kind="copy_ns", call_ns=0):
    """ps per byte of a copy of about so many bytes by one processor that has both sides in its cache, if they fit."""
    times = {int(size): ns for size, ns in machine[kind].items()}
    nearest = min(times, key=lambda size: abs(size - bytes_))
    return 1000 * (times[nearest] - call_ns) / nearest


def nearest_to(size, by_size):
    return by_size[min(by_size, key=lambda one: abs(int(one) - size))]


def model(machine, size):
    """Constants for transfers of one size. A window is memory here: what is written through it is there at once, and who reads it
    on another processor fetches the line. A doorbell is a store. All hosts share the processors."""
    near, line = rate(machine, CHUNK_BYTES), machine["window_line_ns"]
    chunk_ns = machine["window_copy_ns"][str(CHUNK_BYTES)]
    copied = rate(machine, min(size, CHUNK_BYTES)) if size >= 1024 else 0
    written = rate(machine, min(size, CHUNK_BYTES), "window_copy_ns", line) if size >= WINDOW_COPY_LEAST else 0
    handed = {side: 1000 * machine[f"handed_{side}_ns"] / CHUNK_BYTES - near for side in ("read", "write")}
    sent = line + machine["window_word_ns"] + machine["doorbell_ring_ns"]  # of a frame
    switches = {f"{name}_ns": machine[f"{name}_ns"] - machine["yield_ns"]  # measured from a yield on
                for name in ("thread_switch", "switch", "switch_of_4", "switch_of_8")}
    constants = {
        "shared_core_count": machine["processors"], "core_count": machine["processors"],
        "memory_ps_per_byte": copied, "write_ps_per_byte": written, "cache_bytes": machine["cache_bytes"],
        **{f"{name}_ps_per_byte": 1000 * (nearest_to(size, machine[f"{name}_ns"]) - chunk_ns) / CHUNK_BYTES
           for name in FAR},
        "handed_read_ps_per_byte": handed["read"], "handed_write_ps_per_byte": handed["write"],
        "line_read_ns": machine["line_read_ns"], "line_write_ns": machine["flag_crossing_ns"] - machine["line_ns"],
        "crossing_ns": machine["crossing_ns"], "flag_ns": machine["flag_ns"], "write_call_ns": line,
        "word_ns": machine["window_word_ns"], "read_call_ns": machine["window_read_ns"], "read_ps_per_byte": 0, "reads_stay": 1,
        "link_ps_per_byte": 0, "link_latency_ns": machine["line_ns"] - machine["line_read_ns"], "posted_bytes": 1 << 30,
        "memory_bus_ps_per_byte": 0, "memory_turn_ns": 0, "register_read_ns": machine["doorbell_clear_ns"], "register_write_ns": machine["doorbell_clear_ns"],
        "scratchpad_read_ns": machine["line_ns"], "scratchpad_write_ns": machine["window_word_ns"], "interrupt_ns": 0,
        "request_ns": machine["request_ns"] + machine["line_ns"],
        "frame_ns": machine["look_ns"] + machine["work_ns"] - WRITES_A_STEP * sent,
        "posted_ns": machine["posted_ns"], "journal_ps_per_byte": 1000 * machine["journal_copy_ns"] / JOURNAL_PUT_BYTES,
        "call_ns": machine["call_ns"], "look_ns": machine["look_ns"], "doorbell_ring_ns": machine["doorbell_ring_ns"],
        "wake_call_ns": machine["wake_call_ns"], "thread_wake_ns": machine["wake_ns"], **switches,
        "slice_ns": SLICE_NS, "yield_ns": machine["yield_ns"] + machine["clock_ns"],  # a wait reads the clock after each
        "sleep_call_ns": machine["sleep_call_ns"],
        "poll_ns": machine["pause_ns"], "jitter_percent": JITTER_PERCENT}
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
        common = {"hosts": hosts, "bytes": max(size, 64), "direct": "posted", "dma_bytes": "never", "lanes": 2, "seeds": SEEDS}
        if what in CALLS:
            return book.value(what, workload="calls", steps=CALLS_STEPS, **common)
        common["bytes"], steps = size, 400 if size <= 32768 else 40  # many, since the first one wakes the lanes
        if what == "put":
            return book.value("put, there", workload="put", hops=hop, issue="quiet", steps=steps, **common)
        return book.value("get", workload="get", hops=hop, sender=hop, steps=steps, **common)
    for point in points():
        value(point)
    simulator.make()
    return {point: value(point) for point in points()}


def inner(values):
    """All but the least and the most."""
    return sorted(values)[1:-1]


def typical(passes):
    """Of each constant the mean of all passes but the fastest and the slowest. The processors have two speeds, as their neighbours
    are busy or not; a median would be one of them, and the jobs that are measured later may run at the other."""
    def middle(values):
        return statistics.mean(inner(values))
    return {name: typical([one[name] for one in passes]) if isinstance(value, dict) else
            middle([one[name] for one in passes]) for name, value in passes[0].items()}


def differ_percent(passes):
    """How much longer the slowest pass took than the fastest, both without the outermost: the median of all constants, in %."""
    values = [inner(one[name] for one in passes) for name, value in passes[0].items() if not isinstance(value, dict)]
    return statistics.median(spread(one) for one in values if one[0] > 0)


def measure_machine(simulator, quoit):
    passes = []
    for _ in range(PASSES):
        print(f"measuring the machine, pass {len(passes) + 1} of {PASSES}", file=sys.stderr)
        passes.append({**simulator.call(["--machine"]), "call_ns": cost_of_call(quoit)})
        time.sleep(PAUSE_S)
    return passes


def cost_of_call(quoit):
    """ns of a put of 8 bytes to a PE of the same host: the API, and a store."""
    with tempfile.TemporaryDirectory() as folder:
        return run_perf(quoit, folder, 0.3, "-n", "2", "--tests", "put", "--buffers", "heap", "--cache", "warm", "--sizes",
                        "8")["rows"][0]["ns"]["median"]


def measure_round(quoit, folder):
    """(point, us, ns of its limit in the same batches): medians of quoit perf."""
    for hosts in HOSTS:
        ring = ["--hosts", str(hosts), "-n", str(hosts), "--lanes", "2"]
        for hop in hops(hosts):
            result = run_perf(quoit, folder, SECONDS, *ring, "--peer", str(hop), "--tests", "put-quiet,get", "--buffers",
                              "heap", "--cache", "warm", "--sizes", ",".join(map(str, SIZES)))
            for row in result["rows"]:
                point = hosts, row["test"].removesuffix("-quiet"), hop, row["bytes"]
                yield point, row["ns"]["median"] / 1000, row["limit_ns"]["median"]
        result = run_perf(quoit, folder, SECONDS, *ring, "--tests", ",".join(CALLS), "--sizes", "8")
        for row in result["rows"]:
            yield (hosts, row["test"], 0, 8), row["ns"]["median"] / 1000, row["limit_ns"]["median"]


def measure(quoit):
    """us by point, of each round, and likewise the ns of the limits: every round is a new job, whose threads the scheduler spreads
    anew."""
    found, limits = {}, {}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(ROUNDS):
            for point, value, limit in measure_round(quoit, folder):
                found.setdefault(point, []).append(value)
                limits.setdefault(point, []).append(limit)
    return found, limits


class Load:
    """How much of the processors others take meanwhile: all time that was not idle, less that of this process and its
    children."""

    def __init__(self):
        self.before = self.now()

    @staticmethod
    def now():
        with open("/proc/stat", encoding="utf-8") as file:
            ticks = [int(word) for word in file.readline().split()[1:9]]
        own = sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
        return sum(ticks), sum(ticks) - ticks[3] - ticks[4], own * os.sysconf("SC_CLK_TCK")

    def others_percent(self):
        total, busy, own = (after - before for after, before in zip(self.now(), self.before))
        return max(0.0, 100 * (busy - own) / total) if total else 0.0


def as_rows(values):
    return [[*point, *(value if isinstance(value, list) else [value])] for point, value in values.items()]


def spread(values):
    """How much longer the slowest round took than the fastest, in %."""
    return 100 * (max(values) / min(values) - 1)


def rows_of(predicted, measured):
    """[*point, predicted, measured (the median round), spread in %, error in %]"""
    rows = []
    for point, guess in predicted.items():
        rounds = measured.get(point)
        if rounds:
            truth = statistics.median(rounds)
            rows.append([*point, guess, truth, spread(rounds), 100 * (guess / truth - 1)])
    return rows


def share(rows):
    return 100 * sum(abs(row[-1]) <= GOAL for row in rows) / len(rows) if rows else 0


def repeated(measured):
    """The points whose rounds, each beside the median of the others, are within the goal four times of five."""
    return {point for point, rounds in measured.items() if share_of_rounds({point: rounds}) >= GOAL_SHARE}


def share_of_rounds(measured):
    """How often, in %, a round is within the goal of the median of the other rounds: what a measurement says of the next."""
    errors = [value / statistics.median(rounds[:at] + rounds[at + 1:]) - 1
              for rounds in measured.values() if len(rounds) > 1 for at, value in enumerate(rounds)]
    return 100 * sum(100 * abs(error) <= GOAL for error in errors) / len(errors) if errors else 0


def paced(measured, limits):
    """Times in units of what the limit took in the same batches: without the changes of the processors' speed."""
    return {point: [value / limit for value, limit in zip(rounds, limits[point])] for point, rounds in measured.items()}


# What the model does not have. A point that misses is put down to the first that may apply to it.
CAUSES = {
    "unsteady": "The rounds of the measurement differ by more than the goal among themselves (the column \u201cspread\u201d), so no one number is "
                "near all of them. Which processors the threads of a job come to run on, and the processor's frequency, differ "
                "from job to job.",
    "collectives": "What a reduction does beside flags and puts is charged as one call of the API, and of what a PE reads from "
                   "another processor only the flags are charged. The end of a batch, when PE 0 learns that all are done, is in "
                   "the measurement alone.",
    "processors": "Gets and puts over two hops go from process to process. A switch is charged what two to eight processes need that "
                  "look as lanes or read 32 pages; others displace other amounts. The kernel now and then moves a thread, which "
                  "the model never does: with a lane on another processor than before a get takes half as long or twice.",
    "caches": "Large transfers. A page is held by one processor at a time in the model, which replaces in order of use, and "
              "two processors never share the bandwidth of the memory."}


def lacking(row):
    """The cause of CAUSES for a point that misses."""
    _, what, _, size, *_, spread_percent, error = row
    if abs(error) <= GOAL:
        return ""
    if spread_percent > GOAL:
        return "unsteady"
    return "collectives" if what in CALLS else "processors" if size < 65536 else "caches"


def describe_load(machine, measured_percent):
    return (f"The constants of two passes of the micro-measurements differ by up to {machine['passes_differ_percent']:.0f} % (median of "
            "all constants): so much does the speed of the processors change by itself, and no prediction can follow that. "
            f"Other processes took {machine['others_percent']:.1f} % of the processors while the machine was measured, and "
            f"{measured_percent:.1f} % while the rings were: it was "
            f"{'quiet' if max(machine['others_percent'], measured_percent) < QUIET else 'BUSY, which spoils both'}.")


def plots_of(predicted, measured):
    middle = {point: statistics.median(rounds) for point, rounds in measured.items()}
    for hosts in HOSTS:
        for hop in hops(hosts):
            for what in ("put", "get"):
                keys = [(size, (hosts, what, hop, size)) for size in SIZES if (hosts, what, hop, size) in measured]
                yield {"kind": "lines", "title": f"{what}, {hosts} hosts, {hop} hop{'s' * (hop > 1)}", "x_label": "bytes",
                       "x_is_bytes": True, "y_is_log": True, "y_label": "time of a call", "y_unit": "us",
                       "bands": [{"name": "measured, all rounds", "points": [
                           [size, min(measured[key]), max(measured[key])] for size, key in keys]}],
                       "series": [{"name": name, "is_dashed": name == "predicted", "points": [
                           [size, of[key]] for size, key in keys if key in of]}
                           for name, of in (("predicted", predicted), ("measured", middle))]}


def report(machine, predicted, measured, limits, measured_percent):
    rows = rows_of(predicted, measured)
    kinds = [("all points", rows)] + [(what, [row for row in rows if row[1] == what]) for what in ("put", "get", *CALLS)]
    kinds += [(f"{hosts} hosts", [row for row in rows if row[0] == hosts]) for hosts in HOSTS]
    steady = repeated(measured)
    kinds += [(f"points that repeat: {GOAL_SHARE} % of their rounds are within {GOAL} % of the others' median",
               [row for row in rows if tuple(row[:4]) in steady]),
              ("points that do not", [row for row in rows if tuple(row[:4]) not in steady])]
    is_reached = share(rows) >= GOAL_SHARE
    return {"title": "Emulated rings on this machine: predicted, then measured",
            "text": [f"{'Reached' if is_reached else 'NOT REACHED'}: {share(rows):.0f} % of {len(rows)} points are within {GOAL} % "
                     f"(asked: {GOAL_SHARE} %). Constants come from micro-measurements alone; which mechanisms the model has was "
                     "decided beside earlier runs. The prediction was written to predicted.json before anything was measured.",
                     f"A measured value is the median of {ROUNDS} rounds, each a job of its own; the spread is how much longer the "
                     "slowest took than the fastest. Points with a large spread count like the others. A round is within "
                     f"{GOAL} % of the other rounds' median in {share_of_rounds(measured):.0f} % of all cases; of times divided by "
                     f"the limit's, which quoit perf measures in the same batches, in {share_of_rounds(paced(measured, limits)):.0f} %.",
                     describe_load(machine, measured_percent),
                     *[f"{name}: {cause}" for name, cause in CAUSES.items()]],
            "sections": [
                {"title": "How many points are within the goal", "items": [
                    {"kind": "table", "columns": ["points", "count", f"within {GOAL} %, in %",
                                                  "rounds that are, of the other rounds' median, in %"],
                     "rows": [[name, len(of), share(of), share_of_rounds({tuple(row[:4]): measured[tuple(row[:4])] for row in of})]
                              for name, of in kinds if of]}]},
                {"title": "The machine", "items": [{"kind": "table", "columns": ["", "ns, if nothing else is said"], "rows": [
                    [name, value] for name, value in machine.items() if not isinstance(value, dict)] +
                    [[f"copy of {size} bytes", ns] for size, ns in machine["copy_ns"].items()] +
                    [[f"{name} of transfers of {size} bytes", ns] for name in FAR for size, ns in machine[f"{name}_ns"].items()]}]},
                {"title": "Every point", "items": [
                    {"kind": "table", "columns": ["hosts", "call", "hops", "bytes", "predicted", "measured", "spread", "error",
                                                  "cause, above"],
                     "units": [None, None, None, "B", "us", "us", "%", "%", None],
                     "rows": [[*row[:-2], {"value": row[-2], "mark": "bad" if row[-2] > GOAL else "good"},
                               {"value": row[-1], "mark": "good" if abs(row[-1]) <= GOAL else "bad"}, lacking(row)]
                              for row in rows]}]},
                {"title": "Plots", "items": list(plots_of(predicted, measured))}]}


def main(quoit, arguments):
    parser = Parser("quoit sim --calibrate")
    parser.add_argument("folder")
    folder = parser.parse_args(arguments).folder
    drawing.find_matplotlib()
    simulator = Simulator(quoit)
    try:
        os.makedirs(folder, exist_ok=True)
        load = Load()
        passes = measure_machine(simulator, quoit)
        page.save(passes, folder, "passes")
        machine = {**typical(passes), "passes_differ_percent": differ_percent(passes)}
        machine["others_percent"] = load.others_percent()
        page.save(machine, folder, "machine")
        predicted = predict(simulator, machine)
        print(f"predicted: {page.save(as_rows(predicted), folder, 'predicted')}", flush=True)
        load = Load()
        measured, limits = measure(quoit)
        measured_percent = load.others_percent()
        print(f"measured: {page.save(as_rows(measured), folder, 'measured')}")
        page.save(as_rows(limits), folder, "limits")
        data = report(machine, predicted, measured, limits, measured_percent)
        where = page.publish(data, os.path.join(folder, "calibration.html"))
    except (OSError, Failed, perf.Wrong, page.Wrong) as problem:
        sys.exit(f"quoit sim --calibrate: {problem}")
    print("\n".join([data["text"][0], data["text"][2], where]))
    return 0
