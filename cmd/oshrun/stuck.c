/* SPDX-License-Identifier: BSD-3-Clause */
#include "stuck.h"

#include <stdlib.h>
#include <string.h>

#include "end.h"
#include "hosts.h"
#include "report.h"

#define END_GRACE_NS 200000000u /* for the last output */

static struct quoit_looks_pe pe_of(void *arg, uint32_t pe)
{
    const struct job *job = arg;
    return (struct quoit_looks_pe){.process = job->pes[pe].is_ended ? 0 : job->pes[pe].program_pid,
                                   .is_leaving = job->pes[pe].is_leaving};
}

/* False: no memory. */
static bool look_at_host(struct job *job, const struct host *host, const struct quoit_rounds_question *question,
                         struct quoit_rounds_answer *answer_out)
{
    struct stillness *still = &job->stillness;
    if (!still->pes)
        still->pes = calloc(job->plan->pe_count, sizeof *still->pes);
    if (!still->pes || !host->front)
        return false;
    const struct quoit_looks looks = {.layout = &host->layout,
                                      .front = host->front,
                                      .memory_fd = host->memory_fd,
                                      .wait_descs = hosts_wait_desc_job(job),
                                      .seen = &still->pes[host->layout.first_pe],
                                      .own_thread_count = 1,
                                      .misses_host = job->silences.silent_count > 0,
                                      .proxy = host->proxy_pid,
                                      .has_traffic = quoit_job_config_has_proxies(&job->config),
                                      .pe_of = pe_of,
                                      .arg = job};
    quoit_looks_take(&looks, question, answer_out);
    return true;
}

static bool is_due(const struct job *job)
{
    return job->end.phase == ENDING_NOT && job->is_going && !job->finalized && !job->clock &&
           job->leaving_count < job->plan->pe_count;
}

/* Those of other machines come before the answers of the next round. */
static void take_notes(struct job *job)
{
    hosts_send_all(job, QUOIT_CONTROL_NOTE, END_ASKS_NOBODY, NULL, 0);
    end_note(job, END_ASKS_NOBODY);
}

static void conclude(struct job *job)
{
    struct quoit_rounds *rounds = &job->stillness.rounds;
    if (!is_due(job))
        return;
    enum quoit_rounds_verdict verdict = quoit_rounds_end(rounds, job->plan->pe_count);
    switch (verdict) {
    case QUOIT_ROUNDS_LOCK_KEPT:
        end_begin(job, END_LOCK_KEPT, STATUS_CANNOT_START, rounds->keeper, END_GRACE_NS);
        break;
    case QUOIT_ROUNDS_NOTES:
        take_notes(job);
        return;
    case QUOIT_ROUNDS_WARNS:
    case QUOIT_ROUNDS_HANGS:
        report_still(job, verdict);
        break;
    case QUOIT_ROUNDS_POLLED:
        end_begin(job, END_POLLED, STATUS_CANNOT_START, rounds->sum.leaver, 0);
        break;
    case QUOIT_ROUNDS_MOVES:
        break;
    }
    if (job->end.phase == ENDING_NOT)
        end_forget(job); /* what was noted in the round before */
}

static void look_here(struct job *job)
{
    struct quoit_rounds *rounds = &job->stillness.rounds;
    struct quoit_rounds_answer answer;
    for (uint32_t i = 0; i < job->plan->host_count; i++)
        if (look_at_host(job, &job->hosts[i], &rounds->question, &answer))
            quoit_rounds_take(rounds, i, &answer, sizeof answer);
}

uint64_t stuck_step(struct job *job, uint64_t now_ns)
{
    struct quoit_rounds *rounds = &job->stillness.rounds;
    if (!is_due(job) || rounds->is_open)
        return UINT64_MAX;
    if (now_ns < quoit_rounds_next_ns(rounds))
        return quoit_rounds_next_ns(rounds);
    quoit_rounds_begin(rounds, job->plan->host_count, now_ns);
    hosts_send_all(job, QUOIT_CONTROL_STILL, CONTROL_NO_PE, &rounds->question, sizeof rounds->question);
    if (job->role == ROLE_ALONE)
        look_here(job);
    if (!rounds->is_open)
        conclude(job);
    return quoit_rounds_next_ns(rounds);
}

void stuck_answer(struct job *job, const void *bytes, size_t count)
{
    const struct host *host = &job->hosts[job->own_host];
    struct quoit_rounds_question question;
    struct quoit_rounds_answer answer;
    if (count != sizeof question)
        return;
    memcpy(&question, bytes, sizeof question);
    if (question.lock_count <= QUOIT_ROUNDS_LOCKS_MAX && look_at_host(job, host, &question, &answer))
        control_send(&job->control, QUOIT_CONTROL_STILL_SEEN, CONTROL_NO_PE, &answer, sizeof answer);
}

void stuck_take(struct host *host, const void *bytes, size_t count)
{
    struct quoit_rounds *rounds = &host->job->stillness.rounds;
    if (quoit_rounds_take(rounds, host->index, bytes, count) && !rounds->is_open)
        conclude(host->job);
}
