/* SPDX-License-Identifier: BSD-3-Clause */
/* Blocks that were not freed, in one table for all PEs with the same leaks: each PE writes its rows into its segment,
 * PE 0 reads and prints them. */
#include "shmem/audit_state.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROWS_MAX   16
#define TABLES_MAX 8 /* tables that differ between PEs */

struct leak {
    const char *what;
    const char *call;
    uintptr_t from;
    size_t count;
    uint64_t bytes;
};

struct leaks {
    struct leak rows[ROWS_MAX];
    size_t row_count;
    size_t rest_count; /* objects that did not fit */
};

static void add_leak(struct leaks *leaks, const char *what, const char *call, uintptr_t from, uint64_t bytes)
{
    size_t i = 0;
    while (i < leaks->row_count && (leaks->rows[i].from != from || leaks->rows[i].call != call))
        i++;
    if (i == ROWS_MAX) {
        leaks->rest_count++;
        return;
    }
    if (i == leaks->row_count)
        leaks->rows[leaks->row_count++] = (struct leak){what, call, from, 0, 0};
    leaks->rows[i].count++;
    leaks->rows[i].bytes += bytes;
}

static void find_leaks(const struct quoit_audit *audit, struct leaks *leaks)
{
    for (size_t i = 0; i < audit->block_count; i++)
        add_leak(leaks, "block", audit->blocks[i].call, audit->blocks[i].from, audit->blocks[i].bytes);
    for (size_t i = 0; quoit_job.teams && i < QUOIT_TEAMS_MAX; i++)
        if (quoit_job.teams[i].made_by)
            add_leak(leaks, "team", quoit_job.teams[i].made_by, quoit_job.teams[i].made_from, 0);
    for (size_t i = 0; quoit_job.contexts && i < QUOIT_CONTEXTS_MAX; i++)
        if (quoit_job.contexts[i].team)
            add_leak(leaks, "context", quoit_job.contexts[i].made_by, quoit_job.contexts[i].made_from, 0);
}

/* One line per row; "" if there is none. */
static void format_leaks(const struct leaks *leaks, char text[QUOIT_AUDIT_LEAK_BYTES])
{
    char place[QUOIT_AUDIT_PLACE_BYTES], size[32];
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; i < leaks->row_count && used < QUOIT_AUDIT_LEAK_BYTES; i++) {
        const struct leak *leak = &leaks->rows[i];
        snprintf(size, sizeof size, "%" PRIu64, leak->bytes);
        used +=
            (size_t)snprintf(text + used, QUOIT_AUDIT_LEAK_BYTES - used, "  %-8s %6zu %12s  %s%s\n", leak->what,
                             leak->count, leak->bytes ? size : "", leak->call, quoit_audit_place(leak->from, place));
    }
    if (leaks->rest_count != 0 && used < QUOIT_AUDIT_LEAK_BYTES)
        snprintf(text + used, QUOIT_AUDIT_LEAK_BYTES - used, "  and %zu more\n", leaks->rest_count);
}

/* "PEs 0-2,5": the PEs, from `first` on, whose table equals that of `first`; clears these tables. */
static void take_same(char (*tables)[QUOIT_AUDIT_LEAK_BYTES], uint32_t first, char *text, size_t text_bytes)
{
    char own[QUOIT_AUDIT_LEAK_BYTES];
    size_t used = 0;
    uint32_t group_count = 0;
    memcpy(own, tables[first], sizeof own);
    for (uint32_t pe = first; pe < quoit_job.pe_count;) {
        uint32_t end = pe;
        while (end < quoit_job.pe_count && strcmp(tables[end], own) == 0)
            tables[end++][0] = '\0';
        if (end == pe) {
            pe++;
            continue;
        }
        const char *before = group_count++ ? "," : "";
        if (used < text_bytes)
            used += (size_t)(end - pe == 1 ? snprintf(text + used, text_bytes - used, "%s%u", before, pe)
                                           : snprintf(text + used, text_bytes - used, "%s%u%s%u", before, pe,
                                                      end - pe == 2 ? "," : "-", end - 1));
        pe = end;
    }
}

static void print_leaks(char (*tables)[QUOIT_AUDIT_LEAK_BYTES])
{
    uint32_t table_count = 0, more_count = 0;
    for (uint32_t pe = 0; pe < quoit_job.pe_count; pe++) {
        char rows[QUOIT_AUDIT_LEAK_BYTES], pes[96];
        if (!tables[pe][0])
            continue;
        if (table_count++ >= TABLES_MAX) {
            more_count++;
            continue;
        }
        memcpy(rows, tables[pe], sizeof rows);
        take_same(tables, pe, pes, sizeof pes);
        /* one write, so that a table is not torn */
        fprintf(stderr, "PE%s %s: shmem_finalize: these were not freed [Q0121]\n  %-8s %6s %12s  %s\n%s",
                strpbrk(pes, "-,") ? "s" : "", pes, "what", "count", "bytes", "made by", rows);
    }
    if (more_count != 0)
        fprintf(stderr, "and on %u more PEs others [Q0121]\n", more_count);
}

void quoit_audit_finish(void)
{
    struct quoit_audit *audit = quoit_job.audit;
    struct leaks leaks = {.row_count = 0};
    quoit_audit_end_objects();
    find_leaks(audit, &leaks);
    format_leaks(&leaks, audit->shared_self->leaks);
    quoit_coll_sync(quoit_job.world, "shmem_finalize");
    if (quoit_job.pe != 0)
        return;
    char(*tables)[QUOIT_AUDIT_LEAK_BYTES] = calloc(quoit_job.pe_count, sizeof *tables);
    if (!tables)
        quoit_boot_abort(&quoit_job.boot, 1, "no memory for --check");
    for (uint32_t pe = 0; pe < quoit_job.pe_count; pe++)
        quoit_fabric_get(quoit_job.fabric, &quoit_job.fabric->default_context, tables[pe],
                         QUOIT_RUNTIME_AUDIT_AT + offsetof(struct quoit_audit_shared, leaks), sizeof *tables, pe);
    print_leaks(tables);
    free(tables);
}
