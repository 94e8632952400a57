/* SPDX-License-Identifier: BSD-3-Clause */
#include "dma_engine.h"

#include <time.h>

#define RING_ADDRESS     0x214u /* 64 bits, and the address of the next descriptor behind it */
#define RING_NEXT_TO     0x220u
#define RING_COUNT       0x220u
#define CONTROL          0x238u /* 16 bits; of its status bits, what is written as one is cleared */
#define INTERRUPT_STATUS 0x23eu /* 16 bits; what is written as one is cleared */

#define CONTROL_PAUSE  0x1u
#define CONTROL_ABORT  0x2u
#define CONTROL_START  0x8u
#define CONTROL_KEPT   0x74u  /* read as written: modes */
#define STATUS_INVALID 0x100u /* no valid descriptor is left */
#define STATUS_PAUSED  0x200u
#define STATUS_ABORTED 0x400u
#define INTERRUPT_DONE 0x4u

#define DESCRIPTOR_BYTES  16u
#define DESCRIPTOR_SIZE   0x7ffffffu
#define DESCRIPTOR_VALID  0x80000000u
#define DESCRIPTOR_NOTIFY 0x40000000u
#define WRITTEN_SUCCESS   0x40000000u
#define WRITTEN_FAILED    0x10000000u /* its write has failed */

struct descriptor {
    uint32_t flags;
    uint16_t to_high, from_high;
    uint32_t to_low, from_low;
};

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static struct descriptor *descriptor_at(struct dma_engine *engine)
{
    uint64_t ring = get(engine->registers + RING_ADDRESS, 8);
    uint64_t count = get(engine->registers + RING_COUNT, 4);
    if (count == 0)
        return NULL;
    return (struct descriptor *)(void *)function_memory(
        &engine->function, ring + engine->position % count * DESCRIPTOR_BYTES, DESCRIPTOR_BYTES);
}

/* Pages at least, so that a copy ends. *is_elsewhere_out: QEMU knows what is there. */
static struct dma_run run_at(struct dma_engine *engine, uint64_t address, uint64_t bytes, bool *is_elsewhere_out)
{
    struct dma_run run = {.bytes = PAGE_BYTES - address % PAGE_BYTES};
    *is_elsewhere_out = false;
    if (!engine->window(engine->context, engine, address, &run)) {
        struct map *map = function_map_of(&engine->function, address, 1);
        *is_elsewhere_out = !map;
        if (map)
            run = (struct dma_run){map->base + (address - map->address), map->address + map->bytes - address};
    }
    run.bytes = run.bytes < bytes ? run.bytes : bytes;
    return run;
}

/* False: QEMU has a part of it, and says when that is written. */
static bool move(struct dma_engine *engine)
{
    static char ones[PAGE_BYTES];
    struct dma_move *left = &engine->move;
    memset(ones, 0xff, sizeof ones);
    while (left->bytes > 0) {
        bool is_elsewhere;
        struct dma_run source =
            run_at(engine, left->from, left->bytes < WRITE_MAX ? left->bytes : WRITE_MAX, &is_elsewhere);
        struct dma_run target = run_at(engine, left->to, source.bytes, &is_elsewhere);
        const char *from = source.to ? source.to : ones;
        if (is_elsewhere)
            function_write(&engine->function, left->to, from, (uint32_t)target.bytes);
        else if (target.to)
            memmove(target.to, from, target.bytes);
        left->to += target.bytes;
        left->from += target.bytes;
        left->bytes -= target.bytes;
        if (is_elsewhere) {
            engine->is_writing = true;
            return false;
        }
    }
    return true;
}

/* Stands still until it is started again. */
static void stop(struct dma_engine *engine, uint16_t status)
{
    engine->is_forgotten = engine->is_writing;
    engine->status |= status;
    engine->is_pausing = false;
    engine->due_ns = -1;
}

/* Takes the next descriptor, unless there is none or the engine is to pause. */
static void take(struct dma_engine *engine)
{
    struct descriptor *descriptor = descriptor_at(engine);
    if (engine->is_pausing)
        stop(engine, STATUS_PAUSED);
    else if (!descriptor || !(__atomic_load_n(&descriptor->flags, __ATOMIC_ACQUIRE) & DESCRIPTOR_VALID))
        stop(engine, STATUS_INVALID);
    else
        engine->due_ns = engine->late_ns ? now_ns() + (int64_t)engine->late_ns : 0;
}

static void go_on(struct dma_engine *engine)
{
    if (!move(engine))
        return;
    struct descriptor *descriptor = descriptor_at(engine);
    if (!descriptor) {
        stop(engine, STATUS_INVALID);
        return;
    }
    uint32_t flags = __atomic_load_n(&descriptor->flags, __ATOMIC_ACQUIRE);
    __atomic_store_n(&descriptor->flags, engine->move.written_back, __ATOMIC_RELEASE);
    engine->position++;
    if (flags & DESCRIPTOR_NOTIFY) {
        engine->registers[INTERRUPT_STATUS] |= INTERRUPT_DONE;
        function_fire(&engine->function, 0);
    }
    take(engine);
}

static void finish(struct dma_engine *engine)
{
    struct descriptor *descriptor = descriptor_at(engine);
    if (!descriptor) {
        stop(engine, STATUS_INVALID);
        return;
    }
    uint32_t flags = __atomic_load_n(&descriptor->flags, __ATOMIC_ACQUIRE), bytes = flags & DESCRIPTOR_SIZE;
    engine->done_count++;
    bool is_failed = engine->fail_every && engine->done_count % engine->fail_every == 0;
    if (is_failed) {
        bytes /= 2;
        engine->failed_count++;
    }
    engine->done_bytes += bytes;
    engine->move = (struct dma_move){.to = descriptor->to_low | (uint64_t)descriptor->to_high << 32,
                                     .from = descriptor->from_low | (uint64_t)descriptor->from_high << 32,
                                     .bytes = bytes,
                                     .written_back = (is_failed ? WRITTEN_FAILED : WRITTEN_SUCCESS) | bytes};
    go_on(engine);
}

static void engine_written(struct function *function)
{
    struct dma_engine *engine = (struct dma_engine *)function;
    bool is_forgotten = engine->is_forgotten;
    engine->is_writing = engine->is_forgotten = false;
    if (!is_forgotten)
        go_on(engine);
}

int64_t dma_engine_due_ns(const struct dma_engine *engine)
{
    return engine->is_writing ? -1 : engine->due_ns;
}

void dma_engine_step(struct dma_engine *engine, int64_t now)
{
    while (!engine->is_writing && engine->due_ns >= 0 && engine->due_ns <= now)
        finish(engine);
}

static void control(struct dma_engine *engine, uint16_t value)
{
    engine->status &= (uint16_t)~value;
    put(engine->registers + CONTROL, value & CONTROL_KEPT, 2);
    if (value & CONTROL_ABORT)
        stop(engine, STATUS_ABORTED);
    else if ((value & CONTROL_PAUSE) && engine->due_ns < 0)
        stop(engine, STATUS_PAUSED);
    else if (value & CONTROL_PAUSE)
        engine->is_pausing = true; /* after the descriptor under way */
    else if (value & CONTROL_START) {
        engine->is_pausing = false;
        if (engine->due_ns < 0)
            take(engine);
    }
}

static void registers_write(struct dma_engine *engine, uint64_t at, const uint8_t *data, uint32_t bytes)
{
    uint8_t wanted[2] = {0, 0};
    bool is_control = false;
    for (uint64_t i = 0; i < bytes; i++) {
        uint64_t to = at + i;
        if (to >= CONTROL && to < CONTROL + 2) {
            wanted[to - CONTROL] = data[i];
            is_control = true;
        } else if (to >= INTERRUPT_STATUS && to < INTERRUPT_STATUS + 2)
            engine->registers[to] &= (uint8_t)~data[i];
        else
            engine->registers[to] = data[i];
        if (to >= RING_ADDRESS && to < RING_NEXT_TO)
            engine->position = 0;
    }
    if (is_control)
        control(engine, (uint16_t)get(wanted, 2));
}

static void engine_access(struct function *function, uint32_t bar, uint64_t at, uint8_t *data, uint32_t bytes,
                          bool is_write)
{
    struct dma_engine *engine = (struct dma_engine *)function;
    (void)bar;
    if (at + bytes > DMA_REGISTERS_BYTES) {
        if (!is_write)
            memset(data, 0, bytes);
    } else if (is_write)
        registers_write(engine, at, data, bytes);
    else {
        memcpy(data, engine->registers + at, bytes);
        for (uint64_t i = 0; i < bytes; i++)
            if (at + i >= CONTROL && at + i < CONTROL + 2)
                data[i] |= (uint8_t)(engine->status >> 8 * (at + i - CONTROL));
    }
}

static void engine_reset(struct function *function)
{
    struct dma_engine *engine = (struct dma_engine *)function;
    function_config(function, 0x87d010b5, 0x08800000); /* a system peripheral of another kind */
    memset(engine->registers, 0, sizeof engine->registers);
    stop(engine, 0);
    engine->is_writing = engine->is_forgotten = false;
    engine->status = 0;
    engine->position = 0;
}

static void engine_leave(struct function *function)
{
    (void)function;
}

void dma_engine_open(struct dma_engine *engine, const char *path)
{
    static const struct function_ops ops = {
        .reset = engine_reset, .leave = engine_leave, .access = engine_access, .written = engine_written};
    function_open(&engine->function, &ops, path, 1);
}
