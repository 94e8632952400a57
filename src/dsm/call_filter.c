/* SPDX-License-Identifier: BSD-3-Clause */
/* The filter: a program for the kernel, made from the table of calls and the addresses of shared memory. */
#include <errno.h>
#include <link.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/assert.h"
#include "dsm/calls.h"
#include "env/raw_call.h"

#define CODE_MAX 2048
#define OUR_MARK 0x5144 /* in si_errno of a SIGSYS of this filter */

#ifndef SYS_SECCOMP /* si_code; not in every libc */
#define SYS_SECCOMP 1
#endif

bool quoit_dsm_call_is_ours(const siginfo_t *info)
{
    return info->si_code == SYS_SECCOMP && info->si_errno == OUR_MARK;
}

#ifdef __x86_64__

struct code {
    struct sock_filter steps[CODE_MAX];
    uint16_t count;
};

static void add(struct code *code, uint16_t operation, uint32_t value, uint8_t if_true, uint8_t if_false)
{
    quoit_assert(code->count < CODE_MAX);
    code->steps[code->count++] = (struct sock_filter){operation, if_true, if_false, value};
}

static void add_load(struct code *code, size_t offset)
{
    add(code, BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset, 0, 0);
}

static void add_return(struct code *code, uint32_t answer)
{
    add(code, BPF_RET | BPF_K, answer, 0, 0);
}

/* Traps a call one of whose arguments is in a range. The kernel compares 32 bits: of a range that does not lie in one
 * 4 GiB only the upper halves are compared, so some addresses beside it are taken too, which costs time alone. */
static void add_argument(struct code *code, int argument, struct quoit_dsm_call_range range)
{
    uint32_t first = (uint32_t)(range.start >> 32), last = (uint32_t)((range.end - 1) >> 32);
    size_t offset = offsetof(struct seccomp_data, args) + (size_t)argument * sizeof(uint64_t);
    bool is_near = first == last;
    add_load(code, offset + 4);
    add(code, BPF_JMP | BPF_JGE | BPF_K, first, 0, is_near ? 5 : 2);
    add(code, BPF_JMP | BPF_JGT | BPF_K, last, is_near ? 4 : 1, 0);
    if (is_near) {
        add_load(code, offset);
        add(code, BPF_JMP | BPF_JGE | BPF_K, (uint32_t)range.start, 0, 2);
        add(code, BPF_JMP | BPF_JGT | BPF_K, (uint32_t)(range.end - 1), 1, 0);
    }
    add_return(code, SECCOMP_RET_TRAP | OUR_MARK);
}

/* Lets a call pass that does not come from the C library, or comes from quoit_raw_call. */
static void add_origin(struct code *code, struct quoit_dsm_call_range library)
{
    size_t offset = offsetof(struct seccomp_data, instruction_pointer);
    uint32_t first = (uint32_t)(library.start >> 32), last = (uint32_t)((library.end - 1) >> 32);
    add_load(code, offset + 4);
    add(code, BPF_JMP | BPF_JGE | BPF_K, first, 1, 0);
    add_return(code, SECCOMP_RET_ALLOW);
    add(code, BPF_JMP | BPF_JGT | BPF_K, last, 0, 1);
    add_return(code, SECCOMP_RET_ALLOW);
    add_load(code, offset);
    if (first == last) { /* else those beside it count as its own */
        add(code, BPF_JMP | BPF_JGE | BPF_K, (uint32_t)library.start, 1, 0);
        add_return(code, SECCOMP_RET_ALLOW);
        add(code, BPF_JMP | BPF_JGT | BPF_K, (uint32_t)(library.end - 1), 0, 1);
        add_return(code, SECCOMP_RET_ALLOW);
    }
    add(code, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)(uintptr_t)quoit_raw_call_after, 0, 1);
    add_return(code, SECCOMP_RET_ALLOW);
}

/* Calls whose addresses are in the same arguments are looked at alike. */
static void add_kind(struct code *code, unsigned pointers, struct quoit_dsm_call_range library,
                     const struct quoit_dsm_call_range ranges[2])
{
    add_origin(code, library);
    for (int i = 0; i < 6; i++) {
        for (int j = 0; j < 2 && (pointers >> i & 1); j++) {
            if (ranges[j].start != ranges[j].end)
                add_argument(code, i, ranges[j]);
        }
    }
    add_return(code, SECCOMP_RET_ALLOW);
}

/* Calls that are not in the table are decided by their number alone: the kernel keeps that in a bitmap, and does not
 * run the program for them. */
static void make(struct code *code, struct quoit_dsm_call_range library, const struct quoit_dsm_call_range ranges[2])
{
    add_load(code, offsetof(struct seccomp_data, arch));
    add(code, BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 1, 0);
    add_return(code, SECCOMP_RET_ALLOW);
    add_load(code, offsetof(struct seccomp_data, nr));
    uint16_t tests = code->count;
    for (size_t i = 0; i < quoit_dsm_call_count; i++) {
        add(code, BPF_JMP | BPF_JEQ | BPF_K, quoit_dsm_calls[i].number, 0, 1);
        add(code, BPF_JMP | BPF_JA, 0, 0, 0);
    }
    add_return(code, SECCOMP_RET_ALLOW);
    for (unsigned pointers = 1; pointers < 64; pointers++) {
        uint16_t start = code->count;
        bool is_used = false;
        for (size_t i = 0; i < quoit_dsm_call_count; i++) {
            struct sock_filter *jump = &code->steps[tests + 2 * i + 1];
            if (quoit_dsm_calls[i].pointers != pointers)
                continue;
            jump->k = (uint32_t)(start - (tests + 2 * i + 2));
            is_used = true;
        }
        if (is_used)
            add_kind(code, pointers, library, ranges);
    }
}

/* The instructions of the C library, or of the program that contains it. */
static int find_library(struct dl_phdr_info *info, size_t bytes, void *context)
{
    (void)bytes;
    struct quoit_dsm_call_range *library = context;
    const char *slash = strrchr(info->dlpi_name, '/'), *name = slash ? slash + 1 : info->dlpi_name;
    bool is_library = strncmp(name, "libc.so", 7) == 0;
    for (int i = 0; i < info->dlpi_phnum && (is_library || library->end == 0); i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        if (part->p_type == PT_LOAD && (part->p_flags & PF_X))
            *library = (struct quoit_dsm_call_range){info->dlpi_addr + part->p_vaddr,
                                                     info->dlpi_addr + part->p_vaddr + part->p_memsz};
    }
    return is_library;
}

/* Without the right to filter a process that may gain rights, it gives that up. */
static bool install(struct code *code)
{
    struct sock_fprog program = {code->count, code->steps};
    unsigned flags = SECCOMP_FILTER_FLAG_TSYNC | SECCOMP_FILTER_FLAG_SPEC_ALLOW;
    long error = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
    if (error < 0 && errno == EACCES && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0)
        error = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
    return error == 0;
}

bool quoit_dsm_call_filter_start(struct quoit_dsm_call_range filtered[2], const struct quoit_dsm_call_range ranges[2])
{
    if (memcmp(filtered, ranges, 2 * sizeof *ranges) == 0)
        return true;
    struct quoit_dsm_call_range library = {0, 0};
    struct code code = {.count = 0};
    dl_iterate_phdr(find_library, &library);
    make(&code, library, ranges);
    bool is_installed = install(&code);
    if (is_installed)
        memcpy(filtered, ranges, 2 * sizeof *ranges);
    return is_installed;
}

#else

bool quoit_dsm_call_filter_start(struct quoit_dsm_call_range filtered[2], const struct quoit_dsm_call_range ranges[2])
{
    (void)filtered;
    (void)ranges;
    errno = ENOSYS;
    return false;
}

#endif
