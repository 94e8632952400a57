# SPDX-License-Identifier: BSD-3-Clause
"""The wall-clock side of quoit figures link: TCP between two emulated hosts of a ring that quoit ring makes, at 16 Gbit/s with
programmed copy and with DMA, at 1 Gbit/s, and without a rate, where the processors are the limit, by link_tcp.py. Where no ring can
be made, the page says why."""
import os
import subprocess
import sys

RATES = {"memcpy": ("2000000000", "never"), "DMA": ("2000000000", "1"), "1 Gbit/s": ("125000000", "never"), "no rate": (None, "never")}
STYLES = {"netpipe": "NetPIPE style", "netperf": "Netperf style"}
SIZES = (4096, 65536, 524288, 2 << 20, 8 << 20)
PORT = 5201
ADDRESS = "10.77.0.2"  # of host 1, on a ring of the default subnet
WIRE_MBITS = 16000
SECONDS, SECONDS_QUICK = 0.5, 0.1
TIMEOUT_S = 60
BELOW_TCP = ("Below TCP nothing is measured here by wall-clock: the driver of our device has no ping-pong of its own. The simulated "
             "figure has it.")


class Missing(Exception):
    pass


class Ring:
    """Two hosts that stay until the end of the block."""

    def __init__(self, quoit, rate, dma_bytes):
        self.quoit = quoit
        self.name = f"link{os.getpid()}"
        self.options = ["--hosts", "2", "--dma-bytes", dma_bytes, *(["--link-rate", rate] if rate else [])]
        self.server = None

    def call(self, *arguments):
        return subprocess.run([self.quoit, "ring", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              timeout=TIMEOUT_S, check=False)

    def __enter__(self):
        made = self.call("up", "--ring", self.name, *self.options)
        if made.returncode != 0:
            raise Missing((made.stderr or made.stdout).strip().replace("\n", "; "))
        self.server = subprocess.Popen([self.quoit, "ring", "exec", "--ring", self.name, "1", "--", *program("serve", str(PORT))],
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if self.server.stdout.readline().strip() != "ready":
            self.__exit__()
            raise Missing("the program on the second host does not start")
        return self

    def __exit__(self, *_):
        self.call("down", "--ring", self.name)
        self.server.wait()

    def ask(self, style, size, seconds):
        """Mbit/s"""
        done = self.call("exec", "--ring", self.name, "0", "--", *program("ask", ADDRESS, str(PORT), style, str(size), str(seconds)))
        if done.returncode != 0:
            raise Missing(f"{style} with {size} bytes: {done.stderr.strip()}")
        return float(done.stdout)


def program(*arguments):
    return [sys.executable, "-B", os.path.join(os.path.dirname(os.path.realpath(__file__)), "link_tcp.py"), *arguments]


def measure(quoit, options):
    """{"missing": why} or {"rates": [[way, style, size, Mbit/s], ...]}"""
    if options.no_wall:
        return {"missing": "it was left out (--no-wall)"}
    rates = []
    try:
        for way, (rate, dma_bytes) in RATES.items():
            with Ring(quoit, rate, dma_bytes) as ring:
                rates += [[way, style, size, ring.ask(style, size, SECONDS_QUICK if options.quick else SECONDS)]
                          for style in STYLES for size in SIZES]
    except (Missing, OSError, ValueError, subprocess.TimeoutExpired) as problem:
        return {"missing": f"no ring on this machine: {problem}"}
    return {"rates": rates}


def section(wall):
    """Of the page."""
    title = "Wall-clock: our device on emulated links of this machine"
    if "missing" in wall:
        return {"title": title, "items": [{"kind": "text", "text": [f"MISSING: {wall['missing']}.", BELOW_TCP]}]}
    highest = {(way, style): max(rate for w, s, _, rate in wall["rates"] if (w, s) == (way, style)) for way in RATES
               for style in STYLES}
    rows = []
    for (way, style), rate in highest.items():
        share = 100 * rate / WIRE_MBITS
        rows.append([STYLES[style], way, rate, rate / highest["1 Gbit/s", style], None if way == "1 Gbit/s" else share,
                     "" if way not in ("memcpy", "DMA") else {"value": "reached" if share >= 90 else "NOT REACHED",
                                                              "mark": "good" if share >= 90 else "bad"}])
    plot = {"kind": "lines", "title": "TCP between two emulated hosts", "x_label": "bytes", "x_is_bytes": True, "y_label": "throughput", "y_unit": "Mbit/s",
            "y_is_log": True, "limits": [{"name": "16 Gbit/s", "y": WIRE_MBITS}],
            "series": [{"name": f"{STYLES[style]}, {way}", "points": [[size, rate] for w, s, size, rate in wall["rates"]
                                                                      if (w, s) == (way, style)]} for way in RATES
                       for style in STYLES]}
    return {"title": title, "items": [
        {"kind": "text", "text": [
            f"Two network namespaces and emulated links of 16 Gbit/s, and of 1 Gbit/s in place of Gigabit Ethernet, on "
            f"{len(os.sched_getaffinity(0))} processors, which also run both hosts' threads. 16 Gbit/s are left for payload here. "
            "Without a rate the device sends what these processors can.",
            BELOW_TCP]},
        {"kind": "table", "columns": ["", "", "highest", "times 1 Gbit/s link", "of 16 Gbit/s", "at least 90 %"],
         "units": [None, None, "Mbit/s", None, "%", None], "rows": rows}, plot]}
