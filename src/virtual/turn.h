/* SPDX-License-Identifier: BSD-3-Clause */
/* turn.h - what the files of this folder share: this process's and this thread's place at the clock. */
#ifndef QUOIT_VIRTUAL_TURN_H
#define QUOIT_VIRTUAL_TURN_H

#include "virtual/clock.h"

#define QUOIT_VIRTUAL_NOBODY QUOIT_VIRTUAL_THREADS_MAX

extern struct quoit_virtual *quoit_virtual_clock; /* NULL: there is none */
extern _Thread_local uint32_t quoit_virtual_self; /* index of this thread; NOBODY: it has none */
extern _Thread_local bool quoit_virtual_is_here;  /* and it has come to have turns */

/* With the lock: gives the turn to whose it is now, and returns when it is this thread's again, or all is over. */
void quoit_virtual_pass(struct quoit_virtual *clock);
/* Of a service thread, once the clock goes: from now on it has turns. Returns in its first. */
void quoit_virtual_come(void);

/* primitives.c. Makes this process use the clock; undoes it. */
void quoit_virtual_attach(void);
void quoit_virtual_detach(void);
/* From now on the calling thread computes; how long it has, where that is measured. */
void quoit_virtual_compute(void);
uint64_t quoit_virtual_computed_ns(void);

#endif
