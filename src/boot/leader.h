/* SPDX-License-Identifier: BSD-3-Clause */
/* leader.h - the processes of one machine find something out once: the first that comes is the leader, finds it out and
 * publishes it for the others.
 *
 * What a process receives is a hint: it finds out by itself when there is no leader, or the leader ends, or sends
 * nothing
 * that it understands. A process that comes when the leader has left becomes another leader. So nothing depends on who
 * lives how long.
 *
 * Threads: one at a time. A leader whose processes have all come waits for nothing.
 */
#ifndef QUOIT_BOOT_LEADER_H
#define QUOIT_BOOT_LEADER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum quoit_leader_role {
    QUOIT_LEADER_NONE,  /* this process finds out by itself */
    QUOIT_LEADER_SELF,  /* it does, and publishes it */
    QUOIT_LEADER_OTHER, /* it receives that */
};

/* name: what the processes share and no others know, below QUOIT_ABSTRACT_NAME_BYTES. fd_out: for one of the calls
 * below, which closes it; -1: NONE. */
enum quoit_leader_role quoit_leader_meet(const char *name, int *fd_out);
/* OTHER: waits for what the leader publishes. False: not these bytes. */
bool quoit_leader_receive(int fd, void *bytes_out, size_t bytes);
/* SELF: sends it to `count` processes, or those that come before a while without any. 0: has nothing to publish. */
void quoit_leader_publish(int fd, const void *word, size_t bytes, uint32_t count);

#endif
