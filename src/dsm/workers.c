/* SPDX-License-Identifier: BSD-3-Clause */
/* Programs written for one process that creates others: PE 0 runs main, the other PEs wait here before main, take over
 * its globals at each creation, run the routine, and end with PE 0.
 *
 * Globals hold addresses, of functions and of each other, so all PEs must lie at the same addresses: a PE that the
 * kernel placed at random starts itself once more without that. */
#include <dsm.h>
#include <errno.h>
#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <unistd.h>

#include "dsm/barrier.h"
#include "dsm/net.h"
#include "dsm/profile.h"

#define ARGUMENT_BYTES_MAX (1 << 20)
#define ARGUMENTS_MAX      4096
#define COPY_BYTES         (1u << 20)

/* PE 0's message to the others, in words from QUOIT_DSM_CREATE_WORDS on. */
struct creation {
    uint64_t routine; /* 0: the program ends */
    uint64_t count;
    uint64_t from, to; /* the globals */
};

static void start_again(void)
{
    char *text = calloc(ARGUMENT_BYTES_MAX, 1), **words = calloc(ARGUMENTS_MAX, sizeof *words);
    if (!text || !words)
        quoit_dsm_wrong("dsm_workers_begin: no memory for the program's arguments");
    FILE *file = fopen("/proc/self/cmdline", "r");
    size_t bytes = file ? fread(text, 1, ARGUMENT_BYTES_MAX - 1, file) : 0, count = 0;
    if (file)
        fclose(file);
    for (size_t at = 0; at < bytes && count < ARGUMENTS_MAX - 1; at += strlen(text + at) + 1)
        words[count++] = text + at;
    execv("/proc/self/exe", words);
    quoit_dsm_wrong("dsm_workers_begin: the program cannot be started at fixed addresses: %s", strerror(errno));
}

static struct creation *creation_of(struct quoit_dsm *dsm)
{
    return (struct creation *)&dsm->words[QUOIT_DSM_CREATE_WORDS];
}

static void say_end(int status, void *pid)
{
    if (!quoit_dsm || status != 0 || getpid() != (pid_t)(intptr_t)pid)
        return;
    QUOIT_DSM_CALL("dsm_workers_join");
    dsm_workers_join();
    *creation_of(quoit_dsm) = (struct creation){0};
    quoit_dsm_barrier(quoit_dsm);
}

static void copy_range(uint64_t from, uint64_t to)
{
    for (uint64_t at = from; at < to; at += COPY_BYTES)
        shmem_getmem((void *)at, (const void *)at, to - at < COPY_BYTES ? to - at : COPY_BYTES, 0);
}

/* Without DSM_SHARED variables, which are shared already. */
static void copy_globals(const struct quoit_dsm *dsm, const struct creation *creation)
{
    uint64_t shared = (uintptr_t)dsm->globals, shared_end = shared + dsm->globals_bytes;
    if (shared_end <= creation->from || shared >= creation->to) {
        copy_range(creation->from, creation->to);
        return;
    }
    copy_range(creation->from, shared);
    copy_range(shared_end, creation->to);
}

#define ALL_MEETINGS 0xffffffffull

static uint64_t permit(const struct quoit_dsm *dsm, uint64_t meetings)
{
    return dsm->creations << 32 | meetings;
}

static void let_go(struct quoit_dsm *dsm, uint64_t meetings)
{
    for (int pe = 1; pe < dsm->pe_count; pe++)
        quoit_dsm_set(dsm, &dsm->words[QUOIT_DSM_GO], permit(dsm, meetings), pe);
}

void quoit_dsm_workers_go(struct quoit_dsm *dsm)
{
    if (__builtin_expect(!dsm->is_held || dsm->me != 0, 1))
        return;
    dsm->is_held = false;
    let_go(dsm, ALL_MEETINGS);
}

void quoit_dsm_workers_meet(struct quoit_dsm *dsm)
{
    if (__builtin_expect(!dsm->is_held, 1))
        return;
    dsm->meetings++;
    if (dsm->me == 0)
        let_go(dsm, dsm->meetings);
}

void quoit_dsm_workers_hold(struct quoit_dsm *dsm)
{
    if (__builtin_expect(!dsm->is_held || dsm->me == 0, 1))
        return;
    uint64_t found = quoit_dsm_wait_least(dsm, &dsm->words[QUOIT_DSM_GO], permit(dsm, dsm->meetings + 1));
    dsm->is_held = found < permit(dsm, ALL_MEETINGS);
}

static void begin_creation(struct quoit_dsm *dsm)
{
    dsm->creations++;
    dsm->meetings = 0;
    dsm->is_held = true;
}

__attribute__((noreturn)) static void work(struct quoit_dsm *dsm)
{
    for (;;) {
        struct quoit_dsm_row call = quoit_dsm_row_begin("dsm_workers_begin", NULL, false);
        struct creation creation;
        quoit_dsm_barrier(dsm);
        quoit_dsm_get(dsm, &creation, creation_of(dsm), sizeof creation, 0);
        if (creation.routine != 0) {
            copy_globals(dsm, &creation);
            quoit_dsm_barrier(dsm);
        }
        quoit_dsm_row_end(&call);
        if (creation.routine == 0)
            exit(0);
        begin_creation(dsm);
        if ((uint64_t)dsm->me < creation.count)
            ((void (*)(void))creation.routine)();
        dsm->is_held = false;
        call = quoit_dsm_row_begin("dsm_workers_begin", NULL, false);
        quoit_dsm_barrier(dsm);
        quoit_dsm_row_end(&call);
    }
}

void dsm_workers_begin(void)
{
    int persona = personality(0xffffffff);
    if (persona != -1 && !(persona & ADDR_NO_RANDOMIZE)) {
        if (personality((unsigned long)persona | ADDR_NO_RANDOMIZE) != -1)
            start_again();
        quoit_dsm_wrong("dsm_workers_begin: addresses stay random (%s); start the job under setarch -R",
                        strerror(errno));
    }
    dsm_init();
    if (quoit_dsm->me != 0)
        work(quoit_dsm);
    on_exit(say_end, (void *)(intptr_t)getpid());
}

/* In a static program the linker's names for the ends of .data and .bss enclose the state of this library and of the C
 * library, which is each process's own. */
static void refuse_own_state(const void *globals, const void *globals_end)
{
    uintptr_t own = (uintptr_t)&quoit_dsm;
    if (own >= (uintptr_t)globals && own < (uintptr_t)globals_end)
        quoit_dsm_wrong(
            "dsm_workers_run: the globals from %p to %p include those of libqdsm, which is linked statically; "
            "link the program without -static",
            globals, globals_end);
}

void dsm_workers_run(void (*routine)(void), int count, void *globals, void *globals_end)
{
    struct quoit_dsm *dsm = quoit_dsm_running("dsm_workers_run");
    refuse_own_state(globals, globals_end);
    if (count < 1 || count > dsm->pe_count)
        quoit_dsm_wrong("dsm_workers_run: %d processes are wanted, but the job has %d PEs; give oshrun -n %d", count,
                        dsm->pe_count, count);
    struct quoit_dsm_row call = quoit_dsm_row_begin("dsm_workers_run", __builtin_return_address(0), false);
    dsm_workers_join();
    *creation_of(dsm) =
        (struct creation){(uintptr_t)routine, (uint64_t)count, (uintptr_t)globals, (uintptr_t)globals_end};
    quoit_dsm_barrier(dsm);
    quoit_dsm_barrier(dsm);
    quoit_dsm_row_end(&call);
    begin_creation(dsm);
    dsm->is_running = true;
    routine();
    quoit_dsm_workers_go(dsm);
}

void dsm_workers_join(void)
{
    QUOIT_DSM_CALL("dsm_workers_join");
    struct quoit_dsm *dsm = quoit_dsm_running("dsm_workers_join");
    if (!dsm->is_running)
        return;
    dsm->is_running = false;
    quoit_dsm_workers_go(dsm);
    quoit_dsm_barrier(dsm);
}
