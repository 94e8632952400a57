/* SPDX-License-Identifier: BSD-3-Clause */
#include "top.h"

#include <string.h>

#include "boot/picture.h"
#include "boot/wish.h"
#include "env/clock.h"
#include "ring/route.h"

#define NS_PER_S 1e9

/* Rates of one direction between two samples, per second. */
struct rate {
    double bytes;
    double messages;
    double relays;
    double doorbells;
    double resends;
    double asleep; /* share of the time, over all service threads of the sending host */
};

struct pair {
    const struct job_view *job;
    const struct top_sample *before;
    const struct top_sample *now;
};

/* The difference of two counts, of which the second may have been read slightly too early. */
static double per_second(uint64_t before, uint64_t now, double seconds)
{
    return now > before && seconds > 0 ? (double)(now - before) / seconds : 0;
}

static struct rate rate_of(const struct pair *pair, uint32_t from, enum quoit_side side)
{
    const struct quoit_direction *a = &pair->before->directions[QUOIT_SIDE_COUNT * from + side];
    const struct quoit_direction *b = &pair->now->directions[QUOIT_SIDE_COUNT * from + side];
    double seconds = (double)(pair->now->now_ns - pair->before->now_ns) / NS_PER_S;
    double asleep = per_second(a->sleep_ns, b->sleep_ns, seconds) / NS_PER_S / pair->job->config.lane_count;
    return (struct rate){
        .bytes = per_second(a->byte_count, b->byte_count, seconds),
        .messages = per_second(a->message_count, b->message_count, seconds),
        .relays = per_second(a->relay_count, b->relay_count, seconds),
        .doorbells = per_second(a->doorbell_count, b->doorbell_count, seconds),
        .resends = per_second(a->resend_count, b->resend_count, seconds),
        .asleep = asleep > 1 ? 1 : asleep,
    };
}

/* The host and side of a link's direction. */
static uint32_t sender(const struct pair *pair, uint32_t link, enum quoit_side side)
{
    return side == QUOIT_RIGHT ? link : quoit_layout_neighbour(&pair->job->hosts[link].layout, QUOIT_RIGHT);
}

static void print_direction(const struct pair *pair, uint32_t from, enum quoit_side side, FILE *out)
{
    char names[40], bytes[32], speed[40];
    const struct quoit_direction *now = &pair->now->directions[QUOIT_SIDE_COUNT * from + side];
    struct rate rate = rate_of(pair, from, side);
    snprintf(names, sizeof names, "host%u -> host%u", now->from, now->to);
    snprintf(speed, sizeof speed, "%s/s", quoit_survey_format_bytes(rate.bytes, bytes));
    fprintf(out, "%s%4u  %-20s %-5s %12s %11.0f %9.0f %11.0f %9.0f %7.0f%% %6llu\n",
            now->is_up ? "" : (const char[]){TOP_MARK_TROUBLE, '\0'}, now->link, names, now->is_up ? "up" : "down",
            speed, rate.messages, rate.relays, rate.doorbells, rate.resends, 100 * rate.asleep,
            (unsigned long long)now->down_count);
}

static void describe(void *arg, uint32_t from, enum quoit_side side, char text_out[QUOIT_PICTURE_TEXT_BYTES])
{
    char bytes[32];
    const struct pair *pair = arg;
    struct rate rate = rate_of(pair, from, side);
    if (pair->now->directions[QUOIT_SIDE_COUNT * from + side].is_up)
        snprintf(text_out, QUOIT_PICTURE_TEXT_BYTES, "%s/s, %.0f msgs/s", quoit_survey_format_bytes(rate.bytes, bytes),
                 rate.messages);
    else
        snprintf(text_out, QUOIT_PICTURE_TEXT_BYTES, "DOWN");
}

/* Rates of one host on a network between two samples, per second. */
struct network_rate {
    double puts, put_bytes, gets, get_bytes, messages, message_bytes;
    double asleep; /* share of the time */
};

static struct network_rate network_rate_of(const struct pair *pair, uint32_t host)
{
    const struct quoit_network_survey *a = &pair->before->networks[host], *b = &pair->now->networks[host];
    double seconds = (double)(pair->now->now_ns - pair->before->now_ns) / NS_PER_S;
    double asleep = per_second(a->sleep_ns, b->sleep_ns, seconds) / NS_PER_S;
    return (struct network_rate){
        .puts = per_second(a->put_count, b->put_count, seconds),
        .put_bytes = per_second(a->put_bytes, b->put_bytes, seconds),
        .gets = per_second(a->get_count, b->get_count, seconds),
        .get_bytes = per_second(a->get_bytes, b->get_bytes, seconds),
        .messages = per_second(a->message_count, b->message_count, seconds),
        .message_bytes = per_second(a->message_bytes, b->message_bytes, seconds),
        .asleep = asleep > 1 ? 1 : asleep,
    };
}

static const char *speed_text(double bytes, char text[40])
{
    char number[32];
    snprintf(text, 40, "%s/s", quoit_survey_format_bytes(bytes, number));
    return text;
}

static void print_networks(const struct pair *pair, FILE *out)
{
    fprintf(out, "\n%c%-9s %9s %12s %9s %12s %11s %12s %8s %5s\n", TOP_MARK_HEADING, "host", "puts/s", "bytes",
            "gets/s", "bytes", "messages/s", "bytes", "asleep", "lost");
    for (uint32_t host = 0; host < pair->job->config.host_count; host++) {
        char puts[40], gets[40], messages[40];
        struct network_rate rate = network_rate_of(pair, host);
        uint64_t lost_count = pair->now->networks[host].lost_count;
        fprintf(out, "%shost%-5u %9.0f %12s %9.0f %12s %11.0f %12s %7.0f%% %5llu\n",
                lost_count == 0 ? "" : (const char[]){TOP_MARK_TROUBLE, '\0'}, host, rate.puts,
                speed_text(rate.put_bytes, puts), rate.gets, speed_text(rate.get_bytes, gets), rate.messages,
                speed_text(rate.message_bytes, messages), 100 * rate.asleep, (unsigned long long)lost_count);
    }
}

static const char *state_of(const struct quoit_pe_survey *pe)
{
    return pe->pid == 0 ? "outside" : pe->is_waiting ? "waiting" : "running";
}

static struct quoit_wish_host host_of(void *arg, uint32_t pe)
{
    const struct job_view *job = arg;
    const struct job_host *host = &job->hosts[quoit_job_config_host_of_pe(&job->config, pe)];
    return (struct quoit_wish_host){.layout = &host->layout, .front = host->front, .memory_fd = host->memory_fd};
}

/* Names of variables come from the file of the program, which is the user's. */
static void describe_wish(const struct pair *pair, uint32_t pe, char text_out[QUOIT_WISH_TEXT_BYTES])
{
    char executable[32];
    const struct quoit_pe_survey *now = &pair->now->pes[pe];
    const struct quoit_wish_job view = {
        .pe_count = pair->job->config.pe_count, .host_of = host_of, .arg = (void *)(uintptr_t)pair->job};
    snprintf(executable, sizeof executable, "/proc/%u/exe", now->pid);
    quoit_wish_describe(&view, pe, &now->wish, executable, text_out);
    for (char *c = text_out; *c; c++)
        if (*c < ' ' || *c > '~')
            *c = '?';
}

static void print_pe(const struct pair *pair, uint32_t pe, FILE *out)
{
    char wish[QUOIT_WISH_TEXT_BYTES];
    const struct quoit_pe_survey *now = &pair->now->pes[pe];
    fprintf(out, "%4u  host%-5u %8u  %-8s", pe, quoit_job_config_host_of_pe(&pair->job->config, pe), now->pid,
            state_of(now));
    if (now->is_waiting) {
        describe_wish(pair, pe, wish);
        fprintf(out, " %-32s %10.3f s %s", now->call, (double)now->waiting_ns / NS_PER_S, wish);
    }
    putc('\n', out);
}

static void print_job(const struct job_view *job, uint64_t now_ns, FILE *out)
{
    const struct quoit_job_config *config = &job->config;
    fprintf(out, "%cquoit top  job %d  %s  %u PE%s on %u host%s  %u lane%s  running %.1f s\n", TOP_MARK_HEADING,
            (int)job->pid, job->program, config->pe_count, config->pe_count == 1 ? "" : "s", config->host_count,
            config->host_count == 1 ? "" : "s", config->lane_count, config->lane_count == 1 ? "" : "s",
            (double)(now_ns - job->start_ns) / NS_PER_S);
}

void top_print_text(const struct job_view *job, const struct top_sample *before, const struct top_sample *now,
                    FILE *out)
{
    struct pair pair = {job, before, now};
    print_job(job, now->now_ns, out);
    if (now->directions) {
        putc('\n', out);
        for (uint32_t host = 0; host < job->config.host_count; host++)
            if (job->hosts[host].layout.ring.first == host)
                quoit_picture_print(&(struct quoit_picture){.hosts = job->hosts[host].layout.ring,
                                                            .indent = " ",
                                                            .describe = describe,
                                                            .arg = &pair},
                                    out);
        fprintf(out, "\n%c%4s  %-20s %-5s %12s %11s %9s %11s %9s %8s %6s\n", TOP_MARK_HEADING, "link", "direction",
                "state", "bytes", "messages/s", "relays/s", "doorbells/s", "resends/s", "asleep", "downs");
        for (uint32_t link = 0; link < job->config.host_count; link++) {
            if (!quoit_layout_has_links(&job->hosts[link].layout))
                continue;
            print_direction(&pair, sender(&pair, link, QUOIT_RIGHT), QUOIT_RIGHT, out);
            print_direction(&pair, sender(&pair, link, QUOIT_LEFT), QUOIT_LEFT, out);
        }
    }
    if (now->networks)
        print_networks(&pair, out);
    fprintf(out, "\n%c%4s  %-9s %8s  %-8s %-32s %12s\n", TOP_MARK_HEADING, "PE", "host", "pid", "state", "call",
            "waiting");
    for (uint32_t pe = 0; pe < job->config.pe_count; pe++)
        print_pe(&pair, pe, out);
}

void top_print_json_string(const char *text, FILE *out)
{
    putc('"', out);
    for (; *text; text++)
        fprintf(out, "%s%c", *text == '"' || *text == '\\' ? "\\" : "", *text);
    putc('"', out);
}

static void print_json_job(const struct job_view *job, uint64_t now_ns, FILE *out)
{
    fprintf(out, "\"job\": %d, \"program\": ", (int)job->pid);
    top_print_json_string(job->program, out);
    fprintf(out, ", \"hosts\": %u, \"pes\": %u, \"lanes\": %u, \"running_s\": %.3f", job->config.host_count,
            job->config.pe_count, job->config.lane_count, (double)(now_ns - job->start_ns) / NS_PER_S);
}

static void print_json_direction(const struct pair *pair, uint32_t from, enum quoit_side side, FILE *out)
{
    struct rate rate = rate_of(pair, from, side);
    putc('{', out);
    quoit_survey_print_direction(&pair->now->directions[QUOIT_SIDE_COUNT * from + side], out);
    fprintf(out,
            ", \"bytes_per_s\": %.1f, \"messages_per_s\": %.1f, \"relays_per_s\": %.1f, \"doorbells_per_s\": %.1f, "
            "\"resends_per_s\": %.1f, \"asleep\": %.3f}",
            rate.bytes, rate.messages, rate.relays, rate.doorbells, rate.resends, rate.asleep);
}

static void print_json_network(const struct pair *pair, uint32_t host, FILE *out)
{
    struct network_rate rate = network_rate_of(pair, host);
    putc('{', out);
    quoit_survey_print_network(&pair->now->networks[host], out);
    fprintf(out,
            ", \"puts_per_s\": %.1f, \"put_bytes_per_s\": %.1f, \"gets_per_s\": %.1f, \"get_bytes_per_s\": %.1f, "
            "\"messages_per_s\": %.1f, \"message_bytes_per_s\": %.1f, \"asleep\": %.3f}",
            rate.puts, rate.put_bytes, rate.gets, rate.get_bytes, rate.messages, rate.message_bytes, rate.asleep);
}

static void print_json_pe(const struct pair *pair, uint32_t pe, FILE *out)
{
    char wish[QUOIT_WISH_TEXT_BYTES];
    const struct quoit_pe_survey *now = &pair->now->pes[pe];
    fprintf(out, "{\"pe\": %u, \"host\": %u, \"pid\": %u, \"state\": \"%s\"", pe,
            quoit_job_config_host_of_pe(&pair->job->config, pe), now->pid, state_of(now));
    if (now->is_waiting) {
        fprintf(out, ", \"call\": ");
        top_print_json_string(now->call, out);
        fprintf(out, ", \"waiting_s\": %.6f, \"for\": ", (double)now->waiting_ns / NS_PER_S);
        describe_wish(pair, pe, wish);
        top_print_json_string(wish[0] ? wish + strlen(" for ") : wish, out);
    }
    putc('}', out);
}

void top_print_json(const struct job_view *job, const struct top_sample *before, const struct top_sample *now,
                    FILE *out)
{
    struct pair pair = {job, before, now};
    putc('{', out);
    print_json_job(job, now->now_ns, out);
    fprintf(out, ", \"interval_s\": %.6f, \"links\": [", (double)(now->now_ns - before->now_ns) / NS_PER_S);
    const char *separator = "";
    for (uint32_t link = 0; link < job->config.host_count; link++) {
        if (!quoit_layout_has_links(&job->hosts[link].layout))
            continue;
        fputs(separator, out);
        separator = ", ";
        print_json_direction(&pair, sender(&pair, link, QUOIT_RIGHT), QUOIT_RIGHT, out);
        fprintf(out, ", ");
        print_json_direction(&pair, sender(&pair, link, QUOIT_LEFT), QUOIT_LEFT, out);
    }
    fprintf(out, "], \"network\": [");
    for (uint32_t host = 0; now->networks && host < job->config.host_count; host++) {
        fprintf(out, "%s", host ? ", " : "");
        print_json_network(&pair, host, out);
    }
    fprintf(out, "], \"PEs\": [");
    for (uint32_t pe = 0; pe < job->config.pe_count; pe++) {
        fprintf(out, "%s", pe ? ", " : "");
        print_json_pe(&pair, pe, out);
    }
    fprintf(out, "]}\n");
}

void top_print_list(const struct job_view *jobs, uint32_t job_count, bool is_json, FILE *out)
{
    uint64_t now_ns = quoit_clock_now_ns();
    fprintf(out, is_json ? "[" : "%8s %6s %6s %10s  %s\n", "pid", "PEs", "hosts", "running", "program");
    for (uint32_t i = 0; i < job_count; i++) {
        const struct job_view *job = &jobs[i];
        if (is_json) {
            fprintf(out, "%s{", i ? ", " : "");
            print_json_job(job, now_ns, out);
            putc('}', out);
        } else {
            fprintf(out, "%8d %6u %6u %8.1f s  %s\n", (int)job->pid, job->config.pe_count, job->config.host_count,
                    (double)(now_ns - job->start_ns) / NS_PER_S, job->program);
        }
    }
    fprintf(out, is_json ? "]\n" : "");
}
