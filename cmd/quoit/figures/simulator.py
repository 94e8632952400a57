# SPDX-License-Identifier: BSD-3-Clause
"""Runs of `quoit sim --json`, each made once, as many at a time as there are processors.

Figures ask a Book for values. A run that is not there yet is noted as wanted, and some positive number is the answer; make()
makes all that are wanted; then the same functions are called again and get their values. So a figure says once what it needs, and figures share runs.
"""
import concurrent.futures
import json
import os
import subprocess
import zlib


class Failed(Exception):
    """A run of the simulator failed; the text has its message."""


class Simulator:
    def __init__(self, quoit):
        self.quoit = quoit
        self.results = {}
        self.wanted = set()

    def call(self, arguments):
        result = subprocess.run([self.quoit, "sim", "--json", *arguments], stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True, check=False)
        if result.returncode != 0:
            raise Failed(f"quoit sim {' '.join(arguments)}: {(result.stderr or result.stdout).strip()}")
        return json.loads(result.stdout)

    def make(self):
        """Makes all requested runs that are missing. One process per run, since there is one simulated world per
        process."""
        missing = sorted(self.wanted - self.results.keys())
        with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
            for key, result in zip(missing, pool.map(self.call, missing)):
                self.results[key] = result["figures"]
        self.wanted.clear()

    def model(self):
        return self.call(["--show-model"])


class Book:
    """The runs with one set of constants: `model` is a list of arguments of --model."""

    def __init__(self, simulator, model=(), is_quick=False):
        self.simulator = simulator
        self.model = [word for text in model for word in ("--model", text)]
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
    """The papers send each put as one transfer, with their barrier and payload method; ours splits it."""
    if protocol == "papers":
        return {"protocol": "scratchpad", "barrier": "papers", "chunk": max(size, 32768)}
    return {"chunk": 32768}
