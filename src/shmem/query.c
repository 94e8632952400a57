/* SPDX-License-Identifier: BSD-3-Clause */
/* Queries with a local answer. */
#include "shmem/check.h"
#include "shmem/fast.h"
#include "shmem/handle.h"

QUOIT_API(int, my_pe, (void))
{
    QUOIT_ENTER_IF_WRONG(false, "shmem_my_pe");
    return (int)quoit_job.pe;
}

QUOIT_API(int, n_pes, (void))
{
    QUOIT_ENTER_IF_WRONG(false, "shmem_n_pes");
    return (int)quoit_job.pe_count;
}

int _my_pe(void)
{
    QUOIT_ENTER_IF_WRONG(false, "_my_pe");
    return (int)quoit_job.pe;
}

int _num_pes(void)
{
    QUOIT_ENTER_IF_WRONG(false, "_num_pes");
    return (int)quoit_job.pe_count;
}

QUOIT_API(void, query_thread, (int *provided))
{
    QUOIT_ENTER_IF_WRONG(!provided, "shmem_query_thread");
    quoit_check_private(provided, sizeof *provided, "provided", "shmem_query_thread");
    *provided = quoit_job.thread_level;
}

QUOIT_API(int, pe_accessible, (int pe))
{
    QUOIT_ENTER_IF_WRONG(false, "shmem_pe_accessible");
    return pe >= 0 && (uint32_t)pe < quoit_job.pe_count;
}

QUOIT_API(int, addr_accessible, (const void *addr, int pe))
{
    uint64_t offset;
    QUOIT_ENTER_IF_WRONG(false, "shmem_addr_accessible");
    return pe >= 0 && (uint32_t)pe < quoit_job.pe_count && quoit_job_locate(addr, 1, &offset);
}

/* This PE's own objects are at the program's addresses. */
static void *reach(const void *dest, uint32_t pe)
{
    uint64_t offset;
    if (!quoit_job_locate(dest, 1, &offset))
        return NULL;
    if (pe == quoit_job.pe)
        return (void *)(uintptr_t)dest;
    char *segment = quoit_job.fabric->peers[pe].segment;
    return segment ? segment + offset : NULL;
}

QUOIT_API(void *, ptr, (const void *dest, int pe))
{
    char *there;
    const struct quoit_reach *to;
    if (__builtin_expect(quoit_fast_reach(SHMEM_CTX_DEFAULT, dest, 1, pe, &there, &to), 1))
        return (uint32_t)pe == quoit_job.pe ? (void *)(uintptr_t)dest : there;
    QUOIT_JOB_ENTER("shmem_ptr");
    quoit_check_running("shmem_ptr");
    if ((uint32_t)pe >= quoit_job.pe_count)
        quoit_wrong_pe("shmem_ptr", "pe", pe, quoit_job.pe_count, "the job");
    return reach(dest, (uint32_t)pe);
}

QUOIT_API(void *, team_ptr, (shmem_team_t team, const void *dest, int pe))
{
    QUOIT_JOB_ENTER("shmem_team_ptr");
    quoit_check_running("shmem_team_ptr");
    if (team == SHMEM_TEAM_INVALID)
        return NULL;
    const struct quoit_team_slot *slot = quoit_team_of(team, "shmem_team_ptr");
    if ((uint32_t)pe >= slot->range.size)
        quoit_wrong_pe("shmem_team_ptr", "pe", pe, slot->range.size, "the team");
    return reach(dest, quoit_team_pe(slot, (uint32_t)pe));
}

QUOIT_API(void, info_get_version, (int *major, int *minor))
{
    QUOIT_JOB_ENTER("shmem_info_get_version");
    quoit_check_private(major, sizeof *major, "major", "shmem_info_get_version");
    quoit_check_private(minor, sizeof *minor, "minor", "shmem_info_get_version");
    *major = SHMEM_MAJOR_VERSION;
    *minor = SHMEM_MINOR_VERSION;
}

QUOIT_API(void, info_get_name, (char *name))
{
    QUOIT_JOB_ENTER("shmem_info_get_name");
    quoit_check_private(name, SHMEM_MAX_NAME_LEN, "name", "shmem_info_get_name");
    _Static_assert(sizeof SHMEM_VENDOR_STRING <= SHMEM_MAX_NAME_LEN, "the name fits its limit");
    memcpy(name, SHMEM_VENDOR_STRING, sizeof SHMEM_VENDOR_STRING);
}

QUOIT_API(void, pcontrol, (int level, ...))
{
    (void)level; /* for tools that interpose; the library itself does nothing */
}
