/* SPDX-License-Identifier: BSD-3-Clause */
/* checkpoint - a computation that writes a checkpoint every few steps, continues from one if it exists, and prints a
 * result that must not depend on how often it was interrupted: checkpoint PATH STEPS [STEP] kills the last PE in STEP,
 * between two checkpoints. */
#include <dsm.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#define WORDS (64 * 512)

struct state {
    uint64_t step, count, checkpoints;
    char path[8192]; /* on a page that PE 0 writes before each checkpoint */
    dsm_lock_t lock;
    dsm_rwlock_t rw;
    dsm_sem_t sem, spent;
    dsm_flag_t flag;
    uint64_t words[WORDS];
};

DSM_SHARED uint64_t total;

static void fail(const char *what, long value)
{
    fprintf(stderr, "checkpoint: PE %d: %s %ld\n", dsm_my_pe(), what, value);
    exit(1);
}

static void advance(struct state *state, int me, int pes)
{
    uint64_t own = 0;
    for (int i = me; i < WORDS; i += pes) {
        state->words[i] = state->words[i] * 6364136223846793005ull + (uint64_t)i + state->step;
        own += state->words[i];
    }
    dsm_lock(&state->lock);
    state->count++;
    total += own;
    dsm_unlock(&state->lock);
    dsm_barrier_all();
    if (me == 0) {
        state->step++;
        dsm_sem_post(&state->sem);
        dsm_flag_set(&state->flag, state->step);
    }
    dsm_barrier_all();
}

/* While PE 0 holds a lock a checkpoint is refused. */
static void check_refusals(struct state *state, int me)
{
    for (int kind = 0; kind < 3; kind++) {
        if (me == 0 && kind == 0)
            dsm_lock(&state->lock);
        if (me == 0 && kind == 1)
            dsm_rdlock(&state->rw);
        if (me == 0 && kind == 2)
            dsm_wrlock(&state->rw);
        if (dsm_checkpoint(state->path) != EBUSY)
            fail("a checkpoint was not refused with a held lock of kind", kind);
        if (me == 0 && kind == 0)
            dsm_unlock(&state->lock);
        if (me == 0 && kind > 0)
            dsm_rwunlock(&state->rw);
    }
}

int main(int count, char **words)
{
    if (count < 3)
        return 2;
    uint64_t steps = strtoul(words[2], NULL, 10), kill_at = count > 3 ? strtoul(words[3], NULL, 10) : UINT64_MAX;
    dsm_init();
    int me = dsm_my_pe(), pes = dsm_n_pes(), error = 0;
    struct state *state = dsm_all_malloc(sizeof *state);
    if (me == 0) {
        dsm_sem_init(&state->spent, 1);
        snprintf(state->path, sizeof state->path, "%s", words[1]);
    }
    dsm_barrier_all();
    error = dsm_restart(state->path);
    if (error != 0 && error != ENOENT)
        fail("dsm_restart returned", error);
    uint64_t begun = state->step;
    dsm_barrier_all();
    if (state->step != begun) /* every PE has a copy of that page from before */
        fail("after dsm_restart a PE saw another step than", (long)state->step);
    if (me == 0 && (dsm_sem_trywait(&state->spent) == 0) != (begun == 0))
        fail("a semaphore was not restored, at step", (long)begun);
    if (me == 0)
        printf("begins at step %lu\n", (unsigned long)begun);
    fflush(stdout);
    while (state->step < steps) {
        if (me == 0)
            state->checkpoints++;
        if (state->step % 5 == 0 && (error = dsm_checkpoint(state->path)) != 0)
            fail("dsm_checkpoint returned", error);
        advance(state, me, pes);
        if (state->step == kill_at && me == pes - 1)
            raise(SIGKILL);
    }
    if (dsm_flag_get(&state->flag) != steps)
        fail("the flag is", (long)dsm_flag_get(&state->flag));
    dsm_barrier_all();
    if (me == 0) {
        uint64_t sum = 0, units = 0;
        for (int i = 0; i < WORDS; i++)
            sum = sum * 31 + state->words[i];
        while (dsm_sem_trywait(&state->sem) == 0)
            units++;
        printf("result %016lx, variable %016lx, %lu steps, %lu units\n", (unsigned long)sum, (unsigned long)total,
               (unsigned long)state->step, (unsigned long)units);
    }
    dsm_barrier_all();
    dsm_lock(&state->lock); /* one PE after another */
    dsm_unlock(&state->lock);
    dsm_barrier_all();
    check_refusals(state, me);
    dsm_finalize();
    return 0;
}
