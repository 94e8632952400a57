/* SPDX-License-Identifier: BSD-3-Clause */
/* Aim: private buffers may fault, and the fault handler may call the library: no lock is held while they are accessed.
 * Method: before each operation the pages of the private side are protected; the handler puts, gets, adds and fences,
 * to all PEs, then unprotects the page. The data must be right; a lock that is held hangs the test. */
#include "check.h"

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE    4096
#define PAGES   6
#define BYTES   (PAGES * PAGE)
#define ELEMENT 8

static unsigned char theirs[BYTES], back[BYTES]; /* symmetric */
static uint64_t sum, signal_word, swapped;       /* symmetric */
static long noted;                               /* symmetric */
static unsigned char *own;                       /* private, PAGES pages */
static volatile sig_atomic_t fault_count, is_quiet;

static void give_back(int number, siginfo_t *info, void *unused)
{
    (void)number;
    (void)unused;
    uintptr_t at = (uintptr_t)info->si_addr;
    if (at - (uintptr_t)own >= BYTES)
        _exit(99);
    mprotect((void *)(at / PAGE * PAGE), PAGE, PROT_READ | PROT_WRITE);
    fault_count++;
    for (int pe = 0; pe < npes; pe++) {
        long value;
        shmem_uint64_atomic_add(&sum, 1, pe);
        shmem_long_p(&noted, pe, pe);
        shmem_long_get(&value, &noted, 1, pe);
        shmem_uint64_atomic_fetch(&sum, pe);
    }
    shmem_fence();
    if (is_quiet)
        shmem_quiet();
}

static void take_away(void)
{
    mprotect(own, BYTES, PROT_NONE);
}

static void fill(int salt)
{
    mprotect(own, BYTES, PROT_READ | PROT_WRITE);
    for (size_t i = 0; i < BYTES; i++)
        own[i] = (unsigned char)(i * 7 + (i >> 8) + (size_t)salt);
}

/* Written by the other PEs; `bytes` of it. */
static void must_be(const char *what, const unsigned char *bytes, size_t count, int salt)
{
    size_t wrong = 0;
    for (size_t i = 0; i < count; i++)
        wrong += bytes[i] != (unsigned char)(i * 7 + (i >> 8) + (size_t)salt);
    CHECK(wrong == 0, "%s: %zu of %zu bytes are wrong", what, wrong, count);
}

static void puts_to(int pe, int from)
{
    static const char *const names[] = {"putmem", "putmem of a page", "put_signal", "iput", "putmem_nbi"};
    for (int way = 0; way < 5; way++) {
        size_t bytes = way == 1 ? PAGE : BYTES;
        fill(me + way);
        take_away();
        is_quiet = true;
        if (way < 2)
            shmem_putmem(theirs, own, bytes, pe);
        else if (way == 2)
            shmem_putmem_signal(theirs, own, bytes, &signal_word, 1, SHMEM_SIGNAL_ADD, pe);
        else if (way == 3)
            shmem_long_iput((long *)(void *)theirs, (const long *)(const void *)own, 1, 1, BYTES / ELEMENT, pe);
        else
            shmem_putmem_nbi(theirs, own, bytes, pe);
        shmem_barrier_all();
        must_be(names[way], theirs, bytes, from + way);
        shmem_barrier_all();
    }
}

static void gets_from(int pe)
{
    for (size_t i = 0; i < BYTES; i++)
        back[i] = (unsigned char)(i * 7 + (i >> 8) + (size_t)me);
    shmem_barrier_all();
    take_away();
    is_quiet = true;
    shmem_getmem(own, back, BYTES, pe);
    must_be("getmem", own, BYTES, pe);
    take_away();
    shmem_long_iget((long *)(void *)own, (const long *)(const void *)back, 1, 1, BYTES / ELEMENT, pe);
    must_be("iget", own, BYTES, pe);
    take_away();
    is_quiet = false; /* the source of an operation that quiet must complete faults */
    shmem_getmem_nbi(own, back, BYTES, pe);
    shmem_quiet();
    must_be("getmem_nbi", own, BYTES, pe);
    swapped = (uint64_t)me + 1;
    shmem_barrier_all();
    take_away();
    shmem_uint64_atomic_fetch_nbi((uint64_t *)(void *)own, &swapped, pe);
    shmem_quiet();
    CHECK(*(uint64_t *)(void *)own == (uint64_t)pe + 1, "atomic_fetch_nbi: %llu",
          (unsigned long long)*(uint64_t *)(void *)own);
    shmem_barrier_all();
}

int main(void)
{
    check_begin();
    own = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct sigaction action = {.sa_sigaction = give_back, .sa_flags = SA_SIGINFO | SA_NODEFER};
    sigaction(SIGSEGV, &action, NULL);
    shmem_barrier_all();
    for (int distance = 1; distance < npes || distance == 1; distance++) {
        puts_to((me + distance) % npes, (me + npes - distance % npes) % npes);
        gets_from((me + distance) % npes);
    }
    CHECK(fault_count > 0, "nothing faulted");
    return check_end("fault_handler");
}
