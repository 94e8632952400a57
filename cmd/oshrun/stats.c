/* SPDX-License-Identifier: BSD-3-Clause */
#include "stats.h"
#include "clock.h"
#include "hosts.h"
#include "network.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "boot/picture.h"
#include "boot/survey.h"
#include "env/clock.h"

static void survey(const struct job *job, uint32_t from, enum quoit_side side, struct quoit_direction *direction_out)
{
    const struct host *host = &job->hosts[from];
    quoit_survey_direction(&host->layout, host->front, side, quoit_clock_now_ns(), direction_out);
    if (job->clock) /* in virtual time each wait sleeps, and its times are of two clocks */
        direction_out->sleep_count = direction_out->sleep_ns = 0;
}

static void print_row(const struct quoit_direction *direction, uint32_t index, FILE *out)
{
    (void)index;
    char bytes[32], names[40];
    snprintf(names, sizeof names, "host%u -> host%u", direction->from, direction->to);
    fprintf(out, "  %4u  %-20s %14llu %12s %11llu %9llu %10llu %8llu %6llu %8llu\n", direction->link, names,
            (unsigned long long)direction->byte_count, quoit_survey_format_bytes((double)direction->byte_count, bytes),
            (unsigned long long)direction->message_count, (unsigned long long)direction->relay_count,
            (unsigned long long)direction->doorbell_count, (unsigned long long)direction->resend_count,
            (unsigned long long)direction->down_count, (unsigned long long)direction->sleep_count);
}

/* "1.2 MiB, 340 msgs" */
static void describe(void *arg, uint32_t from, enum quoit_side side, char text_out[QUOIT_PICTURE_TEXT_BYTES])
{
    char bytes[32];
    struct quoit_direction direction;
    survey(arg, from, side, &direction);
    snprintf(text_out, QUOIT_PICTURE_TEXT_BYTES, "%s, %llu msgs",
             quoit_survey_format_bytes((double)direction.byte_count, bytes),
             (unsigned long long)direction.message_count);
}

/* Figure 4b of RING-22: the average time of each step of a put over all that the hosts started. */
static void print_put_steps(const struct job *job, FILE *out)
{
    uint64_t put_count = 0, ns[QUOIT_PUT_STEP_COUNT] = {0};
    for (uint32_t i = 0; i < job->plan->host_count; i++) {
        const struct host *host = &job->hosts[i];
        for (uint32_t lane = 0; lane < host->layout.link_lane_count; lane++) {
            const struct quoit_lane_shared *shared = quoit_memory_lane(&host->layout, host->front, lane);
            put_count += atomic_load(&shared->put_count);
            for (int step = 0; step < QUOIT_PUT_STEP_COUNT; step++)
                ns[step] += atomic_load(&shared->put_ns[step]);
        }
    }
    if (put_count == 0)
        return;
    fprintf(out, "oshrun: time of each step of a put, average of %llu\n", (unsigned long long)put_count);
    for (int step = 0; step < QUOIT_PUT_STEP_COUNT; step++)
        fprintf(out, "  %-34s %10.3f us\n", quoit_put_step_name((enum quoit_put_step)step),
                (double)ns[step] / (double)put_count / 1000);
}

/* In the order of the links; of each the direction to the right first. */
static void each_direction(const struct job *job,
                           void (*print)(const struct quoit_direction *direction, uint32_t index, FILE *out), FILE *out)
{
    struct quoit_direction direction;
    uint32_t index = 0;
    for (uint32_t link = 0; link < job->plan->host_count; link++) {
        if (!quoit_layout_has_links(&job->hosts[link].layout))
            continue;
        survey(job, link, QUOIT_RIGHT, &direction);
        print(&direction, index++, out);
        survey(job, hosts_neighbour(job, link, QUOIT_RIGHT), QUOIT_LEFT, &direction);
        print(&direction, index++, out);
    }
}

/* Measured at start, or set by options, for directions that have DMA. */
static void print_dma(const struct quoit_direction *direction, uint32_t index, FILE *out)
{
    (void)index;
    char bytes[32], from[32], direct[32];
    if (direction->dma_bytes != QUOIT_DMA_NEVER)
        fprintf(out, "  host%u -> host%u: %s by DMA; payload of %s and more, direct puts of %s and more\n",
                direction->from, direction->to, quoit_survey_format_bytes((double)direction->dma_count, bytes),
                quoit_survey_format_bytes((double)direction->dma_bytes, from),
                quoit_survey_format_bytes((double)direction->direct_bytes, direct));
    else
        fprintf(out, "  host%u -> host%u: by programmed copy alone\n", direction->from, direction->to);
}

static void survey_network(const struct job *job, uint32_t index, struct quoit_network_survey *network_out)
{
    const struct host *host = &job->hosts[index];
    quoit_survey_network(&host->layout, host->front, quoit_clock_now_ns(), network_out);
}

static void print_network(const struct job *job, FILE *out)
{
    fprintf(out,
            "oshrun: what the hosts sent and fetched over the network\n  %-6s %10s %14s %10s %14s %11s %14s %8s %5s\n",
            "host", "puts", "bytes", "gets", "bytes", "messages", "bytes", "sleeps", "lost");
    for (uint32_t i = 0; i < job->plan->host_count; i++) {
        struct quoit_network_survey network;
        survey_network(job, i, &network);
        fprintf(out, "  %-6u %10llu %14llu %10llu %14llu %11llu %14llu %8llu %5llu\n", i,
                (unsigned long long)network.put_count, (unsigned long long)network.put_bytes,
                (unsigned long long)network.get_count, (unsigned long long)network.get_bytes,
                (unsigned long long)network.message_count, (unsigned long long)network.message_bytes,
                (unsigned long long)network.sleep_count, (unsigned long long)network.lost_count);
    }
}

static void write_network(const struct job *job, FILE *out)
{
    for (uint32_t i = 0; i < job->plan->host_count; i++) {
        struct quoit_network_survey network;
        survey_network(job, i, &network);
        fprintf(out, "%s\n  {", i ? "," : "");
        quoit_survey_print_network(&network, out);
        fprintf(out, "}");
    }
}

static void print_json(const struct quoit_direction *direction, uint32_t index, FILE *out)
{
    fprintf(out, "%s\n  {", index ? "," : "");
    quoit_survey_print_direction(direction, out);
    fprintf(out, "}");
}

static void print_links(struct job *job, FILE *out)
{
    fprintf(out, "oshrun: what the links carried\n  %4s  %-20s %14s %12s %11s %9s %10s %8s %6s %8s\n", "link",
            "direction", "bytes", "", "messages", "relays", "doorbells", "resends", "downs", "sleeps");
    each_direction(job, print_row, out);
    bool is_measured = plan_number(job->plan, QUOIT_OPT_DMA_BYTES) == QUOIT_DMA_MEASURED;
    fprintf(out, "oshrun: how payload travelled, as %s\n", is_measured ? "measured at start" : "set by --dma-bytes");
    each_direction(job, print_dma, out);
    print_put_steps(job, out);
    for (uint32_t i = 0; i < job->plan->host_count; i++) {
        const struct quoit_layout *layout = &job->hosts[i].layout;
        const struct quoit_picture picture = {.hosts = layout->ring, .indent = "  ", .describe = describe, .arg = job};
        if (layout->ring.first == i)
            quoit_picture_print(&picture, out);
    }
}

static void print(struct job *job, FILE *out)
{
    if (!job->has_layout)
        return;
    if (!quoit_job_config_has_proxies(&job->config)) {
        fprintf(out, "oshrun: one host, so nothing travelled over links\n");
        return;
    }
    if (!network_is_alone(job))
        print_links(job, out);
    if (network_is_used(job))
        print_network(job, out);
}

void stats_print(struct job *job)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    if (!out)
        return;
    print(job, out);
    fclose(out);
    output_print(&job->output, text, bytes);
    free(text);
}

void stats_write_items(const struct job *job, FILE *out)
{
    fprintf(out, "\"links\": [");
    if (job->has_layout)
        each_direction(job, print_json, out);
    fprintf(out, "], \"network\": [");
    if (job->has_layout && network_is_used(job))
        write_network(job, out);
    fprintf(out, "]");
}

bool stats_write(const struct job *job, const char *path)
{
    FILE *out = fopen(path, "we");
    if (out) {
        fprintf(out, "{\"hosts\": %u, \"pes\": %u, ", job->plan->host_count, job->plan->pe_count);
        if (job->clock)
            fprintf(out, "\"virtual_ns\": %llu, ", (unsigned long long)clock_ns(job));
        stats_write_items(job, out);
        fprintf(out, "}\n");
    }
    bool is_written = out && fclose(out) == 0;
    if (!is_written)
        quoit_say("cannot write %s: %s [Q0213]", path, strerror(errno));
    return is_written;
}
