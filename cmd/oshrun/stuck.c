/* SPDX-License-Identifier: BSD-3-Clause */
#include "stuck.h"

#include <stdio.h>

#include "boot/survey.h"
#include "end.h"
#include "hosts.h"

#define LOOK_EVERY_NS 1000000000u
#define STILL_NS      5000000000u /* nothing has progressed for this long */
#define END_GRACE_NS  200000000u  /* for the last output */

static uint64_t mix(uint64_t digest, uint64_t value)
{
    return (digest ^ value) * 0x9e3779b97f4a7c15u + 1;
}

/* Changes whenever the host sends or fetches something. */
static uint64_t traffic_of(const struct job *job, const struct host *host, uint64_t now_ns)
{
    uint64_t count = 0;
    if (quoit_job_config_has_network(&job->config)) {
        struct quoit_network_survey network;
        quoit_survey_network(&host->layout, host->front, now_ns, &network);
        count += network.message_count + network.put_count + network.get_count;
    }
    for (enum quoit_side side = 0; side < QUOIT_SIDE_COUNT && quoit_layout_has_links(&host->layout); side++) {
        struct quoit_direction direction;
        quoit_survey_direction(&host->layout, host->front, side, now_ns, &direction);
        count += direction.message_count + direction.resend_count;
    }
    return count;
}

/* Changes whenever a PE falls asleep again or a host sends something. 0: a PE is awake, or has ended. */
static uint64_t digest_of(const struct job *job, uint64_t now_ns)
{
    uint64_t digest = 1;
    for (uint32_t pe = 0; pe < job->plan->pe_count; pe++) {
        struct quoit_pe_shared *shared = hosts_pe_shared(job, pe);
        if (!shared || job->pes[pe].is_ended || !__atomic_load_n(&shared->waiting_in[0], __ATOMIC_RELAXED))
            return 0;
        digest = mix(digest, atomic_load(&shared->waiting_since_ns));
    }
    for (uint32_t i = 0; i < job->plan->host_count && quoit_job_config_has_proxies(&job->config); i++)
        digest = mix(digest, traffic_of(job, &job->hosts[i], now_ns));
    return digest ? digest : 1;
}

static void tell(struct job *job)
{
    char text[320 + HOSTS_NAME_BYTES], name[HOSTS_NAME_BYTES];
    const struct pe *leaver = job->pes;
    while (!leaver->is_leaving)
        leaver++;
    int bytes =
        snprintf(text, sizeof text,
                 "oshrun: warning: PE %u on %s waits in shmem_finalize%s, the others wait elsewhere, and "
                 "nothing has moved for %u s [Q0220]\n  quoit top and --timeout say who waits for what\n",
                 leaver->index, hosts_name(job, leaver->host, name),
                 leaver->leaves_by_exit ? ", by exit(0) or return from main" : "", (unsigned)(STILL_NS / 1000000000u));
    output_say(&job->output, text, (size_t)bytes);
}

/* A PE that has entered shmem_finalize with a lock for which another waits; NULL: none. The holder's mark is cleared
 * before shmem_clear_lock returns, so one that is still there was not released before. */
static const struct pe *find_lock_keeper(struct job *job)
{
    const struct quoit_wish_job view = hosts_wish_job(job);
    for (uint32_t pe = 0; pe < job->plan->pe_count; pe++) {
        const struct quoit_pe_shared *shared = hosts_pe_shared(job, pe);
        struct quoit_wish_reading reading;
        if (!shared || job->pes[pe].is_ended || !__atomic_load_n(&shared->waiting_in[0], __ATOMIC_RELAXED))
            continue;
        const struct quoit_wish wish = shared->wish;
        if (!wish.is_lock)
            continue;
        quoit_wish_read(&view, pe, &wish, NULL, &reading);
        if (reading.holder != QUOIT_WISH_NO_HOLDER && job->pes[reading.holder].is_leaving)
            return &job->pes[reading.holder];
    }
    return NULL;
}

uint64_t stuck_step(struct job *job, uint64_t now_ns)
{
    struct stillness *still = &job->stillness;
    if (job->end.phase != ENDING_NOT || job->finalized || job->leaving_count == 0 ||
        job->leaving_count == job->plan->pe_count)
        return UINT64_MAX;
    if (now_ns < still->next_ns)
        return still->next_ns;
    still->next_ns = now_ns + LOOK_EVERY_NS;
    const struct pe *keeper = find_lock_keeper(job);
    if (keeper) {
        end_begin(job, END_LOCK_KEPT, STATUS_CANNOT_START, keeper->index, END_GRACE_NS);
        return now_ns;
    }
    uint64_t digest = digest_of(job, now_ns);
    if (digest == 0 || digest != still->digest) {
        still->digest = digest;
        still->since_ns = now_ns;
    } else if (now_ns - still->since_ns >= STILL_NS && !still->is_told) {
        still->is_told = true;
        tell(job);
    }
    return still->next_ns;
}
