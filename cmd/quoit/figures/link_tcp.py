# SPDX-License-Identifier: BSD-3-Clause
"""What NetPIPE and Netperf measure, over one TCP connection: python3 link_tcp.py serve PORT; or ask ADDRESS PORT STYLE BYTES
SECONDS, which prints Mbit/s. netpipe: a message there and one back, the size over half of the round trip. netperf: messages one
after the other, counted and timed where they arrive."""
import socket
import struct
import sys
import time

STYLES = ("netpipe", "netperf")
REQUEST = struct.Struct("!II")
RESULT = struct.Struct("!QQ")
CONNECT_S = 5
WARM = 3  # round trips before the clock starts


def read(connection, buffer):
    """Fills the buffer; false at the end of the stream."""
    view, at = memoryview(buffer), 0
    while at < len(buffer):
        count = connection.recv_into(view[at:])
        if count == 0:
            return False
        at += count
    return True


def answer(connection):
    request = bytearray(REQUEST.size)
    if not read(connection, request):
        return
    style, size = REQUEST.unpack(request)
    buffer = bytearray(size)
    if STYLES[style] == "netpipe":
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while read(connection, buffer):
            connection.sendall(buffer)
        return
    total, start = 0, time.monotonic_ns()
    while count := connection.recv_into(buffer):
        total += count
    connection.sendall(RESULT.pack(total, time.monotonic_ns() - start))


def serve(port):
    with socket.create_server(("", port)) as listener:
        print("ready", flush=True)
        while True:
            with listener.accept()[0] as connection:
                answer(connection)


def ask(address, port, style, size, seconds):
    with socket.create_connection((address, port), CONNECT_S) as connection:
        connection.settimeout(None)
        connection.sendall(REQUEST.pack(STYLES.index(style), size))
        buffer = bytearray(size)
        if style == "netpipe":
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            passes, start = -WARM, time.monotonic_ns()
            while passes <= 0 or time.monotonic_ns() - start < seconds * 1e9:
                connection.sendall(buffer)
                if not read(connection, buffer):
                    sys.exit("the other end has ended")
                passes += 1
                if passes == 0:
                    start = time.monotonic_ns()
            return 2 * passes * size, time.monotonic_ns() - start
        start = time.monotonic_ns()
        while time.monotonic_ns() - start < seconds * 1e9:
            connection.sendall(buffer)
        connection.shutdown(socket.SHUT_WR)
        result = bytearray(RESULT.size)
        if not read(connection, result):
            sys.exit("the other end has ended")
        return RESULT.unpack(result)


if sys.argv[1] == "serve":
    serve(int(sys.argv[2]))
else:
    count, ns = ask(sys.argv[2], int(sys.argv[3]), sys.argv[4], int(sys.argv[5]), float(sys.argv[6]))
    print(8000 * count / ns)
