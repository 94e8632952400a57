/* SPDX-License-Identifier: BSD-3-Clause */
#include "perfetto.h"

#include <string.h>
#include <time.h>

#include "base/assert.h"

#define MESSAGE_BYTES  512 /* more than the largest packet with names of at most NAME_BYTES */
#define NAME_BYTES     96
#define SEQUENCE       1 /* trusted_packet_sequence_id: one writer */
#define CLOCK_ID_REAL  1 /* BuiltinClock */
#define CLOCK_ID_MONO  3
#define CLOCK_ID_BOOT  6
#define WIRE_VARINT    0
#define WIRE_FIXED64   1
#define WIRE_DELIMITED 2
#define VARINT_BYTES   10
#define NS_PER_S       1000000000u

/* A message of protobuf: fields, each a tag (number and wire type) and a value. */
struct message {
    size_t used;
    uint8_t bytes[MESSAGE_BYTES];
};

static size_t encode_varint(uint64_t value, uint8_t bytes[VARINT_BYTES])
{
    size_t count = 0;
    do {
        bytes[count] = (uint8_t)(value & 0x7f) | (value > 0x7f ? 0x80 : 0);
        value >>= 7;
        count++;
    } while (value);
    return count;
}

static void put_bytes(struct message *message, const void *bytes, size_t count)
{
    quoit_assert(count <= sizeof message->bytes - message->used);
    memcpy(message->bytes + message->used, bytes, count);
    message->used += count;
}

static void put_varint(struct message *message, uint64_t value)
{
    uint8_t bytes[VARINT_BYTES];
    put_bytes(message, bytes, encode_varint(value, bytes));
}

static void put_number(struct message *message, uint32_t field, uint64_t value)
{
    put_varint(message, (uint64_t)field << 3 | WIRE_VARINT);
    put_varint(message, value);
}

static void put_fixed64(struct message *message, uint32_t field, uint64_t value)
{
    put_varint(message, (uint64_t)field << 3 | WIRE_FIXED64);
    put_bytes(message, &value, sizeof value); /* little-endian, as this machine is */
}

static void put_text(struct message *message, uint32_t field, const char *text)
{
    size_t count = strnlen(text, NAME_BYTES);
    put_varint(message, (uint64_t)field << 3 | WIRE_DELIMITED);
    put_varint(message, count);
    put_bytes(message, text, count);
}

static void put_message(struct message *message, uint32_t field, const struct message *inner)
{
    put_varint(message, (uint64_t)field << 3 | WIRE_DELIMITED);
    put_varint(message, inner->used);
    put_bytes(message, inner->bytes, inner->used);
}

/* A packet with one thing in it. time_ns: NULL: none. */
static void put_packet(FILE *out, const uint64_t *time_ns, uint32_t field, const struct message *what)
{
    struct message packet = {.used = 0};
    uint8_t head[1 + VARINT_BYTES] = {1 << 3 | WIRE_DELIMITED};
    if (time_ns) {
        put_number(&packet, 8, *time_ns);
        put_number(&packet, 58, CLOCK_ID_MONO);
    }
    put_number(&packet, 10, SEQUENCE);
    put_message(&packet, field, what);
    size_t head_bytes = 1 + encode_varint(packet.used, head + 1);
    fwrite(head, 1, head_bytes, out);
    fwrite(packet.bytes, 1, packet.used, out);
}

static uint64_t read_clock(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

void perfetto_read_clocks(struct perfetto_clocks *clocks_out)
{
    clocks_out->monotonic_ns = read_clock(CLOCK_MONOTONIC);
    clocks_out->boot_ns = read_clock(CLOCK_BOOTTIME);
    clocks_out->real_ns = read_clock(CLOCK_REALTIME);
}

static void put_clock(struct message *snapshot, uint32_t id, uint64_t time_ns)
{
    struct message reading = {.used = 0};
    put_number(&reading, 1, id);
    put_number(&reading, 2, time_ns);
    put_message(snapshot, 1, &reading);
}

void perfetto_put_clocks(FILE *out, const struct perfetto_clocks *clocks)
{
    struct message snapshot = {.used = 0};
    put_clock(&snapshot, CLOCK_ID_MONO, clocks->monotonic_ns);
    if (clocks->boot_ns)
        put_clock(&snapshot, CLOCK_ID_BOOT, clocks->boot_ns);
    if (clocks->real_ns)
        put_clock(&snapshot, CLOCK_ID_REAL, clocks->real_ns);
    put_number(&snapshot, 2, CLOCK_ID_MONO);
    put_packet(out, NULL, 6, &snapshot);
}

static void begin_track(struct message *track, uint64_t uuid, uint64_t parent, const char *name)
{
    track->used = 0;
    put_number(track, 1, uuid);
    if (parent)
        put_number(track, 5, parent);
    put_text(track, 2, name);
}

void perfetto_put_process(FILE *out, uint64_t track, int32_t pid, int32_t order, const char *name)
{
    struct message descriptor, process = {.used = 0};
    begin_track(&descriptor, track, 0, name);
    put_number(&process, 1, (uint64_t)pid);
    put_number(&process, 3, (uint64_t)order);
    put_text(&process, 6, name);
    put_message(&descriptor, 3, &process);
    put_packet(out, NULL, 60, &descriptor);
}

void perfetto_put_thread(FILE *out, uint64_t track, uint64_t parent, int32_t pid, int32_t tid, const char *name)
{
    struct message descriptor, thread = {.used = 0};
    begin_track(&descriptor, track, parent, name);
    put_number(&thread, 1, (uint64_t)pid);
    put_number(&thread, 2, (uint64_t)tid);
    put_text(&thread, 5, name);
    put_message(&descriptor, 4, &thread);
    put_packet(out, NULL, 60, &descriptor);
}

void perfetto_put_track(FILE *out, uint64_t track, uint64_t parent, const char *name)
{
    struct message descriptor;
    begin_track(&descriptor, track, parent, name);
    put_packet(out, NULL, 60, &descriptor);
}

void perfetto_put_counter(FILE *out, uint64_t track, uint64_t parent, enum perfetto_unit unit, const char *name)
{
    struct message descriptor, counter = {.used = 0};
    begin_track(&descriptor, track, parent, name);
    put_number(&counter, 3, unit);
    put_message(&descriptor, 8, &counter);
    put_packet(out, NULL, 60, &descriptor);
}

void perfetto_put_event(FILE *out, const struct perfetto_event *event)
{
    struct message made = {.used = 0};
    put_number(&made, 9, event->type);
    put_number(&made, 11, event->track);
    if (event->category)
        put_text(&made, 22, event->category);
    if (event->name)
        put_text(&made, 23, event->name);
    if (event->type == PERFETTO_COUNTER)
        put_number(&made, 30, (uint64_t)event->counter);
    if (event->flow)
        put_fixed64(&made, 47, event->flow);
    for (int i = 0; i < PERFETTO_NOTES_MAX && event->notes[i].name; i++) {
        struct message note = {.used = 0};
        put_text(&note, 10, event->notes[i].name);
        put_number(&note, 3, event->notes[i].value);
        put_message(&made, 4, &note);
    }
    put_packet(out, &event->time_ns, 11, &made);
}
