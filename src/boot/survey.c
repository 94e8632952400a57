/* SPDX-License-Identifier: BSD-3-Clause */
#include "boot/survey.h"
#include "base/assert.h"

#include <string.h>

static uint64_t load(const _Atomic uint64_t *count)
{
    return atomic_load_explicit(count, memory_order_relaxed);
}

static void add_count(struct quoit_direction *sum, const struct quoit_link_count *part)
{
    sum->byte_count += load(&part->byte_count);
    sum->dma_count += load(&part->dma_count);
    sum->message_count += load(&part->message_count);
    sum->relay_count += load(&part->relay_count);
    sum->doorbell_count += load(&part->doorbell_count);
    sum->resend_count += load(&part->resend_count);
}

/* Includes the current sleep. */
static uint64_t sleep_of(const struct quoit_lane_shared *lane, uint64_t now_ns)
{
    uint64_t since_ns = load(&lane->sleep_since_ns);
    return load(&lane->sleep_ns) + (since_ns && now_ns > since_ns ? now_ns - since_ns : 0);
}

void quoit_survey_direction(const struct quoit_layout *layout, const void *front, enum quoit_side side, uint64_t now_ns,
                            struct quoit_direction *direction_out)
{
    quoit_assert(quoit_layout_has_links(layout));
    const struct quoit_host_header *header = front;
    uint32_t neighbour = quoit_layout_neighbour(layout, side);
    struct quoit_direction sum = {
        .link = side == QUOIT_RIGHT ? layout->host : neighbour,
        .from = layout->host,
        .to = neighbour,
        .side = side,
        .is_up = quoit_link_state_of(&header->links[side]) == QUOIT_LINK_STATE_UP,
        .dma_bytes = load(&header->dma_bytes[side]),
        .direct_bytes = load(&header->direct_bytes[side]),
        .down_count = atomic_load_explicit(&header->links[side].outage_count, memory_order_relaxed),
    };
    for (uint32_t i = 0; i < layout->link_lane_count; i++) {
        const struct quoit_lane_shared *lane = quoit_memory_lane(layout, (void *)(uintptr_t)front, i);
        add_count(&sum, &lane->out[side]);
        sum.sleep_count += load(&lane->sleep_count);
        sum.sleep_ns += sleep_of(lane, now_ns);
    }
    for (uint32_t local = 0; local < layout->local_count; local++) {
        const struct quoit_link_count *direct = &quoit_memory_pe(layout, (void *)(uintptr_t)front, local)->direct[side];
        add_count(&sum, direct);
        sum.doorbell_count += load(&direct->message_count); /* each direct put rings once, and is not counted twice */
    }
    *direction_out = sum;
}

void quoit_survey_network(const struct quoit_layout *layout, const void *front, uint64_t now_ns,
                          struct quoit_network_survey *network_out)
{
    const struct quoit_lane_shared *lane = quoit_memory_lane(layout, (void *)(uintptr_t)front, layout->link_lane_count);
    const struct quoit_network_count *count = &lane->network;
    *network_out = (struct quoit_network_survey){
        .host = layout->host,
        .put_count = load(&count->put_count),
        .put_bytes = load(&count->put_bytes),
        .get_count = load(&count->get_count),
        .get_bytes = load(&count->get_bytes),
        .message_count = load(&count->message_count),
        .message_bytes = load(&count->message_bytes),
        .lost_count = load(&count->lost_count),
        .sleep_count = load(&lane->sleep_count),
        .sleep_ns = sleep_of(lane, now_ns),
    };
    for (uint32_t local = 0; local < layout->local_count; local++) {
        const struct quoit_pe_endpoint_count *own =
            &quoit_memory_pe(layout, (void *)(uintptr_t)front, local)->pe_endpoint;
        network_out->pe_endpoint_count += load(&own->put_count) + load(&own->get_count) + load(&own->message_count);
        network_out->put_count += load(&own->put_count);
        network_out->put_bytes += load(&own->put_bytes);
        network_out->get_count += load(&own->get_count);
        network_out->get_bytes += load(&own->get_bytes);
        network_out->message_count += load(&own->message_count);
        network_out->message_bytes += load(&own->message_bytes);
    }
}

void quoit_survey_host(const struct quoit_layout *layout, const void *front, uint64_t now_ns,
                       struct quoit_host_survey *host_out)
{
    memset(host_out, 0, sizeof *host_out); /* it travels, with what is between its members */
    for (enum quoit_side side = 0; side < QUOIT_SIDE_COUNT && quoit_layout_has_links(layout); side++)
        quoit_survey_direction(layout, front, side, now_ns, &host_out->directions[side]);
    if (quoit_job_config_has_network(&layout->job))
        quoit_survey_network(layout, front, now_ns, &host_out->network);
}

/* The wait descriptor is read apart. */
static void survey_pe(const struct quoit_layout *layout, const void *front, uint32_t local, uint64_t now_ns,
                      struct quoit_pe_survey *pe_out)
{
    const struct quoit_pe_shared *shared = quoit_memory_pe(layout, (void *)(uintptr_t)front, local);
    uint32_t outer_pid = atomic_load_explicit(&shared->outer_pid, memory_order_relaxed);
    memset(pe_out, 0, sizeof *pe_out);
    pe_out->pid = atomic_load_explicit(&shared->pid, memory_order_relaxed);
    if (pe_out->pid && outer_pid) /* its own number may be that of another pid namespace */
        pe_out->pid = outer_pid;
    for (size_t i = 0; i < sizeof pe_out->call - 1; i++) {
        char c = __atomic_load_n(&shared->waiting_in[i], __ATOMIC_RELAXED);
        if (c < ' ' || c > '~') /* the end, or a character that no routine name contains */
            break;
        pe_out->call[i] = c;
    }
    pe_out->is_waiting = pe_out->call[0] != '\0';
    uint64_t since_ns = load(&shared->waiting_since_ns);
    if (pe_out->is_waiting && now_ns > since_ns)
        pe_out->waiting_ns = now_ns - since_ns;
}

void quoit_survey_pes(const struct quoit_layout *layout, const void *front, const struct quoit_wait_desc_job *job,
                      uint64_t now_ns, struct quoit_pe_survey *pes_out)
{
    const struct quoit_wait_desc_reading *last = NULL; /* many PEs may wait for one lock */
    for (uint32_t local = 0; local < layout->local_count; local++) {
        struct quoit_pe_survey *pe = &pes_out[local];
        survey_pe(layout, front, local, now_ns, pe);
        if (!pe->is_waiting)
            continue;
        const struct quoit_wait_desc wait_desc = quoit_memory_pe(layout, (void *)(uintptr_t)front, local)->wait_desc;
        quoit_wait_desc_read(job, layout->first_pe + local, &wait_desc, last, &pe->wait_desc);
        if (pe->wait_desc.wait_desc.is_lock)
            last = &pe->wait_desc;
    }
}

void quoit_survey_print_direction(const struct quoit_direction *direction, FILE *out)
{
    fprintf(
        out,
        "\"link\": %u, \"from\": %u, \"to\": %u, \"up\": %s, \"bytes\": %llu, \"by_dma\": %llu, \"messages\": %llu, "
        "\"relays\": %llu, \"doorbells\": %llu, \"resends\": %llu, \"downs\": %llu, \"sleeps\": %llu, "
        "\"asleep_ns\": %llu",
        direction->link, direction->from, direction->to, direction->is_up ? "true" : "false",
        (unsigned long long)direction->byte_count, (unsigned long long)direction->dma_count,
        (unsigned long long)direction->message_count, (unsigned long long)direction->relay_count,
        (unsigned long long)direction->doorbell_count, (unsigned long long)direction->resend_count,
        (unsigned long long)direction->down_count, (unsigned long long)direction->sleep_count,
        (unsigned long long)direction->sleep_ns);
}

void quoit_survey_print_network(const struct quoit_network_survey *network, FILE *out)
{
    fprintf(out,
            "\"host\": %u, \"puts\": %llu, \"put_bytes\": %llu, \"gets\": %llu, \"get_bytes\": %llu, "
            "\"by_pes\": %llu, \"messages\": %llu, \"message_bytes\": %llu, \"lost\": %llu, \"sleeps\": %llu, "
            "\"asleep_ns\": %llu",
            network->host, (unsigned long long)network->put_count, (unsigned long long)network->put_bytes,
            (unsigned long long)network->get_count, (unsigned long long)network->get_bytes,
            (unsigned long long)network->pe_endpoint_count, (unsigned long long)network->message_count,
            (unsigned long long)network->message_bytes, (unsigned long long)network->lost_count,
            (unsigned long long)network->sleep_count, (unsigned long long)network->sleep_ns);
}

const char *quoit_survey_format_bytes(double bytes, char text[32])
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    int unit = 0;
    while (bytes >= 1024 && unit < 4) {
        bytes /= 1024;
        unit++;
    }
    snprintf(text, 32, unit ? "%.1f %s" : "%.0f %s", bytes, units[unit]);
    return text;
}
