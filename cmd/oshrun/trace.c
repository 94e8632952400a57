/* SPDX-License-Identifier: BSD-3-Clause */
#include "job.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "boot/survey.h"
#include "env/clock.h"
#include "hosts.h"
#include "meetings.h"
#include "perfetto.h"
#include "trace.h"

#define STEP_NS        5000000u /* between two polls; a ring of 4 MiB is full after 32768 events */
#define FILE_BYTES     (1u << 20)
#define OPEN_DEPTH_MAX 32 /* in names; deeper ones are not closed explicitly */
#define NO_TIME        UINT64_MAX
#define THREADS_MAX    64           /* of a PE that have a track; the others share one */
#define BATCH_EVENTS   512u         /* that an agent sends at once */
#define SEND_NS        10000000000u /* for these */

/* A track is identified by kind, host or PE, and index. */
enum track {
    TRACK_PE = 1,
    TRACK_PE_THREAD,
    TRACK_LANDING,
    TRACK_PROXY,
    TRACK_LANE,
    TRACK_DMA,
    TRACK_BYTES,
    TRACK_SLOTS,
};

#define OTHER_THREADS UINT32_MAX

static uint64_t track_of(enum track kind, uint32_t owner, uint32_t which)
{
    return (uint64_t)kind << 56 | (uint64_t)owner << 32 | which;
}

/* A thread of a PE. The names it is in: their start, NO_TIME if that event was lost. */
struct traced_thread {
    uint32_t tid; /* OTHER_THREADS: those beyond THREADS_MAX */
    uint32_t id;  /* in the file */
    uint32_t depth;
    uint64_t begin_ns[OPEN_DEPTH_MAX];
};

/* Of one ring of events: a PE's or a lane's. */
struct traced_writer {
    struct quoit_trace_ring *ring;
    uint32_t host;
    uint32_t pe;   /* of a PE */
    uint32_t lane; /* of a lane */
    uint32_t id;   /* of its process in the file */
    bool is_lane;
    bool has_links; /* of a lane: it serves links, not a network */
    uint64_t lost_reported;
    int64_t ahead_ns;    /* its clock, of that of the file */
    uint64_t dma_tracks; /* of a lane: bit per DMA slot, whether its track is declared */
    struct traced_thread *threads;
    uint32_t thread_count;
    uint64_t sent[QUOIT_SIDE_COUNT][QUOIT_CLASS_COUNT]; /* frames in slots, the total ever sent, and those returned */
    uint64_t freed[QUOIT_SIDE_COUNT][QUOIT_CLASS_COUNT];
};

struct trace {
    FILE *out;
    char *buffer;
    uint64_t next_ns;
    struct traced_writer *writers; /* NULL before the layout */
    uint32_t writer_count;
    uint64_t *bytes_reported; /* of each direction: 2 host + side */
    uint64_t event_count;
    uint64_t last_ns;              /* of an event */
    uint32_t id_count;             /* of processes and threads, where these are numbered */
    struct perfetto_clocks clocks; /* of several machines: of host 0 */
    bool is_late;                  /* events are taken at the end */
    bool has_slots;                /* the protocol has queues of slots */
    bool is_broken;                /* the file could not be written, which was reported */
};

static const char *const frame_names[QUOIT_FRAME_KIND_COUNT] = {
    [QUOIT_FRAME_PUT] = "PUT",
    [QUOIT_FRAME_PUT_STRIDED] = "PUT_STRIDED",
    [QUOIT_FRAME_PUT_SIGNAL] = "PUT_SIGNAL",
    [QUOIT_FRAME_GET] = "GET",
    [QUOIT_FRAME_GET_STRIDED] = "GET_STRIDED",
    [QUOIT_FRAME_AMO] = "AMO",
    [QUOIT_FRAME_AMO_FETCH] = "AMO_FETCH",
    [QUOIT_FRAME_MESSAGE] = "MESSAGE",
    [QUOIT_FRAME_PUT_MANY] = "PUT_MANY",
    [QUOIT_FRAME_DATA] = "DATA",
    [QUOIT_FRAME_VALUE] = "VALUE",
    [QUOIT_FRAME_ACK] = "ACK",
    [QUOIT_FRAME_TOPOLOGY] = "TOPOLOGY",
};

bool trace_open(struct job *job)
{
    const char *path = plan_text(job->plan, QUOIT_OPT_TRACE);
    if (!path[0])
        return true;
    struct trace *trace = calloc(1, sizeof *trace);
    if (trace)
        trace->out = fopen(path, "we");
    if (!trace || !trace->out) {
        quoit_say("cannot write %s: %s [Q0213]", path, strerror(errno));
        free(trace);
        return false;
    }
    trace->buffer = malloc(FILE_BYTES);
    if (trace->buffer)
        setvbuf(trace->out, trace->buffer, _IOFBF, FILE_BYTES);
    trace->is_late = job->role == ROLE_HEAD || job->clock;
    if (!trace->is_late) {
        perfetto_read_clocks(&trace->clocks);
        perfetto_put_clocks(trace->out, &trace->clocks);
    }
    job->trace = trace;
    return true;
}

/* --- Tracks --- */

static void declare_direction(const struct job *job, uint32_t host, enum quoit_side side)
{
    char name[64];
    const struct quoit_layout *layout = &job->hosts[host].layout;
    uint32_t to = hosts_neighbour(job, host, side), direction = QUOIT_SIDE_COUNT * host + side;
    uint64_t proxy = track_of(TRACK_PROXY, host, 0);
    const char *way = side == QUOIT_RIGHT ? "right" : "left";
    if (quoit_layout_has_links(layout))
        snprintf(name, sizeof name, "host%u -> host%u (%s) bytes", host, to, way);
    else
        snprintf(name, sizeof name, "host%u network bytes %s", host, side == QUOIT_RIGHT ? "sent" : "fetched");
    if (!job->trace->is_late) /* else it is known only how many there were in all */
        perfetto_put_counter(job->trace->out, track_of(TRACK_BYTES, direction, 0), proxy, PERFETTO_UNIT_BYTES, name);
    for (uint32_t lane = 0; lane < layout->link_lane_count && job->trace->has_slots; lane++) {
        snprintf(name, sizeof name, "host%u -> host%u (%s) lane %u slots in use", host, to, way, lane);
        perfetto_put_counter(job->trace->out, track_of(TRACK_SLOTS, direction, lane), proxy, PERFETTO_UNIT_COUNT, name);
    }
}

/* What stands for a process or a thread in the file. */
static uint32_t id_of(struct trace *trace, uint32_t own_id)
{
    return trace->is_late ? ++trace->id_count : own_id;
}

static uint32_t declare_pe(const struct job *job, const struct pe *pe, int32_t order)
{
    uint32_t id = id_of(job->trace, (uint32_t)pe->program_pid);
    char name[64];
    snprintf(name, sizeof name, "PE %u host%u", pe->index, pe->host);
    perfetto_put_process(job->trace->out, track_of(TRACK_PE, pe->index, 0), (int32_t)id, order, name);
    snprintf(name, sizeof name, "PE %u landings", pe->index);
    perfetto_put_track(job->trace->out, track_of(TRACK_LANDING, pe->index, 0), track_of(TRACK_PE, pe->index, 0), name);
    return id;
}

/* Hosts in order, each with its PEs and then its proxy. */
static void declare_host(struct job *job, struct host *host)
{
    char name[64];
    struct trace *trace = job->trace;
    const struct quoit_layout *layout = &host->layout;
    int32_t order = (int32_t)(layout->first_pe + host->index);
    for (uint32_t local = 0; local < layout->local_count; local++) {
        uint32_t id = declare_pe(job, &job->pes[layout->first_pe + local], order++);
        trace->writers[trace->writer_count++] =
            (struct traced_writer){.ring = quoit_memory_trace(layout, host->front, local),
                                   .host = host->index,
                                   .id = id,
                                   .pe = layout->first_pe + local};
    }
    if (!quoit_job_config_has_proxies(&job->config))
        return;
    snprintf(name, sizeof name, "proxy host%u", host->index);
    uint32_t id = id_of(trace, (uint32_t)host->proxy_pid);
    perfetto_put_process(trace->out, track_of(TRACK_PROXY, host->index, 0), (int32_t)id, order, name);
    for (enum quoit_side side = 0; side < QUOIT_SIDE_COUNT; side++)
        declare_direction(job, host->index, side);
    for (uint32_t lane = 0; lane < layout->lane_count; lane++)
        trace->writers[trace->writer_count++] =
            (struct traced_writer){.ring = quoit_memory_trace(layout, host->front, layout->local_count + lane),
                                   .host = host->index,
                                   .id = id,
                                   .lane = lane,
                                   .is_lane = true,
                                   .has_links = lane < layout->link_lane_count};
}

static bool declare_all(struct job *job)
{
    struct trace *trace = job->trace;
    const struct quoit_protocol_traits *traits = quoit_job_config_traits(&job->config);
    trace->has_slots = traits->has_links && traits->slot_count == 0;
    size_t most = job->plan->pe_count;
    for (uint32_t i = 0; i < job->plan->host_count; i++)
        most += job->hosts[i].layout.lane_count;
    trace->writers = calloc(most, sizeof *trace->writers);
    trace->bytes_reported = calloc(QUOIT_SIDE_COUNT * (size_t)job->plan->host_count, sizeof *trace->bytes_reported);
    if (!trace->writers || !trace->bytes_reported)
        return false;
    for (uint32_t i = 0; i < job->plan->host_count; i++)
        declare_host(job, &job->hosts[i]);
    return true;
}

/* The index of the event's thread within its writer; declares a new one. NULL: no memory. */
static struct traced_thread *thread_of(const struct job *job, struct traced_writer *writer, uint32_t tid)
{
    char name[64];
    for (uint32_t i = 0; i < writer->thread_count; i++)
        if (writer->threads[i].tid == tid || writer->threads[i].tid == OTHER_THREADS)
            return &writer->threads[i];
    if (writer->thread_count == THREADS_MAX)
        tid = OTHER_THREADS;
    struct traced_thread *more = realloc(writer->threads, (writer->thread_count + 1) * sizeof *more);
    if (!more)
        return NULL;
    writer->threads = more;
    struct traced_thread *thread = &more[writer->thread_count++];
    *thread = (struct traced_thread){.tid = tid, .id = tid};
    bool is_first = job->trace->is_late ? writer->thread_count == 1 : tid == writer->id;
    if (job->trace->is_late)
        thread->id = is_first && !writer->is_lane ? writer->id : ++job->trace->id_count;
    const struct pe *pe = &job->pes[writer->pe];
    if (writer->is_lane) {
        snprintf(name, sizeof name, "lane %u host%u", writer->lane, writer->host);
        perfetto_put_thread(job->trace->out, track_of(TRACK_LANE, writer->host, writer->lane),
                            track_of(TRACK_PROXY, writer->host, 0), (int32_t)writer->id, (int32_t)thread->id, name);
        return thread;
    }
    if (is_first)
        snprintf(name, sizeof name, "PE %u host%u", pe->index, pe->host);
    else if (tid == OTHER_THREADS)
        snprintf(name, sizeof name, "PE %u host%u other threads", pe->index, pe->host);
    else
        snprintf(name, sizeof name, "PE %u host%u thread %u", pe->index, pe->host, thread->id);
    perfetto_put_thread(job->trace->out, track_of(TRACK_PE_THREAD, pe->index, thread->id),
                        track_of(TRACK_PE, pe->index, 0), (int32_t)writer->id, (int32_t)thread->id, name);
    return thread;
}

/* --- Events --- */

static void put_slice(const struct trace *trace, struct perfetto_event *begin, uint64_t end_ns)
{
    struct perfetto_event end = {.type = PERFETTO_END, .track = begin->track, .time_ns = end_ns};
    begin->type = PERFETTO_BEGIN;
    perfetto_put_event(trace->out, begin);
    perfetto_put_event(trace->out, &end);
}

static void note_pe(struct perfetto_event *event, int at, const struct quoit_trace_event *from)
{
    if (from->pe == QUOIT_TRACE_NO_PE)
        return;
    event->notes[at].name = "bytes";
    event->notes[at++].value = from->bytes;
    event->notes[at].name = "pe";
    event->notes[at].value = from->pe;
}

/* Events may be lost, ENTER as well as LEAVE: the depth of each event closes what must have ended. */
static void close_deeper(const struct trace *trace, struct traced_thread *thread, uint64_t track, uint32_t depth,
                         uint64_t time_ns)
{
    while (thread->depth > depth) {
        struct perfetto_event end = {.type = PERFETTO_END, .track = track, .time_ns = time_ns};
        thread->depth--;
        if (thread->depth < OPEN_DEPTH_MAX && thread->begin_ns[thread->depth] != NO_TIME)
            perfetto_put_event(trace->out, &end);
    }
}

static void put_name(const struct trace *trace, struct traced_thread *thread, uint64_t track,
                     const struct quoit_trace_event *from)
{
    bool is_wait = strcmp(from->name, "wait") == 0;
    if (from->kind == QUOIT_TRACE_ENTER) {
        struct perfetto_event begin = {.type = PERFETTO_BEGIN,
                                       .track = track,
                                       .time_ns = from->begin_ns,
                                       .name = from->name,
                                       .category = is_wait ? "wait" : "call"};
        note_pe(&begin, 0, from);
        close_deeper(trace, thread, track, from->depth, from->begin_ns);
        while (thread->depth < from->depth && thread->depth < OPEN_DEPTH_MAX)
            thread->begin_ns[thread->depth++] = NO_TIME;
        if (thread->depth >= OPEN_DEPTH_MAX)
            return;
        thread->begin_ns[thread->depth++] = from->begin_ns;
        perfetto_put_event(trace->out, &begin);
        return;
    }
    if (from->depth >= OPEN_DEPTH_MAX)
        return;
    close_deeper(trace, thread, track, from->depth + 1, from->end_ns);
    if (thread->depth != from->depth + 1 || thread->begin_ns[from->depth] != from->begin_ns)
        return; /* its ENTER was lost */
    struct perfetto_event end = {.type = PERFETTO_END, .track = track, .time_ns = from->end_ns};
    if (from->value)
        end.notes[0].name = "sleeps";
    end.notes[0].value = from->value;
    thread->depth--;
    perfetto_put_event(trace->out, &end);
}

static void put_pe_event(const struct job *job, struct traced_writer *writer, const struct quoit_trace_event *from)
{
    char name[64];
    const struct trace *trace = job->trace;
    struct traced_thread *thread = thread_of(job, writer, from->tid);
    uint64_t track = track_of(TRACK_PE_THREAD, writer->pe, thread ? thread->id : 0);
    struct perfetto_event event = {
        .track = track, .time_ns = from->begin_ns, .name = name, .category = "put", .flow = from->flow};
    note_pe(&event, 0, from);
    if (!thread)
        return;
    if (from->kind == QUOIT_TRACE_ENTER || from->kind == QUOIT_TRACE_LEAVE) {
        put_name(trace, thread, track, from);
    } else if (from->kind == QUOIT_TRACE_REQUEST && from->frame < QUOIT_FRAME_KIND_COUNT) {
        snprintf(name, sizeof name, "request %s", frame_names[from->frame]);
        event.category = "request";
        put_slice(trace, &event, from->end_ns);
    } else if (from->kind == QUOIT_TRACE_DIRECT && from->pe < job->plan->pe_count) {
        snprintf(name, sizeof name, "direct put");
        put_slice(trace, &event, from->end_ns);
        snprintf(name, sizeof name, "landed from PE %u", writer->pe);
        event.type = PERFETTO_INSTANT;
        event.track = track_of(TRACK_LANDING, from->pe, 0);
        event.time_ns = from->end_ns;
        perfetto_put_event(trace->out, &event);
    }
}

/* How many slots of the direction are in use, both classes. */
static void put_slots(const struct trace *trace, const struct traced_writer *writer, uint32_t side, uint64_t time_ns)
{
    struct perfetto_event event = {.type = PERFETTO_COUNTER,
                                   .track = track_of(TRACK_SLOTS, QUOIT_SIDE_COUNT * writer->host + side, writer->lane),
                                   .time_ns = time_ns};
    for (int class = 0; class < QUOIT_CLASS_COUNT; class ++)
        event.counter += (int64_t)(writer->sent[side][class] - writer->freed[side][class]);
    perfetto_put_event(trace->out, &event);
}

/* What moves a payload from memory to memory. */
static const char *mover_of(const struct traced_writer *writer)
{
    return writer->has_links ? "DMA" : "network";
}

/* A lane has many outstanding, and slices of one track must not overlap: each has a track. Perfetto displays tracks of
 * one name and parent as one. */
static uint64_t dma_track_of(const struct trace *trace, struct traced_writer *writer, uint32_t index)
{
    char name[64];
    uint64_t track = track_of(TRACK_DMA, writer->host, writer->lane * QUOIT_TRACE_DMAS_MAX + index);
    if ((writer->dma_tracks >> index & 1) == 0) {
        snprintf(name, sizeof name, "lane %u %s", writer->lane, mover_of(writer));
        perfetto_put_track(trace->out, track, track_of(TRACK_PROXY, writer->host, 0), name);
    }
    writer->dma_tracks |= (uint64_t)1 << index;
    return track;
}

static void put_frame(const struct trace *trace, struct traced_writer *writer, const struct quoit_trace_event *from)
{
    static const char *const deeds[] = {
        [QUOIT_TRACE_SEND] = "send", [QUOIT_TRACE_RELAY] = "relay", [QUOIT_TRACE_DELIVER] = "deliver"};
    const char *deed = from->kind == QUOIT_TRACE_DMA ? mover_of(writer) : deeds[from->kind];
    char name[64];
    struct perfetto_event event = {.track = from->kind == QUOIT_TRACE_DMA
                                                ? dma_track_of(trace, writer, (uint32_t)from->value)
                                                : track_of(TRACK_LANE, writer->host, writer->lane),
                                   .time_ns = from->begin_ns,
                                   .name = name,
                                   .category = deed,
                                   .flow = from->flow};
    snprintf(name, sizeof name, "%s %s", deed, frame_names[from->frame]);
    if (writer->has_links) {
        event.notes[0].name = from->side == QUOIT_RIGHT ? "right" : "left";
        event.notes[0].value = 1;
    }
    note_pe(&event, writer->has_links, from);
    put_slice(trace, &event, from->end_ns);
    if (from->kind != QUOIT_TRACE_DELIVER && from->kind != QUOIT_TRACE_DMA && writer->has_links && trace->has_slots) {
        writer->sent[from->side][from->class] = from->value;
        put_slots(trace, writer, from->side, from->end_ns);
    }
}

static void put_link(const struct trace *trace, struct traced_writer *writer, const struct quoit_trace_event *from)
{
    char name[64];
    struct perfetto_event event = {.type = PERFETTO_INSTANT,
                                   .track = track_of(TRACK_LANE, writer->host, writer->lane),
                                   .time_ns = from->begin_ns,
                                   .name = name,
                                   .category = "link"};
    snprintf(name, sizeof name, "link to the %s %s", from->side == QUOIT_RIGHT ? "right" : "left",
             from->value ? "up" : "down");
    perfetto_put_event(trace->out, &event);
    memset(writer->sent[from->side], 0, sizeof writer->sent[0]); /* its queues restart */
    memset(writer->freed[from->side], 0, sizeof writer->freed[0]);
    if (trace->has_slots)
        put_slots(trace, writer, from->side, from->begin_ns);
}

static void put_lane_event(const struct job *job, struct traced_writer *writer, const struct quoit_trace_event *from)
{
    const struct trace *trace = job->trace;
    bool is_sound =
        from->side < QUOIT_SIDE_COUNT && from->class < QUOIT_CLASS_COUNT && from->frame < QUOIT_FRAME_KIND_COUNT;
    if (!is_sound || !thread_of(job, writer, from->tid))
        return;
    if (from->kind == QUOIT_TRACE_SEND || from->kind == QUOIT_TRACE_RELAY || from->kind == QUOIT_TRACE_DELIVER ||
        (from->kind == QUOIT_TRACE_DMA && from->value < QUOIT_TRACE_DMAS_MAX)) {
        put_frame(trace, writer, from);
    } else if (from->kind == QUOIT_TRACE_SLEEP) {
        struct perfetto_event event = {.track = track_of(TRACK_LANE, writer->host, writer->lane),
                                       .time_ns = from->begin_ns,
                                       .name = "asleep",
                                       .category = "sleep"};
        put_slice(trace, &event, from->end_ns);
    } else if (from->kind == QUOIT_TRACE_CREDIT) {
        writer->freed[from->side][from->class] = from->value;
        put_slots(trace, writer, from->side, from->begin_ns);
    } else if (from->kind == QUOIT_TRACE_LINK) {
        put_link(trace, writer, from);
    }
}

/* --- Taking --- */

static uint64_t lost_of(const struct traced_writer *writer)
{
    return atomic_load_explicit(&writer->ring->lost_count, memory_order_relaxed);
}

static void put_lost(const struct trace *trace, struct traced_writer *writer, uint64_t now_ns)
{
    uint64_t lost = lost_of(writer);
    struct perfetto_event event = {.type = PERFETTO_INSTANT,
                                   .track = writer->is_lane ? track_of(TRACK_PROXY, writer->host, 0)
                                                            : track_of(TRACK_PE, writer->pe, 0),
                                   .time_ns = now_ns,
                                   .name = "events lost",
                                   .category = "lost"};
    if (lost == writer->lost_reported)
        return;
    event.notes[0].name = "count";
    event.notes[0].value = lost - writer->lost_reported;
    writer->lost_reported = lost;
    perfetto_put_event(trace->out, &event);
}

/* Of an event that is not in the file: how many slots are in use is known from the beginning. */
static void note_slots(struct traced_writer *writer, const struct quoit_trace_event *event)
{
    if (!writer->is_lane || !writer->has_links || event->side >= QUOIT_SIDE_COUNT || event->class >= QUOIT_CLASS_COUNT)
        return;
    if (event->kind == QUOIT_TRACE_SEND || event->kind == QUOIT_TRACE_RELAY)
        writer->sent[event->side][event->class] = event->value;
    else if (event->kind == QUOIT_TRACE_CREDIT)
        writer->freed[event->side][event->class] = event->value;
}

/* In virtual time, whether it is of that; before it begins, and once it has ended, services have the machine's time.
 * What began in it ends with it. */
static bool is_timed(const struct job *job, const struct traced_writer *writer, struct quoit_trace_event *event)
{
    if (!job->clock)
        return true;
    uint64_t ended_ns = atomic_load(&job->clock->ended_ns);
    if (ended_ns && (event->end_ns > ended_ns || event->end_ns < event->begin_ns))
        event->end_ns = ended_ns;
    uint64_t first_ns = QUOIT_VIRTUAL_BEGIN_NS + writer->is_lane; /* services come to rest until then */
    return event->begin_ns >= first_ns && (ended_ns == 0 || event->begin_ns <= ended_ns);
}

/* By the clock of the file. */
static void align(const struct traced_writer *writer, struct trace *trace, struct quoit_trace_event *event)
{
    event->begin_ns -= (uint64_t)writer->ahead_ns;
    event->end_ns -= (uint64_t)writer->ahead_ns;
    uint64_t last_ns = event->kind == QUOIT_TRACE_LEAVE ? event->end_ns : event->begin_ns;
    if (last_ns > trace->last_ns)
        trace->last_ns = last_ns;
}

/* At most as many as the ring holds, so that a ring written continuously does not delay the others. */
static void drain_writer(struct job *job, struct traced_writer *writer, uint64_t now_ns)
{
    struct quoit_trace_event event;
    for (uint32_t i = 0; i < job->config.trace_count && quoit_trace_take(writer->ring, job->config.trace_count, &event);
         i++) {
        event.name[sizeof event.name - 1] = '\0';
        if (!is_timed(job, writer, &event)) {
            note_slots(writer, &event);
            continue;
        }
        align(writer, job->trace, &event);
        job->trace->event_count++;
        if (writer->is_lane)
            put_lane_event(job, writer, &event);
        else
            put_pe_event(job, writer, &event);
    }
    put_lost(job->trace, writer, job->trace->is_late ? job->trace->last_ns : now_ns);
}

/* Of a direction of a ring; of a host without links, over a network what the host sent (RIGHT), and fetched (LEFT). */
static uint64_t bytes_of(const struct host *host, enum quoit_side side, uint64_t now_ns)
{
    struct quoit_direction direction;
    struct quoit_network_survey network;
    if (quoit_layout_has_links(&host->layout)) {
        quoit_survey_direction(&host->layout, host->front, side, now_ns, &direction);
        return direction.byte_count;
    }
    quoit_survey_network(&host->layout, host->front, now_ns, &network);
    return side == QUOIT_RIGHT ? network.put_bytes + network.message_bytes : network.get_bytes;
}

static void put_bytes(const struct job *job, uint64_t now_ns)
{
    for (uint32_t i = 0; i < job->plan->host_count && quoit_job_config_has_proxies(&job->config); i++)
        for (enum quoit_side side = 0; side < QUOIT_SIDE_COUNT; side++) {
            uint64_t *reported = &job->trace->bytes_reported[QUOIT_SIDE_COUNT * i + side];
            uint64_t bytes = bytes_of(&job->hosts[i], side, now_ns);
            struct perfetto_event event = {.type = PERFETTO_COUNTER,
                                           .track = track_of(TRACK_BYTES, QUOIT_SIDE_COUNT * i + side, 0),
                                           .time_ns = now_ns,
                                           .counter = (int64_t)bytes};
            if (bytes != *reported)
                perfetto_put_event(job->trace->out, &event);
            *reported = bytes;
        }
}

static void drain(struct job *job, uint64_t now_ns)
{
    struct trace *trace = job->trace;
    for (uint32_t i = 0; i < trace->writer_count; i++)
        drain_writer(job, &trace->writers[i], now_ns);
    if (!trace->is_late)
        put_bytes(job, now_ns);
    if (fflush(trace->out) != 0 && !trace->is_broken) {
        quoit_say("cannot write %s: %s [Q0213]", plan_text(job->plan, QUOIT_OPT_TRACE), strerror(errno));
        trace->is_broken = true;
    }
}

/* --- Several machines --- */

/* Precedes the events. */
struct batch_head {
    uint64_t lost_count;
    struct perfetto_clocks clocks; /* of the machine */
};

/* False: oshrun takes no more. */
static bool send_ring(struct job *job, uint32_t index, struct quoit_trace_ring *ring)
{
    struct {
        struct batch_head head;
        struct quoit_trace_event events[BATCH_EVENTS];
    } batch;
    uint32_t count, sent = 0;
    do {
        batch.head.lost_count = atomic_load_explicit(&ring->lost_count, memory_order_relaxed);
        perfetto_read_clocks(&batch.head.clocks);
        for (count = 0; count < BATCH_EVENTS && sent < job->config.trace_count; count++, sent++)
            if (!quoit_trace_take(ring, job->config.trace_count, &batch.events[count]))
                break;
        control_send(&job->control, QUOIT_CONTROL_TRACE, index, &batch,
                     sizeof batch.head + count * sizeof batch.events[0]);
        control_flush(&job->control, SEND_NS);
    } while (count == BATCH_EVENTS && buffer_used(&job->control.outgoing) == 0);
    return buffer_used(&job->control.outgoing) == 0;
}

void trace_send(struct job *job)
{
    const struct host *host = &job->hosts[job->own_host];
    const struct quoit_layout *layout = &host->layout;
    for (uint32_t i = 0; host->front && job->config.trace_count && i < layout->local_count + layout->lane_count; i++)
        if (!send_ring(job, i, quoit_memory_trace(layout, host->front, i)))
            return;
}

void trace_receive(struct host *host, const struct quoit_control_frame *frame, const void *bytes)
{
    struct job *job = host->job;
    const struct quoit_layout *layout = &host->layout;
    struct batch_head head;
    if (!job->trace || !host->front || frame->pe >= layout->local_count + layout->lane_count ||
        frame->bytes < sizeof head)
        return;
    struct quoit_trace_ring *ring = quoit_memory_trace(layout, host->front, frame->pe);
    memcpy(&head, bytes, sizeof head);
    atomic_store_explicit(&ring->lost_count, head.lost_count, memory_order_relaxed);
    if (host->index == 0)
        job->trace->clocks = head.clocks;
    ring->event_count = job->config.trace_count; /* the host's events have come */
    for (size_t at = sizeof head; frame->bytes - at >= sizeof(struct quoit_trace_event);
         at += sizeof(struct quoit_trace_event)) {
        struct quoit_trace_event event;
        memcpy(&event, (const char *)bytes + at, sizeof event);
        quoit_trace_keep(ring, &event);
    }
    uint64_t limit_ns = loop_now_ns(&job->loop) + HOSTS_STOP_NS;
    if (job->proxies_stop_ns && job->proxies_stop_ns < limit_ns) /* the agent has not ended, since it sends */
        job->proxies_stop_ns = limit_ns;
}

/* Where a machine's clock was compared, and how well. */
static void put_clock(const struct job *job, uint32_t host, const struct meeting_clock *clock)
{
    struct perfetto_event event = {.type = PERFETTO_INSTANT,
                                   .track = track_of(TRACK_PROXY, host, 0),
                                   .time_ns = job->trace->last_ns,
                                   .name = "clock compared",
                                   .category = "clock"};
    if (clock->error_ns == UINT64_MAX)
        event.name = "clock not compared";
    event.notes[0].name = "error_ns";
    event.notes[0].value = clock->error_ns;
    perfetto_put_event(job->trace->out, &event);
}

/* Of all but host 0, whose clock is that of the file. */
static void report_error(const struct job *job, const struct meeting_clock *clocks)
{
    uint64_t most_ns = 0;
    for (uint32_t host = 1; host < job->plan->host_count; host++)
        if (clocks[host].error_ns > most_ns)
            most_ns = clocks[host].error_ns;
    if (most_ns == UINT64_MAX)
        quoit_say("the clocks of the machines were not compared, for want of a barrier of all PEs");
    else if (job->plan->host_count > 1)
        quoit_say("the clocks of %u machines agree in the trace to %.1f us", job->plan->host_count,
                  (double)most_ns / 1000);
}

/* False: out of memory. */
static bool compare_clocks(struct job *job, struct meeting_clock *clocks)
{
    size_t count = 0;
    struct quoit_profile **records = calloc(job->plan->pe_count, sizeof *records);
    for (uint32_t pe = 0; pe < job->plan->pe_count && records; pe++)
        records[pe] = meetings_record(job, pe);
    struct meeting_part *parts = records ? meetings_list(records, job->plan->pe_count, &count) : NULL;
    bool is_done = parts && meetings_compare_clocks(job, records, parts, count, clocks);
    free(parts);
    free(records);
    return is_done;
}

/* Before the events of several machines. */
static struct meeting_clock *align_machines(struct job *job)
{
    struct meeting_clock *clocks = calloc(job->plan->host_count, sizeof *clocks);
    struct trace *trace = job->trace;
    if (!clocks || !compare_clocks(job, clocks)) {
        free(clocks);
        return NULL;
    }
    for (uint32_t i = 0; i < trace->writer_count; i++)
        trace->writers[i].ahead_ns = clocks[trace->writers[i].host].ahead_ns;
    return clocks;
}

/* Hosts of which nothing has come. */
static void report_missing(const struct job *job)
{
    const struct trace *trace = job->trace;
    char name[HOSTS_NAME_BYTES];
    uint32_t missing = 0, first = 0;
    for (uint32_t i = 0; i < trace->writer_count; i++)
        if (trace->writers[i].ring->event_count == 0 &&
            (i == 0 || trace->writers[i].host != trace->writers[i - 1].host)) {
            first = missing++ ? first : trace->writers[i].host;
        }
    if (missing == 1)
        quoit_say("the trace has no events of %s", hosts_name(job, first, name));
    else if (missing)
        quoit_say("the trace has no events of %s and %u more", hosts_name(job, first, name), missing - 1);
}

/* --- The whole --- */

uint64_t trace_step(struct job *job, uint64_t now_ns)
{
    struct trace *trace = job->trace;
    if (!trace || trace->is_late || !job->has_layout || (!trace->writers && !declare_all(job)))
        return UINT64_MAX;
    if (now_ns >= trace->next_ns) {
        drain(job, quoit_clock_now_ns());
        trace->next_ns = now_ns + STEP_NS;
    }
    return trace->next_ns;
}

/* All events, at the end. */
static void drain_virtual(struct job *job)
{
    struct trace *trace = job->trace;
    perfetto_put_clocks(trace->out, &(struct perfetto_clocks){0});
    if (!job->has_layout || !declare_all(job))
        return;
    for (uint32_t i = 0; i < trace->writer_count; i++)
        trace->writers[i].ahead_ns = (int64_t)QUOIT_VIRTUAL_BEGIN_NS;
    drain(job, 0);
}

static void drain_machines(struct job *job)
{
    struct trace *trace = job->trace;
    perfetto_put_clocks(trace->out, &trace->clocks);
    if (!job->has_layout || !declare_all(job))
        return;
    struct meeting_clock *clocks = align_machines(job);
    drain(job, 0);
    for (uint32_t host = 1; host < job->plan->host_count && clocks; host++)
        put_clock(job, host, &clocks[host]);
    if (clocks)
        report_error(job, clocks);
    report_missing(job);
    free(clocks);
}

bool trace_finish(struct job *job)
{
    struct trace *trace = job->trace;
    uint64_t lost = 0;
    if (!trace)
        return true;
    if (job->clock)
        drain_virtual(job);
    else if (trace->is_late)
        drain_machines(job);
    else if (job->has_layout && (trace->writers || declare_all(job)))
        drain(job, quoit_clock_now_ns());
    for (uint32_t i = 0; i < trace->writer_count; i++) {
        lost += lost_of(&trace->writers[i]);
        free(trace->writers[i].threads);
    }
    bool is_closed = fclose(trace->out) == 0, is_written = is_closed && !trace->is_broken;
    if (!is_closed && !trace->is_broken)
        quoit_say("cannot write %s: %s [Q0213]", plan_text(job->plan, QUOIT_OPT_TRACE), strerror(errno));
    if (is_written && lost)
        quoit_say("the trace lacks %llu of %llu events; a larger --trace-buffer loses fewer", (unsigned long long)lost,
                  (unsigned long long)(lost + trace->event_count));
    free(trace->writers);
    free(trace->bytes_reported);
    free(trace->buffer);
    free(trace);
    job->trace = NULL;
    return is_written;
}
