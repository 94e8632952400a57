/* SPDX-License-Identifier: BSD-3-Clause */
#include <dsm.h>
#include <errno.h>
#include <shmem.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/log.h"
#include "dsm/barrier.h"
#include "dsm/call_memory.h"
#include "dsm/calls.h"
#include "dsm/coherence.h"
#include "dsm/detect.h"
#include "dsm/globals.h"
#include "dsm/home.h"
#include "dsm/memory.h"
#include "dsm/net.h"
#include "dsm/notice.h"
#include "dsm/profile.h"
#include "dsm/races.h"
#include "dsm/service.h"
#include "dsm/space.h"
#include "dsm/stats.h"
#include "dsm/sync.h"

#define MEMORY_MOST      (1ull << 40)
#define MEMORY_ELSEWHERE (256ull << 20) /* of a library that does not give the size of its heap */

struct quoit_dsm *quoit_dsm;

/* The signal handlers before the library, and what the library initialized. */
static struct {
    pthread_mutex_t lock;
    struct sigaction segv, bus, trap, calls; /* calls: of SIGSYS */
    struct quoit_dsm_call_range filtered[2];
    bool began_shmem, was_finalized, has_exit;
} process = {.lock = PTHREAD_MUTEX_INITIALIZER};

void quoit_dsm_wrong(const char *format, ...)
{
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (quoit_dsm)
        quoit_say("dsm: PE %d: %s", quoit_dsm->me, text);
    else
        quoit_say("dsm: %s", text);
    _exit(1);
}

/* Faults */

static const void *instruction_of(const void *context)
{
#ifdef __x86_64__
    return (const void *)((const ucontext_t *)context)->uc_mcontext.gregs[16 /* REG_RIP */];
#else
    (void)context;
    return NULL;
#endif
}

/* The processor traps after the next instruction. */
static void set_stepping(void *context, bool is_on)
{
#ifdef __x86_64__
    greg_t *flags = &((ucontext_t *)context)->uc_mcontext.gregs[17 /* REG_EFL */];
    *flags = is_on ? *flags | 0x100 : *flags & ~0x100ll;
#else
    (void)context;
    (void)is_on;
#endif
}

/* If the processor does not report the kind of access, a second fault on a page that was opened is a store. A page in
 * exclusive mode is writable, but a chunk that is frozen is not. */
static bool means_store(struct quoit_dsm *dsm, const void *address, const void *context)
{
#ifdef __x86_64__
    (void)dsm;
    (void)address;
    return ((const ucontext_t *)context)->uc_mcontext.gregs[19 /* REG_ERR */] & 2;
#else
    (void)context;
    if (dsm->slot_of_chunk[quoit_dsm_offset_of(dsm, address) >> dsm->chunk_shift] == 0)
        return false;
    uint8_t state = dsm->states[quoit_dsm_space_page(dsm, address)];
    return state == QUOIT_DSM_CLEAN || state == QUOIT_DSM_EXCLUSIVE;
#endif
}

/* Passes a fault outside shared memory to the previous handler. The default action is restored, and taken when the
 * instruction faults again. */
static void pass_on(int signal_number, siginfo_t *info, void *context)
{
    const struct sigaction *before = signal_number == SIGSEGV ? &process.segv : &process.bus;
    if (signal_number == SIGTRAP)
        before = &process.trap;
    else if (signal_number == SIGSYS)
        before = &process.calls;
    if (before->sa_flags & SA_SIGINFO)
        before->sa_sigaction(signal_number, info, context);
    else if (before->sa_handler == SIG_DFL || before->sa_handler == SIG_IGN)
        sigaction(signal_number, before, NULL);
    else
        before->sa_handler(signal_number);
}

/* A jump into shared memory is not ours to serve: no page becomes executable, so the fault would return for ever. */
static void on_fault(int signal_number, siginfo_t *info, void *context)
{
    int saved_errno = errno;
    struct quoit_dsm *dsm = quoit_dsm;
    const void *instruction = instruction_of(context);
    bool is_ours = dsm && info->si_code > 0 && quoit_dsm_space_has(dsm, info->si_addr) && info->si_addr != instruction;
    if (is_ours)
        quoit_dsm_fault(dsm, info->si_addr, means_store(dsm, info->si_addr, context), instruction);
    else
        pass_on(signal_number, info, context);
    if (is_ours && quoit_dsm_races_reads(dsm))
        set_stepping(context, true);
    errno = saved_errno;
}

/* The trap after an instruction for which a page was opened (DSM_RACES=reads). */
static void on_trap(int signal_number, siginfo_t *info, void *context)
{
    int saved_errno = errno;
    struct quoit_dsm *dsm = quoit_dsm;
    bool is_ours = false;
    if (dsm && dsm->races) {
        quoit_dsm_lock(dsm);
        is_ours = quoit_dsm_races_stepped(dsm);
        quoit_dsm_unlock(dsm);
    }
    if (is_ours)
        set_stepping(context, false);
    else
        pass_on(signal_number, info, context);
    errno = saved_errno;
}

#ifdef __x86_64__
/* A system call that the filter stopped; also after dsm_finalize, since a filter cannot be removed. */
static void on_call(int signal_number, siginfo_t *info, void *context)
{
    int saved_errno = errno;
    greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
    const uint64_t arguments[6] = {(uint64_t)registers[REG_RDI], (uint64_t)registers[REG_RSI],
                                   (uint64_t)registers[REG_RDX], (uint64_t)registers[REG_R10],
                                   (uint64_t)registers[REG_R8],  (uint64_t)registers[REG_R9]};
    if (quoit_dsm_call_is_ours(info))
        registers[REG_RAX] = quoit_dsm_call_serve(quoit_dsm, info->si_syscall, arguments);
    else
        pass_on(signal_number, info, context);
    errno = saved_errno;
}
#endif

/* sigaction by its other name: ThreadSanitizer replaces the first, and delays a handler that was registered by it. */
int __sigaction(int number, const struct sigaction *action, struct sigaction *before);

/* Lets system calls have buffers in shared memory. The handler comes first: a call that is stopped without one ends the
 * process. */
static void filter_calls(struct quoit_dsm *dsm)
{
    struct quoit_dsm_call_range ranges[2] = {{(uintptr_t)dsm->space, (uintptr_t)dsm->space + dsm->heap_bytes},
                                             {(uintptr_t)dsm->globals, (uintptr_t)dsm->globals + dsm->globals_bytes}};
    if (dsm->options.values[QUOIT_DSM_CALLS] != 0)
        return;
    bool could = false;
#ifdef __x86_64__
    struct sigaction ours = {.sa_sigaction = on_call, .sa_flags = SA_SIGINFO | SA_NODEFER | SA_RESTART}, before;
    sigemptyset(&ours.sa_mask);
    __sigaction(SIGSYS, &ours, &before);
    if (before.sa_sigaction != on_call)
        process.calls = before;
    could = quoit_dsm_call_filter_start(process.filtered, ranges);
#endif
    if (!quoit_dsm_space_all(dsm, could) && dsm->me == 0)
        quoit_say(
            "dsm: warning: on a host system calls with buffers in shared memory will fail with EFAULT where a page is "
            "not accessible, since the kernel refuses a filter of system calls (seccomp). Give them private memory; "
            "DSM_CALLS=off omits this line [Q0326]");
}

static void take_signals(struct quoit_dsm *dsm)
{
    struct sigaction ours = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_NODEFER | SA_RESTART};
    sigemptyset(&ours.sa_mask);
    sigaction(SIGSEGV, &ours, &process.segv);
    sigaction(SIGBUS, &ours, &process.bus);
    ours.sa_sigaction = on_trap;
    if (quoit_dsm_races_reads(dsm))
        sigaction(SIGTRAP, &ours, &process.trap);
}

/* Memory */

/* Private memory that costs nothing until it is touched, and is zero. */
static void *sparse(struct quoit_dsm *dsm, size_t bytes)
{
    quoit_assert(dsm->table_count < QUOIT_DSM_TABLE_ROOM);
    void *block = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (block == MAP_FAILED)
        quoit_dsm_wrong("no %zu MiB of address space for the library's tables: %s; a smaller DSM_MEMORY helps",
                        bytes >> 20, strerror(errno));
    dsm->tables[dsm->table_count++] = (struct quoit_dsm_table){block, bytes};
    return block;
}

/* The next part of a block, in whole pages. */
static void *part(char *block, size_t *end, size_t count, size_t bytes)
{
    void *start = (void *)((uintptr_t)block + *end);
    *end += (count * bytes + QUOIT_DSM_MEMORY_PAGE - 1) / QUOIT_DSM_MEMORY_PAGE * QUOIT_DSM_MEMORY_PAGE;
    return start;
}

/* Lays out all symmetric memory of this file in one block; returns its bytes. */
static size_t lay_out(struct quoit_dsm *dsm, char *block)
{
    size_t end = 0, pes = (size_t)dsm->pe_count;
    dsm->frames = part(block, &end, dsm->slot_count, dsm->chunk_bytes);
    dsm->masters = dsm->frames;
    if (dsm->options.values[QUOIT_DSM_RACES])
        dsm->masters = part(block, &end, dsm->slot_count, dsm->chunk_bytes);
    dsm->version = part(block, &end, dsm->page_count * pes, sizeof *dsm->version);
    dsm->homes = part(block, &end, dsm->page_count, sizeof *dsm->homes);
    dsm->marks = part(block, &end, dsm->page_count / QUOIT_DSM_MARK_PAGES + 1, sizeof *dsm->marks);
    dsm->chunks = part(block, &end, dsm->chunk_count / pes + 1, sizeof *dsm->chunks);
    dsm->log = part(block, &end, dsm->options.values[QUOIT_DSM_LOG], sizeof *dsm->log);
    dsm->known = part(block, &end, pes + QUOIT_DSM_RECENT_WORDS, sizeof *dsm->known);
    dsm->recent.records = (struct quoit_dsm_record *)(dsm->known + pes);
    dsm->seen = part(block, &end, pes * pes, sizeof *dsm->seen);
    dsm->heads = part(block, &end, 2 * pes, sizeof *dsm->heads);
    dsm->words = part(block, &end, QUOIT_DSM_WORD_COUNT, sizeof *dsm->words);
    return end;
}

static void take_symmetric(struct quoit_dsm *dsm)
{
    size_t bytes = lay_out(dsm, NULL);
    char *block = quoit_dsm_memory_reserve(bytes);
    if (!block)
        quoit_dsm_wrong("no symmetric memory for the %llu MiB of DSM_MEMORY, with tables %zu MiB on each PE; a larger "
                        "SHMEM_SYMMETRIC_SIZE or a smaller DSM_MEMORY helps",
                        (unsigned long long)(dsm->slot_count << dsm->chunk_shift >> 20), bytes >> 20);
    lay_out(dsm, block);
}

static void take_private(struct quoit_dsm *dsm)
{
    uint64_t pages = dsm->page_count;
    dsm->slot_of_chunk = sparse(dsm, dsm->chunk_count * sizeof *dsm->slot_of_chunk);
    dsm->chunk_of_slot = sparse(dsm, dsm->slot_count * sizeof *dsm->chunk_of_slot);
    dsm->is_taken = sparse(dsm, pages);
    dsm->has_rows = sparse(dsm, dsm->slot_count);
    dsm->has_room = sparse(dsm, pages);
    dsm->mapped = sparse(dsm, dsm->slot_count * sizeof *dsm->mapped);
    dsm->states = sparse(dsm, pages);
    dsm->open_in = sparse(dsm, dsm->slot_count * sizeof *dsm->open_in);
    dsm->idle_scans = sparse(dsm, dsm->slot_count * sizeof *dsm->idle_scans);
    dsm->apart_for = sparse(dsm, dsm->slot_count * sizeof *dsm->apart_for);
    dsm->exclusive_in = sparse(dsm, dsm->slot_count * sizeof *dsm->exclusive_in);
    dsm->marked = sparse(dsm, (pages / QUOIT_DSM_MARK_PAGES + 1) * sizeof *dsm->marked);
    dsm->has_twin = sparse(dsm, pages);
    dsm->was_used = sparse(dsm, pages);
    dsm->habits = sparse(dsm, pages * sizeof *dsm->habits);
    dsm->known_homes = sparse(dsm, pages * sizeof *dsm->known_homes);
    dsm->kind_of = sparse(dsm, pages);
    dsm->stale = sparse(dsm, pages * sizeof *dsm->stale);
    dsm->is_stale = sparse(dsm, pages);
    dsm->twins = sparse(dsm, pages << dsm->page_shift);
    dsm->needs = sparse(dsm, pages * (uint64_t)dsm->pe_count * sizeof *dsm->needs);
    dsm->need_of = sparse(dsm, pages * sizeof *dsm->need_of);
    dsm->dirty = sparse(dsm, pages * sizeof *dsm->dirty);
    dsm->page_stats = sparse(dsm, pages * sizeof *dsm->page_stats);
    dsm->extra_room = 1024;
    dsm->extra = sparse(dsm, dsm->extra_room * sizeof *dsm->extra);
    dsm->shown = sparse(dsm, (uint64_t)dsm->pe_count * sizeof *dsm->shown);
    if (dsm->options.values[QUOIT_DSM_HOME] == QUOIT_DSM_HOME_MIGRATE && !dsm->options.values[QUOIT_DSM_RACES]) {
        dsm->writers = sparse(dsm, pages * sizeof *dsm->writers);
        dsm->written = sparse(dsm, pages * sizeof *dsm->written);
        dsm->streaks = sparse(dsm, pages * sizeof *dsm->streaks);
        dsm->heads_before = sparse(dsm, (uint64_t)dsm->pe_count * sizeof *dsm->heads_before);
    }
    dsm->epoch = 1;
    dsm->window = 1;
    dsm->arrived_page = UINT64_MAX;
    dsm->userfault_fd = dsm->pagemap_fd = -1;
}

static void find_peers(struct quoit_dsm *dsm)
{
    dsm->peers = calloc((size_t)dsm->pe_count, sizeof *dsm->peers);
    for (int pe = 0; pe < dsm->pe_count; pe++) {
        bool is_own = pe == dsm->me;
        if (dsm->options.values[QUOIT_DSM_LOCAL] != 0 && !is_own)
            continue;
        char *masters = is_own ? dsm->masters : shmem_ptr(dsm->masters, pe);
        uint64_t *version = shmem_ptr(dsm->version, pe), *log = shmem_ptr(dsm->log, pe);
        uint64_t *known = shmem_ptr(dsm->known, pe);
        if (masters && version && log && known)
            dsm->peers[pe] = (struct quoit_dsm_peer){masters, version, log, known};
    }
}

/* Whether OpenSHMEM runs. A library of OpenSHMEM 1.4 cannot be asked: there dsm_init begins it, and dsm_finalize ends
 * it. */
static bool has_begun(void)
{
#if SHMEM_MAJOR_VERSION > 1 || SHMEM_MINOR_VERSION >= 5
    int is_begun = 0;
    shmem_query_initialized(&is_begun);
    return is_begun;
#else
    return process.began_shmem;
#endif
}

/* A return from main or exit(0) is a finalize; a PE that fails does not wait for the others, the launcher ends them. A
 * forked child is not a PE. */
static void finalize_at_exit(int status, void *pid)
{
    if (status == 0 && getpid() == (pid_t)(intptr_t)pid && has_begun())
        dsm_finalize();
}

/* Starting */

/* Half of the heap, with what each page needs in tables. */
static uint64_t default_memory(const struct quoit_dsm *dsm)
{
    uint64_t limit = quoit_dsm_memory_limit(), masters = dsm->options.values[QUOIT_DSM_RACES] ? 1 : 0;
    uint64_t tables = (uint64_t)dsm->pe_count * sizeof *dsm->version + sizeof *dsm->homes + sizeof *dsm->marks;
    uint64_t pages = limit / 2 / (dsm->page_bytes * (1 + masters) + tables), most = MEMORY_MOST / dsm->page_bytes;
    return limit == 0 ? MEMORY_ELSEWHERE : (pages < most ? pages : most) * dsm->page_bytes;
}

static void choose_sizes(struct quoit_dsm *dsm)
{
    const uint64_t *values = dsm->options.values;
    dsm->page_bytes = values[QUOIT_DSM_PAGE];
    dsm->page_shift = (uint32_t)__builtin_ctzll(dsm->page_bytes);
    dsm->chunk_bytes = dsm->page_bytes > QUOIT_DSM_CHUNK_BYTES_LEAST ? dsm->page_bytes : QUOIT_DSM_CHUNK_BYTES_LEAST;
    dsm->chunk_shift = (uint32_t)__builtin_ctzll(dsm->chunk_bytes);
    dsm->chunk_pages = dsm->chunk_bytes >> dsm->page_shift;
    uint64_t memory = values[QUOIT_DSM_MEMORY] ? values[QUOIT_DSM_MEMORY] : default_memory(dsm);
    dsm->slot_count = (memory + dsm->chunk_bytes - 1) >> dsm->chunk_shift;
    dsm->page_count = dsm->slot_count * dsm->chunk_pages;
    dsm->chunk_count = values[QUOIT_DSM_SPACE] >> dsm->chunk_shift;
    dsm->space_bytes = dsm->chunk_count << dsm->chunk_shift;
    if (dsm->pe_count > QUOIT_DSM_PES_MAX)
        quoit_dsm_wrong("the job has %d PEs, but shared pages are for at most %d", dsm->pe_count, QUOIT_DSM_PES_MAX);
}

static void choose_protocol(struct quoit_dsm *dsm)
{
    enum quoit_dsm_protocol protocol = (enum quoit_dsm_protocol)dsm->options.values[QUOIT_DSM_PROTOCOL];
    bool reaches_all = true;
    for (int pe = 0; pe < dsm->pe_count; pe++)
        reaches_all = reaches_all && dsm->peers[pe].masters;
    reaches_all = quoit_dsm_space_all(dsm, reaches_all);
    if (dsm->options.values[QUOIT_DSM_RACES]) {
        if (protocol != QUOIT_DSM_AUTO && protocol != QUOIT_DSM_NEWGENDSM)
            quoit_dsm_wrong("DSM_RACES needs DSM_PROTOCOL=newgendsm");
#ifndef __x86_64__
        if (dsm->options.values[QUOIT_DSM_RACES] == 2)
            quoit_dsm_wrong("DSM_RACES=reads is for processors of x86-64");
#endif
        if (dsm->options.values[QUOIT_DSM_RACES] == 2)
            dsm->options.values[QUOIT_DSM_PREFETCH] = 1;
        protocol = QUOIT_DSM_NEWGENDSM;
        quoit_dsm_races_start(dsm);
    }
    if (protocol == QUOIT_DSM_AUTO)
        protocol = reaches_all ? QUOIT_DSM_DIRECT : QUOIT_DSM_NEWGENDSM;
    if (protocol == QUOIT_DSM_DIRECT && !reaches_all)
        quoit_dsm_wrong("DSM_PROTOCOL is direct, but not all PEs are on one host, or DSM_LOCAL is off");
    dsm->protocol = protocol;
    dsm->is_direct = protocol == QUOIT_DSM_DIRECT;
}

static void compare_options(struct quoit_dsm *dsm)
{
    uint64_t theirs[QUOIT_DSM_OPTION_COUNT], *mine = shmem_malloc(sizeof theirs);
    if (!mine)
        quoit_dsm_wrong("no symmetric memory for %zu bytes; a larger SHMEM_SYMMETRIC_SIZE helps", sizeof theirs);
    memcpy(mine, dsm->options.values, sizeof theirs);
    shmem_barrier_all();
    shmem_getmem(theirs, mine, sizeof theirs, 0);
    for (int i = 0; i < QUOIT_DSM_OPTION_COUNT; i++) {
        if (theirs[i] != mine[i])
            quoit_dsm_wrong("dsm_init: %s is not the same as on PE 0; give it to all PEs (oshrun -x)",
                            quoit_dsm_option_variable(i));
    }
    shmem_barrier_all();
    shmem_free(mine);
}

static void begin_shmem(void)
{
    int provided = SHMEM_THREAD_SINGLE;
    if (!has_begun()) {
        shmem_init_thread(SHMEM_THREAD_MULTIPLE, &provided);
        process.began_shmem = true;
    }
}

/* `from`: behind the program's call of dsm_init; NULL: it called another routine. */
static void start(const void *from)
{
    struct quoit_dsm *dsm = calloc(1, sizeof *dsm);
    quoit_dsm_options_read(&dsm->options, environ);
    begin_shmem();
    struct quoit_dsm_row call = quoit_dsm_row_begin("dsm_init", from, false);
    dsm->me = shmem_my_pe();
    dsm->pe_count = shmem_n_pes();
    compare_options(dsm);
    choose_sizes(dsm);
    pthread_mutex_init(&dsm->lock, NULL);
    dsm->prng.state = dsm->options.values[QUOIT_DSM_SEED] * 1000003 + (uint64_t)dsm->me;
    take_symmetric(dsm);
    take_private(dsm);
    quoit_dsm_net_start(dsm);
    find_peers(dsm);
    quoit_dsm_globals_find(dsm);
    quoit_dsm_space_reserve(dsm);
    choose_protocol(dsm);
    if (!dsm->is_direct)
        quoit_dsm_detect_start(dsm);
    quoit_dsm_syncs_start(dsm);
    take_signals(dsm);
    quoit_dsm_service_start(dsm);
    if (!process.has_exit)
        on_exit(finalize_at_exit, (void *)(intptr_t)getpid());
    process.has_exit = true;
    dsm->started_ns = quoit_dsm_now_ns();
    quoit_dsm_globals_cover(dsm);
    filter_calls(dsm);
    __atomic_store_n(&quoit_dsm, dsm, __ATOMIC_RELEASE);
    shmem_barrier_all();
    quoit_dsm_globals_fill(dsm);
    quoit_dsm_row_end(&call);
}

static void start_once(const void *from)
{
    pthread_mutex_lock(&process.lock);
    if (!quoit_dsm)
        start(from);
    pthread_mutex_unlock(&process.lock);
}

void dsm_init(void)
{
    start_once(__builtin_return_address(0));
}

struct quoit_dsm *quoit_dsm_running(const char *call)
{
    struct quoit_dsm *dsm = __atomic_load_n(&quoit_dsm, __ATOMIC_ACQUIRE);
    if (__builtin_expect(dsm != NULL, 1))
        return dsm;
    if (process.was_finalized)
        quoit_dsm_wrong("%s: called after dsm_finalize", call);
    start_once(NULL);
    return quoit_dsm;
}

static void give_back(struct quoit_dsm *dsm)
{
    quoit_dsm_stand_in_stop(dsm);
    quoit_dsm_space_release(dsm);
    quoit_dsm_globals_restore(dsm);
    quoit_dsm_checkpoint_forget(dsm);
    shmem_free(dsm->frames); /* the block begins with them */
    while (dsm->table_count > 0) {
        struct quoit_dsm_table table = dsm->tables[--dsm->table_count];
        munmap(table.start, table.bytes);
    }
}

void dsm_finalize(void)
{
    struct quoit_dsm *dsm = quoit_dsm;
    if (!dsm)
        return;
    struct quoit_dsm_row call = quoit_dsm_row_begin("dsm_finalize", __builtin_return_address(0), false);
    quoit_dsm_barrier(dsm);
    quoit_dsm_globals_save(dsm);
    shmem_barrier_all(); /* what was saved may have been fetched from a handler: none stops before */
    if (quoit_dsm_races_reads(dsm))
        sigaction(SIGTRAP, &process.trap, NULL);
    if (dsm->races)
        quoit_dsm_races_stop(dsm);
    quoit_dsm_service_stop(dsm);
    quoit_dsm_stats_print(dsm); /* the handler, which counts too, has ended */
    quoit_dsm_syncs_stop(dsm);
    if (dsm->detector)
        dsm->detector->stop(dsm);
    sigaction(SIGSEGV, &process.segv, NULL);
    sigaction(SIGBUS, &process.bus, NULL);
    quoit_dsm = NULL;
    process.was_finalized = true;
    quoit_dsm_net_stop(dsm);
    give_back(dsm);
    free(dsm->peers);
    pthread_mutex_destroy(&dsm->lock);
    free(dsm);
    quoit_dsm_row_end(&call);
    call = quoit_dsm_row_begin(NULL, NULL, false); /* what follows is not called by the program */
    if (process.began_shmem)
        shmem_finalize();
    quoit_dsm_row_end(&call);
}

int dsm_my_pe(void)
{
    return quoit_dsm_running("dsm_my_pe")->me;
}

int dsm_n_pes(void)
{
    return quoit_dsm_running("dsm_n_pes")->pe_count;
}
