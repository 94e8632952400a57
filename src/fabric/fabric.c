/* SPDX-License-Identifier: BSD-3-Clause */
#include "fabric/fabric.h"
#include "base/assert.h"
#include "engine/local/local.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void quoit_context_init(struct quoit_context *context, uint32_t salt)
{
    memset(context, 0, sizeof *context);
    context->salt = salt;
}

_Static_assert(QUOIT_ENGINES_MAX >= 2, "local and ring");

#define ENGINE_OF_OTHER_HOSTS 1u /* its index, once it is open */

/* In order of preference. */
static enum quoit_status open_engines(struct quoit_fabric *fabric, const struct quoit_fabric_config *config)
{
    struct quoit_self *self = &fabric->self;
    enum quoit_status status = quoit_engine_local_open(self, &config->paths, &self->engines[self->engine_count]);
    if (status != QUOIT_OK)
        return status;
    self->engine_count++;
    if (!quoit_job_config_has_proxies(&self->layout.job))
        return QUOIT_OK;
    status = quoit_engine_ring_open(self, config->ports, config->pe_endpoint_use, &self->engines[self->engine_count]);
    if (status == QUOIT_OK)
        self->engine_count++;
    return status;
}

/* From engine `first` on. */
static void choose(struct quoit_fabric *fabric, uint32_t pe, uint32_t first, struct quoit_peer *peer)
{
    const struct quoit_self *self = &fabric->self;
    const struct quoit_job_config *job = &self->layout.job;
    peer->pe = pe;
    peer->host = (uint16_t)quoit_job_config_host_of_pe(job, pe);
    peer->local = (uint16_t)(pe - quoit_job_config_first_pe(job, peer->host));
    for (uint32_t i = first; i < self->engine_count && !peer->engine; i++)
        if (self->engines[i]->ops->connect(self->engines[i], peer))
            peer->engine = self->engines[i];
    quoit_assert(peer->engine);
}

/* Once the peers are chosen. With --path network the engine of other hosts carries what is put to and got from PEs of
 * the own one, too. */
static enum quoit_status choose_carriers(struct quoit_fabric *fabric, const struct quoit_paths *paths)
{
    const struct quoit_self *self = &fabric->self;
    const struct quoit_layout *layout = &self->layout;
    fabric->carriers = fabric->peers;
    if (!paths->is_network)
        return QUOIT_OK;
    quoit_assert(layout->job.has_loopback);
    fabric->carriers = calloc(self->pe_count, sizeof *fabric->carriers);
    if (!fabric->carriers)
        return QUOIT_NO_MEMORY;
    memcpy(fabric->carriers, fabric->peers, self->pe_count * sizeof *fabric->carriers);
    for (uint32_t pe = layout->first_pe; pe < layout->first_pe + layout->local_count; pe++) {
        fabric->carriers[pe] = (struct quoit_peer){0};
        choose(fabric, pe, ENGINE_OF_OTHER_HOSTS, &fabric->carriers[pe]);
    }
    return QUOIT_OK;
}

enum quoit_status quoit_fabric_open(const struct quoit_fabric_config *config, struct quoit_fabric **fabric_out)
{
    struct quoit_fabric *fabric = calloc(1, sizeof *fabric);
    if (!fabric)
        return QUOIT_NO_MEMORY;
    struct quoit_self *self = &fabric->self;
    quoit_self_init(self, config->layout, config->memory, config->pe_self, config->policy);
    quoit_context_init(&fabric->default_context, 0);

    enum quoit_status status = QUOIT_NO_MEMORY;
    fabric->peers = calloc(self->pe_count, sizeof *fabric->peers);
    if (!fabric->peers)
        goto close_fabric;
    status = open_engines(fabric, config);
    if (status != QUOIT_OK)
        goto close_fabric;
    for (uint32_t pe = 0; pe < self->pe_count; pe++)
        choose(fabric, pe, 0, &fabric->peers[pe]);
    status = choose_carriers(fabric, &config->paths);
    if (status != QUOIT_OK)
        goto close_fabric;
    atomic_store_explicit(&self->shared->pid, (uint32_t)getpid(), memory_order_relaxed);
    *fabric_out = fabric;
    return QUOIT_OK;

close_fabric:
    quoit_fabric_close(fabric);
    return status;
}

void quoit_fabric_close(struct quoit_fabric *fabric)
{
    if (!fabric)
        return;
    atomic_store_explicit(&fabric->self.shared->pid, 0, memory_order_relaxed);
    for (uint32_t i = 0; i < fabric->self.engine_count; i++)
        fabric->self.engines[i]->ops->close(fabric->self.engines[i]);
    if (fabric->carriers != fabric->peers)
        free(fabric->carriers);
    free(fabric->peers);
    free(fabric);
}

struct quoit_engine *quoit_fabric_engine(const struct quoit_fabric *fabric, const char *name)
{
    for (uint32_t i = 0; i < fabric->self.engine_count; i++)
        if (strcmp(fabric->self.engines[i]->ops->name, name) == 0)
            return fabric->self.engines[i];
    return NULL;
}

void quoit_fabric_put(struct quoit_fabric *fabric, struct quoit_context *context, uint64_t offset, const void *source,
                      size_t bytes, uint32_t pe)
{
    const struct quoit_peer *peer = &fabric->carriers[pe];
    peer->engine->ops->put(context, peer, offset, source, bytes, false);
}

void quoit_fabric_put_nbi(struct quoit_fabric *fabric, struct quoit_context *context, uint64_t offset,
                          const void *source, size_t bytes, uint32_t pe)
{
    const struct quoit_peer *peer = &fabric->carriers[pe];
    peer->engine->ops->put(context, peer, offset, source, bytes, true);
}

void quoit_fabric_get(struct quoit_fabric *fabric, struct quoit_context *context, void *destination, uint64_t offset,
                      size_t bytes, uint32_t pe)
{
    const struct quoit_peer *peer = &fabric->carriers[pe];
    peer->engine->ops->get(context, peer, destination, offset, bytes, false);
}

void quoit_fabric_get_nbi(struct quoit_fabric *fabric, struct quoit_context *context, void *destination,
                          uint64_t offset, size_t bytes, uint32_t pe)
{
    const struct quoit_peer *peer = &fabric->carriers[pe];
    peer->engine->ops->get(context, peer, destination, offset, bytes, true);
}

void quoit_fabric_iput(struct quoit_fabric *fabric, struct quoit_context *context, const struct quoit_strided *strided,
                       const void *source, uint32_t pe)
{
    const struct quoit_peer *peer = &fabric->peers[pe];
    peer->engine->ops->put_strided(context, peer, strided, source);
}

void quoit_fabric_iget(struct quoit_fabric *fabric, struct quoit_context *context, const struct quoit_strided *strided,
                       void *destination, uint32_t pe)
{
    const struct quoit_peer *peer = &fabric->peers[pe];
    peer->engine->ops->get_strided(context, peer, strided, destination);
}

void quoit_fabric_amo(struct quoit_fabric *fabric, struct quoit_context *context, enum quoit_amo op, uint32_t size,
                      uint64_t offset, uint64_t operand, uint32_t pe)
{
    const struct quoit_peer *peer = &fabric->peers[pe];
    const struct quoit_atomic atomic = {.op = op, .size = size, .offset = offset, .operand = operand};
    peer->engine->ops->amo(context, peer, &atomic, NULL, false);
}

uint64_t quoit_fabric_amo_fetch(struct quoit_fabric *fabric, struct quoit_context *context, enum quoit_amo op,
                                uint32_t size, uint64_t offset, uint64_t operand, uint64_t compare, uint32_t pe)
{
    const struct quoit_peer *peer = &fabric->peers[pe];
    const struct quoit_atomic atomic = {
        .op = op, .size = size, .offset = offset, .operand = operand, .compare = compare};
    uint64_t old = 0; /* little-endian: the low bytes come first */
    peer->engine->ops->amo(context, peer, &atomic, &old, false);
    return old;
}

void quoit_fabric_amo_fetch_nbi(struct quoit_fabric *fabric, struct quoit_context *context, enum quoit_amo op,
                                uint32_t size, uint64_t offset, uint64_t operand, uint64_t compare, void *result_out,
                                uint32_t pe)
{
    const struct quoit_peer *peer = &fabric->peers[pe];
    const struct quoit_atomic atomic = {
        .op = op, .size = size, .offset = offset, .operand = operand, .compare = compare};
    peer->engine->ops->amo(context, peer, &atomic, result_out, true);
}

void quoit_fabric_put_signal(struct quoit_fabric *fabric, struct quoit_context *context, uint64_t offset,
                             const void *source, size_t bytes, const struct quoit_signal *signal, uint32_t pe,
                             bool is_nbi)
{
    const struct quoit_peer *peer = &fabric->carriers[pe];
    peer->engine->ops->put_signal(context, peer, offset, source, bytes, signal, is_nbi);
}

static struct quoit_engine *engine_of_messages(const struct quoit_fabric *fabric)
{
    const struct quoit_self *self = &fabric->self;
    struct quoit_engine *engine =
        self->engine_count > ENGINE_OF_OTHER_HOSTS ? self->engines[ENGINE_OF_OTHER_HOSTS] : NULL;
    return engine && engine->has_messages ? engine : NULL;
}

bool quoit_fabric_has_messages(const struct quoit_fabric *fabric)
{
    return engine_of_messages(fabric) != NULL;
}

void quoit_fabric_message(struct quoit_fabric *fabric, struct quoit_context *context,
                          const struct quoit_message *message, uint32_t pe, bool *is_direct)
{
    const struct quoit_peer *peer = &fabric->carriers[pe];
    const struct quoit_signal signal = {.offset = message->flag, .value = message->value, .op = QUOIT_AMO_SET};
    if (peer->engine->has_messages && peer->engine->ops->message(context, peer, message, is_direct))
        return;
    if (message->has_flag)
        peer->engine->ops->put_signal(context, peer, message->offset, message->source, message->bytes, &signal, false);
    else
        peer->engine->ops->put(context, peer, message->offset, message->source, message->bytes, false);
}

void quoit_fabric_receive(struct quoit_fabric *fabric)
{
    struct quoit_engine *engine = engine_of_messages(fabric);
    if (engine)
        engine->ops->receive(engine);
}

void quoit_fabric_fence(struct quoit_fabric *fabric, struct quoit_context *context)
{
    atomic_thread_fence(memory_order_release);
    for (uint32_t i = 0; i < fabric->self.engine_count; i++)
        if (fabric->self.engines[i]->ops->fence)
            fabric->self.engines[i]->ops->fence(fabric->self.engines[i], context);
}

void quoit_fabric_quiet(struct quoit_fabric *fabric, struct quoit_context *context)
{
    for (uint32_t i = 0; i < fabric->self.engine_count; i++)
        if (fabric->self.engines[i]->ops->quiet)
            fabric->self.engines[i]->ops->quiet(fabric->self.engines[i], context);
    atomic_thread_fence(memory_order_seq_cst); /* stores before the quiet are ordered before loads after it */
}

uint32_t quoit_fabric_host_count(const struct quoit_fabric *fabric)
{
    return fabric->self.layout.job.host_count;
}

static struct quoit_engine *engine_of_host_barrier(const struct quoit_fabric *fabric)
{
    for (uint32_t i = 0; i < fabric->self.engine_count; i++)
        if (fabric->self.engines[i]->has_host_barrier)
            return fabric->self.engines[i];
    return NULL;
}

bool quoit_fabric_has_host_barrier(const struct quoit_fabric *fabric)
{
    return engine_of_host_barrier(fabric) != NULL;
}

void quoit_fabric_host_barrier(struct quoit_fabric *fabric, const char *call)
{
    struct quoit_engine *engine = engine_of_host_barrier(fabric);
    quoit_assert(engine);
    engine->ops->host_barrier(engine, call);
}
