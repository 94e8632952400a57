/* SPDX-License-Identifier: BSD-3-Clause */
#include "job.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PICTURE_HOSTS_MAX 64
#define LEFT_COLUMN       10 /* middle of the left hosts in the picture */
#define RIGHT_COLUMN      58
#define PICTURE_COLUMNS   84

struct count {
    uint64_t bytes;
    uint64_t messages;
    uint64_t relays;
    uint64_t doorbells;
    uint64_t resends;
    uint64_t downs;
};

static void add_count(struct count *sum, const struct quoit_link_count *part)
{
    sum->bytes += atomic_load(&part->byte_count);
    sum->messages += atomic_load(&part->message_count);
    sum->relays += atomic_load(&part->relay_count);
    sum->doorbells += atomic_load(&part->doorbell_count);
    sum->resends += atomic_load(&part->resend_count);
}

/* What went out of one side of one host: by its node's lanes and by direct puts of its PEs. downs: as that host saw it.
 */
static struct count count_of(const struct job *job, uint32_t host_index, enum quoit_side side)
{
    struct count sum = {0};
    const struct host *host = &job->hosts[host_index];
    for (uint32_t lane = 0; lane < host->layout.shape.lane_count; lane++)
        add_count(&sum, &quoit_memory_lane(&host->layout, host->front, lane)->out[side]);
    for (uint32_t local = 0; local < host->layout.local_count; local++)
        add_count(&sum, &quoit_memory_pe(&host->layout, host->front, local)->direct[side]);
    sum.downs = atomic_load(&((const struct quoit_host_header *)host->front)->down_count[side]);
    return sum;
}

static const char *format_bytes(uint64_t bytes, char text[32])
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    double value = (double)bytes;
    int unit = 0;
    while (value >= 1024 && unit < 4) {
        value /= 1024;
        unit++;
    }
    snprintf(text, 32, unit ? "%.1f %s" : "%.0f %s", value, units[unit]);
    return text;
}

static void print_direction(const struct job *job, uint32_t link, uint32_t from, enum quoit_side side)
{
    char bytes[32], names[40];
    struct count count = count_of(job, from, side);
    snprintf(names, sizeof names, "host%u -> host%u", from, hosts_neighbour(job, from, side));
    fprintf(stderr, "  %4u  %-20s %14llu %12s %11llu %9llu %10llu %8llu %6llu\n", link, names,
            (unsigned long long)count.bytes, format_bytes(count.bytes, bytes), (unsigned long long)count.messages,
            (unsigned long long)count.relays, (unsigned long long)count.doorbells, (unsigned long long)count.resends,
            (unsigned long long)count.downs);
}

/* A picture is lines of characters, painted over and then printed. */
struct picture {
    char (*lines)[PICTURE_COLUMNS + 1];
    uint32_t line_count;
};

static void paint(struct picture *picture, uint32_t line, uint32_t column, const char *text)
{
    for (; *text && column < PICTURE_COLUMNS && line < picture->line_count; column++)
        picture->lines[line][column] = *text++;
}

static void paint_host(struct picture *picture, uint32_t line, uint32_t middle, uint32_t host)
{
    char text[24];
    snprintf(text, sizeof text, "[host%u]", host);
    paint(picture, line, middle - (uint32_t)strlen(text) / 2, text);
}

/* "> 1.2 MiB, 340 messages" */
static void paint_count(struct picture *picture, uint32_t line, uint32_t column, const char *arrow,
                        const struct count *count)
{
    char text[64], bytes[32];
    snprintf(text, sizeof text, " %s %s, %llu msgs ", arrow, format_bytes(count->bytes, bytes),
             (unsigned long long)count->messages);
    paint(picture, line, column, text);
}

/* The link from `host` to its right neighbour, drawn from left to right or right to left between two columns. */
static void paint_across(const struct job *job, struct picture *picture, uint32_t line, uint32_t from_column,
                         uint32_t to_column, uint32_t host, bool is_rightward)
{
    struct count there = count_of(job, host, QUOIT_RIGHT);
    struct count back = count_of(job, hosts_neighbour(job, host, QUOIT_RIGHT), QUOIT_LEFT);
    for (uint32_t column = from_column; column < to_column; column++)
        paint(picture, line, column, "-");
    paint_count(picture, line - 1, from_column + 8, is_rightward ? "-->" : "<--", &there);
    paint_count(picture, line + 1, from_column + 8, is_rightward ? "<--" : "-->", &back);
}

/* The same drawn downwards on the right of the picture, or upwards on its left. */
static void paint_along(const struct job *job, struct picture *picture, uint32_t line, uint32_t column, uint32_t host,
                        bool is_downward)
{
    struct count there = count_of(job, host, QUOIT_RIGHT);
    struct count back = count_of(job, hosts_neighbour(job, host, QUOIT_RIGHT), QUOIT_LEFT);
    for (uint32_t i = 0; i < 4; i++)
        paint(picture, line + i, column, "|");
    paint_count(picture, line + 1, column + 1, is_downward ? "v" : "^", &there);
    paint_count(picture, line + 2, column + 1, is_downward ? "^" : "v", &back);
}

/* Hosts go down the right column and come up the left one; with an odd number the last stands alone at the bottom. */
static void paint_ring(const struct job *job, struct picture *picture)
{
    uint32_t host_count = job->plan->host_count, rows = host_count / 2;
    for (uint32_t row = 0; row < rows; row++) {
        uint32_t right = row + 1, left = row == 0 ? 0 : host_count - row, line = 1 + row * 5;
        if (row == 0)
            paint_across(job, picture, line, LEFT_COLUMN, RIGHT_COLUMN, 0, true);
        bool has_more_right = row + 1 < rows, has_more_left = row + 1 < rows;
        if (has_more_right)
            paint_along(job, picture, line + 1, RIGHT_COLUMN, right, true);
        if (has_more_left)
            paint_along(job, picture, line + 1, LEFT_COLUMN, (left == 0 ? host_count : left) - 1, false);
        paint_host(picture, line, LEFT_COLUMN, left);
        paint_host(picture, line, RIGHT_COLUMN, right);
    }
    uint32_t last = rows, line = 1 + (rows - 1) * 5;
    if (host_count % 2 == 0) {
        /* Of two hosts the second link is drawn under the first. */
        line += host_count == 2 ? 5 : 0;
        for (uint32_t i = 1; host_count == 2 && i < 5; i++) {
            paint(picture, line - i, LEFT_COLUMN, "|");
            paint(picture, line - i, RIGHT_COLUMN, "|");
        }
        paint_across(job, picture, line, LEFT_COLUMN, RIGHT_COLUMN, last, false);
        if (host_count > 2) {
            paint_host(picture, line, LEFT_COLUMN, last + 1);
            paint_host(picture, line, RIGHT_COLUMN, last);
        }
        return;
    }
    paint_along(job, picture, line + 1, RIGHT_COLUMN, last, true);
    paint_along(job, picture, line + 1, LEFT_COLUMN, last + 1, false);
    for (uint32_t column = LEFT_COLUMN; column <= RIGHT_COLUMN; column++)
        paint(picture, line + 5, column, "-");
    paint_host(picture, line + 5, (LEFT_COLUMN + RIGHT_COLUMN) / 2, last + 1);
}

static void print_picture(const struct job *job)
{
    struct picture picture = {.line_count = (job->plan->host_count / 2 + 1) * 5 + 3};
    picture.lines = malloc(picture.line_count * sizeof *picture.lines);
    if (!picture.lines)
        return;
    for (uint32_t i = 0; i < picture.line_count; i++)
        memset(picture.lines[i], ' ', sizeof picture.lines[i]);
    paint_ring(job, &picture);
    for (uint32_t i = 0; i < picture.line_count; i++) {
        int length = PICTURE_COLUMNS;
        while (length > 0 && picture.lines[i][length - 1] == ' ')
            length--;
        if (length)
            fprintf(stderr, "  %.*s\n", length, picture.lines[i]);
    }
    free(picture.lines);
}

/* Figure 4b of RING-22: how long each step of a put takes, on the average of all that hosts began. */
static void print_put_steps(const struct job *job)
{
    static const char *const names[QUOIT_PUT_STEP_COUNT] = {
        [QUOIT_PUT_SETUP] = "translation set-up", [QUOIT_PUT_BIT] = "waiting for an interrupt bit",
        [QUOIT_PUT_PAYLOAD] = "payload",          [QUOIT_PUT_SCRATCHPADS] = "scratchpads",
        [QUOIT_PUT_DOORBELL] = "doorbell",        [QUOIT_PUT_TURNAROUND] = "until the acknowledgement, in all",
    };
    uint64_t put_count = 0, ns[QUOIT_PUT_STEP_COUNT] = {0};
    for (uint32_t i = 0; i < job->plan->host_count; i++) {
        const struct host *host = &job->hosts[i];
        for (uint32_t lane = 0; lane < job->shape.lane_count; lane++) {
            const struct quoit_lane_shared *shared = quoit_memory_lane(&host->layout, host->front, lane);
            put_count += atomic_load(&shared->put_count);
            for (int step = 0; step < QUOIT_PUT_STEP_COUNT; step++)
                ns[step] += atomic_load(&shared->put_ns[step]);
        }
    }
    if (put_count == 0)
        return;
    fprintf(stderr, "oshrun: time of each step of a put, average of %llu\n", (unsigned long long)put_count);
    for (int step = 0; step < QUOIT_PUT_STEP_COUNT; step++)
        fprintf(stderr, "  %-34s %10.3f us\n", names[step], (double)ns[step] / (double)put_count / 1000);
}

void stats_print(const struct job *job)
{
    uint32_t host_count = job->plan->host_count;
    if (!job->has_layout)
        return;
    if (host_count == 1) {
        fprintf(stderr, "oshrun: one host, so nothing travelled over links\n");
        return;
    }
    fprintf(stderr, "oshrun: what the links carried\n  %4s  %-20s %14s %12s %11s %9s %10s %8s %6s\n", "link",
            "direction", "bytes", "", "messages", "relays", "doorbells", "resends", "downs");
    for (uint32_t link = 0; link < host_count; link++) {
        print_direction(job, link, link, QUOIT_RIGHT);
        print_direction(job, link, (link + 1) % host_count, QUOIT_LEFT);
    }
    print_put_steps(job);
    if (host_count <= PICTURE_HOSTS_MAX)
        print_picture(job);
}
