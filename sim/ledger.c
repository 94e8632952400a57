/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/ledger.h"
#include "base/assert.h"
#include "papers/scratchpad.h"
#include "sim/world.h"

#include <stdlib.h>
#include <string.h>

struct entry {
    uint16_t dest_host;
    uint16_t dest_pe; /* local there */
    uint32_t source_pe;
    uint32_t bytes;
    uint64_t offset;
    uint64_t next; /* number of the next one of its stream; 0: there is none */
    uint8_t lane;  /* of whose channel it is */
    uint8_t kind;
    bool is_executed;
    bool is_answered;
    bool is_completed;
};

/* Requests of one source PE, destination PE and lane, by their numbers. */
struct stream {
    uint64_t last;
    uint64_t waiting; /* the first that is not executed; 0: there is none */
};

struct sim_ledger {
    struct sim_world *world;
    struct entry *entries; /* number n is entry n - 1 */
    uint64_t count;
    uint64_t capacity;
    struct stream *streams; /* [lane][source PE][destination PE] */
};

struct sim_ledger *sim_ledger_new(struct sim_world *world)
{
    const struct quoit_job_config *job = &world->config.job;
    struct sim_ledger *ledger = calloc(1, sizeof *ledger);
    quoit_assert(ledger != NULL);
    ledger->world = world;
    ledger->streams = calloc((size_t)job->lane_count * job->pe_count * job->pe_count, sizeof *ledger->streams);
    quoit_assert(ledger->streams != NULL);
    return ledger;
}

void sim_ledger_free(struct sim_ledger *ledger)
{
    if (!ledger)
        return;
    free(ledger->entries);
    free(ledger->streams);
    free(ledger);
}

uint64_t sim_ledger_count(const struct sim_ledger *ledger)
{
    return ledger->count;
}

static struct stream *stream_of(struct sim_ledger *ledger, const struct entry *entry)
{
    const struct quoit_job_config *job = &ledger->world->config.job;
    uint32_t dest_pe = quoit_job_config_first_pe(job, entry->dest_host) + entry->dest_pe;
    return &ledger->streams[((size_t)entry->lane * job->pe_count + entry->source_pe) * job->pe_count + dest_pe];
}

void sim_ledger_submit(struct sim_ledger *ledger, uint32_t source_pe, const struct quoit_slot *slot)
{
    if (ledger->count == ledger->capacity) {
        ledger->capacity = ledger->capacity ? 2 * ledger->capacity : 1024;
        ledger->entries = realloc(ledger->entries, ledger->capacity * sizeof *ledger->entries);
        quoit_assert(ledger->entries != NULL);
    }
    struct quoit_frame *frame = &slot->request->frame;
    ledger->entries[ledger->count++] = (struct entry){.dest_host = frame->dest_host,
                                                      .dest_pe = frame->dest_pe,
                                                      .source_pe = source_pe,
                                                      .bytes = frame->bytes,
                                                      .offset = frame->offset,
                                                      .lane = (uint8_t)slot->lane,
                                                      .kind = frame->kind};
    struct entry *entry = &ledger->entries[ledger->count - 1];
    struct stream *stream = stream_of(ledger, entry);
    if (stream->waiting == 0)
        stream->waiting = ledger->count;
    if (stream->last != 0)
        ledger->entries[stream->last - 1].next = ledger->count;
    stream->last = frame->trace = ledger->count;
    ledger->world->progress_ns = ledger->world->now_ns;
}

static struct entry *find(struct sim_ledger *ledger, uint64_t number)
{
    if (number == 0 || number > ledger->count)
        sim_fail(ledger->world, "a frame carries the number %llu, which no request has", (unsigned long long)number);
    return &ledger->entries[number - 1];
}

/* Whether it must be executed after all that were submitted before it. */
static bool is_ordered(const struct quoit_job_config *job, const struct quoit_frame *frame)
{
    return quoit_job_config_traits(job)->orders_requests || !quoit_scratchpad_may_overtake(frame);
}

static void execute(struct sim_ledger *ledger, uint32_t host, const struct quoit_frame *frame)
{
    struct sim_world *world = ledger->world;
    unsigned long long number = frame->trace;
    struct entry *entry = find(ledger, number);
    struct stream *stream = stream_of(ledger, entry);
    if (entry->is_executed)
        sim_fail(world, "request %llu of PE %u is executed twice", number, entry->source_pe);
    if (entry->kind != frame->kind || entry->bytes != frame->bytes || entry->offset != frame->offset ||
        entry->dest_host != host || entry->dest_pe != frame->dest_pe)
        sim_fail(world, "request %llu of PE %u was changed on the way", number, entry->source_pe);
    if (is_ordered(&world->config.job, frame) && stream->waiting != number)
        sim_fail(world, "request %llu of PE %u is executed before %llu, which it stands behind", number,
                 entry->source_pe, (unsigned long long)stream->waiting);
    entry->is_executed = true;
    while (stream->waiting != 0 && find(ledger, stream->waiting)->is_executed)
        stream->waiting = find(ledger, stream->waiting)->next;
}

void sim_ledger_deliver(struct sim_ledger *ledger, uint32_t host, const struct quoit_frame *frame)
{
    if (frame->kind == QUOIT_FRAME_ACK)
        return;
    if (quoit_frame_class(frame->kind) == QUOIT_CLASS_REQUEST) {
        execute(ledger, host, frame);
        return;
    }
    unsigned long long number = frame->trace;
    struct entry *entry = find(ledger, number);
    if (!entry->is_executed || entry->is_answered)
        sim_fail(ledger->world, "request %llu of PE %u is answered %s", number, entry->source_pe,
                 entry->is_answered ? "twice" : "before it is executed");
    entry->is_answered = true;
}

void sim_ledger_complete(struct sim_ledger *ledger, const struct quoit_frame *frame)
{
    struct entry *entry = find(ledger, frame->trace);
    if (!entry->is_executed || entry->is_completed || (quoit_frame_needs_response(entry->kind) && !entry->is_answered))
        sim_fail(ledger->world, "request %llu of PE %u completes %s", (unsigned long long)frame->trace,
                 entry->source_pe, entry->is_completed ? "twice" : "before it is executed and answered");
    entry->is_completed = true;
    ledger->world->progress_ns = ledger->world->now_ns;
}

void sim_ledger_check_end(struct sim_ledger *ledger)
{
    for (uint64_t i = 0; i < ledger->count; i++)
        if (!ledger->entries[i].is_completed)
            sim_fail(ledger->world, "request %llu of PE %u was never %s", (unsigned long long)i + 1,
                     ledger->entries[i].source_pe, ledger->entries[i].is_executed ? "completed" : "executed");
}
