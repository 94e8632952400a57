#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs of the production code against the models of the ring and of its failover.

Aim: what the code does is what the model allows, so that what spin has shown of the model holds for the code. Method: quoit
sim runs the proxies' code on simulated hosts and prints what each lane sends and takes. Each line becomes one move of a
model. spin executes the moves one after the other in the model itself: a move whose condition does not hold there, or
whose numbers differ, is an assertion that fails. At the end every request is complete.

ring.pml: all links stay up. Credits are derived from the number of slots that a writer counts as used. The same moves must
be refused where the model has a slot less, and with one of them left out.

failover.pml: links of three hosts are cut and come back. What managers do, and when lanes follow, are moves too. A run is
followed once for each ordered pair of hosts: all moves of links and updates, and those of the flow between the two, whose
hosts become 0 and 1 of the model by a rotation, or a reflection. Frames of other flows take slots and nothing else, so
without them each move is possible all the same. Moves must be refused when one of them is left out.

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

# Of failover.pml
VERDICT_DELIVER = 2
PAD_LINK, WORD_CLEAN = 4, 2  # of src/link/handshake.c
STATE_ABSENT, STATE_UP, STATE_DRAINING = 1, 5, 6  # of src/link/state.h
(CUT, MEND, PROPOSE, CLEAN, AGREE, DRAIN, FOLLOW, ADVERTISE, LEARN, SEND_NEW, SEND_AGAIN, TAKE_REQUEST, TAKE_ANY_REPLY,
 FORWARD_REQUEST, FORWARD_REPLY, RESPOND_TO, ACKNOWLEDGE_UP_TO) = range(17)
# slots, workload, fault, steps, seeds
LINK_RUNS = ((2, "hotspot", "link", 8, range(1, 3)), (3, "hotspot", "links", 8, range(3, 5)), (2, "atomics", "links", 8, range(5, 7)))


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


def frame_of(what, frame):
    """Class, side, kind, source, destination, number, value and topology version of a line that says send or take."""
    return (what & 1, what >> 1 & 1, what >> 2 & 0xff, frame >> 48, frame >> 32 & 0xffff, frame & 0xffffffff, what >> 16 & 0xffff,
            what >> 32)


class Links:
    """The moves of all links, and of the requests from one of three hosts to another, in order."""

    def __init__(self, source, dest):
        self.source, self.dest = source, dest
        self.is_reflected = (dest - source) % 3 == 2
        self.first = None  # the number before the first
        self.sent = 0
        self.states = {}  # of the managers, by end
        self.moves = []

    def end(self, host, side):
        """Of the model, in which the flow goes from host 0 to host 1."""
        turned = self.source - host if self.is_reflected else host - self.source
        return 2 * (turned % 3) + (side ^ self.is_reflected)

    def add(self, kind, end, flag=0, number=0, version=0):
        if number > 2047 or version > 2047:
            sys.exit(f"moves: number {number} or version {version} is too large for a move")
        self.moves.append(kind | end << 5 | flag << 8 | number << 9 | version << 20)

    def number(self, sequence):
        if self.first is None:
            self.first = (sequence - 1) % (1 << 32)
        return (sequence - self.first) % (1 << 32)

    def send(self, host, which, side, kind, source, dest, sequence, _used, version):
        end = self.end(host, side)
        if kind == TOPOLOGY:
            self.add(ADVERTISE, end, version=version)
        elif which == REQUEST and (source, dest) == (self.source, self.dest):
            number = self.number(sequence)
            if host != source:
                self.add(FORWARD_REQUEST, end ^ 1, number=number, version=version)
            elif number == self.sent + 1:
                self.sent = number
                self.add(SEND_NEW, end, kind in FETCHES, number, version)
            else:
                self.add(SEND_AGAIN, end, 0, number, version)
        elif which == REPLY and (dest, source) == (self.source, self.dest):
            if host != source:
                self.add(FORWARD_REPLY, end ^ 1, number=self.number(sequence), version=version)
            else:
                self.add(ACKNOWLEDGE_UP_TO if kind == ACK else RESPOND_TO, end, 0, self.number(sequence), version)

    def take(self, host, which, side, kind, source, dest, sequence, verdict, version):
        end = self.end(host, side)
        if kind == TOPOLOGY:
            self.add(LEARN, end, version=version)
        elif verdict == VERDICT_SEND:
            return  # it is sent on
        elif which == REQUEST and (source, dest) == (self.source, self.dest):
            self.add(TAKE_REQUEST, end, verdict == VERDICT_DELIVER, self.number(sequence), version)
        elif which == REPLY and (dest, source) == (self.source, self.dest):
            self.add(TAKE_ANY_REPLY, end, 0, self.number(sequence), version)

    def read(self, words):
        """A line of the trace, after its time."""
        if words[0] in ("send", "take"):
            {"send": self.send, "take": self.take}[words[0]](int(words[1]), *frame_of(int(words[2], 16), int(words[3], 16)))
        elif words[0] == "link" and words[1] in ("up", "down"):
            self.add(CUT if words[1] == "down" else MEND, self.end_of_simulator(int(words[2])))
        elif words[0] == "bind":
            if self.states[self.end_of_simulator(int(words[1]))] == STATE_ABSENT:  # else it is a PE that binds
                self.add(PROPOSE, self.end_of_simulator(int(words[1])))
        elif words[0] == "word" and int(words[2], 16) == PAD_LINK and int(words[3], 16) & 3 == WORD_CLEAN:
            self.add(CLEAN, self.end_of_simulator(int(words[1])), number=int(words[3], 16) >> 2)
        elif words[0] == "moved":
            end, state = self.end(int(words[1]), int(words[2], 16)), int(words[3], 16)
            self.states[end] = state
            if state in (STATE_UP, STATE_DRAINING):
                self.add(AGREE if state == STATE_UP else DRAIN, end)
        elif words[0] == "follow":
            what = int(words[2], 16)
            self.add(FOLLOW, self.end(int(words[1]), what >> 1 & 1), what & 1, version=int(words[3], 16))

    def end_of_simulator(self, index):
        return self.end((index // 2 + index % 2) % 3, 1 - index % 2)


def trace_of(quoit, folder, hosts, slots, workload, seed, *options):
    """The lines of a run, as words."""
    trace = os.path.join(folder, "trace")
    command = [quoit, "sim", "--workload", workload, "--hosts", str(hosts), "--pes", str(hosts), "--lanes", "1", "--slots",
               str(slots), "--chunk", "1K", "--direct", "no", "--seed", str(seed), "--trace-text", trace, *options]
    result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if result.returncode:
        sys.exit(f"moves: {' '.join(command)} failed:\n{result.stdout}")
    with open(trace, encoding="utf-8") as file:
        return [line.split()[2:] for line in file]


def moves_of(quoit, folder, hosts, slots, workload, seed):
    run = Run(hosts)
    for words in trace_of(quoit, folder, hosts, slots, workload, seed, "--steps", "1", "--fault", "none"):
        if words[0] in ("send", "take"):
            {"send": run.send, "take": run.take}[words[0]](
                int(words[1]), *frame_of(int(words[2], 16), int(words[3], 16))[:-1])
    return run.moves


def follow(folder, model, options, moves, request_count):
    """None if spin followed all of them; else its last lines."""
    path = os.path.join(folder, "moves.h")
    with open(path, "w", encoding="utf-8") as file:
        file.write(f"#define MOVE_COUNT {len(moves)}\ninline load_moves()\n{{\n    d_step {{\n")
        file.writelines(f"        move[{index}] = {move};\n" for index, move in enumerate(moves))
        file.write("    }\n}\n")
    shutil.copy(os.path.join(HERE, model), folder)
    result = subprocess.run(["spin", "-DMOVES", *(f"-D{name}={value}" for name, value in options.items()), model],
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=folder, check=False)
    lines = result.stdout.split("\n")
    done = re.search(r"(\d+) moves, (\d+) requests complete", result.stdout)
    if done and (int(done.group(1)), int(done.group(2))) == (len(moves), request_count) and "assertion violated" not in result.stdout:
        return None
    if result.returncode < 0 or "syntax error" in result.stdout:
        sys.exit(f"moves: spin cannot run {model}, status {result.returncode}:\n{result.stdout[:2000]}")
    last = next((index for index, line in enumerate(lines) if line.startswith("#processes")), len(lines))
    return "\n".join(lines[max(last - 12, 0):last]) or "spin stopped without a word"


def follow_ring(folder, hosts, slots, moves):
    sizes = {"HOSTS": hosts, "SLOTS": slots, "DIRECTIONS": 2, "PENDING": 16, "OUTSTANDING": 255, "ONE_HOP": 0, "TWO_HOPS": 0,
             "FETCHES_ONE_HOP": 0, "FETCHES_TWO_HOPS": 0, "ANY_TURN": 1}
    return follow(folder, "ring.pml", sizes, moves, sum(move & 15 == SUBMIT for move in moves))


def follow_links(folder, slots, moves):
    sizes = {"SLOTS": slots, "REPLY_SLOTS": slots, "REQUESTS": 0, "QUIETS": 0, "UPDATES": 6, "CUTS_0": 0, "CUTS_1": 0, "CUTS_2": 0,
             "BEGINS": 3, "STAYS": 3}
    first = next((move for move in moves if move & 31 == FOLLOW), 0)
    sizes["INITIAL_UP"] = 0 if first >> 8 & 1 else 63  # a lane that follows a link up at first has started without it
    return follow(folder, "failover.pml", sizes, moves, sum(move & 31 == SEND_NEW for move in moves))


def check_links(quoit, folder):
    """Every flow of each run; returns the number of moves."""
    total, cuts, again, example = 0, 0, 0, None
    for slots, workload, fault, steps, seeds in LINK_RUNS:
        for seed in seeds:
            lines = trace_of(quoit, folder, 3, slots, workload, seed, "--steps", str(steps), "--fault", fault, "--dma-bytes", "never")
            for source, dest in ((0, 1), (1, 0), (1, 2), (2, 1), (2, 0), (0, 2)):
                links = Links(source, dest)
                for words in lines:
                    links.read(words)
                problem = follow_links(folder, slots, links.moves)
                if problem:
                    sys.exit(f"moves: {workload}, fault {fault}, seed {seed}, from host {source} to host {dest}: the model refuses a move "
                             f"of the code:\n{problem}")
                total += len(links.moves)
                if any(move & 31 == SEND_AGAIN for move in links.moves):
                    example = slots, links.moves
                again += sum(move & 31 == SEND_AGAIN for move in links.moves)
            cuts += sum(words[:2] == ["link", "down"] for words in lines)
            print(f"{workload} on 3 hosts, {slots} slots, fault {fault}, seed {seed}: all six flows followed")
    print(f"{cuts} cuts, {again} requests retransmitted")
    if not example:
        sys.exit("moves: no link was cut, or nothing was lost")
    slots, moves = example
    for kind, name in ((LEARN, "an update not taken"), (SEND_AGAIN, "a request not retransmitted"), (FOLLOW, "a link not followed")):
        left_out = next(index for index, move in enumerate(moves) if move & 31 == kind)
        if not follow_links(folder, slots, moves[:left_out] + moves[left_out + 1:]):
            sys.exit(f"moves: with {name} the model follows all the same")
    return total


def main():
    if not shutil.which("spin"):
        print("moves: spin is not installed")
        return SKIPPED
    quoit, total = os.path.abspath(sys.argv[1]), 0
    with tempfile.TemporaryDirectory() as folder:
        for hosts, slots, workload, seeds in RUNS:
            for seed in seeds:
                moves = moves_of(quoit, folder, hosts, slots, workload, seed)
                problem = follow_ring(folder, hosts, slots, moves)
                if problem:
                    sys.exit(f"moves: {workload} on {hosts} hosts, seed {seed}: the model refuses a move of the code:\n{problem}")
                print(f"{workload} on {hosts} hosts, {slots} slots, seed {seed}: {len(moves)} moves followed")
                total += len(moves)
        forward = next(index for index, move in enumerate(moves) if move & 15 == FORWARD)
        for name, fewer, broken in (("a slot less", slots - 1, moves), ("a frame not forwarded", slots,
                                                                         moves[:forward] + moves[forward + 1:])):
            if not follow_ring(folder, hosts, fewer, broken):
                sys.exit(f"moves: with {name} the model follows all the same")
        total += check_links(quoit, folder)
    print(f"{total} moves of the code are moves of the model")
    return 0


sys.exit(main())
