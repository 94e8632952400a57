/* SPDX-License-Identifier: BSD-3-Clause */
/* control.h - the control protocol: what the supervisors of a job's hosts send each other, whatever carries it.
 *
 * The head decides, and the agent of each host does what it orders. oshrun is the head of its jobs; remote shells carry
 * its frames (cmd/oshrun/control.h). Of another launcher's job the agent of host 0 is the head as well, and the proxies
 * of the hosts carry the frames (proxy_process.h). A frame has a kind and bytes, in the host's own byte order; which
 * versions understand each other is known before the first one (base/version.h).
 *
 * With oshrun, who starts the PEs:
 *
 *   head                           agent
 *   SETUP                   ->                       who you are, the command line, the environment
 *                           <-     MESSAGE pe        of boot/protocol.h, from a PE
 *   MAKE                    ->                       make the memory of your host, start its proxy
 *                           <-     CONTACT           of its proxy (lane/network.h)
 *   CONTACTS                ->                       of all of them
 *   SAY pe                  ->                       a message to a PE
 *                           <-     OUTPUT pe         what it printed; no bytes: it closes that output
 *   TAKEN                   <->                      so many bytes of output, or input, more may be sent
 *   INPUT                   ->                       for the standard input of PE 0; no bytes: its end
 *   SIGNAL                  ->                       for the PEs
 *                           <-     ENDED pe          its status
 *                           <-     PROXY, PROXY_ENDED
 *   STOP                    ->                       the PEs have ended: stop the proxy
 *   NOTE question           ->                       where your PEs are
 *   KILL question           ->                       the same, then kill them
 *                           <-     NOTES, RECORDS    that; RECORDS of PEs that were asked (enum end_question), and at
 *                                                    the end, for --stats, --stats-json and --profile
 *                           <-     PROFILE pe        once it has ended: where its time went (trace/profile.h)
 *                           <-     TRACE ring        likewise: some of its events (trace.h)
 *   SURVEY round            ->                       for quoit top: what your host carries, and where its PEs are
 *                           <-     SURVEYED          that (boot/summary.h)
 *   STILL                   ->                       whether your PEs wait, and hold locks (rounds.h)
 *                           <-     STILL_SEEN        that
 *                           <-     FAILED            it cannot do its part, and has reported why
 *                           <-     LOST host         the agent of another host, which it started, has ended or is
 *                                                    silent
 *                           <-     SHELL_ENDED host  status of the remote shell that had started that
 *                           <-     SILENT host       for how many ms nothing has come from the agent of another host,
 *                                                    which it started; 0: it is back
 *   ASK_PROXY               ->                       whether your proxy is there and cannot run
 *                           <-     PROXY_STOPPED     so it is
 *   PROXY_STOPPED host      ->                       to all: so is that of the host
 *   GIVES_UP                <->                      why this side ends the conversation
 *   PING                    <->                      nothing else was sent for a while
 *
 * Under another launcher, which has started the PEs; counted by the head (peers.h):
 *
 *                           <-     HOST_READY        all PEs of the host are
 *   WAITED                  ->                       by those that are, again; a host that is gone cannot be sent this
 *   GO                      ->                       those of all hosts are
 *                           <-     HOST_FINALIZED    all PEs of the host have passed shmem_finalize
 *   LEFT                    ->                       of the first host of which all have, and of one that left earlier
 *   LEAVE                   ->                       those of all hosts have: they may end
 *                           <-     LEAVING           a PE of the host is in shmem_finalize
 *                           <-     ELSEWHERE PEs     those of the host are not in shmem_finalize, as they must be when
 *                                                    another PE has passed it
 *   STILL, STILL_SEEN       <->                      as above
 *   END status              <->                      of any host to all: the job is ended, which was reported
 *   LAUNCHER_LOST           <->                      likewise: the launcher's process of the host has ended, and nobody
 *                                                    may see what that host prints: another one is to report it
 *   SILENCE host            <->                      to the agent that reports it (silence.h)
 *
 * LEAVING, ELSEWHERE, STILL, STILL_SEEN and SILENCE may be lost there where a process is stopped.
 */
#ifndef QUOIT_BOOT_CONTROL_H
#define QUOIT_BOOT_CONTROL_H

#include <stdbool.h>
#include <stdint.h>

#include "boot/rounds.h"
#include "host/pe_record.h"

#define QUOIT_CONTROL_TO_ALL        UINT32_MAX /* in the place of the host: all, or all below */
#define QUOIT_CONTROL_ELSEWHERE_MAX 4          /* PEs that are named */

enum quoit_control_kind {
    QUOIT_CONTROL_PING = 1,
    QUOIT_CONTROL_SETUP,
    QUOIT_CONTROL_MESSAGE,
    QUOIT_CONTROL_MAKE,
    QUOIT_CONTROL_CONTACTS,
    QUOIT_CONTROL_SAY,
    QUOIT_CONTROL_OUTPUT,
    QUOIT_CONTROL_TAKEN,
    QUOIT_CONTROL_INPUT,
    QUOIT_CONTROL_SIGNAL,
    QUOIT_CONTROL_ENDED,
    QUOIT_CONTROL_PROXY,
    QUOIT_CONTROL_PROXY_ENDED,
    QUOIT_CONTROL_LOOK,
    QUOIT_CONTROL_LOOKED,
    QUOIT_CONTROL_STOP,
    QUOIT_CONTROL_KILL,
    QUOIT_CONTROL_NOTE,
    QUOIT_CONTROL_NOTES,
    QUOIT_CONTROL_RECORDS,
    QUOIT_CONTROL_PROFILE,
    QUOIT_CONTROL_TRACE,
    QUOIT_CONTROL_SURVEY,
    QUOIT_CONTROL_SURVEYED,
    QUOIT_CONTROL_STILL,
    QUOIT_CONTROL_STILL_SEEN,
    QUOIT_CONTROL_FAILED,
    QUOIT_CONTROL_LOST,
    QUOIT_CONTROL_SHELL_ENDED,
    QUOIT_CONTROL_SILENT,
    QUOIT_CONTROL_ASK_PROXY,
    QUOIT_CONTROL_PROXY_STOPPED,
    QUOIT_CONTROL_GIVES_UP,
    QUOIT_CONTROL_HOST_READY,
    QUOIT_CONTROL_WAITED,
    QUOIT_CONTROL_GO,
    QUOIT_CONTROL_HOST_FINALIZED,
    QUOIT_CONTROL_LEFT,
    QUOIT_CONTROL_LEAVE,
    QUOIT_CONTROL_LEAVING,
    QUOIT_CONTROL_ELSEWHERE,
    QUOIT_CONTROL_END,
    QUOIT_CONTROL_LAUNCHER_LOST,
    QUOIT_CONTROL_SILENCE,
    QUOIT_CONTROL_KIND_COUNT,
};

struct quoit_control_frame {
    uint32_t kind;
    uint32_t pe; /* or what the kind says */
    uint32_t bytes;
    uint32_t host; /* whose agent sent it, or receives it */
};

/* Of HOST_FINALIZED and LEFT: of the PEs of a host, which have passed shmem_finalize, the one that had taken part in
 * the fewest collectives of the world before. */
struct quoit_control_left {
    uint64_t meeting_count;
    uint32_t pe;
    uint32_t how; /* enum quoit_report_leaving */
};

struct quoit_control_where {
    uint32_t pe;
    char call[QUOIT_CALL_NAME_BYTES];   /* in which it waits; "": none */
    char line[QUOIT_SOURCE_LINE_BYTES]; /* of a program in Python; "": not known */
};

/* PEs that are elsewhere, though `left` has passed shmem_finalize. */
struct quoit_control_elsewhere {
    uint32_t left;
    uint32_t how; /* that has left; enum quoit_report_leaving */
    uint32_t count;
    struct quoit_control_where pes[QUOIT_CONTROL_ELSEWHERE_MAX];
};

/* What a host finds of another one. */
struct quoit_control_silence {
    uint32_t host;
    uint32_t silence;   /* enum quoit_net_silence */
    uint64_t silent_ns; /* so far, or until something came again */
    uint64_t dark_ns;   /* since its machine gave a sign */
};

/* The bytes of a frame that proxies carry. */
union quoit_control_body {
    struct quoit_control_left left;
    struct quoit_control_elsewhere elsewhere;
    struct quoit_rounds_question question;
    struct quoit_rounds_answer answer;
    struct quoit_control_silence silence;
    int32_t status;
};

/* How many bytes a frame of this kind has, that proxies carry; -1: they carry none of the kind. */
int quoit_control_bytes(uint32_t kind);
/* Whether such a frame is not waited for where a process is stopped. */
bool quoit_control_may_be_lost(uint32_t kind);

#endif
