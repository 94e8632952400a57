/* SPDX-License-Identifier: BSD-3-Clause */
#include "dsm/stats.h"

#include <stdio.h>
#include <unistd.h>

static const char *const span_names[] = {"compute", "page", "diff", "lock", "barrier"};

static void print_text(const struct quoit_dsm *dsm, uint64_t wall_ns)
{
    char text[2048];
    int length = snprintf(text, sizeof text, "dsm: PE %d wall %.6f s:", dsm->me, (double)wall_ns / 1e9);
    for (int i = 0; i < QUOIT_DSM_SPAN_COUNT; i++)
        length += snprintf(text + length, sizeof text - (size_t)length, " %s %.6f", span_names[i],
                           (double)dsm->stats.span_ns[i] / 1e9);
    length +=
        snprintf(text + length, sizeof text - (size_t)length, " (service %.6f);", (double)dsm->stats.service_ns / 1e9);
#define X(name)                                                                                                        \
    if (dsm->stats.name != 0)                                                                                          \
        length += snprintf(text + length, sizeof text - (size_t)length, " " #name " %llu",                             \
                           (unsigned long long)dsm->stats.name);
    QUOIT_DSM_COUNTS(X)
#undef X
    length += snprintf(text + length, sizeof text - (size_t)length, "\n");
    if (write(STDERR_FILENO, text, (size_t)length) < 0)
        return;
}

static void print_json(const struct quoit_dsm *dsm, uint64_t wall_ns)
{
    char text[2048];
    int length = snprintf(text, sizeof text, "{\"pe\":%d,\"wall_ns\":%llu", dsm->me, (unsigned long long)wall_ns);
    for (int i = 0; i < QUOIT_DSM_SPAN_COUNT; i++)
        length += snprintf(text + length, sizeof text - (size_t)length, ",\"%s_ns\":%llu", span_names[i],
                           (unsigned long long)dsm->stats.span_ns[i]);
    length += snprintf(text + length, sizeof text - (size_t)length, ",\"service_ns\":%llu",
                       (unsigned long long)dsm->stats.service_ns);
#define X(name)                                                                                                        \
    length += snprintf(text + length, sizeof text - (size_t)length, ",\"" #name "\":%llu",                             \
                       (unsigned long long)dsm->stats.name);
    QUOIT_DSM_COUNTS(X)
#undef X
    length += snprintf(text + length, sizeof text - (size_t)length, "}\n");
    if (write(STDERR_FILENO, text, (size_t)length) < 0)
        return;
}

void quoit_dsm_stats_print(struct quoit_dsm *dsm)
{
    uint64_t wall_ns = quoit_dsm_now_ns() - dsm->started_ns, other_ns = 0;
    for (int i = QUOIT_DSM_COMPUTE + 1; i < QUOIT_DSM_SPAN_COUNT; i++)
        other_ns += dsm->stats.span_ns[i];
    dsm->stats.span_ns[QUOIT_DSM_COMPUTE] = wall_ns > other_ns ? wall_ns - other_ns : 0;
    if (dsm->options.values[QUOIT_DSM_STATS] == 1)
        print_text(dsm, wall_ns);
    else if (dsm->options.values[QUOIT_DSM_STATS] == 2)
        print_json(dsm, wall_ns);
}
