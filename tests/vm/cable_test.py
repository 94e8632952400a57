#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Aim: the cable of ntb_device.c as two drivers meet it, without machines. Method: this program speaks vfio-user for both
ends and does what ntb_hw_amd does, in orders that a machine is seldom in: the loss is acknowledged late, and the ready bit
of the peer is cleared by a driver that does not know yet of the return. Use: cable_test.py VM_NTB_DEVICE"""
import errno
import os
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time

VERSION, READ, WRITE = 1, 9, 10
SCRATCHPAD, SIDEINFO, INTMASK, INTSTAT, SMUACK, PEER = 0x210, 0x408, 0x470, 0x474, 0x4a0, 0x400
READY, UP, DOWN, NOTHING = 2, 0x20, 0x40, 0xffffffff
LIMIT_S = 20


class End:
    """Its driver: attached, with the events of the link unmasked and its ready bit set."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(LIMIT_S)
        end_s = time.monotonic() + LIMIT_S
        while self.socket.connect_ex(path) == errno.ECONNREFUSED and time.monotonic() < end_s:
            time.sleep(0.001)  # the path is there, and the device is about to listen
        self.call(VERSION, struct.pack("<HH", 0, 0) + b"{}\0")

    def start(self):
        self.write(INTMASK, 0)
        self.write(SIDEINFO, self.read(SIDEINFO) | READY)

    def receive(self, count):
        data = b""
        while len(data) < count:
            data += self.socket.recv(count - len(data)) or sys.exit("the device has left")
        return data

    def call(self, command, body):
        self.socket.sendall(struct.pack("<HHIII", 1, command, 16 + len(body), 0, 0) + body)
        _, _, count, _, error = struct.unpack("<HHIII", self.receive(16))
        expect(error == 0, f"command {command}: error {error}")
        return self.receive(count - 16)

    def read(self, at):
        return struct.unpack("<I", self.call(READ, struct.pack("<QII", at, 0, 4))[16:])[0]

    def write(self, at, value):
        self.call(WRITE, struct.pack("<QIII", at, 0, 4, value))

    def acknowledge(self, event):
        self.write(SMUACK, event)
        self.write(INTSTAT, event)


def expect(is_right, what):
    if not is_right:
        sys.exit(f"cable: {what}")


def wait_for_event(ends, event):
    end_s = time.monotonic() + LIMIT_S
    while any(end.read(INTSTAT) != event for end in ends):
        expect(time.monotonic() < end_s, f"event {event:#x} does not come: {[hex(end.read(INTSTAT)) for end in ends]}")


def check_loss(device, ends):
    """Nothing passes until both know, however early the cable is back."""
    for late, early in (ends, ends[::-1]):
        device.send_signal(signal.SIGUSR1)
        wait_for_event(ends, DOWN)
        device.send_signal(signal.SIGUSR2)
        early.acknowledge(DOWN)
        early.write(SCRATCHPAD, 0xbad)
        time.sleep(0.1)  # the signal is taken
        expect(late.read(INTSTAT) == DOWN, "the return hides a loss that one end has not seen")
        expect(late.read(PEER + SIDEINFO) == NOTHING, "the registers of the peer answer before both ends know of the loss")
        late.acknowledge(DOWN)
        wait_for_event(ends, UP)
        expect(late.read(SCRATCHPAD) != 0xbad, "a scratchpad was written without a cable")
        early.write(SCRATCHPAD, 0x600d)
        expect(late.read(SCRATCHPAD) == 0x600d, "a scratchpad is not written")
        for end in ends:
            end.acknowledge(UP)


def check_ready(device, ends):
    """The primary side, asked for the link, reads all ones, is told of the return, and then clears the ready bit."""
    primary, secondary = ends
    device.send_signal(signal.SIGUSR1)
    wait_for_event(ends, DOWN)
    read = primary.read(PEER + SIDEINFO)
    expect(read == NOTHING, f"the peer's registers give {read:#x} without a cable")
    for end in ends:
        end.acknowledge(DOWN)
    device.send_signal(signal.SIGUSR2)
    wait_for_event(ends, UP)
    for end in ends:
        end.acknowledge(UP)
    primary.write(PEER + SIDEINFO, read & ~READY)
    expect(primary.read(PEER + SIDEINFO) & READY, "the ready bit is gone for good")
    expect(secondary.read(SIDEINFO) == 3, f"the secondary side's SIDEINFO is {secondary.read(SIDEINFO):#x}")


def main():
    with tempfile.TemporaryDirectory() as folder:
        paths = [os.path.join(folder, f"end{i}") for i in range(2)]
        device = subprocess.Popen([sys.argv[1], "1", *paths], stdout=subprocess.DEVNULL)
        try:
            while not all(os.path.exists(path) for path in paths):
                expect(device.poll() is None, "the device has ended")
                time.sleep(0.01)
            ends = [End(path) for path in paths]
            for end in ends:
                end.start()
            for check in (check_ready, check_loss):
                check(device, ends)
        finally:
            device.kill()
            device.wait()


if __name__ == "__main__":
    main()
