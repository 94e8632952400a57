/* SPDX-License-Identifier: BSD-3-Clause */
/* service.h - the launcher's side of the boot protocol (src/boot/protocol.h). */
#ifndef OSHRUN_SERVICE_H
#define OSHRUN_SERVICE_H

#include <limits.h>

#include "job.h"

/* What an agent passes on of a PE: the message and, with HELLO, what follows it here. */
struct service_passed {
    struct quoit_boot_message message;
    uint64_t heap_default_bytes; /* on the PE's machine */
    char executable[PATH_MAX];
};

void service_watch(struct pe *pe, int socket_fd);
/* Takes all pending messages of a PE, before its end is judged. */
void service_drain(struct pe *pe);
/* On shmem_global_exit: kills all PEs but those that called it. */
void service_kill_others(struct job *job);
/* Of the head: takes what an agent passed on; of an agent: gives a PE what the head sent, with the memory. */
void service_receive(struct pe *pe, const struct service_passed *passed);
void service_pass(struct pe *pe, const struct quoit_boot_message *message);
/* Sends LAYOUT and GO when they are due. Called once per turn of the loop. */
void service_step(struct job *job);

#endif
