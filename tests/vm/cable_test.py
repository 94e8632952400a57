#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Aim: the cable of ntb_device.c as two drivers meet it, without machines. Method: this program speaks vfio-user for both
ends and does what ntb_hw_amd and ntb_hw_intel do, in orders that a machine is seldom in: the loss is acknowledged late, and
the ready bit of the peer is cleared by a driver that does not know yet of the return. Use: cable_test.py VM_NTB_DEVICE"""
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
CONTROL, STATUS, DISABLE, INTEL_SCRATCHPAD, RING, PEER_SCRATCHPAD = 0, 0x40, 0x48, 0x80, 0x100, 0x180
CONFIG, CONFIG_LINK, ACTIVE, ENABLED, DISABLED, LINK_EVENT = 7, 0x1a2, 0x2000, 0x154, 3, 1  # the event: of STATUS + 4
LIMIT_S = 20


class End:
    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(LIMIT_S)
        end_s = time.monotonic() + LIMIT_S
        while self.socket.connect_ex(path) == errno.ECONNREFUSED and time.monotonic() < end_s:
            time.sleep(0.001)  # the path is there, and the device is about to listen
        self.call(VERSION, struct.pack("<HH", 0, 0) + b"{}\0")

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


class Amd(End):
    """Its driver: attached, with the events of the link unmasked and its ready bit set."""

    def start(self):
        self.write(INTMASK, 0)
        self.write(SIDEINFO, self.read(SIDEINFO) | READY)

    def acknowledge(self, event):
        self.write(SMUACK, event)
        self.write(INTSTAT, event)


class Intel(End):
    """Its driver: attached, with all interrupts unmasked and the link enabled."""

    def start(self):
        self.write(DISABLE, 0)
        self.write(DISABLE + 4, 0)
        self.write(CONTROL, ENABLED)

    def is_told(self):
        return self.read(STATUS + 4) & LINK_EVENT

    def look(self):
        """What the driver does with the event: whether the link is up."""
        self.write(STATUS + 4, LINK_EVENT)
        return struct.unpack("<H", self.call(READ, struct.pack("<QII", CONFIG_LINK, CONFIG, 2))[16:])[0] & ACTIVE != 0


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


def wait_until_told(ends):
    end_s = time.monotonic() + LIMIT_S
    while not all(end.is_told() for end in ends):
        expect(time.monotonic() < end_s, "the event of the link does not come")


def check_intel_loss(device, ends):
    """Nothing passes until both have read the status, however early the cable is back."""
    for late, early in (ends, ends[::-1]):
        device.send_signal(signal.SIGUSR1)
        wait_until_told(ends)
        device.send_signal(signal.SIGUSR2)
        expect(not early.look(), "the link is up without a cable")
        early.write(PEER_SCRATCHPAD, 0xbad)
        early.write(RING + 4 * 5, 1)
        time.sleep(0.1)  # the signal is taken
        expect(early.read(PEER_SCRATCHPAD) == NOTHING, "the peer's scratchpads answer before both ends know of the loss")
        expect(not late.look(), "the return hides a loss that one end has not seen")
        wait_until_told(ends)
        expect(late.look() and early.look(), "the link does not come back")
        expect(late.read(INTEL_SCRATCHPAD) != 0xbad and late.read(STATUS) == 0, "something passed without a cable")
        early.write(PEER_SCRATCHPAD, 0x600d)
        early.write(RING + 4 * 5, 1)
        early.write(RING + 4 * 7, 1)
        expect(late.read(INTEL_SCRATCHPAD) == 0x600d, "a scratchpad is not written")
        expect(late.read(STATUS) == 1 << 5 | 1 << 7, f"doorbells: {late.read(STATUS):#x}")
        late.write(STATUS, 1 << 5)
        expect(late.read(STATUS) == 1 << 7, "a bit is cleared by a one that is written, and no other one")
        late.write(STATUS, 1 << 7)


def check_intel_disable(_, ends):
    """An end that disables the link takes it down for both."""
    for one, other in (ends, ends[::-1]):
        for control in (DISABLED, ENABLED):
            one.write(CONTROL, control)
            wait_until_told(ends)
            expect(one.look() == other.look() == (control == ENABLED), f"the link after {control:#x} to CONTROL")


def check_lost_rings(_, ends):
    """With --lose 2 every second ring."""
    for one, other in (ends, ends[::-1]):
        for bit in (2, 3, 5, 7):
            one.write(RING + 4 * bit, 1)
        expect(other.read(STATUS) == 1 << 2 | 1 << 5, f"doorbells of which each second is lost: {other.read(STATUS):#x}")


CHIPS = {"amd": (Amd, (check_ready, check_loss)), "intel": (Intel, (check_intel_disable, check_intel_loss))}


def check_chip(program, chip, checks, *options):
    with tempfile.TemporaryDirectory() as folder:
        paths = [os.path.join(folder, f"end{i}") for i in range(2)]
        device = subprocess.Popen([program, "--chip", chip, *options, "1", *paths], stdout=subprocess.DEVNULL)
        try:
            while not all(os.path.exists(path) for path in paths):
                expect(device.poll() is None, "the device has ended")
                time.sleep(0.01)
            kind = CHIPS[chip][0]
            ends = [kind(path) for path in paths]
            for end in ends:
                end.start()
            if chip == "intel":
                wait_until_told(ends)
                expect(all([end.look() for end in ends]), "the link does not come up")
            for check in checks:
                check(device, ends)
        finally:
            device.kill()
            device.wait()


if __name__ == "__main__":
    for name, (_, its_checks) in CHIPS.items():
        check_chip(sys.argv[1], name, its_checks)
    check_chip(sys.argv[1], "intel", (check_lost_rings,), "--lose", "2")
