/* SPDX-License-Identifier: BSD-3-Clause */
#include "lane/settle.h"
#include "env/clock.h"
#include "env/processor.h"

/* So much payload between two looks is a large transfer, and for so long others are thought to follow. */
#define TOGETHER_BYTES (1u << 20)
#define TOGETHER_NS    3000000u
/* If the kernel moves the thread back, others need the place: so a move soon after another waits twice as long. */
#define PAUSE_FIRST_NS 1000000u
#define PAUSE_MOST_NS  16000000u
#define PAUSES_A_CALM  16 /* a move so many pauses after the last one is the first again */

void quoit_settling_start(struct quoit_settling *settling, const struct quoit_layout *layout, uint32_t lane_index,
                          struct quoit_wait_policy policy)
{
    const struct quoit_job_config *job = &layout->job;
    *settling = (struct quoit_settling){.apart = -1};
    if (!quoit_wait_shares(policy) || !quoit_processor_is_free(&settling->allowed))
        return;
    uint32_t count = (uint32_t)CPU_COUNT(&settling->allowed);
    if (count < 2)
        return;
    /* Hosts that follow each other on the ring share the processors of a group, one for each lane. */
    uint32_t group_count = count > job->lane_count ? count / job->lane_count : 1;
    uint32_t group = layout->host * group_count / job->host_count;
    settling->together = quoit_processor_nth(&settling->allowed, (group * job->lane_count + lane_index) % count);
    settling->apart = quoit_processor_nth(&settling->allowed, (layout->host + lane_index) % count);
}

void quoit_settling_look(struct quoit_settling *settling)
{
    if (settling->apart < 0)
        return;
    uint64_t now_ns = quoit_clock_now_ns();
    if (settling->moved_bytes - settling->seen_bytes >= TOGETHER_BYTES)
        settling->together_until_ns = now_ns + TOGETHER_NS;
    settling->seen_bytes = settling->moved_bytes;
    int processor = now_ns < settling->together_until_ns ? settling->together : settling->apart;
    if (sched_getcpu() == processor)
        return;
    uint64_t since_ns = now_ns - settling->settled_ns;
    if (since_ns < settling->pause_ns)
        return;
    if (since_ns >= PAUSES_A_CALM * settling->pause_ns)
        settling->pause_ns = PAUSE_FIRST_NS;
    else if (settling->pause_ns < PAUSE_MOST_NS)
        settling->pause_ns *= 2;
    settling->settled_ns = now_ns;
    if (!quoit_processor_go(processor, &settling->allowed))
        settling->apart = -1; /* somebody has chosen since */
}
