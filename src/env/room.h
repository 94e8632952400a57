/* SPDX-License-Identifier: BSD-3-Clause */
/* room.h - memory that is taken piece by piece, as long as machine and control groups have it.
 *
 * The kernel ends a process that touches a page for which a group has no memory left, so what is free is looked at
 * first. A look reads several files, some 100 us. It therefore permits its caller to take more without another one: a
 * part of what is free, at most QUOIT_ROOM_LOOK_BYTES, since the program and others take memory too.
 *
 * Threads: any; two that take at once may together exceed one permission.
 */
#ifndef QUOIT_ENV_ROOM_H
#define QUOIT_ENV_ROOM_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/status.h"

#define QUOIT_ROOM_SPARE_BYTES (64u << 20) /* left to the rest of the machine */
#define QUOIT_ROOM_LOOK_BYTES  (32u << 20)

/* All zero at first. */
struct quoit_room {
    _Atomic uint64_t permitted_bytes;
};

/* Allocates the pages of `bytes` of a shared, writable mapping, in small pages; contents are preserved. taker_count:
 * how many on this machine may do so, each with a room of its own. Returns 0, also if all of it was allocated before;
 * ENOMEM if less than QUOIT_ROOM_SPARE_BYTES would remain free, and then nothing was allocated; or the errno of the
 * kernel's refusal. */
QUOIT_MUST_USE int quoit_room_take(struct quoit_room *room, void *start, uint64_t bytes, uint32_t taker_count);

#endif
