/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/ledger.h"
#include "base/assert.h"
#include "sim/world.h"

#include <stdlib.h>
#include <string.h>

#define ORDERS 2 /* of requests of one source PE, destination PE and lane; see order_of() */

struct entry {
    uint16_t dest_host;
    uint16_t dest_pe; /* local there */
    uint32_t source_pe;
    uint32_t bytes;
    uint64_t offset;
    uint8_t kind;
    bool is_executed;
    bool is_answered;
    bool is_completed;
};

struct sim_ledger {
    struct sim_world *world;
    struct entry *entries; /* number n is entry n - 1 */
    uint64_t count;
    uint64_t capacity;
    uint64_t *last_executed; /* [lane][source PE][destination PE][order_of()] */
};

struct sim_ledger *sim_ledger_new(struct sim_world *world)
{
    const struct quoit_job_config *job = &world->config.job;
    struct sim_ledger *ledger = calloc(1, sizeof *ledger);
    quoit_assert(ledger != NULL);
    ledger->world = world;
    ledger->last_executed =
        calloc((size_t)job->lane_count * job->pe_count * job->pe_count * ORDERS, sizeof *ledger->last_executed);
    quoit_assert(ledger->last_executed != NULL);
    return ledger;
}

void sim_ledger_free(struct sim_ledger *ledger)
{
    if (!ledger)
        return;
    free(ledger->entries);
    free(ledger->last_executed);
    free(ledger);
}

uint64_t sim_ledger_count(const struct sim_ledger *ledger)
{
    return ledger->count;
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
                                                      .kind = frame->kind};
    frame->trace = ledger->count;
    ledger->world->progress_ns = ledger->world->now_ns;
}

static struct entry *find(struct sim_ledger *ledger, uint64_t number)
{
    if (number == 0 || number > ledger->count)
        sim_fail(ledger->world, "a frame carries the number %llu, which no request has", (unsigned long long)number);
    return &ledger->entries[number - 1];
}

/* Where frames do not carry the number, the token identifies the request's place in its host's memory. */
static uint64_t number_of(const struct sim_ledger *ledger, uint32_t host, uint32_t lane,
                          const struct quoit_frame *frame)
{
    const struct sim_world *world = ledger->world;
    if (quoit_job_config_traits(&world->config.job)->carries_trace)
        return frame->trace;
    bool is_request = quoit_frame_class(frame->kind) == QUOIT_CLASS_REQUEST;
    const struct sim_host *owner = &world->hosts[is_request ? frame->source_host : host];
    const struct quoit_channel *channel =
        quoit_memory_channel(&owner->layout, owner->memory, frame->token / QUOIT_REQUESTS_A_CHANNEL, lane);
    return channel->requests[frame->token % QUOIT_REQUESTS_A_CHANNEL].frame.trace;
}

/* The papers' gets travel in the other direction than everything else, so they have an order of their own. */
static uint32_t order_of(const struct quoit_job_config *job, const struct quoit_frame *frame)
{
    bool is_get = frame->kind == QUOIT_FRAME_GET || frame->kind == QUOIT_FRAME_GET_STRIDED;
    return !quoit_job_config_traits(job)->orders_gets && is_get;
}

static void execute(struct sim_ledger *ledger, uint32_t host, uint32_t lane, const struct quoit_frame *frame)
{
    struct sim_world *world = ledger->world;
    const struct quoit_job_config *job = &world->config.job;
    unsigned long long number = number_of(ledger, host, lane, frame);
    struct entry *entry = find(ledger, number);
    if (entry->is_executed)
        sim_fail(world, "request %llu of PE %u is executed twice", number, entry->source_pe);
    if (entry->kind != frame->kind || entry->bytes != frame->bytes || entry->offset != frame->offset ||
        entry->dest_host != host || entry->dest_pe != frame->dest_pe)
        sim_fail(world, "request %llu of PE %u was changed on the way", number, entry->source_pe);
    uint32_t dest_pe = quoit_job_config_first_pe(job, host) + frame->dest_pe;
    uint64_t *last =
        &ledger->last_executed[(((size_t)lane * job->pe_count + entry->source_pe) * job->pe_count + dest_pe) * ORDERS +
                               order_of(job, frame)];
    if (*last >= number)
        sim_fail(world, "request %llu of PE %u is executed after %llu, which it stands before", number,
                 entry->source_pe, (unsigned long long)*last);
    *last = number;
    entry->is_executed = true;
}

void sim_ledger_deliver(struct sim_ledger *ledger, uint32_t host, uint32_t lane, const struct quoit_frame *frame)
{
    if (frame->kind == QUOIT_FRAME_ACK)
        return;
    if (quoit_frame_class(frame->kind) == QUOIT_CLASS_REQUEST) {
        execute(ledger, host, lane, frame);
        return;
    }
    unsigned long long number = number_of(ledger, host, lane, frame);
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
