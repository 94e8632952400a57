/* SPDX-License-Identifier: BSD-3-Clause */
#include "boot/looks.h"
#include "boot/survey.h"
#include "env/clock.h"
#include "env/process.h"

#include <stddef.h>
#include <stdio.h>
#include <unistd.h>

#define SAMPLES_MAX    64 /* of one look at a PE that polls another host, of whose requests one is mostly under way */
#define PROXY_AGAIN_NS 500000u

/* Changes whenever the host sends or fetches something. */
static uint64_t traffic_of(const struct quoit_looks *looks, uint64_t now_ns)
{
    const struct quoit_layout *layout = looks->layout;
    uint64_t count = 0;
    if (quoit_job_config_has_network(&layout->job)) {
        struct quoit_network_survey network;
        quoit_survey_network(layout, looks->front, now_ns, &network);
        count += network.message_count + network.put_count + network.get_count;
    }
    for (enum quoit_side side = 0; side < QUOIT_SIDE_COUNT && quoit_layout_has_links(layout); side++) {
        struct quoit_direction direction;
        quoit_survey_direction(layout, looks->front, side, now_ns, &direction);
        count += direction.message_count + direction.resend_count;
    }
    return count;
}

/* Whether something that a PE has begun is not known to have arrived: requests in its channels to the proxy, or what is
 * under way by an end of its own on the network. */
static bool has_under_way(const struct quoit_looks *looks, const struct quoit_pe_shared *shared, uint32_t local)
{
    const struct quoit_layout *layout = looks->layout;
    if (atomic_load_explicit(&shared->under_way_count, memory_order_relaxed) != 0)
        return true;
    for (uint32_t lane = 0; lane < layout->lane_count; lane++) {
        uint64_t at = layout->channels + ((uint64_t)local * layout->lane_count + lane) * sizeof(struct quoit_channel);
        uint32_t submitted, completed;
        if (pread(looks->memory_fd, &submitted, sizeof submitted,
                  (off_t)(at + offsetof(struct quoit_channel, submit_tail))) != (ssize_t)sizeof submitted ||
            pread(looks->memory_fd, &completed, sizeof completed,
                  (off_t)(at + offsetof(struct quoit_channel, complete_tail))) != (ssize_t)sizeof completed ||
            submitted != completed)
            return true;
    }
    return false;
}

/* Its last check found that it has to wait on, and so would another one, unless something comes that is under way. */
static bool is_at_rest(const struct quoit_looks *looks, const struct quoit_pe_shared *shared, uint32_t local,
                       char state)
{
    bool is_polling = looks->seen[local].still.is_polling;
    int samples = is_polling ? SAMPLES_MAX : 1;
    if (!is_polling && state != 'S')
        return false;
    for (int i = 0; i < samples; i++)
        if (!has_under_way(looks, shared, local))
            return true;
    return false;
}

/* What a PE that sleeps waits for: a lock, or an object whose value may change many times before it is the one. Returns
 * the value; 0 for a lock. */
static uint64_t look_at_wait_desc(const struct quoit_looks *looks, uint32_t pe, const struct quoit_pe_shared *shared,
                                  struct quoit_rounds_answer *answer)
{
    const struct quoit_wait_desc wait_desc = shared->wait_desc;
    struct quoit_wait_desc_reading reading;
    if (wait_desc.count == 0 || !__atomic_load_n(&shared->waiting_in[0], __ATOMIC_RELAXED))
        return 0;
    if (wait_desc.is_lock) {
        const struct quoit_rounds_lock lock = {.offset = wait_desc.offset,
                                               .wanted = wait_desc.wanted,
                                               .bytes = wait_desc.bytes,
                                               .keeper = QUOIT_ROUNDS_NO_PE,
                                               .waiter = pe};
        quoit_rounds_add_lock(answer->locks, &answer->lock_count, &lock);
        return 0;
    }
    quoit_wait_desc_read(&looks->wait_descs, pe, &wait_desc, NULL, &reading);
    return reading.value;
}

/* PEs in shmem_finalize with one of the question's locks: what is so marked was not released before, since the mark is
 * cleared before shmem_clear_lock returns. */
static void find_kept(const struct quoit_looks *looks, uint32_t pe, const struct quoit_rounds_question *question,
                      struct quoit_rounds_answer *answer)
{
    for (uint32_t i = 0; i < question->lock_count; i++) {
        const struct quoit_wait_desc wait_desc = {.offset = question->locks[i].offset,
                                                  .wanted = question->locks[i].wanted,
                                                  .bytes = (uint8_t)question->locks[i].bytes};
        if (quoit_wait_desc_holds(&looks->wait_descs, pe, &wait_desc))
            answer->keepers[i] = pe;
    }
}

static void moves(struct quoit_rounds_answer *answer)
{
    answer->digest = 0;
    answer->is_at_rest = false;
}

static bool is_stopped(const struct quoit_process *process)
{
    return process->state == 'T' || process->state == 't';
}

/* What the memory shows. */
static void look_at_record(const struct quoit_looks *looks, uint32_t local, const struct quoit_looks_pe *known,
                           struct quoit_rounds_answer *answer)
{
    struct quoit_looks_seen *seen = &looks->seen[local];
    const struct quoit_pe_shared *shared = quoit_memory_pe(looks->layout, (void *)(uintptr_t)looks->front, local);
    seen->look = known->process > 0 ? quoit_still_look(&seen->still, shared) : 0;
    if (seen->look == 0) {
        moves(answer);
        return;
    }
    uint64_t value = look_at_wait_desc(looks, looks->layout->first_pe + local, shared, answer);
    if (answer->digest)
        answer->digest = quoit_rounds_mix(quoit_rounds_mix(answer->digest, seen->look), value) | 1;
    answer->has_polls |= seen->still.is_polling;
}

/* What the kernel shows of a PE that stands still by its record. */
static void look_at_process(const struct quoit_looks *looks, uint32_t local, pid_t process_id,
                            struct quoit_rounds_answer *answer)
{
    struct quoit_looks_seen *seen = &looks->seen[local];
    const struct quoit_pe_shared *shared = quoit_memory_pe(looks->layout, (void *)(uintptr_t)looks->front, local);
    struct quoit_process process;
    if (!quoit_process_look(process_id, &process) || is_stopped(&process)) { /* it may go on */
        moves(answer);
        return;
    }
    seen->has_rested |= is_at_rest(looks, shared, local, process.state);
    answer->is_at_rest &= seen->has_rested;
    uint64_t switches;
    answer->is_threaded |= quoit_process_independent_threads(process_id, &switches) != looks->own_thread_count;
    if (answer->digest && switches)
        answer->digest = quoit_rounds_mix(answer->digest, switches) | 1;
    answer->is_woken |= quoit_process_may_be_woken(process_id);
}

/* One that is stopped, or gets no processor, may have something to deliver, or somebody to wake. */
static bool has_proxy_rested(const struct quoit_looks *looks)
{
    struct quoit_looks_seen *first = &looks->seen[0];
    uint64_t end_ns = quoit_clock_now_ns() + looks->proxy_ns;
    while (!first->has_proxy_rested) {
        first->has_proxy_rested = !looks->proxy || quoit_process_sleeps(looks->proxy);
        if (first->has_proxy_rested || quoit_clock_now_ns() >= end_ns)
            break;
        quoit_clock_sleep_ns(PROXY_AGAIN_NS);
    }
    return first->has_proxy_rested;
}

void quoit_looks_take(const struct quoit_looks *looks, const struct quoit_rounds_question *question,
                      struct quoit_rounds_answer *answer_out)
{
    *answer_out = (struct quoit_rounds_answer){
        .round = question->round, .digest = 1, .is_at_rest = true, .leaver = QUOIT_ROUNDS_NO_PE};
    for (uint32_t i = 0; i < QUOIT_ROUNDS_LOCKS_MAX; i++)
        answer_out->keepers[i] = QUOIT_ROUNDS_NO_PE;
    for (uint32_t local = 0; local < looks->layout->local_count; local++) {
        uint32_t pe = looks->layout->first_pe + local;
        const struct quoit_looks_pe known = looks->pe_of(looks->arg, pe);
        struct quoit_looks_seen *seen = &looks->seen[local];
        if (seen->since != question->since)
            *seen = (struct quoit_looks_seen){.still = seen->still, .since = question->since};
        look_at_record(looks, local, &known, answer_out);
        if (seen->look != 0 && !question->is_shallow)
            look_at_process(looks, local, known.process, answer_out);
        if (known.process <= 0 || !known.is_leaving)
            continue;
        answer_out->leaving_count++;
        if (answer_out->leaver == QUOIT_ROUNDS_NO_PE)
            answer_out->leaver = pe;
        find_kept(looks, pe, question, answer_out);
    }
    if (looks->misses_host)
        moves(answer_out);
    answer_out->is_at_rest &= !question->is_shallow;
    if (answer_out->is_at_rest)
        answer_out->is_at_rest = has_proxy_rested(looks);
    if (looks->has_traffic)
        answer_out->traffic = traffic_of(looks, quoit_clock_now_ns());
}
