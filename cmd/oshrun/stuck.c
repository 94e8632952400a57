/* SPDX-License-Identifier: BSD-3-Clause */
#include "stuck.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "boot/survey.h"
#include "end.h"
#include "env/clock.h"
#include "env/process.h"
#include "hosts.h"

#define END_GRACE_NS 200000000u /* for the last output */
#define SAMPLES_MAX  64 /* of one look at a PE that polls another host, of whose requests one is mostly under way */
#define NO_HOST_LOST 3  /* times --link-limit: what was under way has arrived, or a host was found lost */

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

/* Whether something that a PE has begun is not known to have arrived: requests in its channels to the proxy, or what is
 * under way by an end of its own on the network. */
static bool has_under_way(const struct host *host, const struct quoit_pe_shared *shared, uint32_t local)
{
    const struct quoit_layout *layout = &host->layout;
    if (atomic_load_explicit(&shared->under_way_count, memory_order_relaxed) != 0)
        return true;
    for (uint32_t lane = 0; lane < layout->lane_count; lane++) {
        uint64_t at = layout->channels + ((uint64_t)local * layout->lane_count + lane) * sizeof(struct quoit_channel);
        uint32_t submitted, completed;
        if (pread(host->memory_fd, &submitted, sizeof submitted,
                  (off_t)(at + offsetof(struct quoit_channel, submit_tail))) != (ssize_t)sizeof submitted ||
            pread(host->memory_fd, &completed, sizeof completed,
                  (off_t)(at + offsetof(struct quoit_channel, complete_tail))) != (ssize_t)sizeof completed ||
            submitted != completed)
            return true;
    }
    return false;
}

/* Its last check found that it has to wait on, and so would another one, unless something comes that is under way. */
static bool is_at_rest(const struct host *host, const struct stuck_pe *seen, const struct quoit_pe_shared *shared,
                       uint32_t local, char state)
{
    int samples = seen->still.is_polling ? SAMPLES_MAX : 1;
    if (!seen->still.is_polling && state != 'S')
        return false;
    for (int i = 0; i < samples; i++)
        if (!has_under_way(host, shared, local))
            return true;
    return false;
}

/* What a PE that sleeps waits for: a lock, or an object whose value may change many times before it is the one. Returns
 * the value; 0 for a lock. */
static uint64_t look_at_wish(struct job *job, uint32_t pe, const struct quoit_pe_shared *shared,
                             struct rounds_answer *answer)
{
    const struct quoit_wish_job view = hosts_wish_job(job);
    const struct quoit_wish wish = shared->wish;
    struct quoit_wish_reading reading;
    if (wish.count == 0 || !__atomic_load_n(&shared->waiting_in[0], __ATOMIC_RELAXED))
        return 0;
    if (wish.is_lock) {
        const struct rounds_lock lock = {
            .offset = wish.offset, .wanted = wish.wanted, .bytes = wish.bytes, .keeper = ROUNDS_NO_PE};
        rounds_add_lock(answer->locks, &answer->lock_count, &lock);
        return 0;
    }
    quoit_wish_read(&view, pe, &wish, NULL, &reading);
    return reading.value;
}

/* One look at a PE of this machine. */
static void look_at_pe(struct job *job, const struct host *host, uint32_t pe, struct rounds_answer *answer)
{
    struct stuck_pe *seen = &job->stillness.pes[pe];
    const struct quoit_pe_shared *shared = hosts_pe_shared(job, pe);
    struct quoit_process process;
    char path[48];
    struct stat tasks;
    bool is_there = shared && !job->pes[pe].is_ended && quoit_process_look(job->pes[pe].program_pid, &process);
    bool may_move = !is_there || process.state == 'T' || process.state == 't'; /* once it is continued */
    uint64_t look = is_there ? quoit_still_look(&seen->still, shared) : 0;
    if (look == 0 || may_move) {
        answer->digest = 0;
        answer->is_at_rest = false;
        return;
    }
    uint64_t value = look_at_wish(job, pe, shared, answer);
    if (answer->digest)
        answer->digest = rounds_mix(rounds_mix(answer->digest, look), value) | 1;
    answer->has_polls |= seen->still.is_polling;
    seen->has_rested |= is_at_rest(host, seen, shared, pe - host->layout.first_pe, process.state);
    answer->is_at_rest &= seen->has_rested;
    snprintf(path, sizeof path, "/proc/%d/task", job->pes[pe].program_pid);
    if (stat(path, &tasks) != 0 || tasks.st_nlink != 3) /* itself, the entry above, and one thread */
        answer->is_threaded = true;
}

/* PEs of the host that have entered shmem_finalize with one of the locks: what is so marked was not released before,
 * since the mark is cleared before shmem_clear_lock returns. */
static void find_keepers(struct job *job, const struct host *host, const struct rounds_question *question,
                         struct rounds_answer *answer)
{
    const struct quoit_wish_job view = hosts_wish_job(job);
    for (uint32_t i = 0; i < ROUNDS_LOCKS_MAX; i++) {
        answer->keepers[i] = ROUNDS_NO_PE;
        for (uint32_t local = 0; i < question->lock_count && local < host->layout.local_count; local++) {
            uint32_t pe = host->layout.first_pe + local;
            const struct quoit_wish wish = {.offset = question->locks[i].offset,
                                            .wanted = question->locks[i].wanted,
                                            .bytes = (uint8_t)question->locks[i].bytes};
            if (job->pes[pe].is_leaving && !job->pes[pe].is_ended && quoit_wish_holds(&view, pe, &wish))
                answer->keepers[i] = pe;
        }
    }
}

/* False: no memory. */
static bool look_at_host(struct job *job, const struct host *host, const struct rounds_question *question,
                         struct rounds_answer *answer_out)
{
    struct stillness *still = &job->stillness;
    uint32_t first = host->layout.first_pe, end = first + host->layout.local_count;
    if (!still->pes)
        still->pes = calloc(job->plan->pe_count, sizeof *still->pes);
    if (!still->pes)
        return false;
    *answer_out = (struct rounds_answer){.round = question->round, .digest = 1, .is_at_rest = true};
    for (uint32_t pe = first; pe < end; pe++) {
        if (still->pes[pe].since != question->since)
            still->pes[pe] = (struct stuck_pe){.still = still->pes[pe].still, .since = question->since};
        look_at_pe(job, host, pe, answer_out);
    }
    if (quoit_job_config_has_proxies(&job->config))
        answer_out->traffic = traffic_of(job, host, quoit_clock_now_ns());
    find_keepers(job, host, question, answer_out);
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
                         job->stillness.rounds.sum.has_polls ? " or do nothing but poll" : "",
                         (unsigned)(ROUNDS_WARN_NS / 1000000000u));
    output_say(&job->output, text, (size_t)bytes);
}

static bool is_due(const struct job *job)
{
    return job->end.phase == ENDING_NOT && !job->finalized && job->leaving_count > 0 &&
           job->leaving_count < job->plan->pe_count;
}

static void conclude(struct job *job)
{
    struct rounds *rounds = &job->stillness.rounds;
    uint64_t polls_ns = NO_HOST_LOST * plan_number(job->plan, QUOIT_OPT_LINK_LIMIT);
    if (!is_due(job))
        return;
    switch (rounds_end(rounds, job->leaving_count, polls_ns > ROUNDS_POLLS_NS ? polls_ns : ROUNDS_POLLS_NS)) {
    case ROUNDS_LOCK_KEPT:
        if (rounds->keeper < job->plan->pe_count)
            end_begin(job, END_LOCK_KEPT, STATUS_CANNOT_START, rounds->keeper, END_GRACE_NS);
        break;
    case ROUNDS_WARNS:
        tell(job);
        break;
    case ROUNDS_POLLED:
        end_begin(job, END_POLLED, STATUS_CANNOT_START, leaver_of(job)->index, 0);
        break;
    case ROUNDS_MOVES:
        break;
    }
}

static void look_here(struct job *job)
{
    struct rounds *rounds = &job->stillness.rounds;
    struct rounds_answer answer;
    for (uint32_t i = 0; i < job->plan->host_count; i++)
        if (look_at_host(job, &job->hosts[i], &rounds->question, &answer))
            rounds_take(rounds, i, &answer, sizeof answer);
}

uint64_t stuck_step(struct job *job, uint64_t now_ns)
{
    struct rounds *rounds = &job->stillness.rounds;
    if (!is_due(job) || rounds->is_open)
        return UINT64_MAX;
    if (rounds->question.round && now_ns < rounds->begin_ns + ROUNDS_APART_NS)
        return rounds->begin_ns + ROUNDS_APART_NS;
    rounds_begin(rounds, job->plan->host_count, now_ns);
    hosts_say_all(job, TALK_STILL, TALK_NO_PE, &rounds->question, sizeof rounds->question);
    if (job->role == ROLE_ALONE)
        look_here(job);
    if (!rounds->is_open)
        conclude(job);
    return now_ns + ROUNDS_APART_NS;
}

void stuck_answer(struct job *job, const void *bytes, size_t count)
{
    const struct host *host = &job->hosts[job->own_host];
    struct rounds_question question;
    struct rounds_answer answer;
    if (count != sizeof question || !host->front)
        return;
    memcpy(&question, bytes, sizeof question);
    if (question.lock_count <= ROUNDS_LOCKS_MAX && look_at_host(job, host, &question, &answer))
        talk_say(&job->talk, TALK_STILL_SEEN, TALK_NO_PE, &answer, sizeof answer);
}

void stuck_take(struct host *host, const void *bytes, size_t count)
{
    struct rounds *rounds = &host->job->stillness.rounds;
    if (rounds_take(rounds, host->index, bytes, count) && !rounds->is_open)
        conclude(host->job);
}
