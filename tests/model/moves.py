#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs of the production code against the models of the ring, of its failover, of direct puts and of lanes.

Aim: what the code does is what the model allows, so that what spin has shown of the model holds for the code. Method: quoit
sim runs the proxies' code on simulated hosts and prints what each lane sends and takes. Each line becomes one move of a
model. spin executes the moves one after the other in the model itself: a move whose condition does not hold there, or
whose numbers differ, is an assertion that fails. At the end every request is complete.

ring.pml: all links stay up. Credits are derived from the number of slots that a writer counts as used. The same moves must
be refused where the model has a slot less, and with one of them left out. Lanes are followed one by one.

failover.pml: links of three hosts are cut and come back. What managers do, and when lanes follow, are moves too. A run is
followed once for each lane and ordered pair of hosts: all moves of links and updates, and those of the flow between the two,
whose hosts become 0 and 1 of the model by a rotation, or a reflection. Frames of other flows take slots and nothing else, so
without them each move is possible all the same. DMA of any flow counts: a lane with DMA under way learns and follows nothing.
Moves must be refused when one of them is left out, or comes before DMA has ended.

direct.pml: the direct puts of one PE through one end, over posted writes, its fences and quiets, its requests to the PE there,
and that link. Each put lands once and in order; after a loss the mark, and what goes by requests, are the model's.

lanes.pml: the requests of one PE to a neighbour, on two lanes, with its fences and quiets, while all links stay up.

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
SUBMIT, FORWARD, EXECUTE, TAKE_REPLY, RESPOND, ACKNOWLEDGE, CREDIT, UPDATE, TAKE_UPDATE = range(9)
REQUEST, REPLY = 0, 1
VERDICT_SEND = 1
# hosts, slots, workload, lanes, from which size on DMA, seeds
RUNS = ((3, 2, "hotspot", 1, "never", range(1, 4)), (4, 2, "alltoall", 1, "never", range(1, 4)),
        (5, 2, "atomics", 1, "never", range(1, 4)), (5, 3, "mix", 1, "never", range(1, 4)), (3, 2, "hotspot", 1, "1", range(4, 6)),
        (5, 2, "mix", 2, "1", range(4, 6)), (5, 3, "mix", 1, "1", range(4, 6)))

# Of failover.pml
VERDICT_DELIVER = 2
PAD_LINK, WORD_CLEAN = 4, 2  # of src/link/handshake.c
STATE_ABSENT, STATE_UP, STATE_DRAINING = 1, 5, 6  # of src/link/state.h
(CUT, MEND, PROPOSE, CLEAN, AGREE, DRAIN, FOLLOW, ADVERTISE, LEARN, SEND_NEW, SEND_AGAIN, TAKE_REQUEST, TAKE_ANY_REPLY,
 FORWARD_REQUEST, FORWARD_REPLY, RESPOND_TO, ACKNOWLEDGE_UP_TO, LEAVE, HAS_LEFT) = range(19)
# slots, workload, fault, steps, lanes, from which size on DMA, seeds
LINK_RUNS = ((2, "hotspot", "link", 8, 1, "never", range(1, 3)), (3, "hotspot", "links", 8, 1, "never", range(3, 5)),
             (2, "atomics", "links", 8, 1, "never", range(5, 7)), (2, "alltoall", "links", 8, 1, "1", range(10, 12)),
             (2, "hotspot", "links", 8, 1, "1", range(11, 12)), (2, "alltoall", "link", 8, 2, "1", range(10, 12)))

# Of direct.pml. Workload, fault, steps, seeds
(P_CUT, P_MEND, P_DOWN, P_FOLLOW, P_DOWN_THERE, P_AGREE, P_UP, P_UP_THERE, P_LEARN, P_POST, P_ARRIVE, P_READ, P_ASK, P_AGAIN,
 P_REQUEST, P_TAKE, P_EXECUTE, P_COMPLETE, P_OPEN, P_FENCE, P_QUIET) = range(21)
DIRECT_RUNS = (("hotspot", "none", 10, range(1, 2)), ("hotspot", "link", 30, range(5, 7)), ("alltoall", "link", 20, range(5, 7)))

# Of lanes.pml. Workload, steps, from which size on DMA, seeds
L_SUBMIT, L_SEND, L_TAKE, L_KNOW, L_FENCE, L_QUIET = range(6)
LANDED, ORDERED = 1, 4  # flags of a frame
LANE_RUNS = (("alltoall", 6, "never", range(1, 3)), ("hotspot", 6, "1", range(3, 5)))


def frame_kinds():
    """Numbers by name, as src/wire/frame.h has them."""
    with open(os.path.join(HERE, "..", "..", "src", "wire", "frame.h"), encoding="utf-8") as file:
        body = re.search(r"enum quoit_frame_kind \{(.*?)\n\};", file.read(), re.S).group(1)
    names = re.findall(r"QUOIT_FRAME_(\w+)", re.sub(r"/\*.*?\*/", "", body, flags=re.S))
    return {name: number for number, name in enumerate(names)}


KINDS = frame_kinds()
GET, ACK, TOPOLOGY = KINDS["GET"], KINDS["ACK"], KINDS["TOPOLOGY"]
FETCHES = GET, KINDS["GET_STRIDED"], KINDS["AMO_FETCH"]


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


PAIRS = (0, 1), (1, 0), (1, 2), (2, 1), (2, 0), (0, 2)  # of three hosts


def frame_of(words):
    """Class, side, kind, source, destination, number, value and topology version of a line about a frame."""
    what, frame = int(words[2], 16), int(words[3], 16)
    return (what & 1, what >> 1 & 1, what >> 2 & 0xff, frame >> 48, frame >> 32 & 0xffff, frame & 0xffffffff, what >> 16 & 0x1fff,
            what >> 32)


def lane_of(words):
    """Of a line about a frame, or about a lane that follows a link."""
    return int(words[2], 16) >> (2 if words[0] == "follow" else 10) & 0x3f


def flags_of(words):
    return int(words[2], 16) >> 29 & 7


class Links:
    """The moves of all links, and of the requests from one of three hosts to another on one lane, in order."""

    def __init__(self, source, dest, lane):
        self.source, self.dest, self.lane = source, dest, lane
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

    def move_payload(self, kind, host, which, side, _kind, source, dest, sequence, _value, version):
        own = (source, dest) if which == REQUEST else (dest, source)
        number = self.number(sequence) if own == (self.source, self.dest) else 0
        self.add(kind, self.end(host, side), which, number, version)

    def read(self, words):
        """A line of the trace, after its time."""
        if words[0] in ("send", "take", "leaving", "left", "follow") and lane_of(words) != self.lane:
            return
        if words[0] in ("send", "take"):
            {"send": self.send, "take": self.take}[words[0]](int(words[1]), *frame_of(words))
        elif words[0] in ("leaving", "left"):
            self.move_payload(LEAVE if words[0] == "leaving" else HAS_LEFT, int(words[1]),
                              *frame_of(words))
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


class Direct:
    """The moves of the direct puts of one PE through one end, of its requests to the host there, and of the link, in order."""

    def __init__(self, host, side):
        self.host, self.side = host, side
        self.there = (host + (1 if side else -1)) % 3
        self.end = 2 * host if side else (2 * host - 1) % 6  # as the simulator counts ends
        self.own_state, self.far_state = (host, 2 * host + side), (self.there, 2 * self.there + 1 - side)
        self.base = None  # the state of the end when the PE opens it; before that nothing is followed
        self.epochs = {}  # of the word CLEAN, by end, since the last cut
        self.has_agreed = False
        self.state, self.state_there, self.known_there = 0, 0, 0
        self.is_lost = False  # a read-back has failed, so the next get is for the mark
        self.remade = None  # the next request is this put again
        self.under_way = []  # requests by their number, and how many of them a lane has taken
        self.taken_count, self.first_flow, self.flow_sent = 0, None, 0
        self.posted = 0
        self.moves = []

    def add(self, kind, value=0, flag=0):
        self.moves.append(kind | flag << 5 | value << 6)

    def read(self, words):
        handler = getattr(self, "read_" + words[0], None)
        if words[0] in ("bind", "word") or (self.base is not None and handler):
            handler(words)

    def read_link(self, words):
        if words[1] in ("up", "down") and int(words[2]) // 2 == self.end // 2:  # else it is a fault's name
            self.epochs, self.has_agreed = {}, False
            self.add(P_CUT if words[1] == "down" else P_MEND)

    def read_bind(self, words):
        if int(words[1]) != self.end or not int(words[3], 16):
            return
        if self.base is None:
            self.base = 2 * self.epochs[self.end]
        else:
            self.add(P_OPEN)

    def read_word(self, words):
        end, word = int(words[1]), int(words[3], 16)
        if int(words[2], 16) != PAD_LINK or word & 3 != WORD_CLEAN or end // 2 != self.end // 2:
            return
        self.epochs[end] = word >> 2
        if self.base is not None and len(self.epochs) == 2 and not self.has_agreed:
            self.has_agreed = True
            self.add(P_AGREE, 2 * max(self.epochs.values()) - self.base)

    def read_moved(self, words):
        if (int(words[1]), int(words[2], 16)) == (self.host, self.side):
            if int(words[3], 16) == STATE_DRAINING:
                self.add(P_DOWN)
            elif int(words[3], 16) == STATE_UP:
                self.add(P_UP)

    def read_knows(self, words):
        where, state = (int(words[1]), int(words[2], 16)), int(words[3], 16) - self.base
        if where == self.own_state and state > self.state:
            self.state = state
            self.add(P_FOLLOW, state)
        elif where == self.far_state and state > self.state_there:
            self.state_there = state
            self.add(P_DOWN_THERE if state & 1 else P_UP_THERE)
        elif where == (self.there, self.own_state[1]) and state > self.known_there:
            self.known_there = state
            self.add(P_LEARN, state)

    def read_post(self, words):
        if int(words[1]) == self.end:
            self.posted = int(words[3], 16)
            self.add(P_POST, self.posted, int(words[2], 16))

    def read_land(self, words):
        if int(words[1]) == self.end:
            self.add(P_ARRIVE, int(words[3], 16))

    def read_read(self, words):
        if int(words[1]) == self.end:
            self.is_lost = not int(words[2], 16)
            self.add(P_READ, 0, int(words[2], 16))

    def read_remade(self, words):
        if int(words[1]) == self.end:
            self.remade = int(words[3], 16)

    def read_submit(self, words):
        what = int(words[2], 16)
        if (int(words[1]), what & 0xffff) != (self.host, self.there):
            return
        if self.remade is not None:
            self.add(P_AGAIN, self.remade)
            self.remade = None
        elif self.is_lost and what >> 32 == GET:
            self.add(P_ASK)
            self.is_lost = False
        else:
            self.add(P_REQUEST)
        self.under_way.append(words[3])

    def read_send(self, words):
        which, _, _, source, dest, sequence, _, _ = frame_of(words)
        if (which, int(words[1]), source, dest) != (REQUEST, self.host, self.host, self.there):
            return
        if self.first_flow is None:
            self.first_flow = sequence
        if (sequence - self.first_flow) % (1 << 32) == self.flow_sent:  # else it is sent again
            self.flow_sent += 1
            self.add(P_TAKE, self.taken_count)
            self.taken_count += 1

    def read_execute(self, words):
        if int(words[1]) == self.there and words[2] in self.under_way:
            self.add(P_EXECUTE, self.under_way.index(words[2]))

    def read_complete(self, words):
        if int(words[1]) == self.host and words[3] in self.under_way:
            self.add(P_COMPLETE, self.under_way.index(words[3]))
            self.under_way.remove(words[3])
            self.taken_count -= 1

    def read_fence(self, words):
        if int(words[1]) == self.host:
            self.add(P_FENCE)

    def read_quiet(self, words):
        if int(words[1]) == self.host:
            self.add(P_QUIET)


class Lanes:
    """The moves of the requests of one PE to a neighbour, on two lanes, in order."""

    def __init__(self, host, dest, lines):
        self.host, self.dest = host, dest
        self.lane_zero = None  # that of requests which are no part of a split transfer
        self.count, self.sent, self.first = 0, [0, 0], [None, None]
        self.moves = []
        self.landed = set()
        for words in lines:
            if words[0] == "take" and int(words[1]) == dest and flags_of(words) & LANDED:
                self.landed.add((lane_of(words), int(words[3], 16)))
        for words in lines:
            handler = getattr(self, "read_" + words[0], None)
            if handler:
                handler(words)

    def add(self, kind, lane=0, value=0, lands=0, is_ordered=0):
        self.moves.append(kind | lane << 3 | lands << 4 | is_ordered << 5 | value << 6)

    def lane(self, index):
        """Of the model."""
        return int(index != self.lane_zero)

    def read_submit(self, words):
        what = int(words[2], 16)
        if (int(words[1]), what & 0xffff) == (self.host, self.dest):
            if self.lane_zero is None:
                self.lane_zero = (what >> 16 & 0xff) ^ (what >> 24 & 1)
            self.count += 1
            self.add(L_SUBMIT, what >> 24 & 1, self.count)

    def read_send(self, words):
        which, _, _, source, dest, sequence, _, _ = frame_of(words)
        if (which, int(words[1]), source, dest) == (REQUEST, self.host, self.host, self.dest):
            key, lane = (lane_of(words), int(words[3], 16)), self.lane(lane_of(words))
            self.first[lane] = sequence if self.first[lane] is None else self.first[lane]
            self.add(L_SEND, lane, (sequence - self.first[lane]) % (1 << 32), key in self.landed, bool(flags_of(words) & ORDERED))

    def read_take(self, words):
        which, _, _, source, dest, sequence, verdict, _ = frame_of(words)
        if (which, int(words[1]), source, dest, verdict) == (REQUEST, self.dest, self.host, self.dest, VERDICT_DELIVER):
            lane = self.lane(lane_of(words))
            self.add(L_TAKE, lane, (sequence - self.first[lane]) % (1 << 32))

    def read_complete(self, words):
        what = int(words[2], 16)
        if (int(words[1]), what & 0xffff) == (self.host, self.dest):
            self.add(L_KNOW, self.lane(what >> 16))

    def read_fence(self, words):
        if int(words[1]) == self.host:
            self.add(L_FENCE)

    def read_quiet(self, words):
        if int(words[1]) == self.host:
            self.add(L_QUIET)


def trace_of(quoit, folder, hosts, slots, workload, seed, lanes, dma_bytes, *options):
    """The lines of a run, as words."""
    trace = os.path.join(folder, "trace")
    command = [quoit, "sim", "--workload", workload, "--hosts", str(hosts), "--pes", str(hosts), "--lanes", str(lanes), "--slots",
               str(slots), "--seed", str(seed), "--dma-bytes", dma_bytes, "--trace-text", trace, *options]
    result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if result.returncode:
        sys.exit(f"moves: {' '.join(command)} failed:\n{result.stdout}")
    with open(trace, encoding="utf-8") as file:
        return [line.split()[2:] for line in file]


RELAYED = "--chunk", "1K", "--direct", "no"
POSTED = "--chunk", "4K", "--direct", "posted", "--model", "window_memory_mib=65536"  # what is sent again is one request


def moves_of(quoit, folder, hosts, slots, workload, seed, lanes, dma_bytes):
    """Of each lane."""
    runs = [Run(hosts) for _ in range(lanes)]
    for words in trace_of(quoit, folder, hosts, slots, workload, seed, lanes, dma_bytes, "--steps", "1", "--fault", "none", *RELAYED):
        if words[0] in ("send", "take"):
            run = runs[lane_of(words)]
            {"send": run.send, "take": run.take}[words[0]](
                int(words[1]), *frame_of(words)[:-1])
    return [run.moves for run in runs]


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


def follow_direct(folder, moves):
    count = sum(move & 31 in (P_POST, P_REQUEST) for move in moves)
    sizes = {"OPERATIONS": count + 2, "JOURNAL": count + 2, "CUTS": 0, "STAYS": 0}
    return follow(folder, "direct.pml", sizes, moves, count)


def follow_lanes(folder, moves):
    count = sum(move & 7 == L_SUBMIT for move in moves)
    return follow(folder, "lanes.pml", {"OPERATIONS": count + 1, "CUTS": 0}, moves, count)


def refuse(what, problem):
    """Exits if the model has followed a move of the code that is wrong on purpose."""
    if not problem:
        sys.exit(f"moves: with {what} the model follows all the same")


def without(moves, mask, kind):
    """All but the first of that kind."""
    left_out = next(index for index, move in enumerate(moves) if move & mask == kind)
    return moves[:left_out] + moves[left_out + 1:]


def check_flows(folder, lines, slots, lanes, where, examples):
    """All flows of a run on each lane; returns the number of moves."""
    total = 0
    for lane in range(lanes):
        for source, dest in PAIRS:
            links = Links(source, dest, lane)
            for words in lines:
                links.read(words)
            problem = follow_links(folder, slots, links.moves)
            if problem:
                sys.exit(f"moves: {where}, lane {lane}, from host {source} to host {dest}: the model refuses a move of the code:\n"
                         f"{problem}")
            total += len(links.moves)
            if any(move & 31 == SEND_AGAIN for move in links.moves):
                examples[SEND_AGAIN] = slots, links.moves
            if any(move & 31 == HAS_LEFT and move >> 9 & 2047 for move in links.moves):
                examples[HAS_LEFT] = slots, links.moves
            late = late_departure(links.moves)
            if late:
                examples[LEARN] = slots, late
    return total


def late_departure(moves):
    """The same, but DMA ends after the next update that its host takes; None: there is none such."""
    for at, move in enumerate(moves):
        later = next((index for index in range(at + 1, len(moves)) if moves[index] & 31 == LEARN and
                      (moves[index] >> 6 & 3) == (move >> 6 & 3)), None) if move & 31 == HAS_LEFT else None
        if later:
            return moves[:at] + moves[at + 1:later + 1] + [move] + moves[later + 1:]
    return None


def check_links(quoit, folder):
    """Every flow of each run; returns the number of moves."""
    total, cuts, again, departures, examples = 0, 0, 0, 0, {}
    for slots, workload, fault, steps, lanes, dma_bytes, seeds in LINK_RUNS:
        for seed in seeds:
            lines = trace_of(quoit, folder, 3, slots, workload, seed, lanes, dma_bytes, "--steps", str(steps), "--fault", fault, *RELAYED)
            where = f"{workload} on 3 hosts, {slots} slots, {lanes} lanes, fault {fault}, seed {seed}"
            total += check_flows(folder, lines, slots, lanes, where, examples)
            cuts += sum(words[:2] == ["link", "down"] for words in lines)
            departures += sum(words[0] == "left" for words in lines)
            print(f"{where}: all six flows of each lane followed")
    print(f"{cuts} cuts, {departures} payloads by DMA")
    if len(examples) < 3:
        sys.exit("moves: no link was cut, or nothing was lost, or nothing went by DMA before an update")
    slots, moves = examples[SEND_AGAIN]
    refuse("an update not taken", follow_links(folder, slots, without(moves, 31, LEARN)))
    refuse("a request not retransmitted", follow_links(folder, slots, without(moves, 31, SEND_AGAIN)))
    refuse("a link not followed", follow_links(folder, slots, without(moves, 31, FOLLOW)))
    slots, moves = examples[HAS_LEFT]
    at = next(index for index, move in enumerate(moves) if move & 31 == HAS_LEFT and move >> 9 & 2047)
    refuse("a frame taken whose DMA has not ended", follow_links(folder, slots, moves[:at] + moves[at + 1:]))
    slots, moves = examples[LEARN]
    refuse("an update taken while DMA is under way", follow_links(folder, slots, moves))
    return total


def check_direct(quoit, folder):
    """Each PE and each of its ends; returns the number of moves."""
    total, posts, lost, example = 0, 0, 0, None
    for workload, fault, steps, seeds in DIRECT_RUNS:
        for seed in seeds:
            lines = trace_of(quoit, folder, 3, 3, workload, seed, 1, "never", "--steps", str(steps), "--fault", fault, *POSTED)
            for host in range(3):
                for side in range(2):
                    direct = Direct(host, side)
                    for words in lines:
                        direct.read(words)
                    problem = follow_direct(folder, direct.moves)
                    if problem:
                        sys.exit(f"moves: direct puts of {workload}, fault {fault}, seed {seed}, PE {host}, side {side}: the model "
                                 f"refuses a move of the code:\n{problem}")
                    total += len(direct.moves)
                    posts += direct.posted
                    again = sum(move & 31 == P_AGAIN for move in direct.moves)
                    lost += again
                    example = direct.moves if again else example
            print(f"direct puts of {workload} on 3 hosts, fault {fault}, seed {seed}: all six ends followed")
    print(f"{posts} direct puts, {lost} lost and sent by requests")
    if not example:
        sys.exit("moves: no direct put was lost")
    refuse("a put that does not land", follow_direct(folder, without(example, 31, P_ARRIVE)))
    refuse("a lost put not sent again", follow_direct(folder, without(example, 31, P_AGAIN)))
    refuse("the mark not read", follow_direct(folder, without(example, 31, P_ASK)))
    refuse("a loss that the neighbour does not learn of", follow_direct(folder, [move for move in example if move & 31 != P_LEARN]))
    refuse("a put that lands twice", follow_direct(folder, [twice for move in example for twice in [move] * (1 + (move & 31 == P_ARRIVE))]))
    return total


def early_fence(moves):
    """The first fence that waits for another lane comes right after what it waits for."""
    for at, move in enumerate(moves):
        later = next((index for index in range(at + 1, len(moves)) if moves[index] & 7 == L_FENCE), None)
        if move & 15 == L_SUBMIT | 8 and later:
            return moves[:at + 1] + [moves[later]] + moves[at + 1:later] + moves[later + 1:]
    sys.exit("moves: no fence follows a split transfer")


def check_lanes(quoit, folder):
    """Each ordered pair of hosts; returns the number of moves."""
    total, split, landed, examples = 0, 0, 0, []
    for workload, steps, dma_bytes, seeds in LANE_RUNS:
        for seed in seeds:
            lines = trace_of(quoit, folder, 3, 3, workload, seed, 2, dma_bytes, "--steps", str(steps), "--fault", "none", *RELAYED)
            for host, dest in PAIRS:
                moves = Lanes(host, dest, lines).moves
                problem = follow_lanes(folder, moves)
                if problem:
                    sys.exit(f"moves: lanes of {workload}, seed {seed}, from host {host} to host {dest}: the model refuses a move of the "
                             f"code:\n{problem}")
                total += len(moves)
                split += sum(move & 15 == L_SUBMIT | 8 for move in moves)
                landed += sum(move & 7 == L_SEND and move >> 4 & 1 for move in moves)
                if any(move & 15 == L_SUBMIT | 8 for move in moves) and any(move & 7 == L_SEND and move >> 5 & 1 for move in moves):
                    examples.append(moves)
            print(f"lanes of {workload} on 3 hosts, DMA from {dma_bytes}, seed {seed}: all six pairs followed")
    print(f"{split} parts on another lane than the first, {landed} payloads that land before their request")
    if not examples:
        sys.exit("moves: no transfer was split, or no request had to be in order")
    moves = examples[-1]
    refuse("a fence that does not wait for the other lane", follow_lanes(folder, early_fence(moves)))
    refuse("a quiet too early", follow_lanes(folder, without(moves, 7, L_KNOW)))
    refuse("requests not in order after a fence",
           follow_lanes(folder, [move & ~32 if move & 7 == L_SEND else move for move in moves]))
    refuse("a request executed twice", follow_lanes(folder, [again for move in moves for again in [move] * (1 + (move & 7 == L_TAKE))]))
    return total


def main():
    if not shutil.which("spin"):
        print("moves: spin is not installed")
        return SKIPPED
    quoit, total = os.path.abspath(sys.argv[1]), 0
    with tempfile.TemporaryDirectory() as folder:
        for hosts, slots, workload, lanes, dma_bytes, seeds in RUNS:
            for seed in seeds:
                for lane, moves in enumerate(moves_of(quoit, folder, hosts, slots, workload, seed, lanes, dma_bytes)):
                    problem = follow_ring(folder, hosts, slots, moves)
                    if problem:
                        sys.exit(f"moves: {workload} on {hosts} hosts, lane {lane}, seed {seed}: the model refuses a move of the code:\n"
                                 f"{problem}")
                    print(f"{workload} on {hosts} hosts, {slots} slots, lane {lane}, DMA from {dma_bytes}, seed {seed}: {len(moves)} moves "
                          f"followed")
                    total += len(moves)
        refuse("a slot less", follow_ring(folder, hosts, slots - 1, moves))
        refuse("a frame not forwarded", follow_ring(folder, hosts, slots, without(moves, 15, FORWARD)))
        total += check_links(quoit, folder) + check_direct(quoit, folder) + check_lanes(quoit, folder)
    print(f"{total} moves of the code are moves of the model")
    return 0


sys.exit(main())
