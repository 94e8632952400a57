/* SPDX-License-Identifier: BSD-3-Clause */
/* pe_record.h - what a PE publishes: its identity, what it waits for, how it crashed. */
#ifndef QUOIT_HOST_PE_RECORD_H
#define QUOIT_HOST_PE_RECORD_H

#include <stdatomic.h>
#include <stdint.h>

#include "env/park.h"
#include "host/lane_record.h"

#define QUOIT_CALL_NAME_BYTES   48
#define QUOIT_SOURCE_LINE_BYTES 96 /* "program.py:12" */

/* How a PE crashed. Its crash handler (boot/crash.h) writes it; the launcher reads it after the PE died. */
struct quoit_crash_record {
    _Atomic uint32_t signal; /* 0: none. Written last */
    uint32_t is_inside;      /* the crash was inside a library; `instruction` is the return address in the program */
    uint64_t fault_address;  /* of SIGSEGV, SIGBUS */
    uint64_t instruction;    /* in the program; 0: unknown */
    uint64_t call_from;      /* return address of the API routine last entered */
    char call[QUOIT_CALL_NAME_BYTES];
    uint64_t unused[6];
};
_Static_assert(sizeof(struct quoit_crash_record) == 128, "two cache lines");

/* What a PE waits for, in addition to the name of the call. */
struct quoit_wait_desc {
    uint64_t offset;  /* segment offset of the object; of several, of the first that is not as wanted, or of any */
    uint64_t address; /* of that, or of the lock, in the program's file; 0: it is no variable of the program */
    uint64_t wanted;  /* the value it is compared with; for LOCK: the bits set in the holder's word */
    uint32_t count;   /* of objects; 0: unknown */
    uint8_t bytes;    /* of an object */
    uint8_t cmp;      /* SHMEM_CMP_ constants */
    uint8_t is_signed;
    uint8_t is_lock; /* each PE has such a word, and the report names the holder */
};
_Static_assert(sizeof(struct quoit_wait_desc) == 32, "four words, copied one by one");

/* What a PE put, fetched and sent over an end of its own on the network that joins the hosts. */
struct quoit_pe_endpoint_count {
    _Atomic uint64_t put_count;
    _Atomic uint64_t put_bytes;
    _Atomic uint64_t get_count;
    _Atomic uint64_t get_bytes;
    _Atomic uint64_t message_count;
    _Atomic uint64_t message_bytes;
};

/* Polls in vain: tests that do not hold, locks that are not free, reads that find the same value of the same word. A
 * round is QUOIT_POLL_ROUND of them in a row. */
#define QUOIT_POLL_ROUND 16u
struct quoit_poll_count {
    _Atomic uint64_t round_count;
    _Atomic uint64_t slow_count; /* rounds after which the program did something else before it polled again */
    _Atomic uint64_t met_count;  /* polls after a round or more that were not in vain */
};

struct quoit_pe_shared {
    struct quoit_park park; /* the PE sleeps here; woken by local PEs, the proxy, and the neighbours' doorbells */
    /* writer of all that follows: the PE */
    char waiting_in[QUOIT_CALL_NAME_BYTES];           /* API routine in which the PE sleeps now, "" while it runs */
    _Atomic uint64_t waiting_from;                    /* its return address in the PE */
    _Atomic uint64_t waiting_since_ns;                /* start of that sleep, or of the first of several */
    _Atomic uint32_t pid;                             /* of the PE, from shmem_init to shmem_finalize; else 0 */
    _Atomic uint32_t process;                         /* the same, set once, before the PE is ready */
    _Atomic uint64_t load_base;                       /* where the program is loaded; set once */
    struct quoit_link_count direct[QUOIT_SIDE_COUNT]; /* direct puts of this PE */
    _Atomic uint64_t posted_count[QUOIT_SIDE_COUNT];  /* the last direct put with a mark; survives a finalize and a
                                                       * later shmem_init */
    struct quoit_pe_endpoint_count pe_endpoint;
    struct quoit_poll_count polls;
    /* What is under way by an end of its own on a network, which only looks of this PE complete: waits do not sleep
     * long, and the job does not stand still (boot/still.h). */
    _Atomic uint32_t under_way_count;
    struct quoit_crash_record crash;
    _Atomic uint32_t processor; /* where it last yielded, + 1; 0: never */
    /* Where `process` has mapped this memory, for copies by process_vm_writev. Set once, before the PE is ready. */
    _Atomic uint64_t memory_base;
    struct quoit_wait_desc wait_desc; /* while waiting_in is not "" */
    /* The last message of the PE that did not reach the launcher: the program closed the boot socket. Writer: the PE,
     * `unsent_kind` last (release); pairs with an acquire in the launcher. */
    _Atomic uint32_t unsent_kind; /* enum quoit_boot_kind; 0: none */
    uint32_t unsent_status;       /* of ABORT and EXITED; of LEAVING and FINALIZED: whether by an exit */
    uint64_t unsent_meetings;     /* of LEAVING */
    _Atomic uint32_t outer_pid;   /* writer: the launcher, once. The PE's process in the launcher's pid namespace */
    /* Writer: who is about to end the job, before it sends SIGURG to learn where the PE is. See boot/crash.h. */
    _Atomic uint32_t is_asked;
    _Atomic uint32_t waiting_thread;    /* that sleeps in waiting_in, in the PE's pid namespace */
    _Atomic uint32_t has_interpreter;   /* the program is one in Python; set once, before the PE is ready */
    char line[QUOIT_SOURCE_LINE_BYTES]; /* of that program; part of the answer, "": unknown */
};

#endif
