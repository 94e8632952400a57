/* SPDX-License-Identifier: BSD-3-Clause */
/* candidates.h - the networks that a driver has found on this machine, and which of them it takes.
 *
 * Threads: any.
 */
#ifndef QUOIT_NET_CANDIDATES_H
#define QUOIT_NET_CANDIDATES_H

#include "net/net.h"

struct quoit_net_candidate {
    struct quoit_net_choice choice; /* is_usable: whether it is one of those that may be taken */
    uint64_t cost;                  /* smaller is better; used where it is usable */
};

/* The best but skip_count; the first of those that are equal. NULL: there are no more. */
const struct quoit_net_candidate *quoit_net_best(const struct quoit_net_candidate *candidates, uint32_t count,
                                                 uint32_t skip_count);
/* As the survey of a driver: the best, or that there is none of that provider and on that device (NULL: any), then the
 * others. Returns the count. */
uint32_t quoit_net_survey_candidates(const struct quoit_net_candidate *candidates, uint32_t count, const char *driver,
                                     const char *provider, const char *device, struct quoit_net_choice *choices_out,
                                     uint32_t max_count);
/* Why it may be taken: its address; "": none is known. */
void quoit_net_say_usable(struct quoit_net_choice *choice, const char *address, bool is_loopback);
/* Why not, where this provider and device were asked for (NULL: any). */
void quoit_net_say_unusable(struct quoit_net_choice *choice, const char *provider, const char *device);
/* "no network by provider X on device Y" */
void quoit_net_say_none(const char *provider, const char *device, char problem_out[QUOIT_NET_PROBLEM_BYTES]);

#endif
