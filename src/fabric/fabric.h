/* SPDX-License-Identifier: BSD-3-Clause */
/* fabric.h - one PE's way to every PE: put, get, atomics, signals, fence and quiet on segment offsets.
 *
 * What it is: the layer under the API and the collectives. It opens the engines (engine/engine.h), chooses at start for
 * each PE the first that reaches it, and hands every operation to that one. The contract of an operation is that of
 * engine.h; arguments were checked by the caller.
 *
 * Threads: several threads may call at once.
 * Errors: the job is ended by the launcher when a host, proxy or PE dies, so nothing here returns an error.
 */
#ifndef QUOIT_FABRIC_FABRIC_H
#define QUOIT_FABRIC_FABRIC_H

#include "engine/engine.h"
#include "local/paths.h"
#include "port/port.h"

struct quoit_fabric {
    struct quoit_self self;
    struct quoit_peer *peers; /* [self.pe_count] */
    struct quoit_context default_context;
};

struct quoit_fabric_config {
    const struct quoit_layout *layout; /* of the own host */
    void *memory;                      /* mapped whole */
    uint32_t pe_self;
    struct quoit_port_config ports[QUOIT_SIDE_COUNT]; /* driver NULL: one host */
    struct quoit_wait_policy policy;
    struct quoit_paths paths;
};

/* Opens the engines and chooses. The neighbours' windows must be there (boot's barrier comes between). */
QUOIT_MUST_USE enum quoit_status quoit_fabric_open(const struct quoit_fabric_config *config,
                                                   struct quoit_fabric **fabric_out);
/* After a quiet of all contexts. NULL is allowed. */
void quoit_fabric_close(struct quoit_fabric *fabric);

/* The open engine of that name; NULL: the job does without. */
struct quoit_engine *quoit_fabric_engine(const struct quoit_fabric *fabric, const char *name);

void quoit_context_init(struct quoit_context *context, uint32_t salt);

void quoit_fabric_put(struct quoit_fabric *fabric, struct quoit_context *context, uint64_t offset, const void *source,
                      size_t bytes, uint32_t pe);
void quoit_fabric_put_nbi(struct quoit_fabric *fabric, struct quoit_context *context, uint64_t offset,
                          const void *source, size_t bytes, uint32_t pe);
void quoit_fabric_get(struct quoit_fabric *fabric, struct quoit_context *context, void *destination, uint64_t offset,
                      size_t bytes, uint32_t pe);
void quoit_fabric_get_nbi(struct quoit_fabric *fabric, struct quoit_context *context, void *destination,
                          uint64_t offset, size_t bytes, uint32_t pe);
void quoit_fabric_iput(struct quoit_fabric *fabric, struct quoit_context *context, const struct quoit_strided *strided,
                       const void *source, uint32_t pe);
void quoit_fabric_iget(struct quoit_fabric *fabric, struct quoit_context *context, const struct quoit_strided *strided,
                       void *destination, uint32_t pe);

/* fetch returns the old value, zero-extended. fetch_nbi stores it, `size` bytes, at result_out by the next quiet. */
void quoit_fabric_amo(struct quoit_fabric *fabric, struct quoit_context *context, enum quoit_amo op, uint32_t size,
                      uint64_t offset, uint64_t operand, uint32_t pe);
uint64_t quoit_fabric_amo_fetch(struct quoit_fabric *fabric, struct quoit_context *context, enum quoit_amo op,
                                uint32_t size, uint64_t offset, uint64_t operand, uint64_t compare, uint32_t pe);
void quoit_fabric_amo_fetch_nbi(struct quoit_fabric *fabric, struct quoit_context *context, enum quoit_amo op,
                                uint32_t size, uint64_t offset, uint64_t operand, uint64_t compare, void *result_out,
                                uint32_t pe);

void quoit_fabric_put_signal(struct quoit_fabric *fabric, struct quoit_context *context, uint64_t offset,
                             const void *source, size_t bytes, const struct quoit_signal *signal, uint32_t pe,
                             bool is_nbi);

void quoit_fabric_fence(struct quoit_fabric *fabric, struct quoit_context *context);
/* Returns when every operation of the context is complete at its destination. */
/* context NULL: see engine.h. */
void quoit_fabric_quiet(struct quoit_fabric *fabric, struct quoit_context *context);

/* How many hosts the PEs of the job are on; the host of a PE is in its peer record. */
uint32_t quoit_fabric_host_count(const struct quoit_fabric *fabric);
/* Whether all hosts of the job are to meet by a barrier of the engine that joins them. It is called by the first PE of
 * each host, returns when all have called it, and orders and completes nothing by itself. */
bool quoit_fabric_has_host_barrier(const struct quoit_fabric *fabric);
void quoit_fabric_host_barrier(struct quoit_fabric *fabric, const char *call);

#endif
