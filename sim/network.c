/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/network.h"
#include "base/assert.h"

#include <stdlib.h>
#include <string.h>

/* Of one PE, which is alone on its host. */
struct network_engine {
    struct quoit_engine engine;
    struct sim_world *world;
    uint64_t out_free_ns; /* when its host can send the next message */
    uint64_t in_free_ns;  /* when it can take the next one */
    uint64_t outstanding_count;
};

/* From the call until the sender knows that it has arrived. */
struct message {
    struct sim_event event;
    struct network_engine *from, *to;
    uint64_t offset;
    struct quoit_signal signal;
    bool has_signal;
    size_t bytes;
    char payload[];
};

static uint64_t wire_ns(const struct message *message)
{
    return sim_model_time(message->from->world->model.network_ps_per_byte, message->bytes);
}

/* How long it keeps a host from the next message. */
static uint64_t occupied_ns(const struct message *message)
{
    uint64_t gap_ns = message->from->world->model.network_gap_ns;
    return wire_ns(message) > gap_ns ? wire_ns(message) : gap_ns;
}

static void changed(struct network_engine *at)
{
    struct quoit_self *self = at->engine.self;
    at->world->progress_ns = at->world->now_ns;
    quoit_park_wake(&self->shared->park);
    sim_host_changed(&at->world->hosts[self->host]);
}

static void become_known(struct sim_event *event)
{
    struct message *message = (struct message *)event;
    message->from->outstanding_count--;
    changed(message->from);
    free(message);
}

/* The last byte is there. */
static void arrive(struct sim_event *event)
{
    struct message *message = (struct message *)event;
    char *segment = message->to->engine.self->segment;
    struct sim_world *world = message->from->world;
    memcpy(segment + message->offset, message->payload, message->bytes);
    if (message->has_signal) {
        quoit_assert(message->signal.op == QUOIT_AMO_SET);
        memcpy(segment + message->signal.offset, &message->signal.value, sizeof message->signal.value);
    }
    changed(message->to);
    event->fire = become_known;
    sim_schedule(world, event, world->now_ns + world->model.network_latency_ns);
}

/* The first byte is there: the host takes it when it has taken those before it. */
static void approach(struct sim_event *event)
{
    struct message *message = (struct message *)event;
    struct sim_world *world = message->from->world;
    uint64_t start_ns = world->now_ns > message->to->in_free_ns ? world->now_ns : message->to->in_free_ns;
    message->to->in_free_ns = start_ns + occupied_ns(message);
    event->fire = arrive;
    sim_schedule(world, event, start_ns + wire_ns(message));
}

/* When a processor begins with a message that is ready then. */
static uint64_t begin_ns(struct sim_world *world, uint64_t ready_ns, uint64_t work_ns)
{
    uint64_t *first = &world->network_free_ns[0];
    if (world->model.network_processor_count == 0)
        return ready_ns;
    for (uint64_t i = 1; i < world->model.network_processor_count; i++)
        if (world->network_free_ns[i] < *first)
            first = &world->network_free_ns[i];
    uint64_t at_ns = *first > ready_ns ? *first : ready_ns;
    *first = at_ns + work_ns;
    return at_ns;
}

static void send(const struct quoit_peer *peer, uint64_t offset, const void *source, size_t bytes,
                 const struct quoit_signal *signal)
{
    struct network_engine *from = (struct network_engine *)peer->engine;
    struct sim_world *world = from->world;
    struct quoit_fabric *there = world->pes[peer->pe].fabric;
    struct message *message = malloc(sizeof *message + bytes);
    quoit_assert(message != NULL);
    quoit_assert(there != NULL);
    *message = (struct message){
        .event = {.fire = approach, .kind = "message", .who = peer->pe},
        .from = from,
        .to = (struct network_engine *)there->self.engines[1],
        .offset = offset,
        .has_signal = signal != NULL,
        .bytes = bytes,
    };
    if (signal)
        message->signal = *signal;
    if (bytes > 0)
        memcpy(message->payload, source, bytes);
    from->outstanding_count++;
    sim_spend(world, world->model.network_overhead_ns);
    uint64_t start_ns = world->now_ns > from->out_free_ns ? world->now_ns : from->out_free_ns;
    from->out_free_ns = start_ns + occupied_ns(message);
    uint64_t latency_ns = world->model.network_latency_ns;
    sim_schedule(world, &message->event, begin_ns(world, start_ns, latency_ns + wire_ns(message)) + latency_ns);
}

static void put(struct quoit_context *context, const struct quoit_peer *peer, uint64_t offset, const void *source,
                size_t bytes, bool is_nbi)
{
    (void)context, (void)is_nbi;
    if (bytes > 0)
        send(peer, offset, source, bytes, NULL);
}

static void put_signal(struct quoit_context *context, const struct quoit_peer *peer, uint64_t offset,
                       const void *source, size_t bytes, const struct quoit_signal *signal, bool is_nbi)
{
    (void)context, (void)is_nbi;
    send(peer, offset, source, bytes, signal);
}

static bool is_quiet(void *arg)
{
    const struct network_engine *network = arg;
    return network->outstanding_count == 0;
}

/* Of all contexts. Messages from one host to another keep their order, so a fence needs nothing. */
static void quiet(struct quoit_engine *engine, struct quoit_context *context)
{
    (void)context;
    if (!is_quiet(engine))
        quoit_self_wait(engine->self, is_quiet, engine, "quiet");
}

static void close_network(struct quoit_engine *engine)
{
    free(engine);
}

/* Collectives call no others. */
static const struct quoit_engine_ops network_ops = {
    .name = "network",
    .close = close_network,
    .put = put,
    .put_signal = put_signal,
    .quiet = quiet,
};

void sim_network_join(struct sim_world *world, struct quoit_fabric *fabric)
{
    struct network_engine *network = calloc(1, sizeof *network);
    struct quoit_engine *proxied = fabric->self.engines[1];
    quoit_assert(network != NULL);
    quoit_assert(fabric->self.engine_count == 2);
    *network = (struct network_engine){.engine = {.ops = &network_ops, .self = &fabric->self}, .world = world};
    for (uint32_t pe = 0; pe < fabric->self.pe_count; pe++)
        if (fabric->peers[pe].engine == proxied)
            fabric->peers[pe].engine = &network->engine;
    proxied->ops->close(proxied);
    fabric->self.engines[1] = &network->engine;
}

bool sim_network_run(struct sim_world *world)
{
    if (world->config.workload->setup)
        world->config.workload->setup(world);
    world->network_free_ns = calloc(world->model.network_processor_count + 1, sizeof *world->network_free_ns);
    quoit_assert(world->network_free_ns != NULL);
    sim_pes_start(world);
    bool is_ok = sim_world_quiesce(world);
    free(world->network_free_ns);
    if (!is_ok)
        return false;
    if (world->live_pe_count > 0)
        snprintf(world->failure, sizeof world->failure, "%u PEs wait for ever", world->live_pe_count);
    return world->live_pe_count == 0;
}
