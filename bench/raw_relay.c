/* SPDX-License-Identifier: BSD-3-Clause */
/* raw_relay.c - the copies that relayed puts need and nothing else: the upper bound of relayed traffic.
 *
 * Use: raw_relay WHERE HOPS [SMALLEST]      WHERE is a word for the output; SMALLEST size, in bytes
 * A byte that travels n hops is copied n times, each time through a window: into a slot of the next host, and finally
 * to its destination. Here each processor makes all the copies of its share of the chunks, as many at a time as there
 * are slots, so it finds each chunk in its own cache again, and all processors work at once, without waiting or
 * communicating. Chunks and slots have oshrun's default sizes. One process plays all hosts, over one link.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "raw_link.h"

#define CHUNK_BYTES    32768u
#define SLOT_COUNT     16u
#define PROCESSORS_MAX 64u
#define SLOTS_AT       (2 * BYTES_MAX) /* in each end's memory, after what is sent and what has arrived */
#define MEMORY_BYTES   (SLOTS_AT + PROCESSORS_MAX * SLOT_COUNT * CHUNK_BYTES)

struct relay {
    struct raw_end ends[2];
    size_t hops;
    size_t processor_count;
    int processors[PROCESSORS_MAX];
    size_t bytes, count; /* of the batch; count 0: the end */
    _Atomic size_t
        batch_count; /* batches started. Writer: the first worker. release; pairs with acquire in the others */
    _Atomic size_t working_count; /* workers that have not finished. release; pairs with acquire in the first */
};

struct worker {
    struct relay *relay;
    size_t index;
    pthread_t thread;
};

/* Copies one chunk over hop `hop`, whose hosts alternate between the two ends. */
static void copy_hop(struct relay *relay, size_t worker, size_t hop, size_t slot, size_t at)
{
    struct raw_end *from = &relay->ends[hop % 2];
    size_t slot_at = SLOTS_AT + (worker * SLOT_COUNT + slot) * CHUNK_BYTES;
    size_t to = hop + 1 == relay->hops ? BYTES_MAX + at : slot_at;
    if (quoit_port_write(from->port, QUOIT_WINDOW_MEMORY, to, from->memory + (hop == 0 ? at : slot_at), CHUNK_BYTES) !=
        QUOIT_OK)
        raw_fail("write failed");
}

/* A worker's share of a batch: every processor_count-th chunk of each transfer. */
static void relay_share(struct relay *relay, size_t worker)
{
    size_t chunks = relay->bytes / CHUNK_BYTES;
    size_t share = chunks / relay->processor_count + (worker < chunks % relay->processor_count);
    size_t total = share * relay->count;
    for (size_t done = 0; done < total; done += SLOT_COUNT)
        for (size_t hop = 0; hop < relay->hops; hop++)
            for (size_t slot = 0; slot < SLOT_COUNT && done + slot < total; slot++)
                copy_hop(relay, worker, hop, slot,
                         ((done + slot) % share * relay->processor_count + worker) * CHUNK_BYTES);
}

static void settle_on(int processor)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(processor, &set);
    sched_setaffinity(0, sizeof set, &set);
}

/* Each has its own processor, so they spin: a wake would take a good part of a batch. */
static void *work(void *arg)
{
    struct worker *worker = arg;
    struct relay *relay = worker->relay;
    settle_on(relay->processors[worker->index]);
    for (size_t batch = 1;; batch++) {
        while (atomic_load_explicit(&relay->batch_count, memory_order_acquire) != batch)
            ;
        if (relay->count == 0)
            return NULL;
        relay_share(relay, worker->index);
        atomic_fetch_sub_explicit(&relay->working_count, 1, memory_order_release);
    }
}

static void begin(struct relay *relay, size_t bytes, size_t count)
{
    relay->bytes = bytes;
    relay->count = count;
    atomic_store_explicit(&relay->working_count, relay->processor_count - 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&relay->batch_count, 1, memory_order_release);
}

/* The calling thread is the first worker. */
static void relay_batch(void *arg, size_t bytes, size_t count)
{
    struct relay *relay = arg;
    begin(relay, bytes, count);
    relay_share(relay, 0);
    while (atomic_load_explicit(&relay->working_count, memory_order_acquire) != 0)
        ;
}

static void find_processors(struct relay *relay)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) != 0)
        raw_fail("no processors");
    for (int i = 0; i < CPU_SETSIZE && relay->processor_count < PROCESSORS_MAX; i++)
        if (CPU_ISSET(i, &set))
            relay->processors[relay->processor_count++] = i;
}

int main(int argc, char **argv)
{
    static struct relay relay;
    static struct worker workers[PROCESSORS_MAX];
    const struct subject subjects[] = {{"relay", relay_batch}};
    if (argc != 3 && argc != 4) {
        fprintf(stderr, "use: raw_relay WHERE HOPS [SMALLEST]\n");
        return 2;
    }
    relay.hops = strtoul(argv[2], NULL, 10);
    size_t smallest = argc == 4 ? strtoul(argv[3], NULL, 10) : CHUNK_BYTES;
    find_processors(&relay);
    if (relay.hops < 1 || smallest % CHUNK_BYTES != 0)
        raw_fail("HOPS is 1 or more, SMALLEST a multiple of 32768");
    raw_open(relay.ends, MEMORY_BYTES);
    settle_on(relay.processors[0]);
    for (size_t i = 1; i < relay.processor_count; i++) {
        workers[i] = (struct worker){.relay = &relay, .index = i};
        if (pthread_create(&workers[i].thread, NULL, work, &workers[i]) != 0)
            raw_fail("no thread");
    }
    for (size_t bytes = smallest; bytes <= BYTES_MAX; bytes *= 2) {
        const unsigned char *arrived = relay.ends[relay.hops % 2].memory + BYTES_MAX;
        for (size_t at = 0; at < bytes; at++)
            relay.ends[0].memory[at] = (unsigned char)(at * 7 + (at >> 8) + bytes);
        bench_measure(subjects, 1, &relay, bytes, argv[1]);
        if (memcmp(relay.ends[0].memory, arrived, bytes) != 0)
            raw_fail("what arrived differs from what was sent");
    }
    begin(&relay, 0, 0);
    for (size_t i = 1; i < relay.processor_count; i++)
        pthread_join(workers[i].thread, NULL);
    raw_close(relay.ends);
    return 0;
}
