/* SPDX-License-Identifier: BSD-3-Clause */
/* lost.h - another host, or the launcher's process on one, is lost, by which a job ends.
 *
 * The agents of all hosts that are left learn of it at about the same time. One of them reports it at once; the others
 * wait a while for that one's END before they do. No I/O but the line. Threads: the agent's only one.
 */
#ifndef QUOIT_BOOT_LOST_H
#define QUOIT_BOOT_LOST_H

#include <stdbool.h>
#include <stdint.h>

#include "boot/hosts.h"
#include "host/layout.h"

/* All zero at first. */
struct quoit_lost {
    bool is_known;
    bool is_launcher; /* the host is there, and the launcher's process on it has ended */
    uint32_t host;
    uint64_t report_ns; /* when to report it */
};

/* Once: what is lost later follows from it. own_host is another one than `host`. */
void quoit_lost_note(struct quoit_lost *lost, uint32_t own_host, uint32_t host, bool is_launcher, uint64_t now_ns);
bool quoit_lost_is_due(const struct quoit_lost *lost, uint64_t now_ns);
/* The line for the user. */
void quoit_lost_report(const struct quoit_lost *lost, const struct quoit_hosts *hosts,
                       const struct quoit_job_config *job);

#endif
