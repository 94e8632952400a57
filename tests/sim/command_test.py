#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""quoit sim as a user sees it: tables, JSON, statuses, replay.

A failing run prints the command that replays it; that command must fail in the same way, to the last event.
"""
import json
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time

QUOIT, *SANITIZERS = sys.argv[1:]


def quoit(*arguments):
    result = subprocess.run([QUOIT, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=500)
    # The address sanitizer prints, with its process id, a remark on each switch of stacks.
    result.stderr = re.sub(r"^==\d+==WARNING: ASan.*\n", "", result.stderr, flags=re.M)
    return result


def check(condition, what):
    if not condition:
        sys.exit(f"command_test: {what}")


def test_help_and_mistakes():
    check(quoit("--help").returncode == 0, "quoit --help fails")
    check("slow-link" in quoit("sim", "--help").stdout, "the help of sim names no faults")
    for wrong in (["sim", "--hosts", "1"], ["sim", "--nothing"], ["sim", "--workload", "no"], ["sim", "--fault"],
                  ["sim", "--model", "link_ps_per_byte=x"], ["sim", "--lanes", "3"], ["sim", "--protocol", "tcp"],
                  ["sim", "--barrier", "papers", "--fault", "link"], ["nothing"], []):
        result = quoit(*wrong)
        check(result.returncode == 2 and result.stderr and not result.stdout, f"{wrong}: {result}")


def test_json_and_model():
    result = json.loads(quoit("sim", "--workload", "raw", "--json", "--model", "link_ps_per_byte=1000").stdout)
    check(result["ok"] and result["model"]["link_ps_per_byte"]["value"] == 1000, f"model: {result}")
    rate = result["figures"]["raw DMA"]["mean"]
    check(900 < rate <= 1000, f"a link of 1000 MB/s carries {rate}")
    model = json.loads(quoit("sim", "--show-model", "--json").stdout)
    check(all(entry["source"] for entry in model.values()), "a constant has no source")


def test_simulated_hosts_warn_nobody():
    """A link flaps in this run, and its hosts would tell the user."""
    flaps = quoit("sim", "--seed", "770000004", "--fault", "links", "--workload", "stores", "--steps", "30")
    check(flaps.returncode == 0 and not flaps.stderr, f"{flaps}")


def test_large_puts_fill_the_link():
    """Each proxy measures on its simulated port that DMA is faster, and uses it: 95 % of the wire rate, over two hops
    too."""
    link = 1e6 / 160  # MB/s of link_ps_per_byte
    figures = json.loads(quoit("sim", "--workload", "bandwidth", "--json").stdout)["figures"]
    copied = json.loads(quoit("sim", "--workload", "bandwidth", "--dma-bytes", "never", "--json").stdout)["figures"]
    for name in ("put, 1 hop", "put, 2 hops"):
        check(figures[name]["mean"] >= 0.95 * link, f"{name}: {figures[name]['mean']} MB/s of {link}")
        check(copied[name]["mean"] < 0.45 * link, f"{name} by programmed copy: {copied[name]['mean']} MB/s")
    quick = json.loads(quoit("sim", "--workload", "bandwidth", "--model", "thread_wake_ns=4000", "--json").stdout)
    one_us = quick["figures"]["put and quiet, 1 hop"]["mean"]  # one alone waits for threads to wake, too
    check((1 << 20) / one_us >= 0.95 * link, f"a put and its quiet of 1 MiB: {one_us} us")


def implausible(machine):
    """The costs of a machine that cannot be."""
    copies, written = machine["copy_ns"], machine["window_copy_ns"]
    between = {"handed_write_ns", "handed_read_ns", "crossing_ns", "line_read_ns", "flag_crossing_ns"}
    far = {"far_read_ns", "far_write_ns", "far_both_ns"}
    lost = between if machine["processors"] == 1 else {"flag_crossing_ns", "crossing_ns"} if SANITIZERS else {"flag_crossing_ns"}
    positive = machine.keys() - {"copy_ns", "window_copy_ns"} - far - lost
    found = {name for name in positive if machine[name] <= 0}
    if not 0 < copies["64"] < copies["65536"] < copies["4194304"]:
        found.add("copy_ns")
    if not 0 < written["128"] < written["8192"] < written["32768"]:
        found.add("window_copy_ns")
    found |= {name for name in ("switch_ns", "switch_of_4_ns", "switch_of_8_ns") if machine[name] <= machine["pause_ns"]}
    found |= {name for name in far
              if list(machine[name]) != ["2097152", "4194304"] or min(machine[name].values()) <= 0.5 * written["32768"]}
    return found


def test_machine():
    """The costs measured on this machine are plausible: more bytes take longer, and nothing is free. But a flag between two
    processors may be, which virtual ones are at times within one core; beside a sanitizer's code a frame's may be, too; and what something else on the machine disturbs is
    anything, but not each time."""
    machines = [json.loads(quoit("sim", "--machine").stdout)]
    found = implausible(machines[0])
    while found and len(machines) < 10:
        machines.append(json.loads(quoit("sim", "--machine").stdout))
        found &= implausible(machines[-1])
    check(not found, f"{found}: {machines}")


def test_shared_processors():
    """Hosts that share one processor wait for each other: a barrier of 4 hosts costs context switches, one of 8 twice
    as many."""
    def barrier(hosts, shared):
        arguments = ("sim", "--json", "--workload", "calls", "--hosts", str(hosts), "--steps", "20", "--direct", "arrived")
        model = ("--model", f"shared_core_count={shared}", "--model", "thread_wake_ns=0", "--model", "switch_ns=2000")
        return json.loads(quoit(*arguments, *model).stdout)["figures"]["barrier"]["mean"]
    own, shared, more = barrier(4, 0), barrier(4, 1), barrier(8, 1)
    check(shared > own + 2 * 4 and more > 1.5 * shared, f"barrier: {own} us, {shared} on one processor, {more} of 8 hosts")


def test_lines():
    """What travels between processors that hosts share is paid by who fetches it, and only there: the lines of a flag by the PEs
    of a barrier, those of a frame by the lane that takes it. The code for a flag is paid everywhere."""
    def us(figure, shared, *model):
        arguments = ["sim", "--json", "--workload", "calls" if figure == "barrier" else "get", "--hosts", "2", "--lanes", "1",
                     "--bytes", "64", "--steps", "40", "--direct", "posted", "--dma-bytes", "never"]
        for constant in (f"shared_core_count={shared}", "cache_bytes=2097152", "link_latency_ns=0", "link_ps_per_byte=0",
                         "reads_stay=1", *model):
            arguments += ["--model", constant]
        return json.loads(quoit(*arguments).stdout)["figures"][figure]["mean"]
    lines = ("line_read_ns=1000", "line_write_ns=2000")
    apart, together = (us("barrier", shared, *lines) - us("barrier", shared) for shared in (2, 1))
    check(apart > 2 and abs(together) < 0.1, f"3 us of lines lengthen a barrier by {apart} us, {together} on one processor")
    apart, together = (us("get", shared, "crossing_ns=3000") - us("get", shared) for shared in (2, 1))
    check(round(apart, 3) >= 3 and abs(together) < 0.1, f"3 us of a frame lengthen a get by {apart} us, {together} on one processor")
    flags = us("barrier", 1, "flag_ns=1000") - us("barrier", 1)
    check(flags > 1.5, f"1 us a flag lengthens a barrier of two hosts on one processor by {flags} us")


def test_slow_calls():
    """Collectives whose flags go by direct puts make no requests, and are no standstill however long all of them take."""
    result = json.loads(quoit("sim", "--json", "--workload", "calls", "--hosts", "2", "--steps", "100", "--direct", "posted", "--model",
                              "call_ns=3000000").stdout)
    check(result["ok"] and result["figures"]["reduce"]["mean"] > 3000, f"200 calls of 3 ms: {result}")


def test_replay():
    failed = quoit("sim", "--seed", "3", "--seeds", "5", "--workload", "mix", "--canary", "credit")
    check(failed.returncode == 1, f"the canary was not found: {failed}")
    command = shlex.split(re.search(r"replay: quoit (.*)", failed.stderr).group(1))
    again = quoit(*command)
    check(again.returncode == 1 and again.stderr == failed.stderr.replace(" --seeds 5", ""), f"{failed.stderr} {again.stderr}")
    as_json = json.loads(quoit(*command, "--json").stdout)
    check(not as_json["ok"] and as_json["trace"] in failed.stderr, f"{as_json}")


def test_trace_is_the_same_in_another_process():
    texts = []
    for _ in range(2):
        with tempfile.NamedTemporaryFile() as file:
            check(quoit("sim", "--seed", "9", "--steps", "2", "--trace-text", file.name).returncode == 0, "seed 9 fails")
            texts.append(file.read())
    check(len(texts[0]) > 1000 and texts[0] == texts[1], "two traces of one seed differ")


def test_random_seeds_can_be_repeated():
    first, second = (quoit("sim", "--seed", "random", "--workload", "mix", "--canary", "credit", "--seeds", "50") for _ in range(2))
    seeds = [int(re.search(r"seeds from (\d+) on", run.stderr).group(1)) for run in (first, second)]
    check(seeds[0] != seeds[1], f"two random seeds are the same: {seeds}")
    command = shlex.split(re.search(r"replay: quoit (.*)", first.stderr).group(1))
    again = quoit(*command)
    failure = re.search(r"quoit sim: seed .*\n.*\n.*\n", first.stderr).group(0)
    check(again.returncode == 1 and failure in again.stderr, f"{first.stderr} {again.stderr}")


def holds_back(pid, *numbers):
    """Whether these signals and no others are blocked: a sanitizer that starts blocks all of them for a moment."""
    with open(f"/proc/{pid}/status") as file:
        blocked = int(re.search(r"^SigBlk:\s+(\w+)", file.read(), re.M)[1], 16)
    return blocked == sum(1 << (number - 1) for number in numbers)


def test_until_stopped():
    process = subprocess.Popen([QUOIT, "sim", "--until", "stopped"], stdout=subprocess.PIPE, text=True)
    until = time.monotonic() + 100
    while not holds_back(process.pid, signal.SIGINT, signal.SIGTERM) and time.monotonic() < until:
        time.sleep(0.01)
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    output = process.communicate(timeout=500)[0]
    check(process.returncode == 0 and "seeds passed" in output, f"stopped: {process.returncode} {output}")


for name, test in sorted(globals().items()):
    if name.startswith("test_"):
        test()
        print(f"command_test: {name} passed")
