/* SPDX-License-Identifier: BSD-3-Clause */
/* fabric.h - one PE's access to every PE: put, get, atomics, signals, fence and quiet on segment offsets.
 *
 * What it is: the layer below the API and the collectives. It opens the engines (engine/engine.h), selects for each PE,
 * once at start, the first engine that reaches it, and hands every operation to that engine. The contract of each
 * operation is in engine.h; the caller has checked the arguments. Offsets and sizes are in bytes.
 *
 * Ownership: a context belongs to the caller, who initialises it and keeps it until after a quiet of it.
 * Threads: any number of threads may call concurrently, also with one context.
 * Errors: the launcher ends the job when a host, proxy or PE dies, so operations return no error.
 */
#ifndef QUOIT_FABRIC_FABRIC_H
#define QUOIT_FABRIC_FABRIC_H

#include "engine/engine.h"
#include "engine/ring/ring.h"
#include "local/paths.h"
#include "port/port.h"

struct quoit_fabric {
    struct quoit_self self;
    struct quoit_peer *peers; /* [self.pe_count] */
    /* The same of puts, gets and puts with a signal: with --path network those to PEs of the own host go another way
     * than all else. May be `peers`. */
    struct quoit_peer *carriers;
    struct quoit_context default_context;
};

struct quoit_fabric_config {
    const struct quoit_layout *layout; /* of the own host */
    void *memory;                      /* mapped whole */
    uint32_t pe_self;
    struct quoit_port_config ports[QUOIT_SIDE_COUNT]; /* driver NULL: one host */
    struct quoit_wait_policy policy;
    struct quoit_paths paths;
    enum quoit_pe_endpoint_use pe_endpoint_use;
};

/* Opens the engines and selects one for each PE. The neighbours' windows must be usable (after boot's barrier). The
 * caller closes the fabric. On failure nothing is left open. */
QUOIT_MUST_USE enum quoit_status quoit_fabric_open(const struct quoit_fabric_config *config,
                                                   struct quoit_fabric **fabric_out);
/* After a quiet of all contexts. NULL is allowed. */
void quoit_fabric_close(struct quoit_fabric *fabric);

/* The open engine of that name; NULL if the job does not use it. */
struct quoit_engine *quoit_fabric_engine(const struct quoit_fabric *fabric, const char *name);

/* A context with nothing outstanding; `salt` spreads contexts over the lanes of an engine. */
void quoit_context_init(struct quoit_context *context, uint32_t salt);

/* put returns when source may be reused, get with the data; the _nbi forms return at once and complete by the next
 * quiet of the context. iput and iget are blocking. */
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

/* amo is delivered by the next quiet. amo_fetch returns the old value, zero-extended. amo_fetch_nbi stores it, `size`
 * bytes, at result_out by the next quiet. `size` is 4 or 8. */
void quoit_fabric_amo(struct quoit_fabric *fabric, struct quoit_context *context, enum quoit_amo op, uint32_t size,
                      uint64_t offset, uint64_t operand, uint32_t pe);
uint64_t quoit_fabric_amo_fetch(struct quoit_fabric *fabric, struct quoit_context *context, enum quoit_amo op,
                                uint32_t size, uint64_t offset, uint64_t operand, uint64_t compare, uint32_t pe);
void quoit_fabric_amo_fetch_nbi(struct quoit_fabric *fabric, struct quoit_context *context, enum quoit_amo op,
                                uint32_t size, uint64_t offset, uint64_t operand, uint64_t compare, void *result_out,
                                uint32_t pe);

/* A put followed by a signal update; a PE that sees the signal sees the data. */
void quoit_fabric_put_signal(struct quoit_fabric *fabric, struct quoit_context *context, uint64_t offset,
                             const void *source, size_t bytes, const struct quoit_signal *signal, uint32_t pe,
                             bool is_nbi);

/* Whether PEs of other hosts receive messages by themselves. message and receive are as in engine.h; without them a
 * message is a put, or a put with a signal, and nothing is to be received. */
bool quoit_fabric_has_messages(const struct quoit_fabric *fabric);
void quoit_fabric_message(struct quoit_fabric *fabric, struct quoit_context *context,
                          const struct quoit_message *message, uint32_t pe, bool *is_direct);
void quoit_fabric_receive(struct quoit_fabric *fabric);

/* Orders the context's earlier puts, atomics and signals to each PE before its later ones. */
void quoit_fabric_fence(struct quoit_fabric *fabric, struct quoit_context *context);
/* Returns when every operation of the context is complete at its destination. context NULL: see engine.h. */
void quoit_fabric_quiet(struct quoit_fabric *fabric, struct quoit_context *context);

/* Number of hosts in the job; a PE's host is in its peer record. */
uint32_t quoit_fabric_host_count(const struct quoit_fabric *fabric);
/* Whether hosts synchronise through a barrier of the engine that joins them. host_barrier is called by the first PE of
 * each host and returns when all of them have called it; it orders and completes nothing. `call` is the API routine,
 * for reports. */
bool quoit_fabric_has_host_barrier(const struct quoit_fabric *fabric);
void quoit_fabric_host_barrier(struct quoit_fabric *fabric, const char *call);

#endif
