# SPDX-License-Identifier: BSD-3-Clause
"""Reads a Perfetto trace: a decoder of protobuf, and the messages that Quoit's traces may contain, written from the
.proto files of Perfetto (protos/perfetto/trace/), not from the code that writes them. Strict: a field that the files do
not define there, or of another type, is an error.

Use: perfetto.py FILE      a summary"""
import collections
import sys

# {field number: (name, kind, is repeated)}; kinds: varint, fixed64, text, or another message.
DEBUG_ANNOTATION = {2: ("bool_value", "varint", False), 3: ("uint_value", "varint", False),
                    4: ("int_value", "varint", False), 6: ("string_value", "text", False), 10: ("name", "text", False)}
TRACK_EVENT = {4: ("debug_annotations", DEBUG_ANNOTATION, True), 9: ("type", "varint", False),
               11: ("track_uuid", "varint", False), 22: ("categories", "text", True), 23: ("name", "text", False),
               30: ("counter_value", "varint", False), 47: ("flow_ids", "fixed64", True),
               48: ("terminating_flow_ids", "fixed64", True)}
PROCESS = {1: ("pid", "varint", False), 3: ("legacy_sort_index", "varint", False), 6: ("process_name", "text", False)}
THREAD = {1: ("pid", "varint", False), 2: ("tid", "varint", False), 5: ("thread_name", "text", False)}
COUNTER = {3: ("unit", "varint", False), 4: ("unit_multiplier", "varint", False)}
TRACK_DESCRIPTOR = {1: ("uuid", "varint", False), 2: ("name", "text", False), 3: ("process", PROCESS, False),
                    4: ("thread", THREAD, False), 5: ("parent_uuid", "varint", False), 8: ("counter", COUNTER, False)}
CLOCK = {1: ("clock_id", "varint", False), 2: ("timestamp", "varint", False)}
CLOCK_SNAPSHOT = {1: ("clocks", CLOCK, True), 2: ("primary_trace_clock", "varint", False)}
TRACE_PACKET = {6: ("clock_snapshot", CLOCK_SNAPSHOT, False), 8: ("timestamp", "varint", False),
                10: ("trusted_packet_sequence_id", "varint", False), 11: ("track_event", TRACK_EVENT, False),
                58: ("timestamp_clock_id", "varint", False), 60: ("track_descriptor", TRACK_DESCRIPTOR, False)}
BEGIN, END, INSTANT, COUNT = 1, 2, 3, 4
MONOTONIC = 3


class Cut(Exception):
    """The bytes end inside a field."""


def varint(data, at):
    value = shift = 0
    while True:
        if at >= len(data):
            raise Cut()
        value |= (data[at] & 0x7f) << shift
        shift += 7
        at += 1
        if data[at - 1] < 0x80:
            return value, at


def decode(data, fields):
    message, at = {}, 0
    while at < len(data):
        tag, at = varint(data, at)
        assert tag >> 3 in fields, f"field {tag >> 3} is not known here"
        name, kind, is_repeated = fields[tag >> 3]
        wire = {"varint": 0, "fixed64": 1}.get(kind, 2) if isinstance(kind, str) else 2
        assert tag & 7 == wire, f"{name} has wire type {tag & 7}"
        if wire == 0:
            value, at = varint(data, at)
        else:
            length, at = (8, at) if wire == 1 else varint(data, at)
            if at + length > len(data):
                raise Cut()
            part, at = data[at:at + length], at + length
            value = (int.from_bytes(part, "little") if wire == 1 else
                     part.decode() if kind == "text" else decode(part, kind))
        if is_repeated:
            message.setdefault(name, []).append(value)
        else:
            assert name not in message, f"{name} stands twice"
            message[name] = value
    return message


def packets(data, may_be_cut=False):
    """The packets of a trace: a message with field 1 repeated."""
    found, at = [], 0
    try:
        while at < len(data):
            tag, start = varint(data, at)
            assert tag == 1 << 3 | 2, f"tag {tag} at {at}"
            length, start = varint(data, start)
            if start + length > len(data):
                raise Cut()
            found.append(decode(data[start:start + length], TRACE_PACKET))
            at = start + length
    except Cut:
        assert may_be_cut, f"the trace ends in the middle of the packet at {at}"
    return found


Slice = collections.namedtuple("Slice", "track name begin end notes flows parent category")


class Trace:
    """tracks: {uuid: descriptor}; slices, instants (as slices of no length) in order of their start, counters: {uuid:
    [(time, value)]}; `open`: slices that never ended."""

    def __init__(self, path, may_be_cut=False):
        with open(path, "rb") as file:
            found = packets(file.read(), may_be_cut)
        clocks = found[0]["clock_snapshot"]
        assert clocks["primary_trace_clock"] == MONOTONIC
        self.clocks = {clock["clock_id"]: clock["timestamp"] for clock in clocks["clocks"]}
        self.tracks, self.slices, self.open = {}, [], []
        self.counters = collections.defaultdict(list)
        events = collections.defaultdict(list)
        for packet in found[1:]:
            assert packet["trusted_packet_sequence_id"] == 1
            if "track_descriptor" in packet:
                track = packet["track_descriptor"]
                assert track["uuid"] not in self.tracks, track
                assert track.get("parent_uuid", 0) in {0, *self.tracks}, track
                self.tracks[track["uuid"]] = track
            else:
                assert packet["timestamp_clock_id"] == MONOTONIC
                event = packet["track_event"]
                events[event["track_uuid"]].append((packet["timestamp"], event))
        for uuid, of_track in events.items():
            assert uuid in self.tracks, hex(uuid)
            self.read_track(uuid, sorted(of_track, key=lambda pair: pair[0]))  # stable, as Perfetto does
        self.slices.sort(key=lambda part: part.begin)

    def read_track(self, uuid, events):
        stack = []
        for time, event in events:
            if event["type"] == COUNT:
                value = event["counter_value"]
                self.counters[uuid].append((time, value - (1 << 64) if value >> 63 else value))
                continue
            if event["type"] == END:
                assert stack, f"{self.name(uuid)}: nothing is open at {time}"
                self.slices.append(self.slice(uuid, stack, time, event))
                stack.pop()
                continue
            stack.append((time, event))
            if event["type"] == INSTANT:
                self.slices.append(self.slice(uuid, stack, time, {}))
                stack.pop()
        while stack:
            self.open.append(self.slice(uuid, stack, None, {}))
            stack.pop()

    @staticmethod
    def slice(uuid, stack, end, end_event):
        time, event = stack[-1]
        notes = {note["name"]: note["uint_value"]
                 for part in (event, end_event) for note in part.get("debug_annotations", [])}
        parent = (stack[-2][0], stack[-2][1]["name"]) if len(stack) > 1 else None
        return Slice(uuid, event["name"], time, end, notes, event.get("flow_ids", []), parent,
                     event.get("categories", [""])[0])

    def name(self, uuid):
        return self.tracks[uuid]["name"]

    def flows(self):
        """{flow id: its slices in order of time}"""
        found = collections.defaultdict(list)
        for part in self.slices:
            for flow in part.flows:
                found[flow].append(part)
        return found


def main():
    trace = Trace(sys.argv[1], may_be_cut=True)
    for uuid, track in trace.tracks.items():
        parts = [part for part in trace.slices if part.track == uuid]
        print(f"{track['name']}: {len(parts)} slices, {len(trace.counters[uuid])} values")
        for name, count in collections.Counter(part.name for part in parts).most_common():
            print(f"    {count:8} {name}")


if __name__ == "__main__":
    main()
