/* SPDX-License-Identifier: BSD-3-Clause */
/* Replays calls of an allocator through the symmetric heap's and through malloc, and prints what each wastes and how
 * long a call takes: one object of JSON a line, for bench/heap.
 *
 *   heap_replay trace FILE    a recording of heap_record.c
 *   heap_replay live COUNT    COUNT blocks of 16 B to 4 KiB, then as many times a random one given back and another
 *                             taken
 *
 * The same calls are made ROUNDS times and the quickest time of each call counts, so that what remains is the
 * allocator's own work and not the machine's; no call is left out, so the slowest says whether one pays for many. */
#include "heap_trace.h"

#include "base/prng.h"
#include "env/clock.h"
#include "heap/heap.h"

#include <inttypes.h>
#include <malloc.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROUNDS 5
#define SAMPLES_AT                                                                                                     \
    2000 /* samples of the footprint of malloc in a trace: each walks its free blocks                                  \
          */
#define LIMIT_BYTES    (1ull << 46)
#define NONE           UINT32_MAX
#define LIVE_LOG2_LOW  4
#define LIVE_LOG2_HIGH 12

/* A call, with blocks by number: each number is allocated once and freed at most once. */
struct call {
    uint32_t deed;
    uint32_t align;
    uint32_t block;
    uint64_t bytes;
};

struct trace {
    const char *name;
    struct call *calls;
    size_t call_count;
    uint32_t block_count;
    size_t peak_at;                                 /* the call after which most bytes are live */
    uint64_t live_bytes, live_count, rounded_bytes; /* at that call; rounded: to whole units of the symmetric heap */
};

struct result {
    uint64_t heap_bytes; /* the largest so far */
    uint32_t *ns;        /* [call_count] */
    uint64_t digest;     /* of all places, in order */
};

static void fail(const char *what, const char *name)
{
    fprintf(stderr, "heap_replay: %s%s\n", what, name);
    exit(1);
}

static void *must(void *memory)
{
    if (!memory)
        fail("out of memory", "");
    return memory;
}

/* The number that an address has now: open addressing, an entry for each address ever seen. */
struct names {
    uint64_t *addresses;
    uint32_t *numbers;
    size_t limit; /* a power of two, more than twice as many as calls */
};

static uint32_t *number_of(struct names *names, uint64_t address)
{
    size_t at = (address * 0x9e3779b97f4a7c15u >> 20) & (names->limit - 1);
    while (names->addresses[at] != address && names->addresses[at] != 0)
        at = (at + 1) & (names->limit - 1);
    if (names->addresses[at] == 0)
        names->numbers[at] = NONE;
    names->addresses[at] = address;
    return &names->numbers[at];
}

static void add_call(struct trace *trace, uint32_t deed, uint32_t block, uint64_t bytes, uint32_t align)
{
    trace->calls[trace->call_count++] = (struct call){.deed = deed, .align = align, .block = block, .bytes = bytes};
}

/* The program's calls, without those that do no work in any allocator: free(NULL), sizes of zero, blocks older than the
 * recording. */
static void take_event(struct trace *trace, struct names *names, const struct heap_event *event)
{
    uint32_t *old = event->deed == HEAP_RESIZE && event->old ? number_of(names, event->old) : NULL;
    if (event->deed == HEAP_GIVE) {
        uint32_t *number = number_of(names, event->block);
        if (*number != NONE)
            add_call(trace, HEAP_GIVE, *number, 0, 0);
        *number = NONE;
    } else if (event->block && event->bytes && old && *old != NONE) {
        uint32_t block = *old;
        *old = NONE;
        *number_of(names, event->block) = block;
        add_call(trace, HEAP_RESIZE, block, event->bytes, 0);
    } else if (event->block && event->bytes) {
        *number_of(names, event->block) = trace->block_count;
        add_call(trace, HEAP_TAKE, trace->block_count++, event->bytes, event->align);
    }
}

static void read_trace(struct trace *trace, const char *name)
{
    FILE *file = fopen(name, "re");
    struct heap_event event;
    if (!file || fseek(file, 0, SEEK_END) != 0)
        fail("cannot read ", name);
    size_t count = (size_t)ftell(file) / sizeof event;
    struct names names = {.limit = 64};
    rewind(file);
    while (names.limit < 4 * count)
        names.limit *= 2;
    names.addresses = must(calloc(names.limit, sizeof *names.addresses));
    names.numbers = must(calloc(names.limit, sizeof *names.numbers));
    trace->name = name;
    trace->calls = must(calloc(count + 1, sizeof *trace->calls));
    while (fread(&event, sizeof event, 1, file) == 1)
        take_event(trace, &names, &event);
    fclose(file);
    free(names.addresses);
    free(names.numbers);
}

static uint64_t choose_bytes(struct quoit_prng *prng)
{
    uint64_t power = 1ull << (LIVE_LOG2_LOW + quoit_prng_choose(prng, LIVE_LOG2_HIGH - LIVE_LOG2_LOW));
    return power + quoit_prng_choose(prng, power);
}

static void make_live(struct trace *trace, const char *text)
{
    uint32_t count = (uint32_t)strtoul(text, NULL, 10);
    struct quoit_prng prng = {.state = 5};
    if (count == 0)
        fail("not a number of blocks: ", text);
    uint32_t *blocks = must(calloc(count, sizeof *blocks));
    size_t turns = count < 100000 ? 100000 : count;
    trace->name = text;
    trace->calls = must(calloc(count + 2 * turns, sizeof *trace->calls));
    for (uint32_t i = 0; i < count; i++) {
        blocks[i] = trace->block_count++;
        add_call(trace, HEAP_TAKE, blocks[i], choose_bytes(&prng), 0);
    }
    for (size_t i = 0; i < turns; i++) {
        uint32_t *block = &blocks[quoit_prng_choose(&prng, count)];
        add_call(trace, HEAP_GIVE, *block, 0, 0);
        *block = trace->block_count++;
        add_call(trace, HEAP_TAKE, *block, choose_bytes(&prng), 0);
    }
    free(blocks);
}

static void find_peak(struct trace *trace)
{
    uint64_t *bytes = must(calloc(trace->block_count + 1, sizeof *bytes)), live = 0, count = 0, rounded = 0;
    for (size_t i = 0; i < trace->call_count; i++) {
        const struct call *call = &trace->calls[i];
        uint64_t before = bytes[call->block];
        bytes[call->block] = call->deed == HEAP_GIVE ? 0 : call->bytes;
        live += bytes[call->block] - before;
        rounded += (bytes[call->block] + QUOIT_HEAP_ALIGN - 1) / QUOIT_HEAP_ALIGN * QUOIT_HEAP_ALIGN -
                   (before + QUOIT_HEAP_ALIGN - 1) / QUOIT_HEAP_ALIGN * QUOIT_HEAP_ALIGN;
        count += (bytes[call->block] != 0) - (uint64_t)(before != 0);
        if (live <= trace->live_bytes)
            continue;
        trace->live_bytes = live;
        trace->live_count = count;
        trace->rounded_bytes = rounded;
        trace->peak_at = i;
    }
    free(bytes);
}

static uint64_t quoit_call(struct quoit_heap *heap, const struct call *call, uint64_t *places)
{
    uint64_t *place = &places[call->block], old = *place;
    if (call->deed == HEAP_GIVE)
        return quoit_heap_give(heap, *place) == QUOIT_OK ? 0 : QUOIT_HEAP_NONE;
    if (!quoit_heap_prepare(heap))
        return QUOIT_HEAP_NONE;
    if (call->deed == HEAP_RESIZE && quoit_heap_resize(heap, old, call->bytes) == QUOIT_OK)
        return old;
    *place = quoit_heap_take(heap, call->bytes, call->align ? call->align : 1);
    if (call->deed == HEAP_RESIZE && quoit_heap_give(heap, old) != QUOIT_OK)
        return QUOIT_HEAP_NONE;
    return *place;
}

static void replay_quoit(const struct trace *trace, bool is_first, uint64_t *places, struct result *result)
{
    struct quoit_heap *heap = must(quoit_heap_new(LIMIT_BYTES));
    for (size_t i = 0; i < trace->call_count; i++) {
        uint64_t begin_ns = quoit_clock_now_ns();
        uint64_t place = quoit_call(heap, &trace->calls[i], places);
        uint64_t ns = quoit_clock_now_ns() - begin_ns;
        if (place == QUOIT_HEAP_NONE)
            fail("refused in ", trace->name);
        result->digest = (result->digest ^ place) * 0x100000001b3u;
        if (quoit_heap_used_bytes(heap) > result->heap_bytes)
            result->heap_bytes = quoit_heap_used_bytes(heap);
        if (is_first || ns < result->ns[i])
            result->ns[i] = (uint32_t)ns;
    }
    quoit_heap_delete(heap);
}

static void *malloc_call(const struct call *call, void *old)
{
    if (call->deed == HEAP_RESIZE)
        return realloc(old, call->bytes);
    if (call->deed == HEAP_TAKE)
        return call->align ? memalign(call->align, call->bytes) : malloc(call->bytes);
    free(old);
    return NULL;
}

static uint64_t malloc_footprint(void)
{
    struct mallinfo2 info = mallinfo2();
    return info.arena + info.hblkhd;
}

/* Bytes that the rest of the process has from malloc; free blocks are returned to the kernel first. */
static uint64_t malloc_used_before(void)
{
    malloc_trim(0);
    struct mallinfo2 info = mallinfo2();
    return info.uordblks + info.hblkhd;
}

static void replay_malloc(const struct trace *trace, bool is_first, void **blocks, struct result *result)
{
    uint64_t before = malloc_used_before();
    memset(blocks, 0, trace->block_count * sizeof *blocks);
    for (size_t i = 0; i < trace->call_count; i++) {
        const struct call *call = &trace->calls[i];
        uint64_t begin_ns = quoit_clock_now_ns();
        void *block = malloc_call(call, blocks[call->block]);
        uint64_t ns = quoit_clock_now_ns() - begin_ns;
        blocks[call->block] = block;
        if (is_first && (i == trace->peak_at || i % (trace->call_count / SAMPLES_AT + 1) == 0) &&
            malloc_footprint() - before > result->heap_bytes)
            result->heap_bytes = malloc_footprint() - before;
        if (is_first || ns < result->ns[i])
            result->ns[i] = (uint32_t)ns;
    }
    for (uint32_t i = 0; i < trace->block_count; i++)
        free(blocks[i]);
}

static int compare(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static void print_result(const char *name, const struct trace *trace, struct result *result)
{
    size_t count = trace->call_count;
    qsort(result->ns, count, sizeof *result->ns, compare);
    printf(", \"%s\": {\"heap_bytes\": %" PRIu64 ", \"median_ns\": %u, \"p99_ns\": %u, \"max_ns\": %u}", name,
           result->heap_bytes, result->ns[count / 2], result->ns[count - 1 - count / 100], result->ns[count - 1]);
}

/* The cost of the two clock readings around a call. */
static uint32_t clock_ns(void)
{
    uint32_t ns[1001];
    for (int i = 0; i < 1001; i++) {
        uint64_t begin_ns = quoit_clock_now_ns();
        ns[i] = (uint32_t)(quoit_clock_now_ns() - begin_ns);
    }
    qsort(ns, 1001, sizeof ns[0], compare);
    return ns[500];
}

int main(int argc, char **argv)
{
    struct trace trace = {.name = NULL};
    struct result of_quoit = {0}, of_malloc = {0};
    if (argc == 3 && strcmp(argv[1], "trace") == 0)
        read_trace(&trace, argv[2]);
    else if (argc == 3 && strcmp(argv[1], "live") == 0)
        make_live(&trace, argv[2]);
    else
        fail("usage: heap_replay trace FILE | live COUNT", "");
    if (trace.call_count == 0)
        fail("nothing was asked for in ", argv[2]);
    find_peak(&trace);
    uint64_t *places = must(calloc(trace.block_count + 1, sizeof *places));
    void **blocks = must(calloc(trace.block_count + 1, sizeof *blocks));
    of_quoit.ns = must(calloc(trace.call_count, sizeof *of_quoit.ns));
    of_malloc.ns = must(calloc(trace.call_count, sizeof *of_malloc.ns));
    for (int round = 0; round < ROUNDS; round++) {
        replay_quoit(&trace, round == 0, places, &of_quoit);
        replay_malloc(&trace, round == 0, blocks, &of_malloc);
    }
    printf("{\"name\": \"%s\", \"calls\": %zu, \"live_blocks\": %" PRIu64 ", \"live_bytes\": %" PRIu64
           ", \"rounded_bytes\": %" PRIu64 ", \"clock_ns\": %u, \"digest\": %" PRIu64,
           trace.name, trace.call_count, trace.live_count, trace.live_bytes, trace.rounded_bytes, clock_ns(),
           of_quoit.digest);
    print_result("quoit", &trace, &of_quoit);
    print_result("malloc", &trace, &of_malloc);
    printf("}\n");
    return 0;
}
