# SPDX-License-Identifier: BSD-3-Clause
"""Runs of `quoit sim --json`, each made once, as many at a time as there are processors, the longest first.

Figures ask a Book for values. A run that is not there yet is noted as wanted, and some positive number is the answer; make()
makes all that are wanted; then the same functions are called again and get their values. So a figure says once what it needs, and figures share runs.
"""
import concurrent.futures
import json
import os
import subprocess
import sys
import time
import zlib

PROGRESS_FIRST_S, PROGRESS_S = 2, 10  # until a line says how far it is, and between two; on a terminal the line is renewed
SIZE_LEAST = 32768  # smaller transfers take as long to simulate


class Failed(Exception):
    """A run of the simulator failed; the text has its message."""


class Progress:
    """Lines on stderr about work that takes long."""

    def __init__(self, total, is_silent):
        self.total, self.done = total, 0
        self.is_silent = is_silent
        self.start = time.monotonic()
        self.is_renewed = sys.stderr.isatty()
        self.next = self.start + PROGRESS_FIRST_S

    def add(self, effort):
        self.done += effort
        now = time.monotonic()
        if self.is_silent or now < self.next or self.done >= self.total:
            return
        self.next = now + (PROGRESS_FIRST_S if self.is_renewed else PROGRESS_S)
        left = (now - self.start) * (self.total / self.done - 1)
        print(f"simulated {100 * self.done / self.total:.0f} %, about {left:.0f} s left", file=sys.stderr, flush=True,
              end="    \r" if self.is_renewed else "\n")


def option(key, name, default):
    return int(key[key.index(name) + 1]) if name in key else default


def seeds_of(key):
    """The arguments of one run for each seed."""
    count = option(key, "--seeds", 1)
    if count == 1 or "--seed" in key:
        return [key]
    at = key.index("--seeds")
    return [(*key[:at], *key[at + 2:], "--seed", str(seed)) for seed in range(1, count + 1)]


def effort(key):
    """About how long a run takes, in no unit: hosts each move data, over a distance that grows with the ring."""
    return option(key, "--hosts", 3) ** 2 * max(option(key, "--bytes", 1 << 20), SIZE_LEAST)


def merge(runs):
    """Figures of runs with as many values each."""
    return {name: {**first, "mean": sum(run[name]["mean"] for run in runs) / len(runs),
                   "least": min(run[name]["least"] for run in runs), "largest": max(run[name]["largest"] for run in runs)}
            for name, first in runs[0].items()}


class Simulator:
    def __init__(self, quoit, is_silent=False):
        self.quoit = quoit
        self.is_silent = is_silent
        self.results = {}
        self.wanted = set()

    def call(self, arguments):
        result = subprocess.run([self.quoit, "sim", "--json", *arguments], stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True, check=False)
        if result.returncode != 0:
            raise Failed(f"quoit sim {' '.join(arguments)}: {(result.stderr or result.stdout).strip()}")
        return json.loads(result.stdout)

    def make(self):
        """Makes all requested runs that are missing. One process per seed, since there is one simulated world per process, and
        the longest first, so that no processor waits at the end for another one's."""
        missing = sorted(self.wanted - self.results.keys())
        parts = sorted(((key, part) for key in missing for part in seeds_of(key)), key=lambda one: -effort(one[1]))
        found = {key: [] for key in missing}
        progress = Progress(sum(effort(part) for _, part in parts), self.is_silent)
        with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
            running = {pool.submit(self.call, part): (key, part) for key, part in parts}
            try:
                for future in concurrent.futures.as_completed(running):
                    key, part = running[future]
                    found[key].append((part, future.result()["figures"]))
                    progress.add(effort(part))
            except BaseException:
                pool.shutdown(cancel_futures=True)
                raise
        for key in missing:
            self.results[key] = merge([figures for _, figures in sorted(found[key], key=lambda one: one[0])])
        self.wanted.clear()

    def model(self):
        return self.call(["--show-model"])


def wire_rate(model):
    """MB/s of one direction of a link."""
    if model["link_ps_per_byte"]["value"] == 0:
        raise Failed("argument --model: link_ps_per_byte is 0, and rates are set beside that of the wire")
    return 1e6 / model["link_ps_per_byte"]["value"]


class Book:
    """The runs with one set of constants: `model` is a list of arguments of --model."""

    def __init__(self, simulator, model=(), is_quick=False):
        self.simulator = simulator
        constants = list(model[1:] if model[:1] == ["fitted"] else model)  # which is the default: equal runs are made once
        self.model = [word for text in constants for word in ("--model", text)]
        self.is_quick = is_quick

    def sizes(self, least, largest):
        """Doublings; every second one, from the largest down, of a quick book."""
        sizes = [least << i for i in range((largest // least).bit_length())]
        return sizes[::-2][::-1] if self.is_quick else sizes

    def stat(self, metric, part, **options):
        arguments = [*self.model]
        for name, value in sorted(options.items()):
            arguments += [f"--{name.replace('_', '-')}", str(value)]
        key = tuple(arguments)
        if key not in self.simulator.results:
            self.simulator.wanted.add(key)
            return 1 + zlib.crc32(repr(key).encode()) / (1 << 32)  # all different, so that differences can be divided by
        figures = self.simulator.results[key]
        if metric not in figures:
            raise Failed(f"quoit sim {' '.join(key)} has no figure {metric!r}")
        return figures[metric][part]

    def value(self, metric, **options):
        return self.stat(metric, "mean", **options)


PROTOCOLS = ("papers", "ours")


def protocol_options(protocol, size):
    """The papers send each put as one transfer, with their barrier and payload method; ours splits it, and PEs put to neighbours
    directly."""
    if protocol == "papers":
        return {"protocol": "scratchpad", "barrier": "papers", "chunk": max(size, 32768)}
    return {"chunk": 32768, "direct": "posted"}
