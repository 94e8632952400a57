#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The models of the ring's flow control, its failover, direct puts, users of a link, barriers and locks, searched by spin.

Aim: no order of events stops the ring, loses a credit or overwrites a slot, or executes a request or lands a put twice
or never when links fail, lets a host out of a barrier too early or never, or gives a lock to two PEs or none, or without its
notices; and a protocol with one rule broken does so.
Method: each run below is one of the models with its own sizes. spin generates a verifier that visits every state
(exhaustively: no bit-state hashing). A run that must pass must also have completed its search; the run without
reductions must have reached every statement of the model. A variant must fail with the error that its broken rule
causes.

That every run ends: a label `accept` stands where a process of each model is in every state, so that each cycle of states
is an acceptance cycle, whatever is on it. spin finds such a cycle, without fairness, when it comes back to a state of the
path that it follows, and stores no state twice. These searches check all that the others do.

Use: check.py [--long] [--model NAME] [--only WORD]   the runs; --long: also those of many minutes; --model: of ring,
                                                      failover, direct, lanes, shared, barrier or lock; --only: whose name
                                                      has WORD
     check.py --show NAME                             the steps of the counterexample of a variant
Exit status: 0 all results as expected, 1 not, 77 spin is not installed.
"""
import argparse
import concurrent.futures
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
SKIPPED = 77
DEPTH_MAX = 20000
PARALLEL_RUNS = 2
MEMORY_MB, MEMORY_LONG_MB = 1500, 3500  # of one run
SECONDS, SECONDS_LONG = 200, 3600

# Default sizes. OUTSTANDING 18: no limit, since a host has no more requests than that.
SIZES = {"HOSTS": 3, "SLOTS": 2, "DIRECTIONS": 1, "PENDING": 1, "OUTSTANDING": 18,
         "ONE_HOP": 1, "TWO_HOPS": 1, "FETCHES_ONE_HOP": 0b000, "FETCHES_TWO_HOPS": 0b010}
# One request, and a link that is down at first and comes up, or that goes down for good.
FAILOVER = {"HOSTS": 3, "SLOTS": 2, "REPLY_SLOTS": 2, "REQUESTS": 1, "FETCHES": 0b00, "QUIETS": 0b00, "UPDATES": 6,
            "CUTS_0": 0, "CUTS_1": 0, "CUTS_2": 0, "BEGINS": 3, "STAYS": 3}
# Three operations of a PE, and a link that goes down once, at any time, and comes back.
DIRECT = {"OPERATIONS": 3, "JOURNAL": 2, "CUTS": 1, "STAYS": 0}
# Three users with two requests each, of which one waits for the share of the first, which dies.
SHARED = {"REQUESTS": 2, "SLOTS": 2, "SHARES": 2, "CUTS": 1, "DIES": 1, "STOPS": 0}
GOES_DOWN, COMES_UP = {"CUTS_0": 1, "STAYS": 0, "FETCHES": 0b10}, {"BEGINS": 0}
# A link goes down and comes up, once or twice, in any phase: an update leaves at once, and always finds a slot.
ROOM, ONCE, TWICE_DOWN = {"REPLY_SLOTS": 10}, {"REPLY_SLOTS": 10, "CUTS_0": 1}, {"REPLY_SLOTS": 10, "CUTS_0": 2}
REDUCTIONS = ("REDUCE", "ROTATE")
PASS, STUCK, ACYCLIC, ENDLESS = "passes", "invalid end state", "no cycle", "acceptance cycle"
ORDER = r"assertion violated .*before"
EARLY = r"assertion violated .*entered"
TWICE = r"assertion violated ..landed&.1<<"
NOTICES = r"assertion violated .*known\[me\]==all"
TWO_EACH = {"ONE_HOP": 2, "TWO_HOPS": 2, "FETCHES_ONE_HOP": 0b010, "FETCHES_TWO_HOPS": 0b100}


class Run:
    model = "ring.pml"

    def __init__(self, name, sizes=None, options=REDUCTIONS, expected=PASS, is_long=False):
        self.name, self.options, self.expected, self.is_long = name, options, expected, is_long
        self.sizes = {**SIZES, **(sizes or {})}

    def defines(self):
        return [f"-D{name}={value}" for name, value in self.sizes.items()] + [f"-D{name}" for name in self.options]

    def has_reductions(self):
        return any(name in REDUCTIONS for name in self.options)


class Failover(Run):
    model = "failover.pml"

    def __init__(self, name, sizes, options=(), expected=PASS, is_long=False):
        super().__init__(name, {**FAILOVER, **sizes}, options, expected, is_long)

    def defines(self):
        sizes = [f"-D{name}={self.sizes[name]}" for name in FAILOVER if name != "HOSTS"]
        return sizes + [f"-D{name}" for name in self.options]

    def has_reductions(self):
        return True  # statements about a link that does not fail are never reached


class Direct(Run):
    model = "direct.pml"

    def __init__(self, name, sizes=None, options=(), expected=PASS, is_long=False):
        super().__init__(name, {**DIRECT, **(sizes or {})}, options, expected, is_long)

    def defines(self):
        return [f"-D{name}={self.sizes[name]}" for name in ("OPERATIONS", "JOURNAL", "CUTS", "STAYS")] + \
               [f"-D{name}" for name in self.options]

    def has_reductions(self):
        return True  # a single thread never binds while it has lost puts to send again


class Shared(Run):
    model = "shared.pml"

    def __init__(self, name, sizes=None, options=(), expected=PASS, is_long=False):
        super().__init__(name, {**SHARED, **(sizes or {})}, options, expected, is_long)

    def defines(self):
        return [f"-D{name}={self.sizes[name]}" for name in SHARED] + [f"-D{name}" for name in self.options]

    def has_reductions(self):
        return True  # user 0 does not stop in each run


class Lanes(Run):
    model = "lanes.pml"

    def __init__(self, name, sizes=None, options=(), expected=PASS, is_long=False):
        super().__init__(name, {"OPERATIONS": 3, "CUTS": 1, **(sizes or {})}, options, expected, is_long)

    def defines(self):
        return [f"-D{name}={self.sizes[name]}" for name in ("OPERATIONS", "CUTS")] + [f"-D{name}" for name in self.options]

    def has_reductions(self):
        return True  # a link that stays up is followed by no lane


class Barrier(Run):
    model = "barrier.pml"

    def __init__(self, name, hosts, options, expected=PASS, barriers=2, is_long=False):
        super().__init__(name, {"HOSTS": hosts, "BARRIERS": barriers}, options, expected, is_long)

    def defines(self):
        return [f"-D{name}={self.sizes[name]}" for name in ("HOSTS", "BARRIERS")] + [f"-D{name}" for name in self.options]

    def has_reductions(self):
        return True  # with one host more or less a branch is never taken


class Lock(Run):
    model = "lock.pml"

    def __init__(self, name, sizes, options=(), expected=PASS, is_long=False):
        super().__init__(name, {"PES": 2, "THREADS": 1, "NODES": 2, "OPERATIONS": 2, **sizes}, options, expected, is_long)

    def defines(self):
        return [f"-D{name}={self.sizes[name]}" for name in ("PES", "THREADS", "NODES", "OPERATIONS")] + \
               [f"-D{name}" for name in self.options]

    def has_reductions(self):
        return True  # with one thread a PE some branches are never taken


RUNS = [
    Run("two directions", {"DIRECTIONS": 2, "ONE_HOP": 0, "TWO_HOPS": 2, "FETCHES_TWO_HOPS": 0b110, "OUTSTANDING": 2}),
    Run("3 hosts, every step by itself", options=()),
    Run("3 hosts, no cycle of states", options=("ROTATE",), expected=ACYCLIC),
    Run("3 hosts, more requests", TWO_EACH),
    Run("3 hosts, few outstanding", {**TWO_EACH, "OUTSTANDING": 2}),
    Run("3 hosts, two responses wait", {**TWO_EACH, "PENDING": 2}),
    Run("3 hosts, 3 slots", {**TWO_EACH, "SLOTS": 3}),
    Run("3 hosts, all kinds, any turn", options=(*REDUCTIONS, "ANY_KIND", "ANY_TURN")),
    Run("4 hosts", {"HOSTS": 4}),
    Run("4 hosts, more requests", {"HOSTS": 4, "TWO_HOPS": 2}),
    Run("5 hosts", {"HOSTS": 5}),
    Run("5 hosts, all fetch", {"HOSTS": 5, "FETCHES_ONE_HOP": 0b010}),
    Run("5 hosts, two hops only", {"HOSTS": 5, "ONE_HOP": 0, "TWO_HOPS": 2}),
    Run("NO_BUBBLE", options=("NO_BUBBLE",), expected=STUCK),
    Run("NO_BUBBLE, 4 hosts", {"HOSTS": 4}, (*REDUCTIONS, "NO_BUBBLE"), STUCK),
    Run("NO_BUBBLE, 5 hosts", {"HOSTS": 5}, (*REDUCTIONS, "NO_BUBBLE"), STUCK),
    Run("NO_REPLY_BUBBLE", options=(*REDUCTIONS, "NO_REPLY_BUBBLE"), expected=STUCK),
    Run("NO_REPLY_BUBBLE, 5 hosts", {"HOSTS": 5}, (*REDUCTIONS, "NO_REPLY_BUBBLE"), STUCK),
    Run("REPLY_BEHIND_REQUEST", {"TWO_HOPS": 2, "FETCHES_ONE_HOP": 0b010, "FETCHES_TWO_HOPS": 0b110},
        (*REDUCTIONS, "REPLY_BEHIND_REQUEST"), STUCK),
    Run("LOST_CREDIT", options=("LOST_CREDIT",), expected=STUCK),
    Run("EARLY_CREDIT", options=("EARLY_CREDIT",), expected=r"assertion violated .*\.filled<2"),
    Run("NO_ROOM_CHECK", {"FETCHES_ONE_HOP": 0b010}, ("NO_ROOM_CHECK",), r"assertion violated .*\.count<1"),
    Failover("links: once down and up", ONCE, ("EAGER",)),
    Failover("links: once down and up, NO_QUIESCE", ONCE, ("EAGER", "NO_QUIESCE"), r"assertion violated .executed<number"),
    Failover("links: down and up once, two requests", {**ONCE, "REQUESTS": 2, "FETCHES": 0b100}, ("EAGER",)),
    Failover("links: down and up once, DMA", {**ONCE, "REQUESTS": 2, "FETCHES": 0b100}, ("EAGER", "DMA")),
    Failover("links: down and up once, quiet", {**ONCE, "REQUESTS": 2, "QUIETS": 0b100}, ("EAGER",)),
    Failover("links: down and up once, every run ends", {**ONCE, "REQUESTS": 2, "FETCHES": 0b100}, ("EAGER",), ACYCLIC),
    Failover("links: down and up once, lanes follow late", {**ONCE, "REQUESTS": 2, "FETCHES": 0b100}, ("EAGER", "LATE_LANE")),
    Failover("links: lanes follow late, every run ends", ONCE, ("EAGER", "LATE_LANE"), ACYCLIC),
    Failover("links: ACK_AGAIN", ONCE, ("EAGER", "ACK_AGAIN"), ENDLESS),
    Failover("links: lanes follow late, NO_QUIESCE", ONCE, ("EAGER", "LATE_LANE", "NO_QUIESCE"),
             r"assertion violated .executed<number"),
    Failover("links: down and up twice, every run ends", TWICE_DOWN, ("EAGER",), ACYCLIC),
    Failover("links: twice, NO_RESEND", TWICE_DOWN, ("EAGER", "NO_RESEND"), STUCK),
    Failover("links: twice, LAND_RESENT", TWICE_DOWN, ("EAGER", "LAND_RESENT"), r"assertion violated .executed<number"),
    Failover("links: one goes down", {**GOES_DOWN, "REQUESTS": 2, "FETCHES": 0b100}),
    Failover("links: one comes up", COMES_UP),
    Failover("links: one goes down, DMA", {**GOES_DOWN, "REQUESTS": 2, "FETCHES": 0b100}, ("DMA",)),
    Failover("links: one comes up, DMA", COMES_UP, ("DMA",)),
    Failover("links: one goes down, quiet", {**GOES_DOWN, "REQUESTS": 2, "FETCHES": 0b000, "QUIETS": 0b100}),
    Failover("links: one goes down, nothing is forgotten", {**GOES_DOWN, "REQUESTS": 2, "FETCHES": 0b100}, ("PLAIN",)),
    Failover("links: one goes down, every run ends", {**GOES_DOWN, "REQUESTS": 2, "FETCHES": 0b100}, expected=ACYCLIC),
    Failover("links: one comes up, every run ends", COMES_UP, expected=ACYCLIC),
    Failover("links: one comes up, DMA, every run ends", COMES_UP, ("DMA",), expected=ACYCLIC),
    Failover("links: NO_REST", COMES_UP, ("DMA", "NO_REST"), r"assertion violated .*executed<end"),
    Failover("links: EARLY_QUIET", {**GOES_DOWN, "REQUESTS": 2, "FETCHES": 0b000, "QUIETS": 0b100}, ("EARLY_QUIET",),
             r"assertion violated .*executed==sent"),
    Failover("links: NO_RESEND", GOES_DOWN, ("NO_RESEND",), STUCK),
    Failover("links: NO_REPEAT_CHECK", GOES_DOWN, ("NO_REPEAT_CHECK",), r"assertion violated .number=="),
    Failover("links: KEEP_RESPONSES", GOES_DOWN, ("KEEP_RESPONSES",), r"assertion violated .*fetching"),
    Failover("links: NO_QUIESCE", COMES_UP, ("NO_QUIESCE",), r"assertion violated .executed<number"),
    Failover("links: LAND_RESENT", COMES_UP, ("LAND_RESENT",), r"assertion violated .executed<number"),
    Failover("links: NO_VERSION", COMES_UP, ("NO_VERSION",), r"assertion violated .executed<number"),
    Failover("links: UPDATES_LATER", COMES_UP, ("UPDATES_LATER",), r"assertion violated 0"),
    Direct("direct: the link goes down and comes back"),
    Direct("direct: the link goes down for good", {"STAYS": 1}),
    Direct("direct: the link stays up", {"CUTS": 0}, expected=ACYCLIC),
    Direct("direct: every run ends", {"STAYS": 1}, expected=ACYCLIC),
    Direct("direct: a journal of one entry", {"JOURNAL": 1, "STAYS": 1}),
    Direct("direct: marks that can be cut off", {"STAYS": 1}, ("SPLIT", "TWICE")),
    Direct("direct: EARLY_READ", options=("EARLY_READ",), expected=TWICE),
    Direct("direct: LATE", options=("LATE",), expected=TWICE),
    Direct("direct: SEND_ALL", options=("SEND_ALL",), expected=TWICE),
    Direct("direct: FORGET_KNOWN", options=("FORGET_KNOWN",), expected=TWICE),
    Direct("direct: NO_MARK", options=("NO_MARK",), expected=TWICE),
    Direct("direct: SPLIT", options=("SPLIT",), expected=TWICE),
    Direct("direct: MAY_LAND", options=("MAY_LAND",), expected=TWICE),
    Direct("direct: REUSE", options=("REUSE",), expected=r"assertion violated .*direct&"),
    Direct("direct: NO_READ_BACK", options=("NO_READ_BACK",), expected=r"assertion violated .landed=="),
    Direct("direct: UNBOUND", options=("UNBOUND",), expected=r"assertion violated .*known!=posted"),
    Direct("direct: NO_FENCE", options=("NO_FENCE",), expected=r"assertion violated .*before"),
    Lanes("lanes: the link goes down and comes back"),
    Lanes("lanes: the link stays up", {"CUTS": 0}),
    Lanes("lanes: every run ends", {"OPERATIONS": 2}, expected=ACYCLIC),
    Lanes("lanes: NO_OFF_LANE_WAIT", {"CUTS": 0}, ("NO_OFF_LANE_WAIT",), ORDER),
    Lanes("lanes: SPLIT_FENCED", {"CUTS": 0}, ("SPLIT_FENCED",), ORDER),
    Lanes("lanes: NO_ORDERED", {"CUTS": 0}, ("NO_ORDERED",), ORDER),
    Lanes("lanes: QUIET_OF_LANE", {"CUTS": 0}, ("QUIET_OF_LANE",), r"assertion violated .*executed=="),
    Lanes("lanes: LAND_RESENT", options=("LAND_RESENT",), expected=ORDER),
    Shared("users: one dies or stops, the link is cut", {"STOPS": 1}),
    Shared("users: every run ends", {"REQUESTS": 1}, expected=ACYCLIC),
    Shared("users: POOL", {"REQUESTS": 4, "CUTS": 0, "DIES": 0, "STOPS": 1}, ("POOL",), STUCK),
    Shared("users: KEEP_SHARE", options=("KEEP_SHARE",), expected=STUCK),
    Shared("users: REUSE", options=("REUSE",), expected=r"assertion violated .owner=="),
    Shared("users: WRONG_MEMORY", options=("WRONG_MEMORY",), expected=r"assertion violated .owner=="),
    Shared("users: SWEEP_ALL", options=("SWEEP_ALL",), expected=STUCK),
    Shared("users: CUT_ALL", options=("CUT_ALL",), expected=STUCK),
    Shared("users: NO_REPEAT_CHECK", options=("NO_REPEAT_CHECK",), expected=r"assertion violated .number=="),
    Barrier("barrier: doorbells", 3, ("DOORBELLS",), barriers=3),
    Barrier("barrier: doorbells, every run ends", 3, ("DOORBELLS",), ACYCLIC),
    Barrier("barrier: exchange", 4, ("EXCHANGE",)),
    Barrier("barrier: exchange, odd", 5, ("EXCHANGE",), barriers=1),
    Barrier("barrier: exchange, every run ends", 3, ("EXCHANGE",), ACYCLIC),
    Barrier("barrier: arrivals", 3, ("ARRIVALS",)),
    Barrier("barrier: arrivals, a dead link", 4, ("ARRIVALS", "DEAD_LINK")),
    Barrier("barrier: arrivals, every run ends", 3, ("ARRIVALS",), ACYCLIC),
    Barrier("barrier: dissemination", 4, ("DISSEMINATE",)),
    Barrier("barrier: dissemination, every run ends", 3, ("DISSEMINATE",), ACYCLIC),
    Barrier("barrier: EARLY_LEAVE", 3, ("DOORBELLS", "EARLY_LEAVE"), EARLY),
    Barrier("barrier: NO_WAKE", 3, ("DOORBELLS", "NO_WAKE"), STUCK),
    Barrier("barrier: NO_LAST_LOOK", 3, ("DOORBELLS", "NO_LAST_LOOK"), STUCK),
    Barrier("barrier: exchange, FEW_ROUNDS", 4, ("EXCHANGE", "FEW_ROUNDS"), EARLY),
    Barrier("barrier: dissemination, FEW_ROUNDS", 5, ("DISSEMINATE", "FEW_ROUNDS"), EARLY),
    Barrier("barrier: NO_BASE", 4, ("ARRIVALS", "NO_BASE"), EARLY),
    Barrier("barrier: NO_FORWARD", 5, ("ARRIVALS", "NO_FORWARD"), STUCK),
    Lock("lock: 2 PEs", {"OPERATIONS": 3}),
    Lock("lock: 3 PEs", {"PES": 3}),
    Lock("lock: PEs of two threads", {"THREADS": 2, "NODES": 3, "OPERATIONS": 1}),
    Lock("lock: every run ends", {"OPERATIONS": 3}, expected=ACYCLIC),
    Lock("lock: NO_USES", {"PES": 3}, ("NO_USES",), STUCK),
    Lock("lock: NO_CLAIM", {"PES": 3}, ("NO_CLAIM",), STUCK),
    Lock("lock: GIVE_BACK_FREE", {"OPERATIONS": 3}, ("GIVE_BACK_FREE",), r"assertion violated .*after"),
    Lock("lock: STORE_FREE", {}, ("STORE_FREE",), STUCK),
    Lock("lock: READ_FIRST", {}, ("READ_FIRST",), NOTICES),
    Lock("lock: FLAG_FIRST", {}, ("FLAG_FIRST",), NOTICES),
    Lock("lock: OWN_ONLY", {"PES": 3}, ("OWN_ONLY",), NOTICES),
    Lock("lock: SHOW_AHEAD", {"OPERATIONS": 3}, ("SHOW_AHEAD",), NOTICES),
    Lock("long: lock: 2 PEs, more operations", {"OPERATIONS": 4}, is_long=True),
    Barrier("long: barrier: doorbells, 4 hosts", 4, ("DOORBELLS",), is_long=True),
    Barrier("long: barrier: arrivals, 4 hosts", 4, ("ARRIVALS",), barriers=1, is_long=True),
    Barrier("long: barrier: exchange, 5 hosts", 5, ("EXCHANGE",), is_long=True),
    Direct("long: direct, two outages", {"CUTS": 2}, is_long=True),
    Direct("long: direct, two outages, then for good", {"CUTS": 2, "STAYS": 1}, is_long=True),
    Direct("long: direct, two outages, marks can be cut off", {"CUTS": 2}, ("SPLIT", "TWICE"), is_long=True),
    Direct("long: direct, two outages, NO_WAIT", {"CUTS": 2}, ("NO_WAIT",), is_long=True),
    Direct("long: direct, one outage, every run ends", expected=ACYCLIC, is_long=True),
    Failover("long: links: twice, two requests, every run ends", {**TWICE_DOWN, "REQUESTS": 2}, ("EAGER",), ACYCLIC, True),
    Failover("long: links: twice, two requests, a response", {**TWICE_DOWN, "REQUESTS": 2, "FETCHES": 0b100}, ("EAGER",),
             ACYCLIC, True),
    Failover("long: links: twice, lanes follow late", TWICE_DOWN, ("EAGER", "LATE_LANE"), is_long=True),
    Failover("long: links: twice, a response", {**TWICE_DOWN, "FETCHES": 0b10}, ("EAGER",), is_long=True),
    Failover("long: links: twice, DMA", TWICE_DOWN, ("EAGER", "DMA"), is_long=True),
    Failover("long: links: twice, between hosts 1 and 2", {**ROOM, "CUTS_1": 2}, ("EAGER",), is_long=True),
    Failover("long: links: once each, next to host 0", {**ONCE, "CUTS_2": 1}, ("EAGER",), is_long=True),
    Failover("long: links: once each, next to host 1", {**ONCE, "CUTS_1": 1}, ("EAGER",), is_long=True),
    Failover("long: links: once each, next to host 2", {**ROOM, "CUTS_1": 1, "CUTS_2": 1}, ("EAGER",), is_long=True),
    Failover("long: links: twice, between hosts 2 and 0", {**ROOM, "CUTS_2": 2}, ("EAGER",), is_long=True),
    Run("long: 3 hosts, every step, any turn", options=("ANY_TURN",), is_long=True),
    Run("long: two directions", {"DIRECTIONS": 2}, is_long=True),
    Run("long: two directions, two hops only",
        {"DIRECTIONS": 2, "ONE_HOP": 0, "TWO_HOPS": 2, "FETCHES_TWO_HOPS": 0b110}, is_long=True),
    Run("long: 3 hosts, all kinds, any turn", {"TWO_HOPS": 2}, (*REDUCTIONS, "ANY_KIND", "ANY_TURN"), is_long=True),
    Run("long: 4 hosts, all kinds, any turn", {"HOSTS": 4}, (*REDUCTIONS, "ANY_KIND", "ANY_TURN"), is_long=True),
    Run("long: 5 hosts, all kinds", {"HOSTS": 5}, (*REDUCTIONS, "ANY_KIND"), is_long=True),
    Run("long: 5 hosts, any turn", {"HOSTS": 5, "FETCHES_ONE_HOP": 0b010}, (*REDUCTIONS, "ANY_TURN"), is_long=True),
]


class Trouble(Exception):
    """A run that could not be completed."""


def command(arguments, where, seconds):
    try:
        done = subprocess.run(arguments, cwd=where, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=seconds)
    except subprocess.TimeoutExpired:
        raise Trouble(f"{arguments[0]} took more than {seconds} s") from None
    return done.returncode, done.stdout


def search(run, where):
    """The output of a run's verifier, which works in the directory `where`."""
    status, text = command(["spin", "-a", *run.defines(), os.path.join(HERE, run.model)], where, 60)
    if status or "Error" in text:
        raise Trouble("spin refuses the model:\n" + text)
    memory = MEMORY_LONG_MB if run.is_long else MEMORY_MB
    seeks_cycles = run.expected in (ACYCLIC, ENDLESS)
    kind = ["-DNOFAIR", "-DNOSTUTTER"] if seeks_cycles else ["-DSAFETY"]  # a run that ends is no cycle
    # -O1 compiles faster, which is most of a short run
    level = "-O2" if run.expected in (PASS, ACYCLIC) and (run.is_long or run.model == Run.model) else "-O1"
    status, text = command(["cc", level, "-w", *kind, f"-DMEMLIM={memory}", "-o", "pan", "pan.c"], where, 180)
    if status:
        raise Trouble("cc refuses the verifier:\n" + text)
    modes = ["-a"] if seeks_cycles else []
    return command(["./pan", f"-m{DEPTH_MAX}", *modes], where, SECONDS_LONG if run.is_long else SECONDS)[1]


def verdict(run, text):
    """(problem or None, outcome)"""
    found = re.search(r"errors: (\d+)", text)
    if not found:
        return "no result:\n" + text, "-"
    problems = re.findall(r"^pan:1: (.*?)(?: \(at depth (\d+)\))?$", text, re.M)
    seen = f"{problems[0][0]}, step {problems[0][1]}" if problems else "passes"
    if run.expected not in (PASS, ACYCLIC):
        if found.group(1) != "0" and problems and re.match(run.expected, problems[0][0]):
            return None, re.sub(r" \(.*\)", "", seen)
        return "the broken rule was not detected", seen
    if found.group(1) != "0" or problems:
        return "a counterexample was found", seen
    if run.expected == ACYCLIC and "no accept labels" in text:
        return "the model has no label accept", seen
    if re.search(r"Search not completed|too small|MEMLIM|out of memory|error:", text):
        return "the search is not complete", "incomplete"
    if run.expected == PASS and not run.has_reductions() and not re.search(r"proctype Host\s+\(0 of \d+ states\)", text):
        return "some statements of the model are never reached:\n" + text, seen
    return None, "no cycle" if run.expected == ACYCLIC else seen


def number(text, pattern):
    found = re.search(pattern, text, re.M)
    return float(found.group(1)) if found else 0


def check(run):
    start = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="quoit-model-") as where:
        try:
            text = search(run, where)
        except Trouble as trouble:
            return run, str(trouble), "-", 0, 0, time.monotonic() - start
        problem, seen = verdict(run, text)
    states = number(text, r"^\s*(\S+) states, stored")
    return run, problem, seen, states, number(text, r"(\S+)\s+total actual memory"), time.monotonic() - start


def describe(sizes):
    if "SHARES" in sizes:
        return f"{sizes['SHARES']} shares {sizes['SLOTS']} slots {sizes['REQUESTS']} requests"
    if "BARRIERS" in sizes:
        return f"{sizes['HOSTS']} hosts {sizes['BARRIERS']} barriers"
    if "THREADS" in sizes:
        return f"{sizes['PES']} PEs {sizes['THREADS']} threads {sizes['OPERATIONS']} operations"
    if "OPERATIONS" in sizes:
        return f"{sizes['OPERATIONS']} operations, {sizes['CUTS']} cuts"
    requests = sizes["REQUESTS"] if "REQUESTS" in sizes else f"{sizes['ONE_HOP']}+{sizes['TWO_HOPS']}"
    return f"{sizes['HOSTS']} hosts {sizes['SLOTS']} slots {requests} requests"


def print_row(run, problem, seen, states, megabytes, seconds):
    print(f"{'FAIL' if problem else 'ok':4}  {run.name:46} {describe(run.sizes):29} {states:12,.0f} states "
          f"{megabytes:6.0f} MB {seconds:5.1f} s  {seen}", flush=True)
    if problem:
        print(f"      {problem}\n      {' '.join(run.defines())}", flush=True)


def show(name):
    for run in RUNS:
        if run.name == name:
            run.options = [option for option in run.options if option != "ROTATE"]  # so that hosts keep their numbers
            with tempfile.TemporaryDirectory(prefix="quoit-model-") as where:
                search(run, where)
                if not os.path.exists(os.path.join(where, run.model + ".trail")):
                    print(f"check.py: {name} has no counterexample")
                    return 1
                text = command(["./pan", "-r", run.model + ".trail", "-n"], where, 60)[1]
                for line in re.findall(r"(?:host \d+|PE(?: \d+)?|the link)\S* [a-z\d].*|^pan:.*", text, re.M):
                    print(line)
                return 0
    print(f"check.py: no run is named {name}; there are: {', '.join(run.name for run in RUNS)}", file=sys.stderr)
    return 1


def main():
    parser = argparse.ArgumentParser(description="search the models of the ring, direct puts, shares, barriers and locks")
    parser.add_argument("--long", action="store_true", help="also the runs of many minutes")
    parser.add_argument("--model", default="", choices=["ring", "failover", "direct", "lanes", "shared", "barrier", "lock"],
                        help="runs of this model")
    parser.add_argument("--only", default="", metavar="WORD", help="runs whose name has WORD")
    parser.add_argument("--show", metavar="NAME", help="print the steps of the counterexample of a run")
    arguments = parser.parse_args()
    for tool, package in (("spin", "spin"), ("cc", "gcc")):
        if not shutil.which(tool):
            print(f"check.py: skipped, {tool} is not installed (Debian package {package})")
            return SKIPPED
    if arguments.show:
        return show(arguments.show)
    runs = [run for run in RUNS if arguments.only in run.name and
            run.model.startswith(arguments.model) and (arguments.long or not run.is_long)]
    if not runs:
        print(f"check.py: no run has {arguments.only!r} in its name", file=sys.stderr)
        return 1
    failed = 0
    start = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(1 if arguments.long else PARALLEL_RUNS) as pool:
        for result in pool.map(check, runs):
            print_row(*result)
            failed += result[1] is not None
    print(f"{len(runs)} runs, {failed} failed, {time.monotonic() - start:.0f} s")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
