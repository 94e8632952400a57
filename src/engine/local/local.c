/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/local/local.h"
#include "base/observer.h"
#include "local/store.h"

#include <stdlib.h>
#include <string.h>

struct local_peer {
    uint64_t segment_there; /* address of its segment in its own process */
    uint32_t process;       /* its pid */
};

struct local_engine {
    struct quoit_engine engine;
    struct quoit_paths paths;
    struct local_peer peers[]; /* [local_count] */
};

static struct local_engine *engine_of(const struct quoit_peer *peer)
{
    return (struct local_engine *)peer->engine;
}

static void close_local(struct quoit_engine *engine)
{
    free(engine);
}

static bool connect(struct quoit_engine *engine, struct quoit_peer *peer)
{
    struct local_engine *local = (struct local_engine *)engine;
    const struct quoit_self *self = engine->self;
    if (peer->host != self->host)
        return false;
    struct quoit_pe_shared *shared = quoit_memory_pe(&self->layout, self->memory, peer->local);
    struct local_peer *own = &local->peers[peer->local];
    uint64_t segment = quoit_layout_segment(&self->layout, peer->local);
    own->process = atomic_load_explicit(&shared->process, memory_order_relaxed);
    own->segment_there = atomic_load_explicit(&shared->memory_base, memory_order_relaxed) + segment;
    peer->of_engine = own;
    peer->segment = self->memory + segment;
    peer->park = &shared->park;
    return true;
}

static enum quoit_copy_method method_for(const struct quoit_peer *peer, uint64_t offset, size_t bytes)
{
    enum quoit_buffer_kind kind =
        offset >= peer->engine->self->layout.segment_heap ? QUOIT_BUFFER_HEAP : QUOIT_BUFFER_GLOBALS;
    return quoit_paths_choose(&engine_of(peer)->paths, kind, bytes);
}

static struct quoit_copy_place place_of(const struct quoit_peer *peer, uint64_t offset)
{
    const struct local_peer *own = peer->of_engine;
    return (struct quoit_copy_place){
        .here = peer->segment + offset, .there = own->segment_there + offset, .pid = own->process};
}

static void put(struct quoit_context *context, const struct quoit_peer *peer, uint64_t offset, const void *source,
                size_t bytes, bool is_nbi)
{
    (void)context;
    (void)is_nbi;
    if (bytes == 0)
        return;
    struct quoit_copy_place to = place_of(peer, offset);
    enum quoit_copy_method method = method_for(peer, offset, bytes);
    quoit_observe(copied, bytes);
    if (method == QUOIT_COPY_MEMCPY) {
        quoit_local_put(peer->park, offset, to.here, source, bytes);
        return;
    }
    quoit_copy_put(method, &to, source, bytes);
    atomic_thread_fence(memory_order_release);
    quoit_park_wake_at(peer->park, offset, bytes);
}

static void get(struct quoit_context *context, const struct quoit_peer *peer, void *destination, uint64_t offset,
                size_t bytes, bool is_nbi)
{
    (void)context;
    (void)is_nbi;
    atomic_thread_fence(memory_order_acquire);
    struct quoit_copy_place from = place_of(peer, offset);
    quoit_copy_get(method_for(peer, offset, bytes), destination, &from, bytes);
    quoit_observe(copied, bytes);
}

static void copy_strided(char *to, ptrdiff_t to_stride, const char *from, ptrdiff_t from_stride, size_t count,
                         uint32_t element_bytes)
{
    for (size_t i = 0; i < count; i++, to += to_stride, from += from_stride)
        memcpy(to, from, element_bytes);
}

static void put_strided(struct quoit_context *context, const struct quoit_peer *peer,
                        const struct quoit_strided *strided, const void *source)
{
    (void)context;
    quoit_observe(accessed, strided->count * strided->element_bytes);
    copy_strided(peer->segment + strided->offset, strided->remote_stride, source, strided->private_stride,
                 strided->count, strided->element_bytes);
    atomic_thread_fence(memory_order_release);
    quoit_park_wake(peer->park);
}

static void get_strided(struct quoit_context *context, const struct quoit_peer *peer,
                        const struct quoit_strided *strided, void *destination)
{
    (void)context;
    quoit_observe(accessed, strided->count * strided->element_bytes);
    atomic_thread_fence(memory_order_acquire);
    copy_strided(destination, strided->private_stride, peer->segment + strided->offset, strided->remote_stride,
                 strided->count, strided->element_bytes);
}

static void amo(struct quoit_context *context, const struct quoit_peer *peer, const struct quoit_atomic *atomic,
                void *result_out, bool is_nbi)
{
    (void)context;
    (void)is_nbi;
    quoit_observe(accessed, atomic->size);
    uint64_t old = quoit_local_amo(peer->park, atomic->offset, peer->segment + atomic->offset, atomic->op, atomic->size,
                                   atomic->operand, atomic->compare);
    if (result_out)
        memcpy(result_out, &old, atomic->size); /* little-endian: the low bytes come first */
}

static void put_signal(struct quoit_context *context, const struct quoit_peer *peer, uint64_t offset,
                       const void *source, size_t bytes, const struct quoit_signal *signal, bool is_nbi)
{
    put(context, peer, offset, source, bytes, is_nbi);
    amo(context, peer,
        &(struct quoit_atomic){.op = signal->op, .size = 8, .offset = signal->offset, .operand = signal->value}, NULL,
        false);
}

static const struct quoit_engine_ops local_ops = {
    .name = "local",
    .close = close_local,
    .connect = connect,
    .put = put,
    .get = get,
    .put_strided = put_strided,
    .get_strided = get_strided,
    .amo = amo,
    .put_signal = put_signal,
};

enum quoit_status quoit_engine_local_open(struct quoit_self *self, const struct quoit_paths *paths,
                                          struct quoit_engine **engine_out)
{
    struct local_engine *local = calloc(1, sizeof *local + self->layout.local_count * sizeof local->peers[0]);
    if (!local)
        return QUOIT_NO_MEMORY;
    local->engine = (struct quoit_engine){.ops = &local_ops, .self = self};
    local->paths = *paths;
    *engine_out = &local->engine;
    return QUOIT_OK;
}
