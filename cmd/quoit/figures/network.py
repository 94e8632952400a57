# SPDX-License-Identifier: BSD-3-Clause
"""quoit predict --network: collectives of one PE a host over an ordinary network. A model (LogGP, fitted by quoit perf) says what
the schedules of src/coll take; `quoit sim --workload network` runs them with the same constants; results of quoit perf on as many
hosts stand beside both. Times are those of quoit perf: a broadcast is one of 16 with a barrier at the end, since its root goes
on at once, and the other collectives have a 16th of a barrier."""
import sys

import perf
from simulator import Book, Simulator

CALLS = 16          # of a batch of quoit perf, before its barrier
SMALL_BYTES = 8
# src/coll: team.c, choice.c
SLOT_BYTES, SLOTS_BYTES, GATHER_BYTES, TABLE_BYTES, INBOUND_BYTES, HALVING_BYTES = 4096, 32768, 8192, 32768, 32768, 524288
CHUNK_BYTES, LATENCY_BYTES = 65536, 65536
ROUNDS_HOSTS_MAX = 5
COLLECTIVES = ("barrier", "broadcast", "reduce", "fcollect", "alltoall")
HEAD = "times of a call in us: model, simulated (simulated over model), measured (measured over model)"


def rounds_of(hosts):
    return (hosts - 1).bit_length()


def pieces_of(size, most):
    return [most] * (size // most) + ([size % most] if size % most else [])


def takes_tree(hosts, size):
    """Of a large broadcast: choice.c."""
    chunk = min(size // 2, CHUNK_BYTES)
    tree, around = rounds_of(hosts) * (size + 2 * LATENCY_BYTES), LATENCY_BYTES + size - chunk + (hosts - 1) * (chunk + LATENCY_BYTES)
    return tree < around or (hosts == 2 and size <= 2 * CHUNK_BYTES)


class Model:
    """What the schedules take, in ns, where hosts begin together. `shared`: processors that do the work of all hosts; 0: each
    has its own."""

    def __init__(self, constants, shared=0):
        self.overhead, self.gap = constants["network_overhead_ns"], constants["network_gap_ns"]
        self.latency, self.byte = constants["network_latency_ns"], constants["network_ps_per_byte"] / 1000
        self.shared = shared

    def occupied(self, size):
        return max(self.gap, self.byte * size)

    def step(self, size):
        """From one message of a PE to its next."""
        return max(self.overhead, self.occupied(size))

    def one(self, size, before=()):
        """A message that its sender sends after others, until it is noticed."""
        return self.overhead + sum(self.step(other) for other in before) + self.latency + self.byte * size

    def work(self, messages, size):
        """The least that the processors that all hosts share need for so many messages."""
        return messages * (self.latency + self.byte * size) / self.shared if self.shared else 0

    def both(self, hosts, size):
        """A round in which each host sends to both neighbours."""
        return max(self.one(size, [size]), self.work(2 * hosts, size))

    def exchange(self, hosts, size):
        """Blocks of all to all: by rounds with both neighbours, or by dissemination."""
        if hosts <= ROUNDS_HOSTS_MAX:
            last_is_one = hosts % 2 == 0
            rounds = hosts // 2
            return (rounds - last_is_one) * self.both(hosts, size) + \
                (max(self.one(size), self.work(hosts, size)) if last_is_one else 0)
        total, held = 0, 1
        while held < hosts:
            blocks = min(held, hosts - held)
            # Blocks that go round from the first host to the last are two messages; some host of each round has such.
            wrapped = [size * (blocks // 2)] if size and held > 1 else []
            rest = size * blocks - sum(wrapped)
            total += max(self.one(rest, wrapped), self.work(hosts, size * blocks))
            held *= 2
        return total

    def barrier(self, hosts):
        return self.exchange(hosts, 0)

    def tree(self, hosts, size):
        """Until the last host has what the first one sends along a binomial tree."""
        arrival, held = {0: 0}, 1
        sent = {0: 0}
        while held < hosts:
            for host in range(held):
                if host + held < hosts:
                    arrival[host + held] = arrival[host] + self.one(size, [size] * sent[host])
                    sent[host] += 1
                    sent[host + held] = 0
            held *= 2
        return max(arrival.values())

    def trees(self, hosts, size):
        """Calls of a large broadcast, each a dissemination and a tree, and a barrier: hosts that are done go on."""
        now, free = [0] * hosts, [0] * hosts

        def send(host, bytes_):
            now[host] += self.overhead
            start = max(now[host], free[host])
            free[host] = start + self.occupied(bytes_)
            return start + self.latency + self.byte * bytes_

        def meet():
            for i in range(rounds_of(hosts)):
                arrivals = [send(host, 0) for host in range(hosts)]
                now[:] = [max(now[host], arrivals[host - (1 << i)]) for host in range(hosts)]
        for _ in range(CALLS):
            meet()
            for i in range(rounds_of(hosts)):
                for host in range(min(1 << i, hosts - (1 << i))):
                    to = host + (1 << i)
                    now[to] = max(now[to], send(host, size))
        meet()
        messages = hosts * rounds_of(hosts) * (CALLS + 1)
        return max(*now, self.work(messages, 0) + self.work(CALLS * (hosts - 1), size))

    def broadcast(self, hosts, size):
        if size <= SLOT_BYTES:
            turn = max(rounds_of(hosts) * self.step(size), self.work(hosts - 1, size))
            # When all slots have been used a barrier comes first.
            batches = -(-CALLS // (SLOTS_BYTES // (-(-size // 64) * 64)))
            return ((CALLS - batches) * turn + batches * (max(self.tree(hosts, size), turn) + self.barrier(hosts))) / CALLS
        half = -(-size // 2)
        chunks = -(-half // CHUNK_BYTES)
        chunk = half / chunks
        if takes_tree(hosts, size):
            return self.trees(hosts, size) / CALLS
        # The last chunk of the root, which sends both halves in turn, and its way round.
        relay = (2 * chunks - 1) * self.step(chunk) + (hosts - 1) * self.one(chunk)
        return self.both(hosts, 0) + max(relay, self.work(2 * chunks * (hosts - 1), chunk)) + self.barrier(hosts) / CALLS

    def reduce(self, hosts, size):
        if size <= min(GATHER_BYTES, TABLE_BYTES // hosts // 8 * 8):
            return self.exchange(hosts, size) + self.barrier(hosts) / CALLS
        halved, around = (pieces_of(size, piece) for piece in (HALVING_BYTES // 8 // (hosts - 1) * hosts * 8, INBOUND_BYTES * hosts * 2))
        if len(halved) * rounds_of(hosts) <= len(around) * (hosts - 1):
            return sum(self.halving(hosts, one / hosts) for one in halved) + self.barrier(hosts) / CALLS
        return sum(2 * (hosts - 1) * self.both(hosts, one / hosts / 2) for one in around) + self.barrier(hosts) / CALLS

    def halving(self, hosts, block):
        """Blocks that go round from the last host to the first are two messages; some host of each round has such."""
        total, end = 0, hosts
        while end > 1:
            blocks = end // 2
            wrapped = [block * (blocks // 2)] if blocks > 1 else []
            rest = block * blocks - sum(wrapped)
            total += 2 * max(self.one(rest, wrapped), self.work(hosts, block * blocks))
            end -= blocks
        return total

    def fcollect(self, hosts, size):
        ready = 0 if hosts * size <= GATHER_BYTES else \
            self.both(hosts, 0) if hosts <= ROUNDS_HOSTS_MAX else self.barrier(hosts)
        return ready + self.exchange(hosts, size) + self.barrier(hosts) / CALLS

    def alltoall(self, hosts, size):
        if hosts * hosts * size <= GATHER_BYTES:
            return self.exchange(hosts, hosts * size) + self.barrier(hosts) / CALLS
        puts = max(self.one(size, [size] * (hosts - 2)), self.work(hosts * (hosts - 1), size)) + self.latency
        return 2 * self.barrier(hosts) + puts + self.barrier(hosts) / CALLS

    def at(self, collective, hosts, size):
        return self.barrier(hosts) if collective == "barrier" else getattr(self, collective)(hosts, size)


def block_of(collective, hosts, size):
    """Of the large ones the simulator gives all blocks together the size."""
    return size // hosts // 8 * 8 if collective in ("fcollect", "alltoall") else size


class Measured:
    """Results of quoit perf, one of each number of hosts. The least of the samples counts, as in the fit: what else runs on
    a machine only adds."""

    def __init__(self, texts):
        self.results = {}
        for path in texts:
            result = perf.load(path)
            if result["pes"] in self.results:
                raise perf.Wrong(f"{path} has {result['pes']} PEs, as a file before it")
            self.results[result["pes"]] = result
        self.fitted = perf.fit_loggp(perf.load(texts[0]), texts[0])

    def at(self, collective, hosts, size):
        """In ns, or None."""
        rows = self.results.get(hosts, {"rows": []})["rows"]
        return next((row["ns"]["min"] for row in rows if row["test"] == collective and row["bytes"] == size), None)


class Simulated:
    def __init__(self, simulator, constants, size):
        self.book = Book(simulator, [f"{name}={value}" for name, value in constants.items()])
        self.size = size

    def at(self, collective, hosts, is_large):
        """In ns."""
        def value(name):
            return 1000 * self.book.value(name, workload="network", hosts=hosts, bytes=self.size)
        if collective == "barrier":
            return value("barrier")
        own = value(f"{collective}, large" if is_large else f"{collective} {SMALL_BYTES} B")
        return own if collective == "broadcast" else own + value("barrier") / CALLS


def cell(model, simulated, measured):
    text = f"{model / 1000:.1f}, {simulated / 1000:.1f} ({simulated / model:.2f})"
    return text if measured is None else f"{text}, {measured / 1000:.1f} ({measured / model:.2f})"


def rows_of(model, simulated, measured, hosts, size):
    for is_large in (False, True):
        for collective in COLLECTIVES[is_large:]:
            cells = []
            for count in hosts:
                block = 0 if collective == "barrier" else block_of(collective, count, size) if is_large else SMALL_BYTES
                cells.append(cell(model.at(collective, count, block), simulated.at(collective, count, is_large),
                                  measured.at(collective, count, block)))
            yield [collective if collective == "barrier" else f"{collective}, {perf.size_text(size if is_large else SMALL_BYTES)}",
                   *cells]


def lines(model, hosts, size):
    return [{"kind": "lines", "title": f"{perf.size_text(one)}, by the model", "x_label": "hosts", "y_label": "time of a call", "y_unit": "us",
             "x_is_log2": True, "y_is_log": True, "series": [{"name": collective, "points": [
                 [count, model.at(collective, count, block_of(collective, count, one) if one == size else one) / 1000]
                 for count in hosts]} for collective in COLLECTIVES]} for one in (SMALL_BYTES, size)]


def report(options, measured, simulated, constants, errors):
    model = Model(constants, options.processors)
    said = ", ".join(f"{name} {value}" for name, value in constants.items())
    shared = f" All hosts share {options.processors} processors." if options.processors else ""
    return {"title": "Collectives over a network, predicted", "text": [
        f"LogGP: {said}; one way of put-signal is {100 * errors[1]:.0f} % off in the mean, {100 * errors[0]:.0f} % at most.{shared}",
        "One PE a host. Of fcollect and alltoall the larger size is that of the blocks of all PEs together."],
        "sections": [{"title": HEAD, "items": [
            {"kind": "table", "columns": ["hosts", *map(str, options.hosts)],
             "rows": list(rows_of(model, simulated, measured, options.hosts, options.bytes))},
            *lines(model, options.hosts, options.bytes)]}]}


def print_table(data, _options):
    table = data["sections"][0]["items"][0]
    print("\n".join(data["text"]), "\n\n" + HEAD, sep="")
    for row in table["rows"]:
        print(f"\n{row[0]}")
        for count, one in zip(table["columns"][1:], row[1:]):
            print(f"{count:>6} hosts  {one}")


def prepare(quoit, options):
    """The simulator, and what makes the page of it: first of runs that are to be made, then of their results."""
    try:
        measured = Measured(options.network.split(","))
    except perf.Wrong as problem:
        sys.exit(f"quoit predict: {problem}")
    constants, *errors = measured.fitted
    simulator = Simulator(quoit)
    simulated = Simulated(simulator, {**constants, "network_processor_count": options.processors}, options.bytes)
    return simulator, lambda: report(options, measured, simulated, constants, errors)
