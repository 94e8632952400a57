/* SPDX-License-Identifier: BSD-3-Clause */
#include "silence.h"

#include <stdio.h>
#include <string.h>

#include "env/process.h"
#include "hosts.h"
#include "net/net.h"
#include "network.h"

#define REPORTED_MOST 8u /* hosts of which the user has a line, and none yet that they are back */

uint64_t silence_sign_ns(const struct job *job, uint32_t host, uint64_t now_ns)
{
    uint64_t earliest_ns = now_ns;
    if (!job->has_findings)
        return 0;
    if (host != HOST_NONE)
        return quoit_silences_sign_ns(&job->silences, host, now_ns);
    for (uint32_t i = 0; i < job->plan->host_count; i++) {
        uint64_t sign_ns = quoit_silences_sign_ns(&job->silences, i, now_ns);
        earliest_ns = sign_ns < earliest_ns ? sign_ns : earliest_ns;
    }
    return earliest_ns;
}

bool silence_has_agent(const struct job *job)
{
    for (uint32_t i = 0; i < job->plan->host_count; i++)
        if (job->hosts[i].is_agent_silent)
            return true;
    return false;
}

/* Of the agents next below. */
static void look_at_agents(struct job *job, uint64_t now_ns)
{
    for (uint32_t i = 0; i < job->plan->host_count; i++) {
        struct host *host = &job->hosts[i];
        bool is_silent = host->control.is_silent && !host->control.is_lost;
        if (!hosts_is_next(host) || is_silent == host->is_agent_silent)
            continue;
        host->is_agent_silent = is_silent;
        host->agent_received_ns = host->control.received_ns;
        const int32_t number = is_silent ? (int32_t)((now_ns - host->agent_received_ns) / 1000000) : 0;
        const struct quoit_control_frame frame = {
            .kind = QUOIT_CONTROL_SILENT, .pe = CONTROL_NO_PE, .bytes = sizeof number, .host = host->index};
        if (job->role == ROLE_AGENT)
            control_pass(&job->control, &frame, &number);
    }
}

/* Of an agent: what its proxy finds, unless this host is cut off itself: then that would be old when it arrives. */
static void report_findings(struct job *job, uint64_t now_ns)
{
    uint64_t fresh_ns = quoit_net_notice_ns(job->control.limit_ns) / 2;
    for (uint32_t i = 0; i < job->plan->host_count && now_ns - job->control.received_ns < fresh_ns; i++) {
        const struct quoit_silent *silent = &job->silences.hosts[i];
        uint32_t silence = quoit_silences_found(&job->silences, job->own_host, i);
        struct quoit_proxy_message message = {.magic = QUOIT_BOOT_MAGIC, .kind = QUOIT_PROXY_SILENCE};
        if (silence == job->hosts[i].reported_silence)
            continue;
        job->hosts[i].reported_silence = (uint8_t)silence;
        message.body.silence = (struct quoit_control_silence){
            .host = i, .silence = silence, .silent_ns = now_ns - silent->since_ns, .dark_ns = now_ns - silent->dark_ns};
        control_send(&job->control, QUOIT_CONTROL_PROXY, job->own_host, &message, sizeof message);
    }
}

static void print(struct job *job, uint32_t index, enum quoit_silence_line line, uint64_t now_ns)
{
    const struct quoit_silent *silent = &job->silences.hosts[index];
    char name[HOSTS_NAME_BYTES], who[HOSTS_NAME_BYTES + 32], text[QUOIT_SILENCE_TEXT_BYTES];
    char whole[QUOIT_SILENCE_TEXT_BYTES + 16];
    const char *part = line == QUOIT_SILENCE_IS_OVER ? ""
                       : silent->silent_count > 0    ? "the proxy of "
                                                     : "the agent on ";
    snprintf(who, sizeof who, "%s%s", part, hosts_name(job, index, name));
    quoit_silence_text(silent, line, who, "--network-limit", plan_number(job->plan, QUOIT_OPT_NETWORK_LIMIT), now_ns,
                       text);
    int bytes = snprintf(whole, sizeof whole, "oshrun: %s\n", text);
    output_print(&job->output, whole, (size_t)bytes);
}

static bool cannot_run(const struct host *host)
{
    struct quoit_process process;
    return host->proxy_pid && quoit_process_look(host->proxy_pid, &process) &&
           (process.state == 'T' || process.state == 't' || process.state == 'D');
}

void silence_answer(struct job *job)
{
    if (cannot_run(&job->hosts[job->own_host]))
        control_send(&job->control, QUOIT_CONTROL_PROXY_STOPPED, job->own_host, NULL, 0);
}

void silence_take(const struct host *host)
{
    hosts_send_all(host->job, QUOIT_CONTROL_PROXY_STOPPED, host->index, NULL, 0);
}

/* As long as they are: what is seen holds for the others until the next look. */
static uint64_t look_at_proxies(struct job *job, uint64_t now_ns)
{
    uint64_t apart_ns = quoit_net_notice_ns(plan_number(job->plan, QUOIT_OPT_NETWORK_LIMIT)) / 2;
    if (job->role == ROLE_AGENT || job->silences.silent_count == 0)
        return UINT64_MAX;
    if (now_ns < job->asked_ns + apart_ns)
        return job->asked_ns + apart_ns;
    job->asked_ns = now_ns;
    for (uint32_t i = 0; i < job->plan->host_count; i++) {
        if (job->silences.hosts[i].silent_count == 0)
            continue;
        if (job->role == ROLE_HEAD)
            hosts_send(job, i, QUOIT_CONTROL_ASK_PROXY, CONTROL_NO_PE, NULL, 0);
        else if (cannot_run(&job->hosts[i]))
            quoit_board_note_sign(network_board(job), i);
    }
    return now_ns + apart_ns;
}

/* A host that finds no room is printed when another one is back. */
static void print_due(struct job *job, uint64_t now_ns)
{
    uint32_t reported_count = 0;
    for (uint32_t i = 0; i < job->plan->host_count; i++)
        reported_count += job->silences.hosts[i].is_reported;
    for (uint32_t i = 0; i < job->plan->host_count; i++) {
        const struct host *host = &job->hosts[i];
        if (!job->silences.hosts[i].is_reported && reported_count >= REPORTED_MOST)
            continue;
        enum quoit_silence_line line =
            quoit_silences_due(&job->silences, i, host->is_agent_silent, host->agent_received_ns, now_ns);
        if (line == QUOIT_SILENCE_NO_LINE)
            continue;
        if (line == QUOIT_SILENCE_BEGINS)
            reported_count++;
        else
            reported_count--;
        print(job, i, line, now_ns);
    }
}

uint64_t silence_step(struct job *job, uint64_t now_ns)
{
    look_at_agents(job, now_ns);
    if (job->role == ROLE_AGENT)
        report_findings(job, now_ns);
    else if (job->end.phase == ENDING_NOT && job->proxies_stop_ns == 0)
        print_due(job, now_ns);
    return look_at_proxies(job, now_ns);
}
