/* SPDX-License-Identifier: BSD-3-Clause */
/* The barrier of all PEs.
 *
 * It is one OpenSHMEM barrier. Before it each PE puts the position of its log to all others and completes its diffs.
 * After it all notices can be read, and no fetch has to wait for a version. There are two sets of positions, used
 * alternately, since a PE may put those of the next barrier while another still reads those of this one. */
#include <dsm.h>
#include <shmem.h>

#include "dsm/barrier.h"
#include "dsm/coherence.h"
#include "dsm/home.h"
#include "dsm/net.h"
#include "dsm/profile.h"
#include "dsm/races.h"
#include "dsm/stats.h"

static void check_copies(struct quoit_dsm *dsm)
{
    char buffer[4096];
    for (uint64_t page = 0; page < dsm->page_count; page++) {
        if (dsm->states[page] == QUOIT_DSM_INVALID || (quoit_dsm_home_known(dsm, page) == dsm->me && !dsm->races))
            continue;
        for (size_t at = 0; at < dsm->page_bytes; at += sizeof buffer) {
            const char *frame = quoit_dsm_frame(dsm, page) + at;
            quoit_dsm_get(dsm, buffer, quoit_dsm_master(dsm, page) + at, sizeof buffer,
                          quoit_dsm_home_known(dsm, page));
            for (size_t i = 0; i < sizeof buffer; i++) {
                if (buffer[i] != frame[i])
                    quoit_dsm_wrong("paranoid: after a barrier byte %zu of %p is %d, but %d at its home, PE %d", at + i,
                                    (void *)quoit_dsm_page_address(dsm, page), frame[i], buffer[i],
                                    quoit_dsm_home_known(dsm, page));
            }
        }
    }
}

/* Where there are copies and homes. */
static void meet(struct quoit_dsm *dsm)
{
    uint64_t *heads = dsm->heads + (dsm->barrier_count++ & 1) * (uint64_t)dsm->pe_count;
    quoit_dsm_lock(dsm);
    quoit_dsm_release(dsm);
    quoit_dsm_diffs_settle(dsm);
    dsm->settled = dsm->known[dsm->me];
    uint64_t head = dsm->settled | quoit_dsm_homes_doubt(dsm);
    quoit_dsm_unlock(dsm);
    for (int pe = 0; pe < dsm->pe_count; pe++)
        quoit_dsm_put(dsm, &heads[dsm->me], &head, sizeof head, pe);
    shmem_barrier_all();
    quoit_dsm_lock(dsm);
    bool is_sure = quoit_dsm_homes_sure(dsm, heads);
    if (dsm->races)
        quoit_dsm_races_compare(dsm);
    quoit_dsm_acquire_all(dsm, heads);
    quoit_dsm_homes_move(dsm, heads, is_sure);
    if (dsm->options.values[QUOIT_DSM_PARANOID]) {
        shmem_barrier_all();
        check_copies(dsm);
        shmem_barrier_all();
    }
    quoit_dsm_unlock(dsm);
}

void quoit_dsm_barrier(struct quoit_dsm *dsm)
{
    quoit_dsm_workers_meet(dsm);
    struct quoit_dsm_timer timer = quoit_dsm_span_begin(dsm);
    if (dsm->is_direct)
        shmem_barrier_all();
    else
        meet(dsm);
    quoit_dsm_span_end(dsm, QUOIT_DSM_MEETING, timer);
}

void dsm_barrier_all(void)
{
    QUOIT_DSM_CALL_OF_ALL("dsm_barrier_all");
    quoit_dsm_barrier(quoit_dsm);
}
