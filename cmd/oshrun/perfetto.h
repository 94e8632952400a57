/* SPDX-License-Identifier: BSD-3-Clause */
/* perfetto.h - writes a trace as Perfetto reads it: TrackEvent packets in protobuf.
 *
 * The fields used, with their numbers in the .proto files of Perfetto (protos/perfetto/trace/):
 *
 *   Trace             1 packet
 *   TracePacket       6 clock_snapshot  8 timestamp  10 trusted_packet_sequence_id  11 track_event
 *                     58 timestamp_clock_id  60 track_descriptor
 *   ClockSnapshot     1 clocks (1 clock_id, 2 timestamp)  2 primary_trace_clock
 *   TrackDescriptor   1 uuid  2 name  3 process (1 pid, 3 legacy_sort_index, 6 process_name)
 *                     4 thread (1 pid, 2 tid, 5 thread_name)  5 parent_uuid  8 counter (3 unit)
 *   TrackEvent        4 debug_annotations (3 uint_value, 10 name)  9 type  11 track_uuid  22 categories
 *                     23 name  30 counter_value  47 flow_ids
 *
 * Each packet stands for itself (nothing is interned), so a file that ends in the middle is good up to there. Packets
 * need not come in the order of time. All times are of CLOCK_MONOTONIC, and each packet says so.
 *
 * Threads: one. Errors: the stream remembers them (ferror).
 */
#ifndef OSHRUN_PERFETTO_H
#define OSHRUN_PERFETTO_H

#include <stdint.h>
#include <stdio.h>

enum perfetto_type { PERFETTO_BEGIN = 1, PERFETTO_END = 2, PERFETTO_INSTANT = 3, PERFETTO_COUNTER = 4 };
enum perfetto_unit { PERFETTO_UNIT_COUNT = 2, PERFETTO_UNIT_BYTES = 3 };

#define PERFETTO_NOTES_MAX 4

struct perfetto_event {
    enum perfetto_type type;
    uint64_t track;
    uint64_t time_ns;
    const char *name;     /* NULL: none */
    const char *category; /* likewise */
    uint64_t flow;        /* 0: none */
    int64_t counter;      /* of PERFETTO_COUNTER */
    struct {
        const char *name; /* NULL: no more */
        uint64_t value;
    } notes[PERFETTO_NOTES_MAX];
};

/* What the clocks of a machine said at one time. 0: unknown. */
struct perfetto_clocks {
    uint64_t monotonic_ns;
    uint64_t boot_ns;
    uint64_t real_ns;
};

void perfetto_read_clocks(struct perfetto_clocks *clocks_out);
/* First of all. */
void perfetto_put_clocks(FILE *out, const struct perfetto_clocks *clocks);
void perfetto_put_process(FILE *out, uint64_t track, int32_t pid, int32_t order, const char *name);
void perfetto_put_thread(FILE *out, uint64_t track, uint64_t parent, int32_t pid, int32_t tid, const char *name);
void perfetto_put_track(FILE *out, uint64_t track, uint64_t parent, const char *name);
void perfetto_put_counter(FILE *out, uint64_t track, uint64_t parent, enum perfetto_unit unit, const char *name);
void perfetto_put_event(FILE *out, const struct perfetto_event *event);

#endif
