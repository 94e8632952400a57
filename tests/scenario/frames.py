# SPDX-License-Identifier: BSD-3-Clause
"""Traffic between the hosts of a ring, which checks itself and counts at both ends: frames and datagrams of random sizes that may
be lost (shed, gather), and a stream over TCP (pour, drain). Each function runs on a host: frames.py FUNCTION ARGUMENT..."""
import hashlib
import random
import select
import socket
import struct
import sys
import time

PORT = 7100
STREAM_PORT = 7200
RAW_KIND = 0x88B5      # an Ethernet type for experiments
EVERY_KIND = 3
SOL_PACKET, PACKET_STATISTICS, PACKET_AUXDATA = 263, 6, 8
PACKET_OUTGOING = 4
SO_SNDBUFFORCE, SO_RCVBUFFORCE = 32, 33
CHUNK_BYTES = 65536


def chunk(seed, at):
    return random.Random(f"{seed} {at}").randbytes(CHUNK_BYTES)


def packets():
    one = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(EVERY_KIND))
    one.setsockopt(SOL_PACKET, PACKET_AUXDATA, 1)
    one.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 64 << 20)
    one.setsockopt(socket.SOL_SOCKET, SO_SNDBUFFORCE, 4 << 20)
    one.bind(("quoit0", EVERY_KIND)) # tags are taken off before others see a frame
    return one


def make_body(chance, number, largest):
    """Number, digest, random bytes: 64 KB to 1 byte of them, all magnitudes as likely."""
    block = chance.randbytes(min(largest, 1 + chance.randrange(1 << chance.randrange(1, 17))))
    return struct.pack("I16s", number, hashlib.md5(block).digest()) + block


def is_whole(body):
    """Short frames are padded to the least size."""
    return len(body) > 20 and any(hashlib.md5(body[20:end]).digest() == body[4:20]
                                  for end in {len(body), *range(21, min(len(body), 60 - 14) + 1)})


def shed(kind, dest, count, largest, seed):
    """Prints how many the kernel took, for a MAC address (raw) or an IP address (udp)."""
    chance, took = random.Random(int(seed)), 0
    if kind == "raw":
        source = packets()
        head = bytes.fromhex(dest.replace(":", "")) + source.getsockname()[4] + struct.pack("!H", RAW_KIND)
    else:
        source, head = socket.socket(socket.AF_INET, socket.SOCK_DGRAM), b""
        source.connect((dest, PORT))
    for number in range(int(count)):
        body = make_body(chance, number, int(largest))
        try:
            source.send(head + body)
            took += 1
        except OSError:
            time.sleep(0.001)
        time.sleep(0.0005)
    print(took)


def gather(kind, largest, quiet):
    """Until a line comes on the input and then nothing for so many seconds: prints how many came, how many were not whole, how
    many the socket itself dropped."""
    came = wrong = 0
    if kind == "raw":
        dest = packets()
        dest.bind(("quoit0", RAW_KIND))
    else:
        dest = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        dest.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 64 << 20)
        dest.bind(("", PORT))
    print("ready", flush=True)
    is_over = False
    while (ready := select.select([dest] if is_over else [dest, sys.stdin], [], [], float(quiet))[0]) or not is_over:
        if sys.stdin in ready:
            sys.stdin.readline()
            is_over = True
        if dest in ready:
            frame, where = dest.recvfrom(70000)
            if kind == "udp" or where[2] != PACKET_OUTGOING:
                came += 1
                wrong += not is_whole(frame[14:] if kind == "raw" else frame)
    dropped = struct.unpack("II", dest.getsockopt(SOL_PACKET, PACKET_STATISTICS, 8))[1] if kind == "raw" else 0
    print(came, wrong, dropped)


def pour(address, port, seed):
    """Sends chunks over one connection until a line comes on the input; prints how many bytes."""
    connection, at = socket.create_connection((address, int(port))), 0
    while not select.select([sys.stdin], [], [], 0.002)[0]:
        connection.sendall(chunk(seed, at))
        at += 1
    connection.close()
    print(at * CHUNK_BYTES)


def drain(address, port, seed):
    """Prints how many bytes came, and how many chunks were not what was sent."""
    server = socket.create_server((address, int(port)))
    print("ready", flush=True)
    connection, _ = server.accept()
    came, wrong, at, held = 0, 0, 0, bytearray()
    while data := connection.recv(1 << 20):
        came += len(data)
        held += data
        while len(held) >= CHUNK_BYTES:
            wrong += held[:CHUNK_BYTES] != chunk(seed, at)
            del held[:CHUNK_BYTES]
            at += 1
    print(came, wrong + bool(held))


if __name__ == "__main__":
    {one.__name__: one for one in (shed, gather, pour, drain)}[sys.argv[1]](*sys.argv[2:])
