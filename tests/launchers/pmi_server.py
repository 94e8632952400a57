# SPDX-License-Identifier: BSD-3-Clause
"""A launcher with a PMI server of our own, which speaks version 1 or 2 of the wire protocol, and lies when it is told to.

It ends no process by itself, as srun --mpi=pmi2 without -K: what ends then, the program has ended.
"""
import os
import selectors
import socket
import subprocess
import time

import scenario

JOB = "kvs_17_0"


class Connection:
    def __init__(self, sock, rank):
        self.sock, self.rank, self.version, self.data = sock, rank, 1, b""


class Server:
    """Runs `commands`, one a PE. lie(server, rank, request, answer) may return another answer, bytes or None for none;
    b"" closes the connection."""

    def __init__(self, commands, version=1, port=False, env=None, lie=None):
        self.size, self.only_version, self.lie = len(commands), version, lie
        self.values, self.waiting, self.closed, self.aborts, self.fences = {}, [], 0, [], 0
        self.selector = selectors.DefaultSelector()
        self.listener = None
        if port:
            self.listener = socket.create_server(("127.0.0.1", 0), backlog=self.size)
            self.selector.register(self.listener, selectors.EVENT_READ, None)
        self.processes = []
        for rank, command in enumerate(commands):
            own = dict(env or os.environ)
            theirs = None
            if port:
                own.update(PMI_PORT=f"127.0.0.1:{self.listener.getsockname()[1]}", PMI_ID=str(rank))
            else:
                ours, theirs = socket.socketpair()
                self.add(ours, rank)
                own.update(PMI_FD=str(theirs.fileno()), PMI_RANK=str(rank), PMI_SIZE=str(self.size))
            self.processes.append(scenario.Job(command, env=own, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                               stderr=subprocess.PIPE, pass_fds=[theirs.fileno()] if theirs else []))
            if theirs:
                theirs.close()

    def add(self, sock, rank):
        self.selector.register(sock, selectors.EVENT_READ, Connection(sock, rank))

    def drop(self, connection):
        self.selector.unregister(connection.sock)
        connection.sock.close()

    def send(self, connection, request, text):
        answer = (f"{len(text):6d}{text}" if connection.version == 2 else text + "\n").encode()
        if request.get("cmd") == "init":
            answer = (text + "\n").encode()
        if self.lie:
            answer = self.lie(self, connection.rank, request, answer)
        try:
            if answer:
                connection.sock.sendall(answer)
            elif answer is not None:
                self.drop(connection)
        except OSError:
            pass

    def connection(self, rank):
        """None once it is closed."""
        connections = [key.data for key in self.selector.get_map().values() if key.data]
        return next((connection for connection in connections if connection.rank == rank), None)

    def answer(self, rank, answer):
        """What lie() has held back."""
        self.connection(rank).sock.sendall(answer)

    def fence(self, connection, request):
        self.waiting.append((connection, request))
        if len(self.waiting) == self.size:
            for other, theirs in self.waiting:
                self.send(other, theirs, "cmd=barrier_out" if other.version == 1 else "cmd=kvs-fence-response;rc=0;")
            self.waiting = []
            self.fences += 1

    def take_1(self, connection, request):
        name = request["cmd"]
        if name == "init":
            wanted = int(request["pmi_version"])
            if self.only_version in (wanted, 0):
                self.send(connection, request, f"cmd=response_to_init pmi_version={wanted} pmi_subversion=1 rc=0")
                connection.version = wanted
            else:
                self.send(connection, request,
                          f"cmd=response_to_init pmi_version={self.only_version} pmi_subversion=0 rc=-1")
        elif name == "initack":
            connection.rank = int(request["pmiid"])
            self.send(connection, request,
                      f"cmd=initack\ncmd=set size={self.size}\ncmd=set rank={connection.rank}\ncmd=set debug=0")
        elif name == "get_my_kvsname":
            self.send(connection, request, f"cmd=my_kvsname kvsname={JOB}")
        elif name == "put":
            self.values[request["key"]] = request["value"]
            self.send(connection, request, "cmd=put_result rc=0 msg=success")
        elif name == "get":
            value = self.values.get(request["key"]) if request["kvsname"] == JOB else None
            self.send(connection, request, f"cmd=get_result rc=0 msg=success value={value}" if value is not None else
                      "cmd=get_result rc=-1 msg=key_not_found value=unknown")
        elif name == "barrier_in":
            self.fence(connection, request)
        elif name == "finalize":
            self.closed += 1
            self.send(connection, request, "cmd=finalize_ack")
            self.drop(connection)
        elif name == "abort":
            self.aborts.append(int(request["exitcode"]))

    def take_2(self, connection, request):
        name = request["cmd"]
        if name == "fullinit":
            self.send(connection, request, f"cmd=fullinit-response;pmi-version=2;pmi-subversion=0;rank={connection.rank};"
                                           f"size={self.size};appnum=0;pmijobid={JOB};rc=0;")
        elif name == "kvs-put":
            self.values[request["key"]] = request["value"]
            self.send(connection, request, "cmd=kvs-put-response;rc=0;")
        elif name == "kvs-get":
            value = self.values.get(request["key"]) if request["jobid"] == JOB else None
            self.send(connection, request, f"cmd=kvs-get-response;found={'FALSE' if value is None else 'TRUE'};value={value};rc=0;")
        elif name == "kvs-fence":
            self.fence(connection, request)
        elif name == "finalize":
            self.closed += 1
            self.send(connection, request, "cmd=finalize-response;rc=0;")
            self.drop(connection)
        elif name == "abort":
            self.aborts.append(-1)

    def read(self, connection):
        try:
            data = connection.sock.recv(65536)
        except OSError:
            data = b""
        if not data:
            self.drop(connection)
            return
        connection.data += data
        while connection.data and connection.sock.fileno() >= 0:
            if connection.version == 2:
                length = int(connection.data[:6]) if len(connection.data) >= 6 else 1 << 20
                if len(connection.data) < 6 + length:
                    return
                text, connection.data = connection.data[6:6 + length].decode(), connection.data[6 + length:]
                self.take_2(connection, dict(pair.split("=", 1) for pair in text.split(";") if pair))
            else:
                line, end, rest = connection.data.partition(b"\n")
                if not end:
                    return
                connection.data = rest
                self.take_1(connection, dict(pair.split("=", 1) for pair in line.decode().split()))

    def end_pe(self, rank):
        if self.connection(rank):
            self.drop(self.connection(rank))

    def step(self, seconds=0.02):
        for key, _ in self.selector.select(seconds):
            if key.data is None:
                self.add(self.listener.accept()[0], None)
            elif key.data.sock.fileno() >= 0:
                self.read(key.data)

    def run(self, limit_s, each_step=None):
        """Until every process has ended. The statuses, and what was written; None if it takes too long."""
        end = time.monotonic() + limit_s
        while any(process.poll() is None for process in self.processes):
            self.step()
            if each_step:
                each_step(self)
            if time.monotonic() > end:
                for process in self.processes:
                    process.kill()
                    process.communicate()
                return None
        texts = [process.communicate() for process in self.processes]
        for key in list(self.selector.get_map().values()):
            key.fileobj.close()
        self.selector.close()
        return ([process.returncode for process in self.processes], b"".join(out for out, _ in texts).decode(),
                b"".join(err for _, err in texts).decode(errors="replace"))
