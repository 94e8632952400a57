/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/self.h"
#include "base/assert.h"
#include "engine/engine.h"
#include "env/clock.h"
#include "env/libc.h"

#include <string.h>

/* Several threads of the PE may sleep: the last one is shown, and a torn name is harmless. */
static void describe(char waiting_in[QUOIT_CALL_NAME_BYTES], const char *call)
{
    uint64_t words[QUOIT_CALL_NAME_BYTES / sizeof(uint64_t)] = {0};
    strncpy((char *)words, call, sizeof words - 1);
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        __atomic_store_n((uint64_t *)(void *)waiting_in + i, words[i], __ATOMIC_RELAXED);
}

struct armed {
    struct quoit_self *self;
    const struct quoit_wait_desc *wait_desc;
    const struct quoit_peer *sender;
};

static void write_down(struct quoit_wait_desc *wait_desc_out, const struct quoit_wait_desc *wait_desc)
{
    uint64_t words[sizeof *wait_desc / sizeof(uint64_t)] = {0};
    if (wait_desc)
        memcpy(words, wait_desc, sizeof words);
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        __atomic_store_n((uint64_t *)(void *)wait_desc_out + i, words[i], __ATOMIC_RELAXED);
}

/* Before the PE sleeps: publishes where, and makes each engine wake it. */
static void arm(void *arg)
{
    const struct armed *armed = arg;
    struct quoit_self *self = armed->self;
    struct quoit_pe_shared *shared = self->shared;
    const char *call = __atomic_load_n(&self->call, __ATOMIC_RELAXED);
    void *call_from = __atomic_load_n(&self->call_from, __ATOMIC_RELAXED);
    if (call) {
        if (__atomic_load_n(&shared->waiting_in[0], __ATOMIC_RELAXED) == '\0')
            atomic_store_explicit(&shared->waiting_since_ns, quoit_clock_now_ns(), memory_order_relaxed);
        write_down(&shared->wait_desc, armed->wait_desc);
        atomic_signal_fence(memory_order_release); /* who sees the name sees what belongs to it, or something newer */
        describe(shared->waiting_in, call);
        atomic_store_explicit(&shared->waiting_from, (uintptr_t)call_from, memory_order_relaxed);
        atomic_store_explicit(&shared->waiting_thread, (uint32_t)quoit_thread_id(), memory_order_relaxed);
    }
    for (uint32_t i = 0; i < self->engine_count; i++)
        if (self->engines[i]->ops->arm)
            self->engines[i]->ops->arm(self->engines[i]);
}

static bool await_message(void *arg, uint64_t limit_ns)
{
    const struct quoit_peer *sender = ((const struct armed *)arg)->sender;
    return sender->engine->ops->await(sender, limit_ns);
}

static void place(void *arg)
{
    struct quoit_self *self = ((const struct armed *)arg)->self;
    quoit_placement_balance_pe(&self->placement, &self->layout, self->memory, self->local);
}

void quoit_self_init(struct quoit_self *self, const struct quoit_layout *layout, void *memory, uint32_t pe,
                     struct quoit_wait_policy policy)
{
    *self = (struct quoit_self){.layout = *layout,
                                .memory = memory,
                                .pe = pe,
                                .pe_count = layout->job.pe_count,
                                .host = layout->host,
                                .local = pe - layout->first_pe,
                                .sees_plain_stores = true};
    quoit_assert(self->local < layout->local_count);
    self->segment = self->memory + quoit_layout_segment(layout, self->local);
    self->shared = quoit_memory_pe(layout, memory, self->local);
    self->trace = quoit_memory_trace(layout, memory, self->local);
    self->profile = quoit_memory_profile(layout, memory, self->local);
    self->waiter = (struct quoit_waiter){.park = &self->shared->park,
                                         .policy = policy,
                                         .arm = arm,
                                         .place = place,
                                         .place_yields = QUOIT_PLACEMENT_PE_YIELDS};
}

bool quoit_self_find(const struct quoit_self *self, const void *buffer, size_t bytes, uint64_t *offset_out)
{
    uint64_t offset;
    if (!self->regions || !quoit_regions_locate(self->regions, buffer, bytes, &offset))
        return false;
    *offset_out = quoit_layout_segment(&self->layout, self->local) + offset;
    return true;
}

struct watched {
    uint64_t offset;
    uint64_t bytes;
    bool is_of_program;              /* objects of the program, which it may also change by plain stores */
    bool is_polled;                  /* no wake tells of a change */
    const struct quoit_peer *sender; /* of the message that brings it; NULL: unknown, or there is none */
};

/* One check of a wait. */
struct look {
    struct quoit_self *self;
    bool (*is_done)(void *arg);
    void *arg;
};

static bool look_at(void *arg)
{
    struct look *look = arg;
    quoit_self_progress(look->self);
    return look->is_done(look->arg);
}

void quoit_self_progress(struct quoit_self *self)
{
    for (uint32_t i = 0; i < self->engine_count; i++)
        if (self->engines[i]->ops->progress)
            self->engines[i]->ops->progress(self->engines[i]);
}

static void wait_for(struct quoit_self *self, struct watched watched, bool (*is_done)(void *arg), void *arg,
                     const char *call, uint64_t busy_ns, const struct quoit_wait_desc *wait_desc)
{
    struct armed armed = {self, wait_desc, watched.sender};
    struct quoit_waiter waiter = self->waiter;
    waiter.arm_arg = &armed;
    waiter.nap = watched.sender && watched.sender->engine->ops->await ? await_message : NULL;
    waiter.busy_ns = busy_ns;
    waiter.sees_plain_stores = watched.is_polled || (watched.is_of_program && self->sees_plain_stores) ||
                               atomic_load_explicit(&self->shared->under_way_count, memory_order_relaxed) != 0;
    waiter.watch_from = watched.offset;
    waiter.watch_to = watched.offset + watched.bytes;
    if (call)
        __atomic_store_n(&self->call, call, __ATOMIC_RELAXED);
    uint64_t begin_ns = 0;
    if (__builtin_expect(self->trace != NULL, 0))
        begin_ns = quoit_trace_enter(self->trace, "wait", 0, QUOIT_TRACE_NO_PE);
    else if (__builtin_expect(self->profile != NULL, 0))
        begin_ns = quoit_clock_now_ns();
    struct look look = {.self = self, .is_done = is_done, .arg = arg};
    quoit_wait_until(&waiter, look_at, &look, 0);
    if (__builtin_expect(self->trace != NULL, 0))
        quoit_trace_leave(self->trace, begin_ns, waiter.sleep_count);
    if (__builtin_expect(self->profile != NULL, 0))
        quoit_profile_wait(self->profile, begin_ns, quoit_clock_now_ns());
    if (__atomic_load_n(&self->shared->waiting_in[0], __ATOMIC_RELAXED))
        __atomic_store_n(&self->shared->waiting_in[0], '\0', __ATOMIC_RELAXED);
}

void quoit_self_wait(struct quoit_self *self, bool (*is_done)(void *arg), void *arg, const char *call)
{
    quoit_self_wait_busy(self, is_done, arg, call, 0);
}

void quoit_self_wait_busy(struct quoit_self *self, bool (*is_done)(void *arg), void *arg, const char *call,
                          uint64_t busy_ns)
{
    const struct watched workspace = {.offset = 0, .bytes = self->layout.segment_data};
    wait_for(self, workspace, is_done, arg, call, busy_ns, NULL);
}

void quoit_self_wait_polling(struct quoit_self *self, bool (*is_done)(void *arg), void *arg)
{
    const struct watched workspace = {.offset = 0, .bytes = self->layout.segment_data, .is_polled = true};
    wait_for(self, workspace, is_done, arg, NULL, 0, NULL);
}

void quoit_self_wait_message(struct quoit_self *self, bool (*is_done)(void *arg), void *arg, const char *call,
                             uint64_t busy_ns, const struct quoit_peer *from)
{
    const struct watched workspace = {
        .offset = 0, .bytes = self->layout.segment_data, .is_polled = true, .sender = from};
    wait_for(self, workspace, is_done, arg, call, busy_ns, NULL);
}

void quoit_self_wait_at(struct quoit_self *self, uint64_t offset, uint64_t bytes, bool (*is_done)(void *arg), void *arg,
                        const char *call, const struct quoit_wait_desc *wait_desc)
{
    const struct watched objects = {.offset = offset, .bytes = bytes, .is_of_program = true};
    wait_for(self, objects, is_done, arg, call, 0, wait_desc);
}

void quoit_self_poll(struct quoit_self *self)
{
    struct armed armed = {self, NULL, NULL};
    struct quoit_waiter waiter = self->waiter;
    quoit_self_progress(self);
    if (!quoit_wait_shares(waiter.policy))
        return;
    waiter.arm_arg = &armed;
    quoit_wait_poll(&waiter);
}
