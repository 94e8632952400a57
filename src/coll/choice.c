/* SPDX-License-Identifier: BSD-3-Clause */
#include "coll/choice.h"
#include "coll/schedule.h"

/* What a network carries in the latency of a message: 10 us at 6.5 GB/s. */
#define LATENCY_BYTES 65536u
/* Where all hosts are equally near, rounds with both neighbours are fewer than those of a dissemination up to here. */
#define ROUNDS_HOSTS_MAX 5

uint64_t quoit_choice_table(uint64_t schedules, uint32_t job_host_count, uint32_t team_host_count)
{
    bool is_tuned = quoit_schedules_source(schedules) == QUOIT_SCHEDULES_TUNED;
    return is_tuned && team_host_count != job_host_count ? 0 : schedules;
}

static enum quoit_schedule listed(const struct quoit_choice *choice, enum quoit_collective collective, uint64_t bytes)
{
    return choice->has_links ? QUOIT_SCHEDULE_RULE : quoit_schedules_choose(choice->schedules, collective, bytes);
}

/* The tree's sender has the data each time as a whole; round the hosts it meets as many latencies as there are hosts,
 * and the root's last chunk is on its way after all others. Both in bytes: of what is sent one after the other, and of
 * latencies, those of the meeting before included. On two hosts they are equal, and both directions lead to the same
 * host: one message is less than two, but not less than many chunks, of which one is sent while another arrives. */
bool quoit_choice_takes_tree(const struct quoit_choice *choice, uint64_t bytes)
{
    enum quoit_schedule schedule = listed(choice, QUOIT_COLLECTIVE_BROADCAST, bytes);
    if (choice->has_links || schedule != QUOIT_SCHEDULE_RULE)
        return schedule == QUOIT_SCHEDULE_LOG;
    uint64_t rounds = quoit_schedule_dissemination_rounds(choice->host_count), hops = choice->host_count - 1;
    uint64_t chunk = bytes / 2 < QUOIT_SCHEDULE_CHUNK_BYTES ? bytes / 2 : QUOIT_SCHEDULE_CHUNK_BYTES;
    uint64_t tree = rounds * (bytes + 2 * LATENCY_BYTES);
    uint64_t around = LATENCY_BYTES + bytes - chunk + hops * (chunk + LATENCY_BYTES);
    return tree < around || (choice->host_count == 2 && bytes <= 2 * QUOIT_SCHEDULE_CHUNK_BYTES);
}

bool quoit_choice_disseminates(const struct quoit_choice *choice, uint64_t bytes)
{
    enum quoit_schedule schedule = listed(choice, QUOIT_COLLECTIVE_EXCHANGE, bytes);
    if (choice->has_links || schedule != QUOIT_SCHEDULE_RULE)
        return schedule == QUOIT_SCHEDULE_LOG;
    return choice->host_count > ROUNDS_HOSTS_MAX;
}

/* Halving carries as many bytes as going round, so latencies alone count: two rounds a round of the schedule, in each
 * piece. Where they are as many it has half of the messages. Its pieces are smaller on 3 hosts and more; elements may
 * be too large for a chunk on very many. */
static bool halving_is_sooner(uint32_t host_count, const struct quoit_reduction *reduction)
{
    uint64_t count = reduction->bytes / reduction->element_bytes;
    uint64_t halving_pieces = (count + reduction->halving_count - 1) / reduction->halving_count;
    uint64_t pieces = (count + reduction->around_count - 1) / reduction->around_count;
    return halving_pieces * quoit_schedule_dissemination_rounds(host_count) <= pieces * (host_count - 1);
}

/* At once each host's result reaches all, and every leader combines them. Several slices would carry more bytes than
 * the others, over a network in as many rounds as halving has. */
enum quoit_schedule quoit_choice_reduce(const struct quoit_choice *choice, const struct quoit_reduction *reduction)
{
    enum quoit_schedule schedule = listed(choice, QUOIT_COLLECTIVE_REDUCE, reduction->bytes);
    bool fits_at_once = reduction->bytes <= reduction->at_once_bytes;
    if ((schedule == QUOIT_SCHEDULE_AT_ONCE && fits_at_once) || schedule == QUOIT_SCHEDULE_AROUND)
        return schedule;
    if (schedule != QUOIT_SCHEDULE_LOG && fits_at_once && reduction->bytes <= reduction->slice_bytes)
        return QUOIT_SCHEDULE_AT_ONCE;
    if (choice->has_links || reduction->halving_count == 0)
        return QUOIT_SCHEDULE_AROUND;
    if (schedule == QUOIT_SCHEDULE_LOG || halving_is_sooner(choice->host_count, reduction))
        return QUOIT_SCHEDULE_LOG;
    return QUOIT_SCHEDULE_AROUND;
}
