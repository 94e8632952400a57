/* SPDX-License-Identifier: BSD-3-Clause */
#include "port/emulated/opening.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/log.h"
#include "env/map.h"

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

/* Makes whole pages of the peer's memory accessible, by mmap: Valgrind's memcheck looks at each byte of what mprotect
 * makes accessible, and takes minutes. mprotect does it where the program has closed the file. */
static bool open_pages(const struct quoit_emulated_port *port, uint64_t start, uint64_t bytes)
{
    struct stat file;
    char *at = port->peer_memory + start;
    if (fstat(port->peer_memory_fd, &file) != 0 || file.st_dev != port->peer_device || file.st_ino != port->peer_inode)
        return mprotect(at, bytes, PROT_READ | PROT_WRITE) == 0;
    /* By the kernel itself: what is open already stays the same memory, which other threads read meanwhile; to a tool
     * that replaces mmap it would be a write. */
    if (syscall(SYS_mmap, at, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | MAP_NORESERVE,
                port->peer_memory_fd, (off_t)start) == -1)
        return false;
    quoit_map_leave_out(at, bytes);
    return true;
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
    if (!open_pages(port, start, offset + bytes - start)) {
        quoit_log(QUOIT_LOG_ERROR, "emulated port: access to offset %llu bytes %llu: %s", (unsigned long long)offset,
                  (unsigned long long)bytes, strerror(errno));
        return NULL;
    }
    return port->peer_memory + offset;
}

/* The same as grant() for a range that one of the views had, as after each outage. */
static char *find_open(const struct quoit_emulated_port *port, const struct quoit_emulated_view views[2],
                       uint64_t offset, uint64_t bytes)
{
    uintptr_t base = (uintptr_t)port->peer_memory + offset; /* of any offset: the peer's word is not checked yet */
    for (int i = 0; i < 2; i++)
        if (atomic_load_explicit(&views[i].address, memory_order_relaxed) == base && views[i].open_bytes >= bytes)
            return (char *)base;
    return NULL;
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
        char *base = bytes != 0 ? find_open(port, views, offset, bytes) : NULL;
        if (base == NULL && bytes != 0)
            base = grant(port, offset, bytes);
        atomic_store_explicit(&view->key, QUOIT_EMULATED_VIEW_NONE, memory_order_relaxed);
        atomic_store_explicit(&view->address, (uintptr_t)base, memory_order_release);
        view->open_bytes = base != NULL ? bytes : 0;
        atomic_store_explicit(&view->second, base != NULL ? second : 0, memory_order_release);
        atomic_store_explicit(&view->key, current, memory_order_release); /* pairs with acquire in view_read() */
    }
    pthread_mutex_unlock(&port->refresh_lock);
}
