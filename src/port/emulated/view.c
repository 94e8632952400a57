/* SPDX-License-Identifier: BSD-3-Clause */
#include "port/emulated/opening.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/log.h"

void quoit_emulated_pair_set(struct quoit_emulated_pair *pair, uint32_t outage_count, uint64_t first, uint64_t second)
{
    uint32_t change_count = (uint32_t)atomic_load_explicit(&pair->current, memory_order_relaxed) + 1;
    /* Release, so that a reader that meets one of these values also sees the `current` that gave up this entry. */
    atomic_store_explicit(&pair->entry[change_count & 1].first, first, memory_order_release);
    atomic_store_explicit(&pair->entry[change_count & 1].second, second, memory_order_release);
    atomic_store_explicit(&pair->current, (uint64_t)outage_count << 32 | change_count, memory_order_release);
}

bool quoit_emulated_pair_get(const struct quoit_emulated_pair *pair, uint64_t *current_out, uint64_t *first_out,
                             uint64_t *second_out)
{
    *current_out = atomic_load_explicit(&pair->current, memory_order_acquire);
    for (uint32_t look = 0; look < QUOIT_EMULATED_LOOKS; look++) {
        const uint64_t current = *current_out;
        *first_out = atomic_load_explicit(&pair->entry[current & 1].first, memory_order_acquire);
        *second_out = atomic_load_explicit(&pair->entry[current & 1].second, memory_order_acquire);
        *current_out = atomic_load_explicit(&pair->current, memory_order_acquire);
        if (*current_out == current)
            return true;
    }
    return false;
}

/* Makes peer memory [offset, offset + bytes) accessible; NULL if the peer has no such memory. */
static char *grant(struct quoit_emulated_port *port, uint64_t offset, uint64_t bytes)
{
    if (offset > port->peer_memory_bytes || bytes > port->peer_memory_bytes - offset) {
        quoit_log(QUOIT_LOG_ERROR, "emulated port: the peer translated offset %llu bytes %llu, but its memory has %llu",
                  (unsigned long long)offset, (unsigned long long)bytes, (unsigned long long)port->peer_memory_bytes);
        return NULL;
    }
    uint64_t page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);
    uint64_t start = offset & ~(page_bytes - 1);
    if (mprotect(port->peer_memory + start, offset + bytes - start, PROT_READ | PROT_WRITE) != 0) {
        quoit_log(QUOIT_LOG_ERROR, "emulated port: mprotect of offset %llu bytes %llu: %s", (unsigned long long)offset,
                  (unsigned long long)bytes, strerror(errno));
        return NULL;
    }
    return port->peer_memory + offset;
}

void quoit_emulated_view_refresh(struct quoit_emulated_port *port, const struct quoit_emulated_pair *pair,
                                 struct quoit_emulated_view views[2], uint64_t (*extent_of)(uint64_t second))
{
    pthread_mutex_lock(&port->refresh_lock);
    uint64_t current, offset, second;
    bool is_whole = quoit_emulated_pair_get(pair, &current, &offset, &second);
    struct quoit_emulated_view *view = &views[current & 1];
    if (is_whole && atomic_load_explicit(&view->key, memory_order_relaxed) != current) {
        uint64_t bytes = extent_of(second);
        char *base = bytes != 0 ? grant(port, offset, bytes) : NULL;
        atomic_store_explicit(&view->key, QUOIT_EMULATED_VIEW_NONE, memory_order_relaxed);
        atomic_store_explicit(&view->address, (uintptr_t)base, memory_order_release);
        atomic_store_explicit(&view->second, base != NULL ? second : 0, memory_order_release);
        atomic_store_explicit(&view->key, current, memory_order_release); /* pairs with acquire in view_read() */
    }
    pthread_mutex_unlock(&port->refresh_lock);
}
