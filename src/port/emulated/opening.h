/* SPDX-License-Identifier: BSD-3-Clause */
/* opening.h - one process's opening of one end of an emulated link. Private to this folder.
 *
 * What it is: the mapped registers, the mapping of the peer host's memory, and fast local copies of register contents.
 * No other process depends on anything here; what others need is in registers.h.
 *
 * The peer's memory is mapped once, whole, without access; a range becomes accessible when this process first uses a
 * translation or vector that names it, and stays so until close. So a byte of the peer has one address for the lifetime
 * of the opening: a thread that is still copying under a revoked translation writes into memory that is mapped, and
 * nothing needs to be unmapped or bounded. The limit of each copy comes from the translation, never from the mapping.
 *
 * Threads: all functions may be called from any thread of the process.
 */
#ifndef QUOIT_PORT_EMULATED_OPENING_H
#define QUOIT_PORT_EMULATED_OPENING_H

#include <pthread.h>
#include <stddef.h>
#include <sys/types.h>

#include "port/emulated/registers.h"

#define QUOIT_EMULATED_VIEW_NONE UINT64_MAX /* the key of a view that is being written */

/* A copy of one of the peer's pairs, valid while `key` equals its `current`. Written under refresh_lock. */
struct quoit_emulated_view {
    _Atomic uint64_t key;
    _Atomic uint64_t address; /* in this process; 0 with 0 bytes */
    _Atomic uint64_t second;  /* bytes of a window; stride << 32 | count of a vector */
    uint64_t open_bytes;      /* from `address` on, that are accessible */
};

/* The contents of a view. */
struct quoit_emulated_range {
    char *base;
    uint64_t second;
};

struct quoit_emulated_channel; /* dma.c */
struct quoit_emulated_queue;   /* posted.c */

/* A posted write, optionally followed by a mark. For a doorbell `offset` holds the bits; for a scratchpad `offset` is
 * its index and `mark` its value. */
struct quoit_emulated_post {
    uint64_t offset;
    uint64_t mark_offset;
    uint64_t mark;
    uint32_t bytes;
    uint8_t window; /* enum quoit_window */
    bool has_mark;
};

struct quoit_emulated_port {
    struct quoit_port port;
    struct quoit_emulated_link *link;
    uint64_t link_bytes;
    struct quoit_emulated_side *own;
    struct quoit_emulated_side *peer;
    char *peer_memory;
    uint64_t peer_memory_bytes;
    int peer_memory_fd; /* the caller's, who may close it; */
    dev_t peer_device;  /* then its number is another file's */
    ino_t peer_inode;
    uint32_t side;
    struct quoit_emulated_wire *wire; /* in common with other shares; NULL: that of `own` */
    uint64_t wire_bytes;
    uint32_t share;
    bool is_plain; /* no knob slows or tears a write */
    bool is_posted;
    _Atomic uint64_t bound_state; /* the state of the link in the epoch it is bound to; 0: it follows the link */
    struct quoit_port_knobs knobs;
    pthread_mutex_t refresh_lock;
    struct quoit_emulated_view window_view[QUOIT_WINDOW_COUNT][2]; /* by `current & 1` */
    struct quoit_emulated_view vector_view[QUOIT_EMULATED_VECTOR_COUNT][2];
    _Atomic uint64_t torn_state; /* the last down state for which a write was torn */
    _Atomic uint64_t tear_count; /* draws from torn_write_seed */
    _Atomic uint64_t late_ns;    /* pace.c: time of the wire that senders may make good for, */
    _Atomic uint64_t left_ns;    /* and when one was here last */
    _Atomic uint64_t fence;      /* an atomic addition to it is a full barrier */
    struct quoit_emulated_channel *channels;
    struct quoit_emulated_queue *queue; /* posted.c; NULL: writes are not posted, or nothing slows them */
};

static inline struct quoit_emulated_port *quoit_emulated_port_of(const struct quoit_port *port)
{
    return (struct quoit_emulated_port *)(uintptr_t)port;
}

/* The state of the link for what this opening sends, with DYING; 0, which is down, in an epoch that it is not bound to.
 */
static inline uint64_t quoit_emulated_sending_state(const struct quoit_emulated_port *port)
{
    uint64_t state = quoit_emulated_state(port->link);
    uint64_t bound = atomic_load_explicit(&port->bound_state, memory_order_relaxed);
    return __builtin_expect(bound == state || bound == 0, 1) || bound == (state & ~QUOIT_EMULATED_DYING) ? state : 0;
}

/* Reads the view of `current`; false if this process has not made it yet. */
static inline bool quoit_emulated_view_read(const struct quoit_emulated_view views[2], uint64_t current,
                                            struct quoit_emulated_range *range_out)
{
    const struct quoit_emulated_view *view = &views[current & 1];
    if (atomic_load_explicit(&view->key, memory_order_acquire) !=
        current) /* pairs with the release in view_refresh() */
        return false;
    range_out->base = (char *)(uintptr_t)atomic_load_explicit(&view->address, memory_order_acquire);
    range_out->second = atomic_load_explicit(&view->second, memory_order_acquire);
    /* A later refresh first changes the key, and a thread that read one of its values sees that change here. */
    return atomic_load_explicit(&view->key, memory_order_relaxed) == current;
}

/* view.c. Makes the view of `pair`, unless that changes all the time; extent_of gives the bytes that its second value
 * needs. A range that the peer's memory does not have becomes an empty view. */
void quoit_emulated_view_refresh(struct quoit_emulated_port *port, const struct quoit_emulated_pair *pair,
                                 struct quoit_emulated_view views[2], uint64_t (*extent_of)(uint64_t second));

/* window.c. The ops, and the copy that DMA shares with them: `state` is the link state when it was submitted. */
enum quoit_status quoit_emulated_set_translation(struct quoit_port *port, enum quoit_window window,
                                                 uint64_t memory_offset, uint64_t bytes);
enum quoit_status quoit_emulated_write(struct quoit_port *port, enum quoit_window window, uint64_t offset,
                                       const void *source, size_t bytes);
enum quoit_status quoit_emulated_write64(struct quoit_port *port, enum quoit_window window, uint64_t offset,
                                         uint64_t value);
enum quoit_status quoit_emulated_read(struct quoit_port *port, enum quoit_window window, uint64_t offset,
                                      void *destination, size_t bytes);
enum quoit_status quoit_emulated_write_marked(struct quoit_port *port, enum quoit_window window, uint64_t offset,
                                              const void *source, size_t bytes, uint64_t mark_offset, uint64_t mark);
enum quoit_status quoit_emulated_write_from(struct quoit_port *port, enum quoit_window window, uint64_t offset, int fd,
                                            void *head, size_t head_bytes, size_t bytes, ssize_t *count_out);
/* may_sleep as in quoit_emulated_pace(). */
enum quoit_status quoit_emulated_copy_out(struct quoit_emulated_port *port, uint64_t state, enum quoit_window window,
                                          uint64_t offset, const char *source, size_t bytes, bool may_sleep);

/* Performs a posted write if the link is still in `state`. */
void quoit_emulated_land_posted(struct quoit_emulated_port *port, uint64_t state,
                                const struct quoit_emulated_post *post, const char *data);

/* posted.c. Queues a write, ring or scratchpad write issued in `state`, which arrives when due; waits while the queue
 * is full. */
void quoit_emulated_post_write(struct quoit_emulated_port *port, uint64_t state, struct quoit_emulated_post post,
                               const char *source);
/* The same for what readv() takes from a descriptor: head_bytes into `head`, and at most post.bytes more. UNSUPPORTED:
 * so many may never come at once. */
enum quoit_status quoit_emulated_post_from(struct quoit_emulated_port *port, uint64_t state,
                                           struct quoit_emulated_post post, int fd, void *head, size_t head_bytes,
                                           ssize_t *count_out);
void quoit_emulated_post_ring(struct quoit_emulated_port *port, uint64_t state, uint64_t bits);
void quoit_emulated_post_scratchpad(struct quoit_emulated_port *port, uint64_t state, uint32_t index, uint32_t value);
/* Returns when everything posted before has arrived or is lost. */
void quoit_emulated_queue_arrive(struct quoit_emulated_port *port);
/* The link was seen in another state: nothing posted before arrives any more. */
void quoit_emulated_queue_lose(struct quoit_emulated_port *port);
enum quoit_status quoit_emulated_queue_open(struct quoit_emulated_port *port);
/* Waits until everything posted has arrived or is lost. A NULL queue is allowed. */
void quoit_emulated_queue_close(struct quoit_emulated_port *port);

/* copy.c. Copies in which aligned 8-byte words of the window, `to` of out and `from` of in, are never torn. */
void quoit_emulated_words_out(char *to, const char *from, size_t bytes);
void quoit_emulated_words_in(char *to, const char *from, size_t bytes);

/* doorbell.c. The ops, and the link event for both hosts. */
void quoit_emulated_ring_now(struct quoit_emulated_port *port, uint64_t bits);
bool quoit_emulated_ring(struct quoit_port *port, uint64_t bits);
uint64_t quoit_emulated_doorbell_read(struct quoit_port *port);
void quoit_emulated_doorbell_clear(struct quoit_port *port, uint64_t bits);
void quoit_emulated_doorbell_set_mask(struct quoit_port *port, uint64_t bits, bool is_masked);
void quoit_emulated_set_vector(struct quoit_port *port, uint32_t bit, const struct quoit_port_vector *vector);
void quoit_emulated_announce_link(struct quoit_emulated_port *port);

/* link.c. The ops. */
void quoit_emulated_link_enable(struct quoit_port *port, bool is_enabled);
bool quoit_emulated_link_is_up(const struct quoit_port *port);
uint32_t quoit_emulated_link_epoch(const struct quoit_port *port);
enum quoit_status quoit_emulated_bind(struct quoit_port *port, uint32_t epoch);
uint32_t quoit_emulated_scratchpad_read(struct quoit_port *port, uint32_t index);
void quoit_emulated_scratchpad_now(struct quoit_emulated_port *port, uint64_t state, uint32_t index, uint32_t value);
void quoit_emulated_link_cut(struct quoit_port *port, bool is_cut);
void quoit_emulated_scratchpad_peer_write(struct quoit_port *port, uint32_t index, uint32_t value);

/* dma.c. The ops; the channels exist from open to close, their threads from the first submit. */
enum quoit_status quoit_emulated_dma_open(struct quoit_emulated_port *port);
void quoit_emulated_dma_close(struct quoit_emulated_port *port);
enum quoit_status quoit_emulated_dma_submit(struct quoit_port *port, uint32_t channel, enum quoit_window window,
                                            uint64_t offset, const void *source, size_t bytes, uint64_t cookie);
uint32_t quoit_emulated_dma_poll(struct quoit_port *port, uint32_t channel, struct quoit_dma_done *done_out,
                                 uint32_t max_count);
void quoit_emulated_dma_set_vector(struct quoit_emulated_port *port, uint32_t channel,
                                   const struct quoit_port_vector *vector);

/* pace.c. Delays as the emulated hardware would: sleeps for long delays, yields for the rest. Returns at once for 0. */
void quoit_emulated_delay(uint64_t duration_ns);
/* Sleeps while more than sleep_from_ns is left, until sleep_early_ns before the end; yields for the rest. */
void quoit_emulated_wait_until(uint64_t deadline_ns, uint64_t sleep_from_ns, uint64_t sleep_early_ns);
/* Reserves the next free interval of this side's wire for `bytes`; returns when it ends: now, if no rate is set. */
uint64_t quoit_emulated_take_wire(struct quoit_emulated_port *port, uint64_t bytes);
/* A sender has waited for what it posted before: time of the wire that it lost by that is not lost to the rate. */
void quoit_emulated_has_waited(struct quoit_emulated_port *port);
/* As take_wire(), and waits until then. may_sleep: also for short times, which end some us late, but leave the
 * processor to the threads that make the next bytes and take these. */
void quoit_emulated_pace(struct quoit_emulated_port *port, uint64_t bytes, bool may_sleep);

#endif
