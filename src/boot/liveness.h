/* SPDX-License-Identifier: BSD-3-Clause */
/* liveness.h - detects that PEs wait for what can never come, because another has left the job. For jobs without
 * oshrun.
 *
 * That a PE of a host is elsewhere, though another has passed shmem_finalize, the agent of that host finds in its
 * records; of other hosts it knows when their PEs have passed it. The agent of host 0 reports it. That the PEs of all
 * hosts wait for one in shmem_finalize it decides by rounds (rounds.h): the agent of host 0 asks those of
 * the others, through the proxies, once one of them has such a PE (control.h), and while all PEs of its own host
 * sleep in a routine: so it finds a job in which every PE waits, and reports that.
 */
#ifndef QUOIT_BOOT_LIVENESS_H
#define QUOIT_BOOT_LIVENESS_H

#include <stdint.h>
#include <sys/types.h>

#include "boot/boot.h"
#include "boot/looks.h"
#include "boot/proxy_process.h"
#include "boot/report.h"
#include "boot/silence.h"

struct quoit_liveness {
    const struct quoit_boot *host; /* layout, and the memory as far as the records */
    const struct quoit_hosts *hosts;
    pid_t *processes;              /* [local_count]; 0: unknown, or it has ended */
    pid_t proxy;                   /* of this host; 0: none */
    struct quoit_looks_seen *seen; /* [local_count], zero at first */
    bool has_left;                 /* PEs of another host have passed shmem_finalize since all were ready, of which: */
    struct quoit_control_left left;
    struct quoit_silences silences; /* opened by the owner; what this host finds, and what it is to report */
    uint64_t next_ns;               /* when the records are looked at again */
    uint64_t asked_ns;              /* when a round was begun, or asked for; 0: never */
    /* Of host 0: */
    struct quoit_rounds rounds;
    bool is_due; /* some host has a PE in shmem_finalize, since the last round began */
};

enum quoit_liveness_verdict {
    QUOIT_LIVENESS_FINE,
    QUOIT_LIVENESS_LEFT, /* reported: the job is to be ended */
};

/* Where the PEs of this host are, but that of the job's number `except`. goes_on: the job does; else programs in Python
 * are asked for their lines, and do not go on. */
void quoit_liveness_write_places(const struct quoit_liveness *liveness, const struct quoit_report *report,
                                 uint32_t except, bool goes_on);
/* All PEs of the job are ready, or ready again. */
void quoit_liveness_begin(struct quoit_liveness *liveness);
/* For HOST_FINALIZED: all PEs of this host have passed shmem_finalize. */
struct quoit_control_left quoit_liveness_left(const struct quoit_liveness *liveness);
/* Looks for PEs that are elsewhere while another has passed shmem_finalize, at most about once a second. proxy_fd: -1
 * if there is one host. */
enum quoit_liveness_verdict quoit_liveness_step(struct quoit_liveness *liveness, int proxy_fd, uint64_t now_ns);
/* Begins a round, or asks host 0 for one, while a PE of a host is in shmem_finalize. */
enum quoit_liveness_verdict quoit_liveness_ask(struct quoit_liveness *liveness, int proxy_fd, uint64_t now_ns);
/* SILENCE, found by this host's proxy or by another one. Each host has one agent to which the others pass what they
 * find of it, and which prints the lines. False: that is another one. */
bool quoit_liveness_take_silence(struct quoit_liveness *liveness, uint32_t by,
                                 const struct quoit_control_silence *found);
/* LEAVING, LEFT, ELSEWHERE, STILL or STILL_SEEN of another host. The last answer of a round decides. */
enum quoit_liveness_verdict quoit_liveness_take(struct quoit_liveness *liveness, int proxy_fd, uint32_t host,
                                                enum quoit_control_kind kind, const union quoit_control_body *body);

#endif
