/* SPDX-License-Identifier: BSD-3-Clause */
#include "boot/silence.h"

#include <stdio.h>
#include <stdlib.h>

#include "net/net.h"

enum quoit_status quoit_silences_open(struct quoit_silences *silences, uint32_t host_count)
{
    *silences = (struct quoit_silences){.host_count = host_count,
                                        .hosts = calloc(host_count, sizeof *silences->hosts),
                                        .found = calloc(host_count, host_count)};
    if (silences->hosts && silences->found)
        return QUOIT_OK;
    quoit_silences_close(silences);
    return QUOIT_NO_MEMORY;
}

void quoit_silences_close(struct quoit_silences *silences)
{
    free(silences->hosts);
    free(silences->found);
    *silences = (struct quoit_silences){0};
}

static uint64_t before(uint64_t now_ns, uint64_t duration_ns)
{
    return duration_ns < now_ns ? now_ns - duration_ns : 0;
}

void quoit_silences_take(struct quoit_silences *silences, uint32_t by, const struct quoit_control_silence *report,
                         uint64_t now_ns)
{
    if (by >= silences->host_count || report->host >= silences->host_count || report->host == by ||
        report->silence > QUOIT_NET_DARK)
        return;
    struct quoit_silent *silent = &silences->hosts[report->host];
    uint8_t *found = &silences->found[(size_t)by * silences->host_count + report->host];
    const uint64_t since_ns = before(now_ns, report->silent_ns);
    const bool was_silent = *found != QUOIT_NET_PRESENT, was_dark = *found == QUOIT_NET_DARK;
    const bool is_silent = report->silence != QUOIT_NET_PRESENT, is_dark = report->silence == QUOIT_NET_DARK;
    if (is_silent && silent->silent_count == 0) {
        silent->since_ns = since_ns;
        silences->silent_count++;
    }
    if (is_dark && silent->dark_count == 0)
        silent->dark_ns = before(now_ns, report->dark_ns);
    silent->silent_count += is_silent - was_silent;
    silent->dark_count += is_dark - was_dark;
    silences->silent_count -= was_silent && silent->silent_count == 0;
    *found = (uint8_t)report->silence;
}

uint64_t quoit_silences_sign_ns(const struct quoit_silences *silences, uint32_t host, uint64_t now_ns)
{
    const struct quoit_silent *silent = &silences->hosts[host];
    return silent->dark_count > 0 ? silent->dark_ns : now_ns;
}

static bool is_credible(const struct quoit_silent *by, uint64_t now_ns)
{
    return by->silent_count == 0 && !by->is_reported &&
           (by->back_ns == 0 || now_ns - by->back_ns > QUOIT_NET_NOTICE_NS);
}

static bool is_silent_to_some(const struct quoit_silences *silences, uint32_t host, uint64_t now_ns)
{
    const struct quoit_silent *silent = &silences->hosts[host];
    for (uint32_t by = 0; by < silences->host_count && silent->silent_count > 0; by++)
        if (quoit_silences_found(silences, by, host) != QUOIT_NET_PRESENT &&
            (silent->is_reported || is_credible(&silences->hosts[by], now_ns)))
            return true;
    return false;
}

enum quoit_silence_line quoit_silences_due(struct quoit_silences *silences, uint32_t host, bool is_silent,
                                           uint64_t since_ns, uint64_t now_ns)
{
    struct quoit_silent *silent = &silences->hosts[host];
    bool is_so = is_silent || is_silent_to_some(silences, host, now_ns);
    if (is_so == silent->is_reported)
        return QUOIT_SILENCE_NO_LINE;
    silent->is_reported = is_so;
    if (is_so && silent->silent_count == 0)
        silent->since_ns = since_ns;
    if (!is_so)
        silent->back_ns = now_ns;
    return is_so ? QUOIT_SILENCE_BEGINS : QUOIT_SILENCE_IS_OVER;
}

void quoit_silence_text(const struct quoit_silent *silent, enum quoit_silence_line line, const char *who,
                        const char *limit, uint64_t limit_ns, uint64_t now_ns, char text_out[QUOIT_SILENCE_TEXT_BYTES])
{
    double lasted_s = (double)(now_ns - silent->since_ns) / 1e9;
    if (line == QUOIT_SILENCE_IS_OVER)
        snprintf(text_out, QUOIT_SILENCE_TEXT_BYTES, "%s is back after %.1f s [Q0318]", who, lasted_s);
    else if (silent->silent_count > 0 && silent->dark_count == 0)
        snprintf(text_out, QUOIT_SILENCE_TEXT_BYTES,
                 "nothing has come from %s for %.1f s, but its machine answers; the job waits for it [Q0317]", who,
                 lasted_s);
    else
        snprintf(text_out, QUOIT_SILENCE_TEXT_BYTES,
                 "nothing has come from %s for %.1f s; the job waits for it, up to %s (%.*f s) [Q0317]", who, lasted_s,
                 limit, limit_ns < 10000000000u ? 1 : 0, (double)limit_ns / 1e9);
}
