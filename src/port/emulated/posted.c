/* SPDX-License-Identifier: BSD-3-Clause */
/* Posted writes with a delay. What an opening sends waits in its queue, in order, until it is due; a thread of the
 * opening then lands it. Landing happens under the lock, and a thread that reports the link down first empties the
 * queue under the same lock, so nothing arrives after that report. */
#include "port/emulated/opening.h"

#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include "base/assert.h"
#include "base/log.h"
#include "env/clock.h"

#define QUEUE_BYTES 262144u
#define ENTRY_ALIGN 64u
#define DATA_MAX    16384u /* of one entry */
#define DATA_MIN    4096u  /* up to here a write is one entry at any rate */
#define ENTRY_NS    8000u  /* that the wire is busy with a longer one */
/* What arrives one after the other arrives together, so much later at most; the last of it in time. */
#define BATCH_NS       50000u
#define SLEEP_FROM_NS  20000u /* this thread's sleeps end soon after their time */
#define SLEEP_EARLY_NS 10000u

enum entry_kind { ENTRY_WRITE, ENTRY_RING, ENTRY_SCRATCHPAD, ENTRY_SKIP };

struct entry {
    uint64_t due_ns;
    uint64_t state; /* of the link when it was sent */
    struct quoit_emulated_post post;
    uint32_t kind;
    uint32_t total_bytes; /* with what follows */
};

struct quoit_emulated_queue {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    pthread_t thread;
    bool is_started;
    bool is_closing;
    uint32_t waiter_count; /* of `changed` */
    uint64_t last_due_ns;  /* of what was posted last */
    uint64_t head;         /* counts of bytes, taken modulo QUEUE_BYTES */
    uint64_t tail;
    _Alignas(ENTRY_ALIGN) char bytes[QUEUE_BYTES];
};

/* With the lock. Most changes find no waiter, and a broadcast to none takes as long as the copy of a small entry. */
static void notify(struct quoit_emulated_queue *queue)
{
    if (queue->waiter_count != 0)
        pthread_cond_broadcast(&queue->changed);
}

static void wait_for_change(struct quoit_emulated_queue *queue)
{
    queue->waiter_count++;
    pthread_cond_wait(&queue->changed, &queue->lock);
    queue->waiter_count--;
}

static struct entry *entry_at(struct quoit_emulated_queue *queue, uint64_t at)
{
    return (struct entry *)(void *)(queue->bytes + at % QUEUE_BYTES);
}

static void arrive(struct quoit_emulated_port *port, const struct entry *entry)
{
    uint64_t state = quoit_emulated_state(port->link);
    switch ((enum entry_kind)entry->kind) {
    case ENTRY_WRITE:
        quoit_emulated_land_posted(port, entry->state, &entry->post, (const char *)(entry + 1));
        break;
    case ENTRY_RING:
        if (state == entry->state)
            quoit_emulated_ring_now(port, (uint32_t)entry->post.offset);
        break;
    case ENTRY_SCRATCHPAD:
        if (state == entry->state)
            quoit_emulated_scratchpad_now(port, state, (uint32_t)entry->post.offset, (uint32_t)entry->post.mark);
        break;
    case ENTRY_SKIP:
        break;
    }
}

/* When to wake for an entry that is due then. */
static uint64_t wake_ns_for(const struct quoit_emulated_queue *queue, uint64_t due_ns)
{
    if (queue->last_due_ns < due_ns)
        return due_ns;
    return queue->last_due_ns < due_ns + BATCH_NS ? queue->last_due_ns : due_ns + BATCH_NS;
}

static void *run_queue(void *arg)
{
    struct quoit_emulated_port *port = arg;
    struct quoit_emulated_queue *queue = port->queue;
    prctl(PR_SET_TIMERSLACK, 1);
    pthread_mutex_lock(&queue->lock);
    for (;;) {
        if (queue->head == queue->tail) {
            if (queue->is_closing)
                break;
            wait_for_change(queue);
            continue;
        }
        struct entry *entry = entry_at(queue, queue->head);
        uint64_t now_ns = quoit_clock_now_ns();
        if (entry->kind != ENTRY_SKIP && entry->due_ns > now_ns) {
            uint64_t wake_ns = wake_ns_for(queue, entry->due_ns);
            pthread_mutex_unlock(&queue->lock);
            quoit_emulated_wait_until(wake_ns, SLEEP_FROM_NS, SLEEP_EARLY_NS);
            pthread_mutex_lock(&queue->lock);
            continue; /* it may have been lost meanwhile */
        }
        arrive(port, entry);
        queue->head += entry->total_bytes;
        notify(queue);
    }
    pthread_mutex_unlock(&queue->lock);
    return NULL;
}

/* *has_waited_out is set if the queue was full. */
static struct entry *push_locked(struct quoit_emulated_port *port, uint32_t kind, uint32_t data_bytes,
                                 bool *has_waited_out)
{
    struct quoit_emulated_queue *queue = port->queue;
    uint32_t total = (uint32_t)((sizeof(struct entry) + data_bytes + ENTRY_ALIGN - 1) & ~(size_t)(ENTRY_ALIGN - 1));
    uint32_t to_end = QUEUE_BYTES - (uint32_t)(queue->tail % QUEUE_BYTES);
    uint32_t skip = to_end < total ? to_end : 0;
    while (QUEUE_BYTES - (queue->tail - queue->head) < (uint64_t)total + skip) {
        *has_waited_out = true;
        wait_for_change(queue);
    }
    if (queue->tail % QUEUE_BYTES != QUEUE_BYTES - to_end) /* another thread came first */
        return push_locked(port, kind, data_bytes, has_waited_out);
    if (skip != 0) {
        *entry_at(queue, queue->tail) = (struct entry){.kind = ENTRY_SKIP, .total_bytes = skip};
        queue->tail += skip;
    }
    struct entry *entry = entry_at(queue, queue->tail);
    *entry = (struct entry){.kind = kind, .total_bytes = total};
    return entry;
}

static void push(struct quoit_emulated_port *port, uint32_t kind, uint64_t state, uint64_t due_ns,
                 const struct quoit_emulated_post *post, const char *data)
{
    struct quoit_emulated_queue *queue = port->queue;
    bool has_waited = false;
    pthread_mutex_lock(&queue->lock);
    struct entry *entry = push_locked(port, kind, post->bytes, &has_waited);
    queue->last_due_ns = due_ns;
    entry->state = state;
    entry->due_ns = due_ns;
    entry->post = *post;
    if (post->bytes != 0)
        memcpy(entry + 1, data, post->bytes);
    queue->tail += entry->total_bytes;
    notify(queue);
    pthread_mutex_unlock(&queue->lock);
    if (has_waited)
        quoit_emulated_has_waited(port);
}

/* Short entries make a slow wire smooth; long ones cost less for each byte of a fast wire. */
static uint32_t entry_bytes_of(const struct quoit_emulated_port *port)
{
    uint64_t bytes = port->knobs.rate_bytes_per_s / 1000 * ENTRY_NS / 1000000;
    return bytes < DATA_MIN ? DATA_MIN : bytes < DATA_MAX ? (uint32_t)bytes & ~(ENTRY_ALIGN - 1) : DATA_MAX;
}

void quoit_emulated_post_write(struct quoit_emulated_port *port, uint64_t state, struct quoit_emulated_post post,
                               const char *source)
{
    char data[DATA_MAX]; /* user memory is never read under a lock: one of its pages may fault */
    struct quoit_emulated_post part = post;
    const uint32_t most = entry_bytes_of(port);
    while (post.bytes != 0) {
        part.bytes = post.bytes < most ? post.bytes : most - (uint32_t)(post.offset % ENTRY_ALIGN);
        part.offset = post.offset;
        part.has_mark = post.has_mark && part.bytes == post.bytes;
        memcpy(data, source, part.bytes);
        uint64_t sent_ns = quoit_emulated_take_wire(port, part.bytes);
        push(port, ENTRY_WRITE, state, sent_ns + port->knobs.write_latency_ns, &part, data);
        source += part.bytes;
        post.offset += part.bytes;
        post.bytes -= part.bytes;
    }
}

void quoit_emulated_post_ring(struct quoit_emulated_port *port, uint64_t state, uint64_t bits)
{
    const struct quoit_emulated_post post = {.offset = bits};
    push(port, ENTRY_RING, state, quoit_clock_now_ns() + port->knobs.doorbell_latency_ns, &post, NULL);
}

void quoit_emulated_post_scratchpad(struct quoit_emulated_port *port, uint64_t state, uint32_t index, uint32_t value)
{
    const struct quoit_emulated_post post = {.offset = index, .mark = value};
    push(port, ENTRY_SCRATCHPAD, state, quoit_clock_now_ns() + port->knobs.write_latency_ns, &post, NULL);
}

void quoit_emulated_queue_arrive(struct quoit_emulated_port *port)
{
    struct quoit_emulated_queue *queue = port->queue;
    if (queue == NULL)
        return;
    pthread_mutex_lock(&queue->lock);
    uint64_t tail = queue->tail;
    while ((int64_t)(tail - queue->head) > 0)
        wait_for_change(queue);
    pthread_mutex_unlock(&queue->lock);
}

void quoit_emulated_queue_lose(struct quoit_emulated_port *port)
{
    struct quoit_emulated_queue *queue = port->queue;
    if (queue == NULL)
        return;
    uint64_t state = quoit_emulated_state(port->link);
    pthread_mutex_lock(&queue->lock);
    while (queue->head != queue->tail) {
        const struct entry *entry = entry_at(queue, queue->head);
        if (entry->kind != ENTRY_SKIP && entry->state == state)
            break; /* of the epoch that is up again, by another thread */
        queue->head += entry->total_bytes;
    }
    notify(queue);
    pthread_mutex_unlock(&queue->lock);
}

enum quoit_status quoit_emulated_queue_open(struct quoit_emulated_port *port)
{
    struct quoit_emulated_queue *queue = aligned_alloc(ENTRY_ALIGN, sizeof *queue);
    if (queue == NULL)
        return QUOIT_NO_MEMORY;
    memset(queue, 0, offsetof(struct quoit_emulated_queue, bytes));
    pthread_mutex_init(&queue->lock, NULL);
    pthread_cond_init(&queue->changed, NULL);
    port->queue = queue;
    int error = pthread_create(&queue->thread, NULL, run_queue, port);
    if (error != 0) {
        quoit_log(QUOIT_LOG_ERROR, "emulated port: no thread for posted writes: %s", strerror(error));
        quoit_emulated_queue_close(port);
        return QUOIT_SYSTEM;
    }
    queue->is_started = true;
    return QUOIT_OK;
}

void quoit_emulated_queue_close(struct quoit_emulated_port *port)
{
    struct quoit_emulated_queue *queue = port->queue;
    if (queue == NULL)
        return;
    pthread_mutex_lock(&queue->lock);
    queue->is_closing = true;
    notify(queue);
    pthread_mutex_unlock(&queue->lock);
    if (queue->is_started)
        pthread_join(queue->thread, NULL);
    pthread_cond_destroy(&queue->changed);
    pthread_mutex_destroy(&queue->lock);
    free(queue);
    port->queue = NULL;
}
