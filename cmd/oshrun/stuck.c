/* SPDX-License-Identifier: BSD-3-Clause */
#include "stuck.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "boot/survey.h"
#include "end.h"
#include "hosts.h"

#define LOOK_EVERY_NS 1000000000u
#define STILL_NS      5000000000u  /* nothing has progressed for this long: a warning */
#define POLLS_NS      30000000000u /* the same, and some do nothing but poll: the end. A program may give up before */
#define END_GRACE_NS  200000000u   /* for the last output */

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

/* Changes whenever a PE falls asleep again, finds what it polled for, or, where none polls, a host sends something. 0:
 * a PE is at work, or has ended. */
static uint64_t digest_of(struct job *job, uint64_t now_ns)
{
    struct stillness *still = &job->stillness;
    uint64_t digest = 1;
    bool is_at_work = false;
    still->has_polls = false;
    for (uint32_t pe = 0; pe < job->plan->pe_count; pe++) {
        const struct quoit_pe_shared *shared = hosts_pe_shared(job, pe);
        uint64_t look = shared && !job->pes[pe].is_ended ? quoit_still_look(&still->pes[pe], shared) : 0;
        is_at_work |= look == 0;
        still->has_polls |= still->pes[pe].is_polling;
        digest = mix(digest, look);
    }
    if (is_at_work)
        return 0;
    bool has_traffic = quoit_job_config_has_proxies(&job->config) && !still->has_polls; /* of others than polls */
    for (uint32_t i = 0; i < job->plan->host_count && has_traffic; i++)
        digest = mix(digest, traffic_of(job, &job->hosts[i], now_ns));
    return digest ? digest : 1;
}

/* Whether the process of each PE has one thread, so that no other one ends what its first one polls for. */
static bool have_one_thread(const struct job *job)
{
    for (uint32_t i = 0; i < job->plan->pe_count; i++) {
        char path[48];
        struct stat tasks;
        snprintf(path, sizeof path, "/proc/%d/task", job->pes[i].program_pid);
        if (stat(path, &tasks) != 0 || tasks.st_nlink != 3) /* itself, the entry above, and one thread */
            return false;
    }
    return true;
}

static const struct pe *leaver_of(const struct job *job)
{
    const struct pe *leaver = job->pes;
    while (!leaver->is_leaving)
        leaver++;
    return leaver;
}

static void tell(struct job *job)
{
    char text[320 + HOSTS_NAME_BYTES], name[HOSTS_NAME_BYTES];
    const struct pe *leaver = leaver_of(job);
    int bytes = snprintf(text, sizeof text,
                         "oshrun: warning: PE %u on %s waits in shmem_finalize%s, the others wait elsewhere%s, and "
                         "nothing has moved for %u s [Q0220]\n  quoit top and --timeout say who waits for what\n",
                         leaver->index, hosts_name(job, leaver->host, name),
                         leaver->leaves_by_exit ? ", by exit(0) or return from main" : "",
                         job->stillness.has_polls ? " or do nothing but poll" : "", (unsigned)(STILL_NS / 1000000000u));
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
    if (!still->pes)
        still->pes = calloc(job->plan->pe_count, sizeof *still->pes);
    uint64_t digest = still->pes ? digest_of(job, now_ns) : 0;
    if (digest == 0 || digest != still->digest) {
        still->digest = digest;
        still->since_ns = now_ns;
    } else if (now_ns - still->since_ns >= STILL_NS && !still->is_told) {
        still->is_told = true;
        tell(job);
    } else if (now_ns - still->since_ns >= POLLS_NS && still->has_polls && have_one_thread(job)) {
        end_begin(job, END_POLLED, STATUS_CANNOT_START, leaver_of(job)->index, 0);
    }
    return still->next_ns;
}
