/* SPDX-License-Identifier: BSD-3-Clause */
#include "dsm/sync.h"

#include <assert.h>
#include <errno.h>
#include <shmem.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/assert.h"
#include "dsm/coherence.h"
#include "dsm/memory.h"
#include "dsm/net.h"
#include "dsm/notice.h"
#include "dsm/stats.h"

#define INDEX_BITS   14
#define USE_BITS     30
#define PE_BITS      10
#define BUFFER_BITS  6
#define NODE_COUNT   ((1u << INDEX_BITS) - 1)
#define BUFFER_COUNT ((1u << BUFFER_BITS) - 1)
#define HELD         (1ull << 63) /* in a lock word: the rest names the last node of its queue */
#define FREE         (1ull << 62) /* in next, with the node's own name: released, and retained by its PE */
#define CLAIMED      (1ull << 61) /* in next, with the successor: it may not be the last node of the queue */
#define RECLAIMED    64           /* nodes, at once */
#define POLL_NS      20000

static_assert(INDEX_BITS + USE_BITS + PE_BITS + BUFFER_BITS <= 61, "a name leaves room for the marks");
static_assert(QUOIT_DSM_PES_MAX <= 1 << PE_BITS, "a name has room for the PE");

/* A grant: PE + 1 of the releaser, in 16 bits; and if it has handed over its notices, how many writers and records. */
#define HANDED       (1ull << 16)
#define WRITER_SHIFT 32
#define RECORD_SHIFT 48
#define GRANT_MASK   0xffff

struct row {
    uint64_t address; /* 0: free */
    uint64_t lock;    /* 0; PE + 1 of the last releaser; or HELD and the last node of the queue */
    struct quoit_dsm_monitor monitor;
    uint64_t unused[2];
};

/* A node of a queue: of a lock, from request until another PE has taken it, or of a monitor's waiters. */
struct node {
    uint64_t next; /* 0; the successor, which writes it; FREE and this node; or CLAIMED and the successor */
    uint64_t flag; /* the grant of the predecessor or waker, which writes it */
    uint64_t kind;
    uint64_t unused;
};

struct cached {
    uint64_t address;
    struct quoit_dsm_object object;
    uint64_t retained; /* the node by which this PE has released the lock and retains it; 0: none */
};

enum node_state {
    NODE_UNUSED,
    NODE_QUEUED,  /* waits for a lock or holds it, or is a waiter of a monitor */
    NODE_RETAINS, /* retains a lock, if no other PE has taken that */
    NODE_LEAVES,  /* its lock was claimed: it is unused once CLAIMED has gone from next */
};

struct quoit_dsm_syncs {
    struct row *rows;                                     /* symmetric */
    struct node *nodes;                                   /* symmetric */
    struct quoit_dsm_record (*buffers)[QUOIT_DSM_HANDED]; /* symmetric: what is handed over to nodes that wait */
    pthread_mutex_t lock;
    uint32_t free[NODE_COUNT];
    uint32_t free_count;
    uint32_t reclaimed_to; /* where the search for nodes that retain locks goes on */
    uint8_t states[NODE_COUNT];
    uint32_t use_counts[NODE_COUNT];
    uint8_t buffer_of[NODE_COUNT]; /* in this use: its number + 1; 0: none was free */
    bool has_buffer[NODE_COUNT];   /* not any more once the node holds its lock */
    uint8_t free_buffers[BUFFER_COUNT];
    uint32_t free_buffer_count;
    struct quoit_dsm_object objects[NODE_COUNT]; /* the lock that a node holds or retains */
    uint32_t held[NODE_COUNT];                   /* nodes that hold a lock */
    uint32_t held_count;
    struct cached *cache; /* open addressing, a power of two, less than half full */
    uint64_t cache_room, cache_count;
};

static uint64_t hash_of(uint64_t address)
{
    struct quoit_prng mix = {address};
    return quoit_prng_next(&mix);
}

void quoit_dsm_syncs_start(struct quoit_dsm *dsm)
{
    struct quoit_dsm_syncs *syncs = calloc(1, sizeof *syncs);
    syncs->rows = quoit_dsm_memory_reserve(dsm->options.values[QUOIT_DSM_SYNCS] * sizeof(struct row));
    syncs->nodes = quoit_dsm_memory_reserve(NODE_COUNT * sizeof(struct node));
    syncs->buffers = quoit_dsm_memory_reserve(BUFFER_COUNT * sizeof *syncs->buffers);
    if (!syncs->rows || !syncs->nodes || !syncs->buffers)
        quoit_dsm_wrong("no symmetric memory for %llu synchronisation objects (DSM_SYNCS); a larger "
                        "SHMEM_SYMMETRIC_SIZE helps",
                        (unsigned long long)dsm->options.values[QUOIT_DSM_SYNCS]);
    for (uint32_t i = 0; i < NODE_COUNT; i++)
        syncs->free[i] = NODE_COUNT - 1 - i;
    syncs->free_count = NODE_COUNT;
    for (uint8_t i = 0; i < BUFFER_COUNT; i++)
        syncs->free_buffers[i] = i;
    syncs->free_buffer_count = BUFFER_COUNT;
    syncs->cache_room = 1024;
    syncs->cache = calloc(syncs->cache_room, sizeof *syncs->cache);
    pthread_mutex_init(&syncs->lock, NULL);
    dsm->syncs = syncs;
}

void quoit_dsm_syncs_stop(struct quoit_dsm *dsm)
{
    shmem_free(dsm->syncs->rows);
    shmem_free(dsm->syncs->nodes);
    shmem_free(dsm->syncs->buffers);
    free(dsm->syncs->cache);
    free(dsm->syncs);
    dsm->syncs = NULL;
}

/* Objects */

static struct cached *cached_at(struct quoit_dsm_syncs *syncs, uint64_t address)
{
    uint64_t at = hash_of(address) & (syncs->cache_room - 1);
    while (syncs->cache[at].address != 0 && syncs->cache[at].address != address)
        at = (at + 1) & (syncs->cache_room - 1);
    return &syncs->cache[at];
}

static void keep(struct quoit_dsm_syncs *syncs, uint64_t address, struct quoit_dsm_object object)
{
    if (syncs->cache_count * 2 >= syncs->cache_room) {
        struct cached *old = syncs->cache;
        uint64_t old_room = syncs->cache_room;
        syncs->cache_room *= 2;
        syncs->cache = calloc(syncs->cache_room, sizeof *syncs->cache);
        if (!syncs->cache)
            quoit_dsm_wrong("no private memory for the places of synchronisation objects");
        for (uint64_t i = 0; i < old_room; i++) {
            if (old[i].address != 0)
                *cached_at(syncs, old[i].address) = old[i];
        }
        free(old);
    }
    struct cached *place = cached_at(syncs, address);
    syncs->cache_count += place->address == 0;
    place->address = address;
    place->object = object;
}

/* The row of the address, claimed now if it has none. */
static struct quoit_dsm_object find_row(struct quoit_dsm *dsm, uint64_t address, const char *call)
{
    uint64_t count = dsm->options.values[QUOIT_DSM_SYNCS], hash = hash_of(address);
    struct quoit_dsm_object object = {
        .address = address, .pe = (int)((hash >> 32) % (uint64_t)dsm->pe_count), .index = (uint32_t)(hash % count)};
    for (uint64_t tries = 0; tries < count; tries++) {
        uint64_t found = quoit_dsm_compare_swap(dsm, &dsm->syncs->rows[object.index].address, 0, address, object.pe);
        if (found == 0 || found == address)
            return object;
        object.index = (uint32_t)((object.index + 1) % count);
    }
    quoit_dsm_wrong("%s: the %llu places for synchronisation objects on PE %d are taken; a larger DSM_SYNCS helps",
                    call, (unsigned long long)count, object.pe);
}

struct quoit_dsm_object quoit_dsm_object(struct quoit_dsm *dsm, const void *address, const char *call)
{
    struct quoit_dsm_syncs *syncs = dsm->syncs;
    uint64_t key = (uintptr_t)address, offset = quoit_dsm_offset_of(dsm, address);
    if (!address || key % 8 != 0)
        quoit_dsm_wrong("%s: the object is at %p, but its address is a multiple of 8 in shared memory", call, address);
    if (offset != UINT64_MAX) /* a shared variable lies elsewhere on each PE */
        key = (uintptr_t)dsm->space + offset;
    pthread_mutex_lock(&syncs->lock);
    struct cached *place = cached_at(syncs, key);
    bool is_known = place->address == key;
    struct quoit_dsm_object object = place->object;
    pthread_mutex_unlock(&syncs->lock);
    if (is_known)
        return object;
    object = find_row(dsm, key, call);
    pthread_mutex_lock(&syncs->lock);
    keep(syncs, key, object);
    pthread_mutex_unlock(&syncs->lock);
    return object;
}

/* Nodes. A name is buffer, PE, uses, index + 1. It has the number of uses since a try may name a node of long ago. */

static uint64_t name_of(const struct quoit_dsm *dsm, uint32_t index)
{
    uint64_t use = dsm->syncs->use_counts[index] & ((1u << USE_BITS) - 1);
    uint64_t buffer = dsm->syncs->buffer_of[index];
    return (buffer << PE_BITS | (uint64_t)dsm->me) << (USE_BITS + INDEX_BITS) | use << INDEX_BITS | (index + 1);
}

static int pe_of(uint64_t name)
{
    return (int)(name >> (USE_BITS + INDEX_BITS) & ((1u << PE_BITS) - 1));
}

static uint32_t index_of(uint64_t name)
{
    return (uint32_t)(name & ((1u << INDEX_BITS) - 1)) - 1;
}

static struct node *node_of(const struct quoit_dsm *dsm, uint64_t name)
{
    return &dsm->syncs->nodes[index_of(name)];
}

/* The buffer of a node, in which its PE finds what it was handed; NULL: it has none. */
static struct quoit_dsm_record *buffer_of(const struct quoit_dsm *dsm, uint64_t name)
{
    uint64_t buffer = name >> (PE_BITS + USE_BITS + INDEX_BITS) & BUFFER_COUNT;
    return buffer != 0 ? dsm->syncs->buffers[buffer - 1] : NULL;
}

/* Under the lock of the table, as the next. Nothing is written to the buffer once the node was granted its lock. */
static void free_buffer(struct quoit_dsm_syncs *syncs, uint32_t index)
{
    if (syncs->has_buffer[index])
        syncs->free_buffers[syncs->free_buffer_count++] = syncs->buffer_of[index] - 1;
    syncs->has_buffer[index] = false;
}

static void free_node(struct quoit_dsm_syncs *syncs, uint64_t name)
{
    free_buffer(syncs, index_of(name));
    syncs->states[index_of(name)] = NODE_UNUSED;
    syncs->free[syncs->free_count++] = index_of(name);
}

static void give_node(struct quoit_dsm *dsm, uint64_t name)
{
    pthread_mutex_lock(&dsm->syncs->lock);
    free_node(dsm->syncs, name);
    pthread_mutex_unlock(&dsm->syncs->lock);
}

/* Coherence at the edges of a lock */

/* The releaser's notices, from the buffer of the node or from the releaser. */
static void acquire(struct quoit_dsm *dsm, uint64_t name, uint64_t grant)
{
    int pe = (int)(grant & GRANT_MASK) - 1;
    if (dsm->is_direct || pe == dsm->me)
        return;
    quoit_dsm_lock(dsm);
    if (grant & HANDED)
        quoit_dsm_acquire_handed(dsm, pe, buffer_of(dsm, name), grant >> WRITER_SHIFT & GRANT_MASK,
                                 grant >> RECORD_SHIFT);
    else
        quoit_dsm_acquire_from(dsm, pe);
    quoit_dsm_unlock(dsm);
}

static void release(struct quoit_dsm *dsm)
{
    if (dsm->is_direct)
        return;
    quoit_dsm_lock(dsm);
    quoit_dsm_release(dsm);
    quoit_dsm_unlock(dsm);
}

/* Grants the lock to the node that waits for it, or wakes it, with the notices unless its PE can load them. */
static void pass_on(struct quoit_dsm *dsm, uint64_t next)
{
    int pe = pe_of(next);
    uint64_t *flag = &node_of(dsm, next)->flag, grant = (uint64_t)dsm->me + 1;
    struct quoit_dsm_record *buffer = buffer_of(dsm, next);
    struct quoit_dsm_handed handed;
    bool is_handed = false;
    if (!dsm->is_direct && buffer && !dsm->peers[pe].known) {
        quoit_dsm_lock(dsm);
        is_handed = quoit_dsm_notice_hand(dsm, pe, &handed);
        quoit_dsm_unlock(dsm);
    }
    if (is_handed)
        grant |= HANDED | (uint64_t)handed.writer_count << WRITER_SHIFT | (uint64_t)handed.record_count << RECORD_SHIFT;
    if (is_handed && handed.writer_count > 0)
        quoit_dsm_put_then_set(dsm, buffer, handed.items,
                               (handed.writer_count + handed.record_count) * sizeof handed.items[0], flag, grant, pe);
    else
        quoit_dsm_set(dsm, flag, grant, pe);
}

/* Before this PE joins a queue behind a node of `pe`, which will hand over what this PE lacks. */
static void show_known(struct quoit_dsm *dsm, int pe)
{
    if (dsm->is_direct || pe == dsm->me)
        return;
    quoit_dsm_lock(dsm);
    quoit_dsm_notice_show(dsm, pe);
    quoit_dsm_unlock(dsm);
}

/* Locks that are retained: under the lock of the table. */

static uint64_t *lock_word(const struct quoit_dsm *dsm, struct quoit_dsm_object object)
{
    return &dsm->syncs->rows[object.index].lock;
}

static uint64_t *retained_at(struct quoit_dsm_syncs *syncs, struct quoit_dsm_object object)
{
    return &cached_at(syncs, object.address)->retained;
}

/* Another PE has taken the lock that the node retained. */
static void leave(struct quoit_dsm_syncs *syncs, uint64_t name, uint64_t next)
{
    if (next & CLAIMED)
        syncs->states[index_of(name)] = NODE_LEAVES;
    else
        free_node(syncs, name);
}

/* Takes a lock that the node retains, without a message. False: another PE has taken it. */
static bool take_back(struct quoit_dsm *dsm, uint64_t name)
{
    uint64_t next = quoit_dsm_compare_swap(dsm, &node_of(dsm, name)->next, FREE | name, 0, dsm->me);
    bool is_mine = next == (FREE | name);
    *retained_at(dsm->syncs, dsm->syncs->objects[index_of(name)]) = 0;
    if (is_mine)
        dsm->syncs->states[index_of(name)] = NODE_QUEUED;
    else
        leave(dsm->syncs, name, next);
    return is_mine;
}

/* The holder releases the lock, and retains it if nobody waits. Returns the node that waits, or 0. */
static uint64_t retain_or_free(struct quoit_dsm *dsm, uint64_t name)
{
    struct quoit_dsm_syncs *syncs = dsm->syncs;
    uint64_t next = quoit_dsm_compare_swap(dsm, &node_of(dsm, name)->next, 0, FREE | name, dsm->me);
    if (next != 0) {
        free_node(syncs, name);
        return next;
    }
    uint64_t *retained = retained_at(syncs, syncs->objects[index_of(name)]), before = *retained;
    if (before != 0) /* taken by others before this node got it */
        leave(syncs, before, quoit_dsm_fetch(dsm, &node_of(dsm, before)->next, dsm->me));
    *retained = name;
    syncs->states[index_of(name)] = NODE_RETAINS;
    return 0;
}

/* The lock that the node retains goes back to the word at its home, if nobody queues for it. */
static void give_back(struct quoit_dsm *dsm, uint64_t name)
{
    struct quoit_dsm_object object = dsm->syncs->objects[index_of(name)];
    if (!take_back(dsm, name))
        return;
    if (quoit_dsm_compare_swap(dsm, lock_word(dsm, object), HELD | name, (uint64_t)dsm->me + 1, object.pe) ==
        (HELD | name)) {
        free_node(dsm->syncs, name);
        return;
    }
    uint64_t next = retain_or_free(dsm, name);
    if (next != 0)
        pass_on(dsm, next);
}

/* Frees some of the nodes that retain locks or have left them. */
static void reclaim(struct quoit_dsm *dsm)
{
    struct quoit_dsm_syncs *syncs = dsm->syncs;
    for (uint32_t i = 0; i < NODE_COUNT && syncs->free_count < RECLAIMED; i++) {
        uint32_t index = syncs->reclaimed_to;
        uint64_t name = name_of(dsm, index);
        syncs->reclaimed_to = (index + 1) % NODE_COUNT;
        if (syncs->states[index] == NODE_RETAINS)
            give_back(dsm, name);
        else if (syncs->states[index] == NODE_LEAVES)
            leave(syncs, name, quoit_dsm_fetch(dsm, &node_of(dsm, name)->next, dsm->me));
    }
}

static uint64_t take_node(struct quoit_dsm *dsm, uint64_t kind)
{
    struct quoit_dsm_syncs *syncs = dsm->syncs;
    pthread_mutex_lock(&syncs->lock);
    if (syncs->free_count == 0)
        reclaim(dsm);
    if (syncs->free_count == 0)
        quoit_dsm_wrong(
            "the threads of this PE hold or wait for %d locks and other objects at once, which is the limit",
            NODE_COUNT);
    uint32_t index = syncs->free[--syncs->free_count];
    syncs->use_counts[index]++;
    syncs->states[index] = NODE_QUEUED;
    syncs->has_buffer[index] = syncs->free_buffer_count > 0;
    syncs->buffer_of[index] = 0;
    if (syncs->has_buffer[index])
        syncs->buffer_of[index] = syncs->free_buffers[--syncs->free_buffer_count] + 1;
    uint64_t name = name_of(dsm, index);
    pthread_mutex_unlock(&syncs->lock);
    quoit_dsm_swap(dsm, &syncs->nodes[index].next, 0, dsm->me); /* a late try may just look at it */
    __atomic_store_n(&syncs->nodes[index].flag, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&syncs->nodes[index].kind, kind, __ATOMIC_RELEASE);
    return name;
}

/* Locks */

static void remember_held(struct quoit_dsm *dsm, struct quoit_dsm_object object, uint64_t name)
{
    struct quoit_dsm_syncs *syncs = dsm->syncs;
    pthread_mutex_lock(&syncs->lock);
    free_buffer(syncs, index_of(name));
    syncs->objects[index_of(name)] = object;
    syncs->held[syncs->held_count++] = index_of(name);
    dsm->stats.locks++;
    pthread_mutex_unlock(&syncs->lock);
}

/* Removes and returns the node by which this PE holds a lock; 0: it does not hold it. Searches the newest first. */
static uint64_t forget_held(struct quoit_dsm *dsm, struct quoit_dsm_object object)
{
    struct quoit_dsm_syncs *syncs = dsm->syncs;
    uint64_t name = 0;
    pthread_mutex_lock(&syncs->lock);
    for (uint32_t i = syncs->held_count; i-- > 0 && name == 0;) {
        uint32_t index = syncs->held[i];
        if (syncs->objects[index].pe == object.pe && syncs->objects[index].index == object.index) {
            syncs->held[i] = syncs->held[--syncs->held_count];
            name = name_of(dsm, index);
        }
    }
    pthread_mutex_unlock(&syncs->lock);
    return name;
}

/* The node by which this PE takes the lock that it has retained; 0: it has not. */
static uint64_t take_retained(struct quoit_dsm *dsm, struct quoit_dsm_object object)
{
    struct quoit_dsm_syncs *syncs = dsm->syncs;
    pthread_mutex_lock(&syncs->lock);
    uint64_t name = *retained_at(syncs, object);
    if (name != 0 && !take_back(dsm, name))
        name = 0;
    dsm->stats.locks_retaken += name != 0;
    pthread_mutex_unlock(&syncs->lock);
    return name;
}

/* Joins the queue behind its node `last`, and waits for the lock. Returns the grant. A try that took the lock after
 * `last` released it is in between. */
static uint64_t queue_behind(struct quoit_dsm *dsm, uint64_t last, uint64_t name)
{
    uint64_t next = CLAIMED | last;
    while (next & CLAIMED) {
        last = next & ~CLAIMED;
        show_known(dsm, pe_of(last));
        next = quoit_dsm_swap(dsm, &node_of(dsm, last)->next, name, pe_of(last));
    }
    if (next != 0)
        return (uint64_t)pe_of(last) + 1;
    __atomic_fetch_add(&dsm->stats.locks_waited, 1, __ATOMIC_RELAXED);
    return quoit_dsm_wait_not(dsm, &node_of(dsm, name)->flag, 0);
}

void quoit_dsm_object_lock(struct quoit_dsm *dsm, struct quoit_dsm_object object)
{
    uint64_t name = take_retained(dsm, object);
    if (name == 0) {
        name = take_node(dsm, 0);
        uint64_t before = quoit_dsm_swap(dsm, lock_word(dsm, object), HELD | name, object.pe);
        if (before & HELD)
            before = queue_behind(dsm, before & ~HELD, name);
        if (before != 0)
            acquire(dsm, name, before);
    }
    remember_held(dsm, object, name);
}

/* Takes a lock that `last`, the last node of its queue, has released and retained. A node that joined the queue
 * meanwhile comes behind `name`. */
static bool claim(struct quoit_dsm *dsm, struct quoit_dsm_object object, uint64_t last, uint64_t name)
{
    uint64_t *next = &node_of(dsm, last)->next;
    if (quoit_dsm_compare_swap(dsm, next, FREE | last, CLAIMED | name, pe_of(last)) != (FREE | last))
        return false;
    if (quoit_dsm_compare_swap(dsm, lock_word(dsm, object), HELD | last, HELD | name, object.pe) == (HELD | last))
        quoit_dsm_set(dsm, next, name, pe_of(last));
    return true;
}

bool quoit_dsm_object_try(struct quoit_dsm *dsm, struct quoit_dsm_object object)
{
    uint64_t name = take_retained(dsm, object);
    if (name == 0) {
        uint64_t before = quoit_dsm_fetch(dsm, lock_word(dsm, object), object.pe), last = before & ~HELD;
        name = take_node(dsm, 0);
        bool is_mine = before & HELD ? claim(dsm, object, last, name)
                                     : quoit_dsm_compare_swap(dsm, lock_word(dsm, object), before, HELD | name,
                                                              object.pe) == before;
        if (!is_mine) {
            give_node(dsm, name);
            return false;
        }
        if (before != 0)
            acquire(dsm, name, before & HELD ? (uint64_t)pe_of(last) + 1 : before);
    }
    remember_held(dsm, object, name);
    return true;
}

bool quoit_dsm_object_unlock(struct quoit_dsm *dsm, struct quoit_dsm_object object)
{
    uint64_t name = forget_held(dsm, object);
    if (name == 0)
        return false;
    release(dsm);
    pthread_mutex_lock(&dsm->syncs->lock);
    uint64_t next = retain_or_free(dsm, name);
    pthread_mutex_unlock(&dsm->syncs->lock);
    if (next != 0)
        pass_on(dsm, next);
    return true;
}

/* Monitors */

static struct quoit_dsm_monitor *monitor_at(const struct quoit_dsm *dsm, struct quoit_dsm_object object)
{
    return &dsm->syncs->rows[object.index].monitor;
}

struct quoit_dsm_monitor quoit_dsm_monitor_enter(struct quoit_dsm *dsm, struct quoit_dsm_object object)
{
    struct quoit_dsm_monitor monitor;
    quoit_dsm_object_lock(dsm, object);
    quoit_dsm_get(dsm, &monitor, monitor_at(dsm, object), sizeof monitor, object.pe);
    return monitor;
}

/* The lock passes to its next holder without the PE that keeps the state, so the state must arrive before. */
void quoit_dsm_monitor_leave(struct quoit_dsm *dsm, struct quoit_dsm_object object,
                             const struct quoit_dsm_monitor *monitor)
{
    quoit_dsm_put(dsm, monitor_at(dsm, object), monitor, sizeof *monitor, object.pe);
    quoit_dsm_settle(dsm);
    bool was_held = quoit_dsm_object_unlock(dsm, object);
    quoit_assert(was_held);
}

void quoit_dsm_monitor_reset(struct quoit_dsm *dsm, struct quoit_dsm_object object)
{
    static const struct quoit_dsm_monitor zero;
    quoit_dsm_monitor_enter(dsm, object);
    quoit_dsm_monitor_leave(dsm, object, &zero);
}

/* Waiters */

uint64_t quoit_dsm_waiter_append(struct quoit_dsm *dsm, struct quoit_dsm_monitor *monitor, uint64_t kind)
{
    uint64_t name = take_node(dsm, kind);
    if (monitor->tail != 0) {
        quoit_dsm_set(dsm, &node_of(dsm, monitor->tail)->next, name, pe_of(monitor->tail));
        quoit_dsm_settle(dsm);
    } else {
        monitor->head = name;
    }
    monitor->tail = name;
    return name;
}

uint64_t quoit_dsm_waiter_next(struct quoit_dsm *dsm, uint64_t waiter)
{
    return quoit_dsm_fetch(dsm, &node_of(dsm, waiter)->next, pe_of(waiter));
}

uint64_t quoit_dsm_waiter_kind(struct quoit_dsm *dsm, uint64_t waiter)
{
    return quoit_dsm_fetch(dsm, &node_of(dsm, waiter)->kind, pe_of(waiter));
}

uint64_t quoit_dsm_waiter_pop(struct quoit_dsm *dsm, struct quoit_dsm_monitor *monitor)
{
    uint64_t first = monitor->head;
    if (first == 0)
        return 0;
    monitor->head = first == monitor->tail ? 0 : quoit_dsm_waiter_next(dsm, first);
    if (monitor->head == 0)
        monitor->tail = 0;
    return first;
}

bool quoit_dsm_waiter_remove(struct quoit_dsm *dsm, struct quoit_dsm_monitor *monitor, uint64_t waiter)
{
    uint64_t before = 0, at = monitor->head;
    while (at != 0 && at != waiter) {
        before = at;
        at = quoit_dsm_waiter_next(dsm, at);
    }
    if (at == 0)
        return false;
    uint64_t after = quoit_dsm_waiter_next(dsm, waiter);
    if (before == 0)
        monitor->head = after;
    else
        quoit_dsm_set(dsm, &node_of(dsm, before)->next, after, pe_of(before));
    if (monitor->tail == waiter)
        monitor->tail = before;
    quoit_dsm_settle(dsm);
    return true;
}

bool quoit_dsm_waiter_wait(struct quoit_dsm *dsm, uint64_t waiter, uint64_t deadline_ns)
{
    uint64_t *flag = &node_of(dsm, waiter)->flag, grant = 0;
    if (deadline_ns == UINT64_MAX)
        grant = quoit_dsm_wait_not(dsm, flag, 0);
    while (grant == 0 && (grant = quoit_dsm_fetch(dsm, flag, dsm->me)) == 0) {
        if (quoit_dsm_now_ns() >= deadline_ns)
            return false;
        nanosleep(&(struct timespec){0, POLL_NS}, NULL);
    }
    acquire(dsm, waiter, grant);
    return true;
}

void quoit_dsm_waiter_wake(struct quoit_dsm *dsm, uint64_t waiter)
{
    if (waiter != 0)
        pass_on(dsm, waiter);
}

/* A woken waiter frees its node, so the next is read before. */
void quoit_dsm_waiter_wake_chain(struct quoit_dsm *dsm, uint64_t first)
{
    while (first != 0) {
        uint64_t next = quoit_dsm_waiter_next(dsm, first);
        quoit_dsm_waiter_wake(dsm, first);
        first = next;
    }
}

void quoit_dsm_waiter_free(struct quoit_dsm *dsm, uint64_t waiter)
{
    give_node(dsm, waiter);
}

/* Checkpoints */

/* Not if it is only retained. */
static bool is_held(struct quoit_dsm *dsm, const struct row *row)
{
    uint64_t last = row->lock & ~HELD;
    return (row->lock & HELD) && quoit_dsm_fetch(dsm, &node_of(dsm, last)->next, pe_of(last)) != (FREE | last);
}

int quoit_dsm_syncs_save(struct quoit_dsm *dsm, struct quoit_dsm_saved **saved_out, uint64_t *count_out)
{
    uint64_t rows = dsm->options.values[QUOIT_DSM_SYNCS], count = 0;
    struct quoit_dsm_saved *saved = malloc(rows * sizeof *saved);
    if (!saved)
        return ENOMEM;
    for (uint64_t i = 0; i < rows; i++) {
        const struct row *row = &dsm->syncs->rows[i];
        if (row->monitor.inside != 0 || row->monitor.head != 0 || is_held(dsm, row)) {
            free(saved);
            return EBUSY;
        }
        if (row->monitor.value != 0)
            saved[count++] = (struct quoit_dsm_saved){row->address, row->monitor.value};
    }
    *saved_out = saved;
    *count_out = count;
    return 0;
}

void quoit_dsm_syncs_clear(struct quoit_dsm *dsm)
{
    for (uint64_t i = 0; i < dsm->options.values[QUOIT_DSM_SYNCS]; i++)
        dsm->syncs->rows[i].monitor.value = 0;
}

void quoit_dsm_syncs_restore(struct quoit_dsm *dsm, const struct quoit_dsm_saved *saved)
{
    struct quoit_dsm_object object = quoit_dsm_object(dsm, (const void *)saved->address, "dsm_restart");
    struct quoit_dsm_monitor monitor = {.value = saved->value};
    quoit_dsm_monitor_enter(dsm, object);
    quoit_dsm_monitor_leave(dsm, object, &monitor);
}
