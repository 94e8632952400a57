#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A run of the production code against the model of the ring.

Aim: what the code does is what the model allows, so that what spin has shown of the model holds for the code. Method: quoit
sim runs the proxies' code on simulated hosts and prints what each lane sends and takes. Each line becomes one move of
ring.pml; credits are derived from the number of slots that a writer counts as used. spin executes the moves one after the other in
the model itself: a move whose condition does not hold there, or whose numbers differ, is an assertion that fails. At the end
every request is complete. The same moves must be refused where the model has a slot less, and with one of them left out.

Use: moves.py QUOIT. Exit status: 0 all followed, 1 not, 77 spin is not installed.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
SKIPPED = 77
NUMBER_MAX = 31  # of a flow, as in ring.pml
FETCHES, ACK, TOPOLOGY = (4, 5, 7), 11, 12  # kinds of src/wire/frame.h
SUBMIT, FORWARD, EXECUTE, TAKE_REPLY, RESPOND, ACKNOWLEDGE, CREDIT, UPDATE, TAKE_UPDATE = range(9)
REQUEST, REPLY = 0, 1
VERDICT_SEND = 1
# hosts, slots, workload, seeds
RUNS = ((3, 2, "hotspot", range(1, 6)), (4, 2, "alltoall", range(1, 6)), (5, 2, "atomics", range(1, 6)), (5, 3, "mix", range(1, 6)))


class Run:
    """The moves of a run, in order."""

    def __init__(self, hosts):
        self.hosts = hosts
        self.moves = []
        self.used = {}  # by direction, class and host that writes
        self.first = {}  # by direction, source and destination of the requests: the number before the first

    def add(self, kind, direction, which, host, hops=1, fetches=0, said=0):
        self.moves.append(kind | direction << 4 | which << 5 | host << 6 | hops << 10 | fetches << 12 | said << 13)

    def hops(self, to_right, source, dest):
        return (dest - source if to_right else source - dest) % self.hosts

    def number(self, key, sequence):
        return (sequence - self.first.setdefault(key, (sequence - 1) % (1 << 32))) % (1 << 32)

    def send(self, host, which, side, kind, source, dest, sequence, used):
        direction = which ^ (side == 0)  # 0: what asks travels to the right
        key = (direction, which, host)
        reader = (host + (1 if side else -1)) % self.hosts
        for _ in range(self.used.get(key, 0) + 1 - used):
            self.add(CREDIT, direction, which, reader)
        self.used[key] = used
        if kind == TOPOLOGY:
            self.add(UPDATE, direction, which, host)
            return
        flow = (direction, source, dest) if which == REQUEST else (direction, dest, source)
        hops = self.hops(side == 1, source, dest)
        said = self.number(flow, sequence)
        if host != source:
            self.add(FORWARD, direction, which, host, hops, 0, said)
        elif which == REQUEST:
            self.add(SUBMIT, direction, which, host, hops, kind in FETCHES, said)
        else:
            self.add(ACKNOWLEDGE if kind == ACK else RESPOND, direction, which, host, hops, 0, said)

    def take(self, host, which, side, kind, source, dest, sequence, verdict):
        direction = which ^ (side == 1)  # it came from that side
        if kind == TOPOLOGY:
            self.add(TAKE_UPDATE, direction, which, host)
        elif verdict != VERDICT_SEND:
            flow = (direction, source, dest) if which == REQUEST else (direction, dest, source)
            hops = self.hops(side == 0, source, dest)
            self.add(EXECUTE if which == REQUEST else TAKE_REPLY, direction, which, host, hops, 0, self.number(flow, sequence))


def moves_of(quoit, folder, hosts, slots, workload, seed):
    trace = os.path.join(folder, "trace")
    command = [quoit, "sim", "--workload", workload, "--hosts", str(hosts), "--pes", str(hosts), "--lanes", "1", "--slots",
               str(slots), "--chunk", "1K", "--steps", "1", "--fault", "none", "--direct", "no", "--seed", str(seed), "--trace-text",
               trace]
    result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if result.returncode:
        sys.exit(f"moves: {' '.join(command)} failed:\n{result.stdout}")
    run = Run(hosts)
    with open(trace, encoding="utf-8") as file:
        for line in file:
            words = line.split()
            if words[2] in ("send", "take"):
                host, what, frame = int(words[3]), int(words[4], 16), int(words[5], 16)
                {"send": run.send, "take": run.take}[words[2]](
                    host, what & 1, what >> 1 & 1, what >> 2 & 0xff, frame >> 48, frame >> 32 & 0xffff, frame & 0xffffffff, what >> 16)
    return run.moves


def follow(folder, hosts, slots, moves):
    """None if spin followed all of them; else its last lines."""
    path = os.path.join(folder, "moves.h")
    with open(path, "w", encoding="utf-8") as file:
        file.write(f"#define MOVE_COUNT {len(moves)}\ninline load_moves()\n{{\n    d_step {{\n")
        file.writelines(f"        move[{index}] = {move};\n" for index, move in enumerate(moves))
        file.write("    }\n}\n")
    sizes = {"HOSTS": hosts, "SLOTS": slots, "DIRECTIONS": 2, "PENDING": 16, "OUTSTANDING": 255, "ONE_HOP": 0, "TWO_HOPS": 0,
             "FETCHES_ONE_HOP": 0, "FETCHES_TWO_HOPS": 0}
    shutil.copy(os.path.join(HERE, "ring.pml"), folder)
    result = subprocess.run(["spin", "-DMOVES", "-DANY_TURN", *(f"-D{name}={size}" for name, size in sizes.items()), "ring.pml"],
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=folder, check=False)
    lines = result.stdout.split("\n")
    submitted = sum(move & 15 == SUBMIT for move in moves)
    done = re.search(r"(\d+) moves, (\d+) requests complete", result.stdout)
    if done and (int(done.group(1)), int(done.group(2))) == (len(moves), submitted) and "assertion violated" not in result.stdout:
        return None
    last = next((index for index, line in enumerate(lines) if line.startswith("#processes")), len(lines))
    return "\n".join(lines[max(last - 12, 0):last])


def main():
    if not shutil.which("spin"):
        print("moves: spin is not installed")
        return SKIPPED
    quoit, total = os.path.abspath(sys.argv[1]), 0
    with tempfile.TemporaryDirectory() as folder:
        for hosts, slots, workload, seeds in RUNS:
            for seed in seeds:
                moves = moves_of(quoit, folder, hosts, slots, workload, seed)
                problem = follow(folder, hosts, slots, moves)
                if problem:
                    sys.exit(f"moves: {workload} on {hosts} hosts, seed {seed}: the model refuses a move of the code:\n{problem}")
                print(f"{workload} on {hosts} hosts, {slots} slots, seed {seed}: {len(moves)} moves followed")
                total += len(moves)
        forward = next(index for index, move in enumerate(moves) if move & 15 == FORWARD)
        for name, fewer, broken in (("a slot less", slots - 1, moves), ("a frame not forwarded", slots,
                                                                         moves[:forward] + moves[forward + 1:])):
            if not follow(folder, hosts, fewer, broken):
                sys.exit(f"moves: with {name} the model follows all the same")
    print(f"{total} moves of the code are moves of the model")
    return 0


sys.exit(main())
