/* SPDX-License-Identifier: BSD-3-Clause */
/* service.h - the launcher's side of the boot protocol (src/boot/protocol.h). */
#ifndef OSHRUN_SERVICE_H
#define OSHRUN_SERVICE_H

#include "job.h"

void service_watch(struct pe *pe, int socket_fd);
/* Takes all pending messages of a PE, before its end is judged. */
void service_drain(struct pe *pe);
/* Sends LAYOUT and GO when they are due. Called once per turn of the loop. */
void service_step(struct job *job);

#endif
