/* SPDX-License-Identifier: BSD-3-Clause */
/* quoit top --ring: hosts with their Ethernet devices, links, and jobs. */
#include "top.h"

#include <stdio.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "env/clock.h"
#include "ring/route.h"

#define NS_PER_S 1e9

static void take_job(struct top_ring_job *job)
{
    struct job_view view;
    struct quoit_direction direction;
    if (!job_open_runner(&view, (pid_t)job->pid))
        return;
    job->is_seen = view.config.host_count <= RING_HOSTS_MAX && !view.summary && !view.is_part;
    job->pe_count = view.config.pe_count;
    for (uint32_t host = 0; host < view.config.host_count && job->is_seen && view.config.host_count > 1; host++)
        for (enum quoit_side side = 0; side < QUOIT_SIDE_COUNT; side++) {
            quoit_survey_direction(&view.hosts[host].layout, view.hosts[host].front, side, 0, &direction);
            job->bytes[QUOIT_SIDE_COUNT * host + side] = direction.byte_count;
            job->messages[QUOIT_SIDE_COUNT * host + side] = direction.message_count;
        }
    job_close(&view);
}

static enum top_taken query(const char *name, struct ring_reply *reply, struct quoit_share_list *list,
                            struct ring_answerer *by)
{
    char path[QUOIT_SHARE_PATH_BYTES];
    list->client_count = 0;
    if (!ring_ask(name, RING_STATUS, reply, by)) {
        if (errno == EPROTO)
            ring_report_no_answer(name, reply, by);
        return errno == EAGAIN ? TOP_AWAITED : TOP_ENDED;
    }
    quoit_share_path(geteuid(), name, path);
    bool has_jobs = !reply->plan.is_joined; /* bridges have none */
    return !has_jobs || quoit_share_query(path, list) == QUOIT_OK ? TOP_TAKEN : TOP_ENDED;
}

/* Root asks for another user's ring as that user, and reads the jobs as root. */
enum top_taken top_ring_take(const char *given, struct top_ring_sample *sample, struct ring_answerer *by)
{
    struct quoit_share_list list;
    const char *name;
    uid_t own = geteuid(), user = quoit_share_user(given, &name);
    *sample = (struct top_ring_sample){.now_ns = quoit_clock_now_ns()};
    if (user == UINT32_MAX || (user != own && seteuid(user) != 0))
        return TOP_ENDED;
    enum top_taken taken = query(name, &sample->ring, &list, by);
    if (user != own && seteuid(own) != 0)
        return TOP_ENDED;
    if (taken != TOP_TAKEN)
        return taken;
    for (uint32_t i = 0; i < list.client_count; i++) {
        struct top_ring_job *job = &sample->jobs[sample->job_count++];
        job->id = list.clients[i].id;
        job->uid = list.clients[i].uid;
        job->pid = list.clients[i].pid;
        memcpy(job->program, list.clients[i].label, sizeof job->program);
        take_job(job);
    }
    return TOP_TAKEN;
}

/* Rates between two samples */

struct pair {
    const struct top_ring_sample *before;
    const struct top_ring_sample *now;
    double seconds;
};

static struct pair pair_of(const struct top_ring_sample *before, const struct top_ring_sample *now)
{
    return (struct pair){before, now, (double)(now->now_ns - before->now_ns) / NS_PER_S};
}

static double per_second(const struct pair *pair, uint64_t before, uint64_t now)
{
    return now > before && pair->seconds > 0 ? (double)(now - before) / pair->seconds : 0;
}

/* The same job in the earlier sample; NULL: it began since, or is another user's. */
static const struct top_ring_job *earlier(const struct pair *pair, const struct top_ring_job *job)
{
    for (uint32_t i = 0; i < pair->before->job_count; i++)
        if (pair->before->jobs[i].id == job->id && pair->before->jobs[i].is_seen && job->is_seen)
            return &pair->before->jobs[i];
    return NULL;
}

/* Of one direction of a link: the sum over the jobs of this user. */
struct traffic {
    double bytes;
    double messages;
};

static struct traffic traffic_of_job(const struct pair *pair, const struct top_ring_job *job, uint32_t direction)
{
    const struct top_ring_job *before = earlier(pair, job);
    if (before == NULL)
        return (struct traffic){0};
    return (struct traffic){.bytes = per_second(pair, before->bytes[direction], job->bytes[direction]),
                            .messages = per_second(pair, before->messages[direction], job->messages[direction])};
}

static struct traffic traffic_of_link(const struct pair *pair, uint32_t direction)
{
    struct traffic sum = {0};
    for (uint32_t i = 0; i < pair->now->job_count; i++) {
        struct traffic own = traffic_of_job(pair, &pair->now->jobs[i], direction);
        sum.bytes += own.bytes;
        sum.messages += own.messages;
    }
    return sum;
}

static double bytes_of_job(const struct pair *pair, const struct top_ring_job *job)
{
    double sum = 0;
    for (uint32_t i = 0; i < QUOIT_SIDE_COUNT * pair->now->ring.plan.host_count; i++)
        sum += traffic_of_job(pair, job, i).bytes;
    return sum;
}

/* One direction of a link, as its sender knows it. */
struct direction {
    uint32_t link;
    uint32_t from;
    uint32_t to;
    enum quoit_side side;
    const char *state;
    uint32_t outage_count;
};

static struct direction direction_of(const struct pair *pair, uint32_t link, enum quoit_side side)
{
    uint32_t host_count = pair->now->ring.plan.host_count, next = quoit_ring_neighbour(host_count, QUOIT_RIGHT, link);
    uint32_t from = side == QUOIT_RIGHT ? link : next;
    const struct ring_host_status *host = &pair->now->ring.hosts[from];
    return (struct direction){
        .link = link,
        .from = from,
        .to = side == QUOIT_RIGHT ? next : link,
        .side = side,
        .state = host->is_ready ? quoit_link_state_name((enum quoit_link_state)host->link_states[side]) : "starting",
        .outage_count = host->outage_counts[side]};
}

static bool is_up(const struct pair *pair, const struct direction *direction)
{
    const struct ring_host_status *host = &pair->now->ring.hosts[direction->from];
    return host->is_ready && host->link_states[direction->side] == QUOIT_LINK_STATE_UP;
}

/* Sent by a host of this machine. */
static bool is_here(const struct pair *pair, const struct direction *direction)
{
    const struct ring_plan *plan = &pair->now->ring.plan;
    return direction->from >= ring_host_begin(plan) && direction->from < ring_host_end(plan);
}

/* Text */

static const char *speed(double bytes, char text[40])
{
    char number[32];
    snprintf(text, 40, "%s/s", quoit_survey_format_bytes(bytes, number));
    return text;
}

static const char *trouble(bool is_wrong)
{
    static const char mark[] = {TOP_MARK_TROUBLE, '\0'};
    return is_wrong ? mark : "";
}

static void print_link(const struct pair *pair, uint32_t link, enum quoit_side side, FILE *out)
{
    char names[40], bytes[40];
    const struct direction direction = direction_of(pair, link, side);
    struct traffic traffic = traffic_of_link(pair, QUOIT_SIDE_COUNT * direction.from + side);
    snprintf(names, sizeof names, "host%u -> host%u", direction.from, direction.to);
    if (!is_here(pair, &direction))
        return;
    fprintf(out, "%s%4u  %-20s %-10s %14s %11.0f %6u\n", trouble(!is_up(pair, &direction)), link, names,
            direction.state, speed(traffic.bytes, bytes), traffic.messages, direction.outage_count);
}

static void print_host(const struct pair *pair, uint32_t index, FILE *out)
{
    char sent[40], received[40];
    const struct ring_host_status *host = &pair->now->ring.hosts[index], *before = &pair->before->ring.hosts[index];
    uint64_t lost = host->stats.lost_frames + host->stats.refused_frames;
    fprintf(out, "%s%4u  %8d %14s %14s %12.0f %12.0f %8llu%s\n", trouble(!host->is_ready), index, host->pid,
            speed(per_second(pair, before->stats.sent_bytes, host->stats.sent_bytes), sent),
            speed(per_second(pair, before->stats.received_bytes, host->stats.received_bytes), received),
            per_second(pair, before->stats.sent_frames + before->stats.received_frames,
                       host->stats.sent_frames + host->stats.received_frames),
            per_second(pair, before->stats.forwarded_frames, host->stats.forwarded_frames), (unsigned long long)lost,
            host->is_ready ? "" : "  starting");
}

static void print_job(const struct pair *pair, const struct top_ring_job *job, FILE *out)
{
    char bytes[40];
    fprintf(out, "%4u  %-32s %8u %8u", job->id, job->program, job->pid, job->uid);
    if (job->is_seen)
        fprintf(out, " %6u %14s", job->pe_count, speed(bytes_of_job(pair, job), bytes));
    putc('\n', out);
}

void top_ring_print_text(const struct top_ring_sample *before, const struct top_ring_sample *now, FILE *out)
{
    const struct pair pair = pair_of(before, now);
    const struct ring_plan *plan = &now->ring.plan;
    char rate[40];
    fprintf(out, "%cquoit top  ring \"%s\"  %u hosts  %u job%s  link rate %s\n", TOP_MARK_HEADING, plan->name,
            plan->host_count, now->job_count, now->job_count == 1 ? "" : "s",
            plan->knobs.rate_bytes_per_s ? speed((double)plan->knobs.rate_bytes_per_s, rate) : "unlimited");
    fprintf(out, "\n%c%4s  %-20s %-10s %14s %11s %6s\n", TOP_MARK_HEADING, "link", "direction", "state", "jobs",
            "messages/s", "downs");
    for (uint32_t link = 0; link < plan->host_count; link++) {
        print_link(&pair, link, QUOIT_RIGHT, out);
        print_link(&pair, link, QUOIT_LEFT, out);
    }
    fprintf(out, "\n%c%4s  %8s %14s %14s %12s %12s %8s\n", TOP_MARK_HEADING, "host", "pid", "Ethernet out",
            "Ethernet in", "frames/s", "forwarded/s", "lost");
    for (uint32_t host = ring_host_begin(plan); host < ring_host_end(plan); host++)
        print_host(&pair, host, out);
    if (now->job_count)
        fprintf(out, "\n%c%4s  %-32s %8s %8s %6s %14s\n", TOP_MARK_HEADING, "job", "program", "pid", "user", "PEs",
                "traffic");
    for (uint32_t i = 0; i < now->job_count; i++)
        print_job(&pair, &now->jobs[i], out);
}

/* JSON */

/* False: the direction is another machine's. */
static bool print_json_link(const struct pair *pair, uint32_t link, enum quoit_side side, bool is_first, FILE *out)
{
    const struct direction direction = direction_of(pair, link, side);
    struct traffic traffic = traffic_of_link(pair, QUOIT_SIDE_COUNT * direction.from + side);
    if (!is_here(pair, &direction))
        return false;
    fprintf(out,
            "%s{\"link\": %u, \"from\": %u, \"to\": %u, \"state\": \"%s\", \"outages\": %u, "
            "\"job_bytes_per_s\": %.1f, \"job_messages_per_s\": %.1f}",
            is_first ? "" : ", ", link, direction.from, direction.to, direction.state, direction.outage_count,
            traffic.bytes, traffic.messages);
    return true;
}

static void print_json_host(const struct pair *pair, uint32_t index, FILE *out)
{
    const struct ring_host_status *host = &pair->now->ring.hosts[index], *before = &pair->before->ring.hosts[index];
    fprintf(out, "{\"host\": %u, \"pid\": %d, \"ready\": %s, \"starts\": %u", index, host->pid,
            host->is_ready ? "true" : "false", host->start_count);
#define X(name, sentence)                                                                                              \
    fprintf(out, ", \"" #name "\": %llu, \"" #name "_per_s\": %.1f", (unsigned long long)host->stats.name,             \
            per_second(pair, before->stats.name, host->stats.name));
    QUOIT_VETH_STATS_TABLE(X)
#undef X
    putc('}', out);
}

static void print_json_job(const struct pair *pair, const struct top_ring_job *job, FILE *out)
{
    fprintf(out, "{\"job\": %u, \"program\": ", job->id);
    top_print_json_string(job->program, out);
    fprintf(out, ", \"pid\": %u, \"uid\": %u", job->pid, job->uid);
    if (job->is_seen)
        fprintf(out, ", \"pes\": %u, \"bytes_per_s\": %.1f", job->pe_count, bytes_of_job(pair, job));
    putc('}', out);
}

void top_ring_print_json(const struct top_ring_sample *before, const struct top_ring_sample *now, FILE *out)
{
    const struct pair pair = pair_of(before, now);
    const struct ring_plan *plan = &now->ring.plan;
    fprintf(out, "{\"ring\": \"%s\", \"interval_s\": %.6f, \"rate_bytes_per_s\": %llu, \"links\": [", plan->name,
            pair.seconds, (unsigned long long)plan->knobs.rate_bytes_per_s);
    bool is_first = true;
    for (uint32_t link = 0; link < plan->host_count; link++) {
        is_first &= !print_json_link(&pair, link, QUOIT_RIGHT, is_first, out);
        is_first &= !print_json_link(&pair, link, QUOIT_LEFT, is_first, out);
    }
    fprintf(out, "], \"hosts\": [");
    for (uint32_t host = ring_host_begin(plan); host < ring_host_end(plan); host++) {
        fprintf(out, "%s", host > ring_host_begin(plan) ? ", " : "");
        print_json_host(&pair, host, out);
    }
    fprintf(out, "], \"jobs\": [");
    for (uint32_t i = 0; i < now->job_count; i++) {
        fprintf(out, "%s", i ? ", " : "");
        print_json_job(&pair, &now->jobs[i], out);
    }
    fprintf(out, "]}\n");
}
