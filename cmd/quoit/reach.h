/* SPDX-License-Identifier: BSD-3-Clause */
/* reach.h - quoit info networks --host: which hosts reach which, by which of their networks.
 *
 * oshrun starts this program on each host twice: first it listens at all places of its host and prints them, then,
 * beside that, it calls those of all others. So what is tested are the connections that the driver tcp makes, after the
 * same way to the hosts, before any job fails by them.
 */
#ifndef QUOIT_REACH_H
#define QUOIT_REACH_H

#include "net/places.h"

#define REACH_HOSTS_MAX 64u

enum reach_kind {
    REACH_OK,
    REACH_NO_ANSWER, /* to connect */
    REACH_STALLED,   /* connected, but 64 KiB did not pass */
    REACH_OTHER,     /* another host has answered */
    REACH_ERROR,     /* detail: errno */
    REACH_UNTRIED
};

struct reach_result {
    enum reach_kind kind;
    uint32_t detail; /* OK: microseconds of connect; OTHER: which host; ERROR: errno */
};

struct quoit_options;

/* Starts the probes on the hosts, at most REACH_HOSTS_MAX, and prints what they find. The exit status: 1, where not all
 * reach all by the network that the hosts of a job take. */
int reach_print(const struct quoit_options *options, const char *const *names, uint32_t count, bool is_json);
/* The probes. Their lines are reach_print's to read: "place HOST DEVICE ADDRESS BITS KIND SPEED SSH PORT", "stack HOST
 * NUMBER" behind the last of them; "result FROM TO PLACE KIND DETAIL". They end by themselves after a minute. */
int reach_listen(const char *host, const char *devices, const char *ports);
/* targets: "HOST/PLACE/ADDRESS/PORT", with blanks between. */
int reach_call(const char *host, const char *targets);

#endif
