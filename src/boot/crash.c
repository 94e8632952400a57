/* SPDX-License-Identifier: BSD-3-Clause */
#include "boot/crash.h"
#include "boot/interpreter.h"
#include "env/clock.h"
#include "env/libc.h"
#include "local/data_segment.h"

#include <errno.h>
#include <link.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <ucontext.h>
#include <unistd.h>

#define ALTERNATE_STACK_BYTES (64u << 10)
#define STACK_WORDS_SCANNED   2048 /* how far above the stack pointer to look for a return address into the program */
#define LOOK_NS               200000

static const int crash_signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
#define CRASH_SIGNAL_COUNT (sizeof crash_signals / sizeof crash_signals[0])

/* A signal handler takes no argument, so its state has file scope. Written by install and remove. */
static struct {
    struct quoit_pe_shared *_Atomic shared;
    const char *const *call;
    void *const *call_from;
    uint64_t text_start; /* the program's instructions */
    uint64_t text_end;
    uint64_t load_base;
    pid_t pid;
    void *stack;
    bool is_ours[CRASH_SIGNAL_COUNT];
    void (*notify)(void *arg);
    void *notify_arg;
} crash;

static int find_program(struct dl_phdr_info *info, size_t bytes, void *arg)
{
    (void)bytes;
    (void)arg;
    crash.load_base = info->dlpi_addr;
    crash.text_start = UINT64_MAX;
    crash.text_end = 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[i];
        if (header->p_type != PT_LOAD || !(header->p_flags & PF_X))
            continue;
        uint64_t start = info->dlpi_addr + header->p_vaddr;
        if (start < crash.text_start)
            crash.text_start = start;
        if (start + header->p_memsz > crash.text_end)
            crash.text_end = start + header->p_memsz;
    }
    return 1; /* the first object is the program */
}

static bool is_in_program(uint64_t address)
{
    return address >= crash.text_start && address < crash.text_end;
}

static void machine_state(const ucontext_t *context, uint64_t *instruction_out, uint64_t *stack_out)
{
#if defined(__x86_64__)
    *instruction_out = (uint64_t)context->uc_mcontext.gregs[REG_RIP];
    *stack_out = (uint64_t)context->uc_mcontext.gregs[REG_RSP];
#elif defined(__aarch64__)
    *instruction_out = context->uc_mcontext.pc;
    *stack_out = context->uc_mcontext.sp;
#else
    (void)context;
    *instruction_out = *stack_out = 0;
#endif
}

/* The nearest word up the stack that points into the program is almost always the return address of the library call.
 * An unwinder would be exact but takes locks. The kernel reads the stack for us, so running past its end is no fault.
 */
static uint64_t find_return_address(uint64_t stack)
{
    uint64_t words[64];
    stack &= ~(uint64_t)7;
    for (unsigned scanned = 0; scanned < STACK_WORDS_SCANNED; scanned += 64) {
        struct iovec local = {words, sizeof words};
        struct iovec remote = {(void *)(uintptr_t)(stack + scanned * 8ull), sizeof words};
        ssize_t bytes = process_vm_readv(crash.pid, &local, 1, &remote, 1, 0);
        for (ssize_t i = 0; i < bytes / 8; i++)
            if (is_in_program(words[i]))
                return words[i];
        if (bytes < (ssize_t)sizeof words)
            break;
    }
    return 0;
}

/* All but the signal. */
static void write_record(struct quoit_crash_record *record, const siginfo_t *info, const ucontext_t *context)
{
    uint64_t stack = 0;
    machine_state(context, &record->instruction, &stack);
    if (!is_in_program(record->instruction)) {
        record->is_inside = 1;
        record->instruction = find_return_address(stack);
    }
    record->fault_address = (uint64_t)(uintptr_t)info->si_addr;
    const char *name = crash.call ? *crash.call : NULL;
    for (size_t i = 0; name && name[i] && i < sizeof record->call - 1; i++)
        record->call[i] = name[i];
    record->call_from = crash.call_from ? (uint64_t)(uintptr_t)*crash.call_from : 0;
}

static void on_crash(int signal_number, siginfo_t *info, void *context)
{
    struct quoit_pe_shared *shared = atomic_load(&crash.shared);
    static atomic_flag is_taken = ATOMIC_FLAG_INIT;
    signal(signal_number, SIG_DFL);
    if (shared && getpid() == crash.pid && !atomic_flag_test_and_set(&is_taken)) {
        write_record(&shared->crash, info, context);
        /* The process dies next and the reader reaps it, which orders all of this. */
        atomic_store_explicit(&shared->crash.signal, (uint32_t)signal_number, memory_order_release);
        if (crash.notify)
            crash.notify(crash.notify_arg);
    }
    quoit_data_segments_leave_holes_out();
    /* A fault recurs when the handler returns; a signal that was sent must be sent again. */
    if (info->si_code <= 0)
        raise(signal_number);
}

/* To the thread that sleeps in a routine: its line in Python is wanted, and the interpreter knows that of the calling
 * thread alone. False: there is none but this one. */
static bool pass_on(const struct quoit_pe_shared *shared)
{
    pid_t thread = (pid_t)atomic_load_explicit(&shared->waiting_thread, memory_order_relaxed);
    return __atomic_load_n(&shared->waiting_in[0], __ATOMIC_RELAXED) && thread != quoit_thread_id() &&
           syscall(SYS_tgkill, crash.pid, thread, SIGURG) == 0;
}

/* The line may take a while, or for ever if the signal came inside the allocator: the supervisor does not wait for it
 * that long, and the process does not go on. */
static void answer(struct quoit_pe_shared *shared, const siginfo_t *info, const ucontext_t *context)
{
    char line[QUOIT_SOURCE_LINE_BYTES];
    write_record(&shared->crash, info, context);
    if (atomic_load(&shared->has_interpreter) &&
        quoit_interpreter_line(quoit_clock_now_ns() + QUOIT_INTERPRETER_LIMIT_NS, line))
        memcpy(shared->line, line, sizeof line);
    atomic_store_explicit(&shared->crash.signal, SIGURG, memory_order_release); /* pairs with quoit_crash_await */
}

/* Handles only the supervisor's request before it ends the job: the process stays here, so it does nothing that it
 * would not have done. Any other SIGURG is ignored, as by default. */
static void on_question(int signal_number, siginfo_t *info, void *context)
{
    struct quoit_pe_shared *shared = atomic_load(&crash.shared);
    int error = errno;
    (void)signal_number;
    if (shared && getpid() == crash.pid && atomic_load(&shared->is_asked)) {
        if (!pass_on(shared))
            answer(shared, info, context);
        for (;;)
            pause();
    }
    errno = error;
}

void quoit_crash_install(struct quoit_pe_shared *shared, const char *const *call, void *const *call_from)
{
    dl_iterate_phdr(find_program, NULL);
    crash.call = call;
    crash.call_from = call_from;
    crash.pid = getpid();
    atomic_store(&shared->load_base, crash.load_base);
    atomic_store(&shared->has_interpreter, quoit_interpreter_is_there());
    atomic_store(&crash.shared, shared);
    stack_t now;
    if (sigaltstack(NULL, &now) == 0 && (now.ss_flags & SS_DISABLE)) {
        void *stack =
            mmap(NULL, ALTERNATE_STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
        if (stack != MAP_FAILED) {
            crash.stack = stack;
            sigaltstack(&(stack_t){.ss_sp = stack, .ss_size = ALTERNATE_STACK_BYTES}, NULL);
        }
    }
    struct sigaction before;
    struct sigaction question = {.sa_sigaction = on_question, .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART};
    if (sigaction(SIGURG, NULL, &before) == 0 && !(before.sa_flags & SA_SIGINFO) && before.sa_handler == SIG_DFL)
        sigaction(SIGURG, &question, NULL);
    for (size_t i = 0; i < CRASH_SIGNAL_COUNT; i++) {
        struct sigaction old;
        if (sigaction(crash_signals[i], NULL, &old) != 0 || (old.sa_flags & SA_SIGINFO) || old.sa_handler != SIG_DFL)
            continue;
        struct sigaction action = {.sa_sigaction = on_crash, .sa_flags = SA_SIGINFO | SA_ONSTACK};
        crash.is_ours[i] = sigaction(crash_signals[i], &action, NULL) == 0;
    }
}

void quoit_crash_notify(void (*notify)(void *arg), void *arg)
{
    crash.notify_arg = arg;
    crash.notify = notify;
}

void quoit_crash_remove(void)
{
    for (size_t i = 0; i < CRASH_SIGNAL_COUNT; i++) {
        struct sigaction now;
        if (crash.is_ours[i] && sigaction(crash_signals[i], NULL, &now) == 0 && (now.sa_flags & SA_SIGINFO) &&
            now.sa_sigaction == on_crash)
            signal(crash_signals[i], SIG_DFL);
        crash.is_ours[i] = false;
    }
    struct sigaction now_urgent;
    if (sigaction(SIGURG, NULL, &now_urgent) == 0 && (now_urgent.sa_flags & SA_SIGINFO) &&
        now_urgent.sa_sigaction == on_question)
        signal(SIGURG, SIG_DFL);
    if (crash.stack) {
        sigaltstack(&(stack_t){.ss_flags = SS_DISABLE}, NULL);
        munmap(crash.stack, ALTERNATE_STACK_BYTES);
        crash.stack = NULL;
    }
    atomic_store(&crash.shared, NULL);
}

void quoit_crash_ask(struct quoit_pe_shared *shared)
{
    atomic_store(&shared->is_asked, 1);
}

bool quoit_crash_await(const struct quoit_pe_shared *shared, uint64_t until_ns)
{
    while (!atomic_load_explicit(&shared->crash.signal, memory_order_acquire)) {
        if (quoit_clock_now_ns() >= until_ns)
            return false;
        quoit_clock_sleep_ns(LOOK_NS);
    }
    return true;
}

void quoit_crash_line(const struct quoit_pe_shared *shared, char line_out[QUOIT_SOURCE_LINE_BYTES])
{
    line_out[0] = '\0';
    if (atomic_load_explicit(&shared->crash.signal, memory_order_acquire) != SIGURG)
        return;
    memcpy(line_out, shared->line, QUOIT_SOURCE_LINE_BYTES);
    line_out[QUOIT_SOURCE_LINE_BYTES - 1] = '\0';
}
