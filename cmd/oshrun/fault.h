/* SPDX-License-Identifier: BSD-3-Clause */
/* fault.h - the faults of --fault: links that go down and come back, hosts that die, at given times.
 *
 * Forms, one per --fault:
 *   link A-B down at TIME              permanently
 *   link A-B down at TIME for TIME
 *   host H dies at TIME                its proxy is killed
 *   links random every TIME for TIME   one link at a time, without end
 *   links random every TIME for TIME seed N
 * Times count from the moment at which every PE has left shmem_init. Each fault is reported on standard error when it
 * occurs.
 */
#ifndef OSHRUN_FAULT_H
#define OSHRUN_FAULT_H

#include <stdbool.h>
#include <stdint.h>

#include "host/job_config.h"

enum fault_kind { FAULT_LINK, FAULT_HOST, FAULT_RANDOM };

#define FAULT_PROBLEM_BYTES 384

struct fault {
    enum fault_kind kind;
    uint32_t first; /* of a link: the two hosts, in any order; or the host */
    uint32_t second;
    uint64_t at_ns;  /* or the interval of random ones */
    uint64_t for_ns; /* 0: for good */
    uint64_t seed;
};

/* Parses one --fault. False: problem_out says what is wrong with it. */
bool fault_parse(const char *text, struct fault *fault_out, char problem_out[FAULT_PROBLEM_BYTES]);
/* Whether these links and hosts exist; orders a link so that `second` is the host after `first`. */
bool fault_fit(struct fault *fault, const struct quoit_job_config *job, char problem_out[FAULT_PROBLEM_BYTES]);

/* A fault of a running job. */
struct fault_run {
    const struct fault *fault;
    uint64_t next_ns; /* of the next change; UINT64_MAX: none */
    uint64_t prng_state;
    uint32_t link; /* of random ones: which is down */
    bool is_down;
};

/* What was printed about the changes so far. */
struct fault_log {
    uint64_t printed_count;
    uint64_t suppressed_count; /* since the last one printed */
    uint64_t printed_ns;
};

#endif
