/* SPDX-License-Identifier: BSD-3-Clause */
/* net_bare.h - the library below src/net, used with no layer between: what bench/net.c compares with. */
#ifndef QUOIT_BENCH_NET_BARE_H
#define QUOIT_BENCH_NET_BARE_H

#include "net/net_rig.h"

struct bare;

/* Joins both hosts by an endpoint of this provider. NULL: this build has no libfabric, or the provider is not its. */
struct bare *bare_open(struct rig *rig, const char *provider, const char *device);
/* Host 0: `batch` puts or gets of so many bytes to host 1, then waits for all. */
void bare_transfer(struct bare *bare, uint64_t bytes, uint32_t batch, bool is_get);
/* Host 0: adds 1 to a word of host 1 and waits for what stood there. */
void bare_fetch_add(struct bare *bare);
/* Host 0: writes the next number into a word of host 1, and waits until it has come back. */
void bare_there_and_back(struct bare *bare);
/* Host 1: progress, and the number back if there is one. */
void bare_answer(struct bare *bare);
void bare_close(struct bare *bare);

#endif
