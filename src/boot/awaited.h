/* SPDX-License-Identifier: BSD-3-Clause */
/* awaited.h - those for whom an agent waits in a start, and the one of them that it names. Threads: the agent's only
 * one. */
#ifndef QUOIT_BOOT_AWAITED_H
#define QUOIT_BOOT_AWAITED_H

#include <stdint.h>
#include <sys/types.h>

#include "env/await.h"
#include "env/process.h"

#define QUOIT_AWAITED_TEXT_BYTES 320

/* Zero but for view.is_idle, which is true, at first. Of the one that is named, a stopped one if there is any: */
struct quoit_awaited {
    uint32_t number; /* the caller's */
    pid_t process;   /* 0: not known */
    uint32_t count;  /* of all */
    struct quoit_process facts;
    struct quoit_await_view view; /* of all */
};

/* busy_ns: the processor time that the process had used when it was last added, and has used now. */
void quoit_awaited_add(struct quoit_awaited *awaited, uint32_t number, pid_t process, uint64_t *busy_ns);
/* "PE 3 (process 77) in shmem_init, after 10 s". */
void quoit_awaited_text(const struct quoit_awaited *awaited, const char *name, uint64_t waited_ns,
                        char text_out[QUOIT_AWAITED_TEXT_BYTES]);

#endif
