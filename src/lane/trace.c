/* SPDX-License-Identifier: BSD-3-Clause */
/* A lane's events for --trace. */
#include "lane/lane.h"

static uint32_t pe_of(const struct quoit_lane *lane, uint32_t host, uint32_t local)
{
    return quoit_job_config_first_pe(&lane->layout->job, lane->hosts.first + host) + local;
}

/* The PE that issued the request, whose number names the flow: a response travels back to it. */
static uint32_t source_of(const struct quoit_lane *lane, const struct quoit_frame *frame)
{
    if (quoit_frame_class(frame->kind) == QUOIT_CLASS_REPLY)
        return pe_of(lane, frame->dest_host, frame->dest_pe);
    return pe_of(lane, frame->source_host, frame->source_pe);
}

void quoit_lane_write_frame(struct quoit_lane *lane, enum quoit_trace_kind kind, const struct quoit_frame *frame,
                            enum quoit_side side, uint64_t begin_ns, uint64_t value)
{
    /* An acknowledgement of ours covers many requests; one of the papers' names its request. */
    bool is_for_pe = quoit_frame_is_of_pes(frame->kind) || (frame->kind == QUOIT_FRAME_ACK && frame->trace != 0);
    struct quoit_trace_event event = {
        .kind = (uint8_t)kind,
        .frame = frame->kind,
        .side = (uint8_t)side,
        .class = (uint8_t)quoit_frame_class(frame->kind),
        .begin_ns = begin_ns,
        .end_ns = quoit_clock_now_ns(),
        .value = value,
        .bytes = frame->bytes,
        .pe = QUOIT_TRACE_NO_PE,
    };
    if (is_for_pe) {
        event.flow = quoit_trace_flow(source_of(lane, frame), frame->trace);
        event.pe = pe_of(lane, frame->dest_host, frame->dest_pe);
    }
    quoit_trace_write(lane->trace, &event);
}

void quoit_lane_write_credit(struct quoit_lane *lane, enum quoit_side side, enum quoit_class class,
                             uint64_t consumed_total)
{
    uint64_t now_ns = quoit_clock_now_ns();
    lane->traced_credit[side][class] = consumed_total;
    quoit_trace_write(lane->trace, &(struct quoit_trace_event){.kind = QUOIT_TRACE_CREDIT,
                                                               .side = (uint8_t)side,
                                                               .class = (uint8_t) class,
                                                               .begin_ns = now_ns,
                                                               .end_ns = now_ns,
                                                               .value = consumed_total,
                                                               .pe = QUOIT_TRACE_NO_PE});
}

void quoit_lane_write_link(struct quoit_lane *lane, enum quoit_side side, bool is_up)
{
    uint64_t now_ns = quoit_clock_now_ns();
    for (enum quoit_class class = 0; class < QUOIT_CLASS_COUNT; class ++)
        lane->traced_credit[side][class] = 0; /* queues start from zero */
    quoit_trace_write(lane->trace, &(struct quoit_trace_event){.kind = QUOIT_TRACE_LINK,
                                                               .side = (uint8_t)side,
                                                               .begin_ns = now_ns,
                                                               .end_ns = now_ns,
                                                               .value = is_up,
                                                               .pe = QUOIT_TRACE_NO_PE});
}

void quoit_lane_write_sleep(struct quoit_lane *lane, uint64_t begin_ns, uint64_t end_ns)
{
    quoit_trace_write(lane->trace,
                      &(struct quoit_trace_event){
                          .kind = QUOIT_TRACE_SLEEP, .begin_ns = begin_ns, .end_ns = end_ns, .pe = QUOIT_TRACE_NO_PE});
}
