/* SPDX-License-Identifier: BSD-3-Clause */
#include "dsm/call_memory.h"

#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/log.h"
#include "dsm/coherence.h"
#include "dsm/heap.h"
#include "env/raw_call.h"

uint64_t quoit_dsm_shared_bytes(const struct quoit_dsm *dsm, const void *address, uint64_t bytes)
{
    uint64_t offset = quoit_dsm_offset_of(dsm, address);
    if (offset == UINT64_MAX)
        return 0;
    uint64_t end = offset < dsm->heap_bytes ? dsm->heap_bytes : dsm->heap_bytes + dsm->globals_bytes;
    return bytes < end - offset ? bytes : end - offset;
}

/* Where all PEs map the frames themselves a page stays accessible once its chunk is mapped. */
bool quoit_dsm_stand_in_needed(const struct quoit_dsm *dsm, const void *address, uint64_t bytes)
{
    uint64_t shared = quoit_dsm_shared_bytes(dsm, address, bytes);
    if (shared == 0 || !dsm->is_direct)
        return shared > 0;
    uint64_t first = quoit_dsm_offset_of(dsm, address), last = first + shared - 1;
    for (uint64_t chunk = first >> dsm->chunk_shift; chunk <= last >> dsm->chunk_shift; chunk++) {
        if (__atomic_load_n(&dsm->slot_of_chunk[chunk], __ATOMIC_ACQUIRE) == 0)
            return true;
    }
    return false;
}

struct quoit_dsm_stand_in quoit_dsm_stand_in_take(struct quoit_dsm *dsm, uint64_t bytes)
{
    struct quoit_dsm_stand_in memory = {NULL, bytes > QUOIT_DSM_SPARE_BYTES ? bytes : QUOIT_DSM_SPARE_BYTES};
    if (bytes <= QUOIT_DSM_SPARE_BYTES)
        memory.start = atomic_exchange_explicit(&dsm->spare, NULL, memory_order_acquire);
    if (!memory.start)
        memory.start =
            mmap(NULL, memory.bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory.start == MAP_FAILED)
        memory.start = NULL;
    return memory;
}

void quoit_dsm_stand_in_end(struct quoit_dsm *dsm, struct quoit_dsm_stand_in memory)
{
    char *none = NULL;
    if (memory.bytes != QUOIT_DSM_SPARE_BYTES ||
        !atomic_compare_exchange_strong_explicit(&dsm->spare, &none, memory.start, memory_order_release,
                                                 memory_order_relaxed))
        munmap(memory.start, memory.bytes);
}

void quoit_dsm_stand_in_stop(struct quoit_dsm *dsm)
{
    char *spare = atomic_exchange_explicit(&dsm->spare, NULL, memory_order_acquire);
    if (spare)
        munmap(spare, QUOIT_DSM_SPARE_BYTES);
}

void quoit_dsm_call_touch(const struct quoit_dsm *dsm, uint64_t address, bool is_store)
{
    uint64_t bytes = quoit_dsm_shared_bytes(dsm, (const void *)address, QUOIT_DSM_STAND_IN_PAGE);
    for (uint64_t at = address; at < address + bytes;
         at = (at / QUOIT_DSM_STAND_IN_PAGE + 1) * QUOIT_DSM_STAND_IN_PAGE) {
        if (is_store)
            __atomic_fetch_or((char *)at, 0, __ATOMIC_RELAXED);
        else
            (void)*(volatile char *)at;
    }
}

void quoit_dsm_call_complain(struct quoit_dsm *dsm, long number, const char *name, const void *address)
{
    char where[160];
    uint64_t bit = 1ull << number % 64;
    if (atomic_fetch_or(&dsm->failed_calls[number / 64 % QUOIT_DSM_CALL_WORDS], bit) & bit)
        return;
    quoit_dsm_lock(dsm);
    quoit_dsm_heap_name(dsm, address, where, sizeof where);
    quoit_dsm_unlock(dsm);
    quoit_say(
        "dsm: PE %d: %s failed with EFAULT, since the kernel cannot fetch shared pages: %s. Give the call private "
        "memory, and copy from or to that [Q0325]",
        dsm->me, name, where);
}

bool quoit_dsm_call_takes_part(int fd, uint64_t flags)
{
    struct stat status;
    int type = SOCK_STREAM;
    socklen_t bytes = sizeof type;
    if (((flags & MSG_DONTWAIT) == 0 && (fcntl(fd, F_GETFL) & O_NONBLOCK) == 0) || fstat(fd, &status) != 0)
        return false;
    if (S_ISSOCK(status.st_mode))
        return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &bytes) == 0 && type == SOCK_STREAM;
    return S_ISFIFO(status.st_mode);
}

/* Pages that are sent without a copy stay with the kernel after the call: they cannot serve the next one. */
uint64_t quoit_dsm_stand_in_least(uint64_t flags)
{
    return flags & MSG_ZEROCOPY ? QUOIT_DSM_SPARE_BYTES + 1 : 0;
}

/* The next place of a stand-in: files opened with O_DIRECT want the alignment of the program's buffer. */
uint64_t quoit_dsm_stand_in_place(uint64_t at, uint64_t address, uint64_t bytes)
{
    return bytes < 512 ? at
                       : (at + QUOIT_DSM_STAND_IN_PAGE - 1) / QUOIT_DSM_STAND_IN_PAGE * QUOIT_DSM_STAND_IN_PAGE +
                             address % QUOIT_DSM_STAND_IN_PAGE;
}

long quoit_dsm_call_now(long number, const uint64_t arguments[6], int cancel_type)
{
    pthread_setcanceltype(cancel_type, &cancel_type);
    long result = quoit_raw_call(number, arguments);
    pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &cancel_type);
    return result;
}
