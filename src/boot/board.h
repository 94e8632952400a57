/* SPDX-License-Identifier: BSD-3-Clause */
/* board.h - where the proxies of one machine read what joins the hosts of their job: a memory that who started them
 * writes and they map. It has the contacts of all hosts, and for each host when it was last seen to be there.
 *
 * Threads: one writer; readers of contacts begin after CONTACTS (proxy_process.h).
 */
#ifndef QUOIT_BOOT_BOARD_H
#define QUOIT_BOOT_BOARD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "lane/network.h"

struct quoit_board {
    int fd; /* -1: not opened */
    uint32_t host_count;
    uint32_t contact_count;                        /* hosts whose contact stands there */
    char (*contacts)[QUOIT_NETWORK_CONTACT_BYTES]; /* then: the times of signs */
};

static inline size_t quoit_board_bytes(uint32_t host_count)
{
    return host_count * (QUOIT_NETWORK_CONTACT_BYTES + sizeof(_Atomic uint64_t));
}
/* [host_count] times on the monotonic clock of this machine when the proxy of a host was last seen to be there, though
 * it is stopped or waits for a disk; 0: never. */
static inline _Atomic uint64_t *quoit_board_signs(const void *contacts, uint32_t host_count)
{
    return (_Atomic uint64_t *)((uintptr_t)contacts + (size_t)host_count * QUOIT_NETWORK_CONTACT_BYTES);
}

/* NO_MEMORY: errno says why; nothing was reported. */
QUOIT_MUST_USE enum quoit_status quoit_board_open(struct quoit_board *board, uint32_t host_count);
/* Each host once. True: this was the last one. */
bool quoit_board_add(struct quoit_board *board, uint32_t host, const void *contact);
/* All at once. */
void quoit_board_fill(struct quoit_board *board, const void *contacts);
/* A host is there now. */
void quoit_board_note_sign(struct quoit_board *board, uint32_t host);

#endif
