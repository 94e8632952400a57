/* SPDX-License-Identifier: BSD-3-Clause */
/* exchange.h - what Quoit needs of another launcher: the rank and size of the job, and a few values per PE that all
 * others can read.
 *
 * One row per interface: PMI (Hydra, srun --mpi=pmi2, Flux, mpirun_rsh) and PMIx (Open MPI, PRRTE, srun --mpi=pmix).
 * The PEs build the rest of the job on these values (member.c, agent.h).
 *
 * A value is at most QUOIT_EXCHANGE_BYTES of letters, digits and the characters . , : - _ /, which no launcher escapes.
 *
 * Threads: one at a time; abort() may be called by any thread.
 * Errors are reported to the user before a function returns one; after that only close() and abort() may be called.
 */
#ifndef QUOIT_BOOT_EXCHANGE_H
#define QUOIT_BOOT_EXCHANGE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/status.h"

#define QUOIT_EXCHANGE_BYTES     256
#define QUOIT_EXCHANGE_JOB_BYTES 264 /* the name of the job, as the launcher has it */
#define QUOIT_EXCHANGE_RANKS_MAX 65536u

struct quoit_exchange_ops;
struct quoit_pmix; /* pmix.c */

struct quoit_exchange {
    const struct quoit_exchange_ops *ops; /* NULL: none */
    uint32_t rank;
    uint32_t size;
    char job[QUOIT_EXCHANGE_JOB_BYTES];
    bool is_closed; /* close or abort was called */
    pid_t launcher; /* its process on this host, an ancestor of this one that ends after it; 0: unknown */
    /* PMI: the connection, and version 1 or 2 of the protocol. */
    int fd;
    uint64_t fd_inode;
    int version;
    struct quoit_pmix *pmix;
};

struct quoit_exchange_ops {
    const char *name; /* a value of QUOIT_LAUNCHER */
    /* Whether this process was started by such a launcher. */
    bool (*is_here)(void);
    /* Fills rank, size, job and launcher. */
    enum quoit_status (*open)(struct quoit_exchange *exchange);
    /* Publishes a value of this PE; each part once. */
    enum quoit_status (*put)(struct quoit_exchange *exchange, uint32_t part, const char *value);
    /* A barrier of all PEs. Values put before it can be read after it. */
    enum quoit_status (*fence)(struct quoit_exchange *exchange);
    /* A value of one PE, who has put it. */
    enum quoit_status (*get)(struct quoit_exchange *exchange, uint32_t rank, uint32_t part,
                             char value_out[QUOIT_EXCHANGE_BYTES]);
    /* Informs the launcher that this process may end from now on. */
    void (*close)(struct quoit_exchange *exchange);
    /* Asks the launcher to end all processes of the job. It may return. */
    void (*abort)(struct quoit_exchange *exchange, int status, const char *text);
};

extern const struct quoit_exchange_ops quoit_exchange_pmi;
extern const struct quoit_exchange_ops quoit_exchange_pmi2; /* version 2 of the protocol, for QUOIT_LAUNCHER=pmi2 */
extern const struct quoit_exchange_ops quoit_exchange_pmix;

/* The row named `launcher`, a value of QUOIT_LAUNCHER; auto: the first whose is_here() is true. NULL: none. */
const struct quoit_exchange_ops *quoit_exchange_find(const char *launcher);

/* Bytes as values of the parts from `first_part` on; at most QUOIT_EXCHANGE_BLOCK_MAX, many of them 0. */
#define QUOIT_EXCHANGE_BLOCK_MAX 1024u
QUOIT_MUST_USE enum quoit_status quoit_exchange_put_block(struct quoit_exchange *exchange, uint32_t first_part,
                                                          const void *bytes, uint32_t count);
/* INVALID, reported: what that PE has put is no block of `count` bytes. */
QUOIT_MUST_USE enum quoit_status quoit_exchange_get_block(struct quoit_exchange *exchange, uint32_t rank,
                                                          uint32_t first_part, void *bytes_out, uint32_t count);

#endif
