/* SPDX-License-Identifier: BSD-3-Clause */
/* awaited.h - those for whom a supervisor waits, and the one of them that it names. Threads: one. */
#ifndef QUOIT_BOOT_AWAITED_H
#define QUOIT_BOOT_AWAITED_H

#include <stdint.h>
#include <sys/types.h>

#include "env/await.h"
#include "env/process.h"

/* Zero but for view.is_idle, which is true, at first. Of the one that is named, a stopped one if there is any: */
struct quoit_awaited {
    uint32_t number; /* the caller's */
    pid_t process;   /* 0: not known */
    uint32_t count;  /* of all */
    struct quoit_process facts;
    struct quoit_await_view view; /* of all */
};

/* One more. facts: of its process now; before_ns: the processor time that it had used at the look before. */
void quoit_awaited_add(struct quoit_awaited *awaited, uint32_t number, pid_t process, const struct quoit_process *facts,
                       uint64_t before_ns);
/* The same of a process of this machine, which is looked at, 0: not known. *busy_ns: as before_ns, then as of now. */
void quoit_awaited_look(struct quoit_awaited *awaited, uint32_t number, pid_t process, uint64_t *busy_ns);

#endif
