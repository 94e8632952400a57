/* SPDX-License-Identifier: BSD-3-Clause */
#include "boot/vigil.h"
#include "boot/ended.h"
#include "boot/wish.h"

#include <stdlib.h>
#include <string.h>

#define LOOK_EVERY_NS 900000000u  /* below the tick of the agent */
#define STILL_NS      5000000000u /* of all PEs asleep, before the warning */
#define TOLD_MAX      4

/* pe: of this host, as everywhere here. */
static struct quoit_pe_shared *record(const struct quoit_vigil *vigil, uint32_t pe)
{
    return quoit_memory_pe(&vigil->host->layout, vigil->host->memory, pe);
}

/* The last message in its record; pairs with quoit_client_leave_word. */
static uint32_t word(const struct quoit_vigil *vigil, uint32_t pe)
{
    return atomic_load_explicit(&record(vigil, pe)->unsent_kind, memory_order_acquire);
}

static void say_where(const struct quoit_vigil *vigil, uint32_t pe)
{
    char call[QUOIT_CALL_NAME_BYTES];
    memcpy(call, record(vigil, pe)->waiting_in, sizeof call);
    call[sizeof call - 1] = '\0';
    if (call[0])
        quoit_ended_line("  PE %u was in %s", vigil->host->layout.first_pe + pe, call);
    else
        quoit_ended_line("  PE %u was in no call", vigil->host->layout.first_pe + pe);
}

/* shmem_finalize waits for all PEs. If one has left it while another has not entered it, or entered it after more
 * collectives, the former matched a collective of the latter. */
static bool has_left(const struct quoit_vigil *vigil)
{
    uint32_t count = vigil->host->layout.local_count, left = 0, told = 0;
    while (left < count && word(vigil, left) != QUOIT_BOOT_FINALIZED)
        left++;
    for (uint32_t pe = 0; pe < count && left < count; pe++) { /* each records LEAVING before any can record FINALIZED */
        uint32_t kind = word(vigil, pe);
        bool is_elsewhere = kind == 0 || (kind == QUOIT_BOOT_LEAVING &&
                                          record(vigil, pe)->unsent_meetings > record(vigil, left)->unsent_meetings);
        if (!is_elsewhere)
            continue;
        if (told++ == 0) {
            if (!quoit_ended_claim(vigil->host->memory, 1))
                return true;
            quoit_ended_line("PE %u left the job by shmem_finalize, exit(0) or return from main while others were "
                             "elsewhere; the job was ended [Q0209]",
                             vigil->host->layout.first_pe + left);
        }
        if (told <= TOLD_MAX)
            say_where(vigil, pe);
    }
    return told > 0;
}

static struct quoit_wish_host wish_host_of(void *arg, uint32_t pe)
{
    const struct quoit_boot *host = arg;
    (void)pe;
    return (struct quoit_wish_host){.layout = &host->layout, .front = host->memory, .memory_fd = host->memory_fd};
}

/* The PE, of this host, that has entered shmem_finalize with a lock for which another waits; or local_count. Its mark
 * in the lock is cleared before shmem_clear_lock returns. */
static uint32_t find_lock_keeper(const struct quoit_vigil *vigil)
{
    const struct quoit_layout *layout = &vigil->host->layout;
    const struct quoit_wish_job view = {.pe_count = layout->job.pe_count,
                                        .is_partial = true,
                                        .host_of = wish_host_of,
                                        .arg = (void *)(uintptr_t)vigil->host};
    for (uint32_t pe = 0; pe < layout->local_count; pe++) {
        struct quoit_wish_reading reading;
        const struct quoit_wish wish = record(vigil, pe)->wish;
        if (!wish.is_lock || !__atomic_load_n(&record(vigil, pe)->waiting_in[0], __ATOMIC_RELAXED))
            continue;
        quoit_wish_read(&view, layout->first_pe + pe, &wish, NULL, &reading);
        if (reading.holder != QUOIT_WISH_NO_HOLDER &&
            word(vigil, reading.holder - layout->first_pe) == QUOIT_BOOT_LEAVING)
            return reading.holder - layout->first_pe;
    }
    return layout->local_count;
}

static bool has_left_with_lock(const struct quoit_vigil *vigil)
{
    uint32_t count = vigil->host->layout.local_count, keeper = find_lock_keeper(vigil), told = 0;
    if (keeper == count)
        return false;
    if (!quoit_ended_claim(vigil->host->memory, 1))
        return true;
    quoit_ended_line(
        "PE %u left the job by shmem_finalize, exit(0) or return from main with a lock for which others wait; "
        "the job was ended [Q0242]",
        vigil->host->layout.first_pe + keeper);
    for (uint32_t pe = 0; pe < count && told < TOLD_MAX; pe++)
        if (record(vigil, pe)->wish.is_lock && pe != keeper) {
            say_where(vigil, pe);
            told++;
        }
    return true;
}

/* Differs after any PE has woken and slept again, or has found what it polled for. 0: some PE is at work, or has ended.
 */
static uint64_t digest_of(struct quoit_vigil *vigil)
{
    uint64_t digest = 1;
    bool is_at_work = false;
    for (uint32_t pe = 0; pe < vigil->host->layout.local_count; pe++) {
        uint64_t look = quoit_still_look(&vigil->pes[pe], record(vigil, pe));
        is_at_work |= look == 0;
        digest = (digest ^ look) * 0x9e3779b97f4a7c15u + 1;
    }
    if (is_at_work)
        return 0;
    return digest ? digest : 1;
}

static void warn_of_stillness(struct quoit_vigil *vigil, uint64_t now_ns)
{
    uint32_t count = vigil->host->layout.local_count, leaving = 0, leaver = 0;
    for (uint32_t pe = count; pe-- > 0;)
        if (word(vigil, pe) == QUOIT_BOOT_LEAVING) {
            leaving++;
            leaver = pe;
        }
    uint64_t digest = leaving > 0 && leaving < count ? digest_of(vigil) : 0;
    if (digest == 0 || digest != vigil->digest) {
        vigil->digest = digest;
        vigil->since_ns = now_ns;
    } else if (now_ns - vigil->since_ns >= STILL_NS && !vigil->is_told) {
        vigil->is_told = true;
        quoit_ended_line(
            "warning: PE %u waits in shmem_finalize, the others wait or poll elsewhere, and nothing has moved for "
            "%u s [Q0220]",
            leaver, (unsigned)(STILL_NS / 1000000000u));
    }
}

enum quoit_vigil_verdict quoit_vigil_step(struct quoit_vigil *vigil, uint64_t now_ns)
{
    if (now_ns < vigil->next_ns)
        return QUOIT_VIGIL_FINE;
    vigil->next_ns = now_ns + LOOK_EVERY_NS;
    if (has_left(vigil) || has_left_with_lock(vigil))
        return QUOIT_VIGIL_LEFT;
    if (vigil->host->layout.job.host_count == 1) /* else they may wait for another host */
        warn_of_stillness(vigil, now_ns);
    return QUOIT_VIGIL_FINE;
}
