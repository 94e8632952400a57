/* SPDX-License-Identifier: BSD-3-Clause */
/* Posted writes with a delay. What an opening sends waits in its queue, in order, until it is due; then the next
 * thread that posts lands it, or one that the opening has for that. Only the holder of `landing` removes entries, and a
 * thread that reports the link down first empties the queue as such a holder, so nothing arrives after that report.
 *
 * The bytes of a short write stand behind its entry. A long one, and what is read from a descriptor, fills a buffer
 * once, without a lock; its entries name parts of that buffer, and the last of them returns it. */
#include "port/emulated/opening.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/uio.h>

#include "base/assert.h"
#include "base/log.h"
#include "env/clock.h"
#include "env/wait.h"
#include "env/thread.h"

#define QUEUE_BYTES 262144u
#define ENTRY_ALIGN 64u
#define DATA_MAX    16384u /* of one entry */
#define DATA_MIN    4096u  /* up to here a write is one entry at any rate */
#define ENTRY_NS    8000u  /* that the wire is busy with a longer one */
/* A buffer takes a frame of 64 KiB with all that stands around it. Only writes from half of that on get one, so that
 * all buffers hold as much as the queue does. */
#define BUFFER_BYTES    69632u
#define BUFFER_DATA_MAX (BUFFER_BYTES - ENTRY_ALIGN)
#define BUFFER_FROM     32768u
#define BUFFER_COUNT    8u
#define BUFFER_NONE     BUFFER_COUNT
/* What arrives one after the other arrives together, so much later at most; the last of it in time. */
#define BATCH_NS       50000u
#define SLEEP_FROM_NS  20000u /* this thread's sleeps end soon after their time; for what is due alone */
#define SLEEP_EARLY_NS 10000u
#define SOON_NS        2000u /* to wake that thread takes longer */

enum entry_kind { ENTRY_WRITE, ENTRY_PART, ENTRY_RING, ENTRY_SCRATCHPAD, ENTRY_SKIP };

struct entry {
    uint64_t due_ns;
    uint64_t state; /* of the link when it was sent */
    struct quoit_emulated_post post;
    uint32_t kind;
    uint32_t total_bytes; /* with what follows */
};

/* What stands behind an ENTRY_PART. */
struct part {
    const char *data;
    uint32_t buffer; /* that is free behind it; or BUFFER_NONE */
};

struct quoit_emulated_queue {
    pthread_mutex_t landing; /* held while entries land or are lost; taken before `lock`, or only tried with it */
    pthread_mutex_t lock;    /* of all below; never held for the length of a copy from user memory, or of a landing */
    pthread_cond_t changed;  /* entries or buffers are free */
    pthread_cond_t posted;   /* the thread waits for something to land */
    pthread_t thread;
    bool is_idle; /* the thread waits for `posted` */
    bool is_started;
    bool is_closing;
    uint32_t waiter_count; /* of `changed` */
    uint64_t last_due_ns;  /* of what was posted last */
    uint64_t head;         /* counts of bytes, taken modulo QUEUE_BYTES */
    uint64_t tail;
    uint32_t free_count;
    uint8_t free[BUFFER_COUNT]; /* the buffer that was used last is the last one: it may still be in a cache */
    _Alignas(ENTRY_ALIGN) char bytes[QUEUE_BYTES];
    _Alignas(ENTRY_ALIGN) char buffers[BUFFER_COUNT][BUFFER_BYTES];
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

static const struct part *part_of(const struct entry *entry)
{
    return (const struct part *)(const void *)(entry + 1);
}

static void arrive(struct quoit_emulated_port *port, const struct entry *entry)
{
    uint64_t state = quoit_emulated_state(port->link);
    switch ((enum entry_kind)entry->kind) {
    case ENTRY_WRITE:
        quoit_emulated_land_posted(port, entry->state, &entry->post, (const char *)(entry + 1));
        break;
    case ENTRY_PART:
        quoit_emulated_land_posted(port, entry->state, &entry->post, part_of(entry)->data);
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

/* With both locks. */
static void remove_first(struct quoit_emulated_queue *queue)
{
    const struct entry *entry = entry_at(queue, queue->head);
    if (entry->kind == ENTRY_PART && part_of(entry)->buffer != BUFFER_NONE)
        queue->free[queue->free_count++] = (uint8_t)part_of(entry)->buffer;
    queue->head += entry->total_bytes;
    notify(queue);
}

/* Whether nobody can tell when the entry lands: the rest of its write and the mark are still to come. */
static bool is_middle(const struct entry *entry)
{
    return entry->kind == ENTRY_PART && part_of(entry)->buffer == BUFFER_NONE;
}

/* When the first entry is due that somebody waits for; if the rest of a write is still to come, the last that is
 * queued, so that it cannot fill the queue. With the lock. */
static uint64_t awaited_ns(struct quoit_emulated_queue *queue)
{
    uint64_t due_ns = 0;
    for (uint64_t at = queue->head; at != queue->tail; at += entry_at(queue, at)->total_bytes) {
        const struct entry *entry = entry_at(queue, at);
        due_ns = entry->kind == ENTRY_SKIP ? due_ns : entry->due_ns;
        if (entry->kind != ENTRY_SKIP && !is_middle(entry))
            break;
    }
    return due_ns;
}

/* When to wake for an entry that is due then. */
static uint64_t wake_ns_for(const struct quoit_emulated_queue *queue, uint64_t due_ns)
{
    if (queue->last_due_ns < due_ns)
        return due_ns;
    return queue->last_due_ns < due_ns + BATCH_NS ? queue->last_due_ns : due_ns + BATCH_NS;
}

/* A batch may be some microseconds late, so this thread is asleep until then: by yields it would take turns from the
 * threads that make the next bytes and take these, and on newer kernels lose its own. */
static void wait_until(uint64_t wake_ns, bool is_batch)
{
    quoit_emulated_wait_until(wake_ns, is_batch ? 0 : SLEEP_FROM_NS, is_batch ? 0 : SLEEP_EARLY_NS);
}

/* Lands what is due. With both locks; lets go of `lock` while something lands. */
static void land_due(struct quoit_emulated_port *port)
{
    struct quoit_emulated_queue *queue = port->queue;
    while (queue->head != queue->tail) {
        const struct entry *entry = entry_at(queue, queue->head);
        if (entry->kind != ENTRY_SKIP && entry->due_ns > quoit_clock_now_ns())
            break;
        pthread_mutex_unlock(&queue->lock);
        arrive(port, entry);
        pthread_mutex_lock(&queue->lock);
        remove_first(queue);
    }
}

/* Whether all that waits is due within so short a time. With the lock. */
static bool is_soon(struct quoit_emulated_queue *queue)
{
    uint64_t soon_ns = quoit_clock_now_ns() + SOON_NS;
    return queue->head != queue->tail && entry_at(queue, queue->head)->due_ns <= soon_ns &&
           queue->last_due_ns <= soon_ns;
}

/* After a post, with `lock`: lands what is due, unless another thread is at it, and leaves the rest to the queue's
 * thread. What is due at once, or nearly, as short writes to an idle wire are, needs no switch to that. */
static void land_or_wake(struct quoit_emulated_port *port)
{
    struct quoit_emulated_queue *queue = port->queue;
    if (pthread_mutex_trylock(&queue->landing) == 0) {
        for (land_due(port); is_soon(queue); land_due(port))
            quoit_pause();
        pthread_mutex_unlock(&queue->landing);
    }
    if (queue->is_idle && queue->head != queue->tail)
        pthread_cond_signal(&queue->posted);
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
            queue->is_idle = true;
            pthread_cond_wait(&queue->posted, &queue->lock);
            queue->is_idle = false;
            continue;
        }
        uint64_t due_ns = awaited_ns(queue), wake_ns = wake_ns_for(queue, due_ns);
        pthread_mutex_unlock(&queue->lock);
        if (due_ns > quoit_clock_now_ns())
            wait_until(wake_ns, wake_ns != due_ns);
        pthread_mutex_lock(&queue->landing);
        pthread_mutex_lock(&queue->lock);
        land_due(port); /* what is left: it may have been lost meanwhile */
        pthread_mutex_unlock(&queue->landing);
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

/* `data`, of data_bytes, is what stands behind the entry. */
static void push(struct quoit_emulated_port *port, uint32_t kind, uint64_t state, uint64_t due_ns,
                 const struct quoit_emulated_post *post, const void *data, uint32_t data_bytes)
{
    struct quoit_emulated_queue *queue = port->queue;
    bool has_waited = false;
    pthread_mutex_lock(&queue->lock);
    struct entry *entry = push_locked(port, kind, data_bytes, &has_waited);
    queue->last_due_ns = due_ns;
    entry->state = state;
    entry->due_ns = due_ns;
    entry->post = *post;
    if (data_bytes != 0)
        memcpy(entry + 1, data, data_bytes);
    queue->tail += entry->total_bytes;
    if (has_waited)
        quoit_emulated_has_waited(port);
    land_or_wake(port);
    pthread_mutex_unlock(&queue->lock);
}

/* Short entries make a slow wire smooth; long ones cost less for each byte of a fast wire. */
static uint32_t entry_bytes_of(const struct quoit_emulated_port *port)
{
    uint64_t bytes = port->knobs.rate_bytes_per_s / 1000 * ENTRY_NS / 1000000;
    return bytes < DATA_MIN ? DATA_MIN : bytes < DATA_MAX ? (uint32_t)bytes & ~(ENTRY_ALIGN - 1) : DATA_MAX;
}

/* Takes the first part of a write that is one entry, of at most `most` bytes, off `rest`. */
static struct quoit_emulated_post take_part(struct quoit_emulated_post *rest, uint32_t most)
{
    struct quoit_emulated_post part = *rest;
    part.bytes = rest->bytes < most ? rest->bytes : most - (uint32_t)(rest->offset % ENTRY_ALIGN);
    part.has_mark = rest->has_mark && part.bytes == rest->bytes;
    rest->offset += part.bytes;
    rest->bytes -= part.bytes;
    return part;
}

static uint64_t due_ns_for(struct quoit_emulated_port *port, uint32_t bytes)
{
    return quoit_emulated_take_wire(port, bytes) + port->knobs.write_latency_ns;
}

static uint32_t take_buffer(struct quoit_emulated_port *port)
{
    struct quoit_emulated_queue *queue = port->queue;
    bool has_waited = false;
    pthread_mutex_lock(&queue->lock);
    for (; queue->free_count == 0; has_waited = true)
        wait_for_change(queue);
    uint32_t buffer = queue->free[--queue->free_count];
    pthread_mutex_unlock(&queue->lock);
    if (has_waited)
        quoit_emulated_has_waited(port);
    return buffer;
}

static void return_buffer(struct quoit_emulated_queue *queue, uint32_t buffer)
{
    pthread_mutex_lock(&queue->lock);
    queue->free[queue->free_count++] = (uint8_t)buffer;
    notify(queue);
    pthread_mutex_unlock(&queue->lock);
}

/* Where bytes for that offset begin in a buffer: aligned as their destination, which makes the landing faster. */
static char *data_of(struct quoit_emulated_queue *queue, uint32_t buffer, uint64_t offset)
{
    return queue->buffers[buffer] + offset % ENTRY_ALIGN;
}

/* `post` is not empty, and its bytes are in the buffer. */
static void post_buffer(struct quoit_emulated_port *port, uint64_t state, struct quoit_emulated_post post,
                        uint32_t buffer)
{
    struct part part = {.data = data_of(port->queue, buffer, post.offset), .buffer = BUFFER_NONE};
    const uint32_t most = entry_bytes_of(port);
    while (post.bytes != 0) {
        const struct quoit_emulated_post own = take_part(&post, most);
        if (post.bytes == 0)
            part.buffer = buffer;
        push(port, ENTRY_PART, state, due_ns_for(port, own.bytes), &own, &part, sizeof part);
        part.data += own.bytes;
    }
}

void quoit_emulated_post_write(struct quoit_emulated_port *port, uint64_t state, struct quoit_emulated_post post,
                               const char *source)
{
    if (post.bytes >= BUFFER_FROM && post.bytes <= BUFFER_DATA_MAX) {
        uint32_t buffer = take_buffer(port);
        memcpy(data_of(port->queue, buffer, post.offset), source, post.bytes);
        post_buffer(port, state, post, buffer);
        return;
    }
    char data[DATA_MAX]; /* user memory is never read under a lock: one of its pages may fault */
    const uint32_t most = entry_bytes_of(port);
    while (post.bytes != 0) {
        const struct quoit_emulated_post own = take_part(&post, most);
        memcpy(data, source, own.bytes);
        push(port, ENTRY_WRITE, state, due_ns_for(port, own.bytes), &own, data, own.bytes);
        source += own.bytes;
    }
}

enum quoit_status quoit_emulated_post_from(struct quoit_emulated_port *port, uint64_t state,
                                           struct quoit_emulated_post post, int fd, void *head, size_t head_bytes,
                                           ssize_t *count_out)
{
    if (post.bytes > BUFFER_DATA_MAX)
        return QUOIT_UNSUPPORTED;
    uint32_t buffer = take_buffer(port);
    const struct iovec parts[] = {{.iov_base = head, .iov_len = head_bytes},
                                  {.iov_base = data_of(port->queue, buffer, post.offset), .iov_len = post.bytes}};
    *count_out = readv(fd, parts, 2);
    int error = errno;
    post.bytes = *count_out > (ssize_t)head_bytes ? (uint32_t)((size_t)*count_out - head_bytes) : 0;
    if (post.bytes != 0)
        post_buffer(port, state, post, buffer);
    else
        return_buffer(port->queue, buffer);
    errno = error;
    return QUOIT_OK;
}

void quoit_emulated_post_ring(struct quoit_emulated_port *port, uint64_t state, uint64_t bits)
{
    const struct quoit_emulated_post post = {.offset = bits};
    push(port, ENTRY_RING, state, quoit_clock_now_ns() + port->knobs.doorbell_latency_ns, &post, NULL, 0);
}

void quoit_emulated_post_scratchpad(struct quoit_emulated_port *port, uint64_t state, uint32_t index, uint32_t value)
{
    const struct quoit_emulated_post post = {.offset = index, .mark = value};
    push(port, ENTRY_SCRATCHPAD, state, quoit_clock_now_ns() + port->knobs.write_latency_ns, &post, NULL, 0);
}

void quoit_emulated_queue_arrive(struct quoit_emulated_port *port)
{
    struct quoit_emulated_queue *queue = port->queue;
    bool has_waited = false;
    if (queue == NULL)
        return;
    pthread_mutex_lock(&queue->lock);
    uint64_t tail = queue->tail;
    for (; (int64_t)(tail - queue->head) > 0; has_waited = true)
        wait_for_change(queue);
    pthread_mutex_unlock(&queue->lock);
    if (has_waited)
        quoit_emulated_has_waited(port);
}

void quoit_emulated_queue_lose(struct quoit_emulated_port *port)
{
    struct quoit_emulated_queue *queue = port->queue;
    if (queue == NULL)
        return;
    uint64_t state = quoit_emulated_state(port->link);
    pthread_mutex_lock(&queue->landing);
    pthread_mutex_lock(&queue->lock);
    while (queue->head != queue->tail) {
        const struct entry *entry = entry_at(queue, queue->head);
        if (entry->kind != ENTRY_SKIP && entry->state == state)
            break; /* of the epoch that is up again, by another thread */
        remove_first(queue);
    }
    pthread_mutex_unlock(&queue->lock);
    pthread_mutex_unlock(&queue->landing);
}

enum quoit_status quoit_emulated_queue_open(struct quoit_emulated_port *port)
{
    struct quoit_emulated_queue *queue = aligned_alloc(ENTRY_ALIGN, sizeof *queue);
    if (queue == NULL)
        return QUOIT_NO_MEMORY;
    memset(queue, 0, offsetof(struct quoit_emulated_queue, bytes));
    for (uint32_t buffer = 0; buffer < BUFFER_COUNT; buffer++)
        queue->free[queue->free_count++] = (uint8_t)buffer;
    pthread_mutex_init(&queue->landing, NULL);
    pthread_mutex_init(&queue->lock, NULL);
    pthread_cond_init(&queue->changed, NULL);
    pthread_cond_init(&queue->posted, NULL);
    port->queue = queue;
    int error = pthread_create(&queue->thread, NULL, run_queue, port);
    if (error != 0) {
        quoit_log(QUOIT_LOG_INFO, "emulated port: no thread for posted writes: %s", strerror(error));
        quoit_emulated_queue_close(port);
        return quoit_thread_status(error);
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
    pthread_cond_signal(&queue->posted);
    pthread_mutex_unlock(&queue->lock);
    if (queue->is_started)
        pthread_join(queue->thread, NULL);
    pthread_cond_destroy(&queue->changed);
    pthread_cond_destroy(&queue->posted);
    pthread_mutex_destroy(&queue->lock);
    pthread_mutex_destroy(&queue->landing);
    free(queue);
    port->queue = NULL;
}
