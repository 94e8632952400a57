/* SPDX-License-Identifier: BSD-3-Clause */
#include "top.h"

#include <pwd.h>
#include <string.h>
#include <sys/stat.h>

#include "boot/picture.h"
#include "boot/wait_desc.h"
#include "env/clock.h"
#include "ring/route.h"

#define NS_PER_S     1e9
#define NAME_COLUMNS 40 /* a longer name moves the rest of its line */
#define USER_BYTES   33 /* of a user's name, with its zero */

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
    int name_columns; /* of hosts, in text */
};

/* The difference of two counts, of which the second may have been read slightly too early. */
static double per_second(uint64_t before, uint64_t now, double seconds)
{
    return now > before && seconds > 0 ? (double)(now - before) / seconds : 0;
}

/* Between the two looks at a host, by its own clock; 0: it did not answer both. */
static double seconds_of(const struct pair *pair, uint32_t host)
{
    const struct top_host *before = &pair->before->hosts[host], *now = &pair->now->hosts[host];
    bool is_known = before->is_known && now->is_known && now->taken_ns > before->taken_ns;
    return is_known ? (double)(now->taken_ns - before->taken_ns) / NS_PER_S : 0;
}

/* With a part of a job, hosts of other machines are not shown. */
static bool is_shown(const struct job_view *job, uint32_t host)
{
    return !job->is_part || job->hosts[host].front;
}

static int name_columns(const struct job_view *job)
{
    size_t columns = 9;
    for (uint32_t host = 0; host < job->config.host_count; host++)
        if (is_shown(job, host) && strlen(job->hosts[host].name) > columns)
            columns = strlen(job->hosts[host].name);
    return columns < NAME_COLUMNS ? (int)columns : NAME_COLUMNS;
}

static struct rate rate_of(const struct pair *pair, uint32_t from, enum quoit_side side)
{
    const struct quoit_direction *a = &pair->before->hosts[from].survey.directions[side];
    const struct quoit_direction *b = &pair->now->hosts[from].survey.directions[side];
    double seconds = seconds_of(pair, from);
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

/* So many that "NAME -> NAME" fits. */
static int direction_columns(const struct pair *pair)
{
    return pair->name_columns > 9 ? 2 * pair->name_columns + 4 : 20;
}

static void print_direction(const struct pair *pair, uint32_t from, enum quoit_side side, FILE *out)
{
    char names[2 * QUOIT_HOST_NAME_BYTES + 8], bytes[32], speed[40];
    const struct job_host *hosts = pair->job->hosts;
    uint32_t to = quoit_layout_neighbour(&hosts[from].layout, side), link = side == QUOIT_RIGHT ? from : to;
    const struct quoit_direction *now = &pair->now->hosts[from].survey.directions[side];
    const bool is_known = pair->now->hosts[from].is_known;
    if (!is_shown(pair->job, from))
        return;
    snprintf(names, sizeof names, "%s -> %s", hosts[from].name, hosts[to].name);
    fprintf(out, "%s%4u  %-*s ", is_known && now->is_up ? "" : (const char[]){TOP_MARK_TROUBLE, '\0'}, link,
            direction_columns(pair), names);
    if (!is_known) {
        fprintf(out, "does not answer\n");
        return;
    }
    struct rate rate = rate_of(pair, from, side);
    snprintf(speed, sizeof speed, "%s/s", quoit_survey_format_bytes(rate.bytes, bytes));
    fprintf(out, "%-5s %12s %11.0f %9.0f %11.0f %9.0f %7.0f%% %6llu\n", now->is_up ? "up" : "down", speed,
            rate.messages, rate.relays, rate.doorbells, rate.resends, 100 * rate.asleep,
            (unsigned long long)now->down_count);
}

static void describe(void *arg, uint32_t from, enum quoit_side side, char text_out[QUOIT_PICTURE_TEXT_BYTES])
{
    char bytes[32];
    const struct pair *pair = arg;
    struct rate rate = rate_of(pair, from, side);
    if (!pair->now->hosts[from].is_known)
        snprintf(text_out, QUOIT_PICTURE_TEXT_BYTES, "?");
    else if (pair->now->hosts[from].survey.directions[side].is_up)
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
    const struct quoit_network_survey *a = &pair->before->hosts[host].survey.network;
    const struct quoit_network_survey *b = &pair->now->hosts[host].survey.network;
    double seconds = seconds_of(pair, host);
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

static void print_network(const struct pair *pair, uint32_t host, FILE *out)
{
    char puts[40], gets[40], messages[40];
    struct network_rate rate = network_rate_of(pair, host);
    uint64_t lost_count = pair->now->hosts[host].survey.network.lost_count;
    const bool is_known = pair->now->hosts[host].is_known;
    fprintf(out, "%s%-*s ", is_known && lost_count == 0 ? "" : (const char[]){TOP_MARK_TROUBLE, '\0'},
            pair->name_columns, pair->job->hosts[host].name);
    if (is_known)
        fprintf(out, "%9.0f %12s %9.0f %12s %11.0f %12s %7.0f%% %5llu\n", rate.puts, speed_text(rate.put_bytes, puts),
                rate.gets, speed_text(rate.get_bytes, gets), rate.messages, speed_text(rate.message_bytes, messages),
                100 * rate.asleep, (unsigned long long)lost_count);
    else
        fprintf(out, "does not answer\n");
}

static void print_networks(const struct pair *pair, FILE *out)
{
    fprintf(out, "\n%c%-*s %9s %12s %9s %12s %11s %12s %8s %5s\n", TOP_MARK_HEADING, pair->name_columns, "host",
            "puts/s", "bytes", "gets/s", "bytes", "messages/s", "bytes", "asleep", "lost");
    for (uint32_t host = 0; host < pair->job->config.host_count; host++)
        if (is_shown(pair->job, host))
            print_network(pair, host, out);
}

static uint32_t host_of(const struct pair *pair, uint32_t pe)
{
    return quoit_job_config_host_of_pe(&pair->job->config, pe);
}

static const char *state_of(const struct pair *pair, uint32_t pe)
{
    const struct quoit_pe_survey *now = &pair->now->pes[pe];
    if (!pair->now->hosts[host_of(pair, pe)].is_known)
        return "unknown";
    return now->pid == 0 ? "outside" : now->is_waiting ? "waiting" : "running";
}

/* What it is waiting for can be said. */
static bool is_waiting(const struct pair *pair, uint32_t pe)
{
    return pair->now->hosts[host_of(pair, pe)].is_known && pair->now->pes[pe].is_waiting;
}

/* The file of a PE's program: on another machine it has the same path. */
static void find_executable(const struct pair *pair, uint32_t pe, char path_out[QUOIT_SUMMARY_PATH_BYTES])
{
    const struct job_view *job = pair->job;
    path_out[0] = '\0';
    if (!job->summary) {
        snprintf(path_out, QUOIT_SUMMARY_PATH_BYTES, "/proc/%u/exe", pair->now->pes[pe].pid);
        return;
    }
    uint32_t program = quoit_summary_pe(&job->config, job->summary, pe)->program;
    if (program < QUOIT_SUMMARY_PROGRAMS_MAX)
        snprintf(path_out, QUOIT_SUMMARY_PATH_BYTES, "%.*s", QUOIT_SUMMARY_PATH_BYTES - 1,
                 job->summary->programs[program]);
}

/* Names of variables come from the file of the program, which is the user's. */
static void describe_wait_desc(const struct pair *pair, uint32_t pe, char text_out[QUOIT_WAIT_DESC_TEXT_BYTES])
{
    char executable[QUOIT_SUMMARY_PATH_BYTES];
    find_executable(pair, pe, executable);
    quoit_wait_desc_describe(&pair->now->pes[pe].wait_desc, executable, text_out);
    for (char *c = text_out; *c; c++)
        if (*c < ' ' || *c > '~')
            *c = '?';
}

static void print_pe(const struct pair *pair, uint32_t pe, FILE *out)
{
    char wait_desc[QUOIT_WAIT_DESC_TEXT_BYTES];
    const struct quoit_pe_survey *now = &pair->now->pes[pe];
    const bool is_known = pair->now->hosts[host_of(pair, pe)].is_known;
    fprintf(out, "%s%4u  %-*s %8u  %-8s", is_known ? "" : (const char[]){TOP_MARK_TROUBLE, '\0'}, pe,
            pair->name_columns, pair->job->hosts[host_of(pair, pe)].name, is_known ? now->pid : 0, state_of(pair, pe));
    if (is_waiting(pair, pe)) {
        describe_wait_desc(pair, pe, wait_desc);
        fprintf(out, " %-32s %10.3f s %s", now->call, (double)now->waiting_ns / NS_PER_S, wait_desc);
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
    if (job->is_part)
        fprintf(out, "the part of this machine; quoit top shows the whole job where oshrun was started\n");
}

static void print_links(const struct pair *pair, FILE *out)
{
    const struct job_view *job = pair->job;
    for (uint32_t host = 0; host < job->config.host_count && !job->is_part; host++)
        if (job->hosts[host].layout.ring.first == host)
            quoit_picture_print(&(struct quoit_picture){.hosts = job->hosts[host].layout.ring,
                                                        .indent = " ",
                                                        .describe = describe,
                                                        .arg = (void *)(uintptr_t)pair},
                                out);
    fprintf(out, "\n%c%4s  %-*s %-5s %12s %11s %9s %11s %9s %8s %6s\n", TOP_MARK_HEADING, "link",
            direction_columns(pair), "direction", "state", "bytes", "messages/s", "relays/s", "doorbells/s",
            "resends/s", "asleep", "downs");
    for (uint32_t link = 0; link < job->config.host_count; link++) {
        if (!quoit_layout_has_links(&job->hosts[link].layout))
            continue;
        print_direction(pair, sender(pair, link, QUOIT_RIGHT), QUOIT_RIGHT, out);
        print_direction(pair, sender(pair, link, QUOIT_LEFT), QUOIT_LEFT, out);
    }
}

static bool has_links(const struct job_view *job)
{
    for (uint32_t host = 0; host < job->config.host_count; host++)
        if (quoit_layout_has_links(&job->hosts[host].layout))
            return true;
    return false;
}

void top_print_text(const struct job_view *job, const struct top_sample *before, const struct top_sample *now,
                    FILE *out)
{
    struct pair pair = {job, before, now, name_columns(job)};
    print_job(job, now->now_ns, out);
    if (has_links(job)) {
        putc('\n', out);
        print_links(&pair, out);
    }
    if (quoit_job_config_has_network(&job->config))
        print_networks(&pair, out);
    fprintf(out, "\n%c%4s  %-*s %8s  %-8s %-32s %12s\n", TOP_MARK_HEADING, "PE", pair.name_columns, "host", "pid",
            "state", "call", "waiting");
    for (uint32_t pe = 0; pe < job->config.pe_count; pe++)
        if (is_shown(job, host_of(&pair, pe)))
            print_pe(&pair, pe, out);
}

void top_print_json_string(const char *text, FILE *out)
{
    putc('"', out);
    for (; *text; text++)
        fprintf(out, "%s%c", *text == '"' || *text == '\\' ? "\\" : "", *text);
    putc('"', out);
}

/* Whose oshrun it is; the number of a user without a name. */
static const char *name_user(const struct job_view *job, char text_out[USER_BYTES])
{
    char path[32];
    struct stat facts;
    snprintf(path, sizeof path, "/proc/%d", (int)job->pid);
    if (stat(path, &facts) != 0)
        return "?"; /* it has just ended */
    const struct passwd *user = getpwuid(facts.st_uid);
    if (user)
        snprintf(text_out, USER_BYTES, "%s", user->pw_name);
    else
        snprintf(text_out, USER_BYTES, "%u", facts.st_uid);
    return text_out;
}

static void print_json_job(const struct job_view *job, uint64_t now_ns, FILE *out)
{
    char user[USER_BYTES];
    fprintf(out, "\"job\": %d, \"user\": ", (int)job->pid);
    top_print_json_string(name_user(job, user), out);
    fprintf(out, ", \"program\": ");
    top_print_json_string(job->program, out);
    fprintf(out, ", \"hosts\": %u, \"pes\": %u, \"lanes\": %u, \"running_s\": %.3f, \"whole\": %s",
            job->config.host_count, job->config.pe_count, job->config.lane_count,
            (double)(now_ns - job->start_ns) / NS_PER_S, job->is_part ? "false" : "true");
}

/* With `separator` before it, which is a comma from then on. */
static void begin_json(const char **separator, FILE *out)
{
    fprintf(out, "%s{", *separator);
    *separator = ", ";
}

static void print_json_direction(const struct pair *pair, uint32_t from, enum quoit_side side, const char **separator,
                                 FILE *out)
{
    struct rate rate = rate_of(pair, from, side);
    if (!pair->now->hosts[from].is_known)
        return;
    begin_json(separator, out);
    quoit_survey_print_direction(&pair->now->hosts[from].survey.directions[side], out);
    fprintf(out,
            ", \"bytes_per_s\": %.1f, \"messages_per_s\": %.1f, \"relays_per_s\": %.1f, \"doorbells_per_s\": %.1f, "
            "\"resends_per_s\": %.1f, \"asleep\": %.3f}",
            rate.bytes, rate.messages, rate.relays, rate.doorbells, rate.resends, rate.asleep);
}

static void print_json_network(const struct pair *pair, uint32_t host, const char **separator, FILE *out)
{
    struct network_rate rate = network_rate_of(pair, host);
    if (!pair->now->hosts[host].is_known)
        return;
    begin_json(separator, out);
    quoit_survey_print_network(&pair->now->hosts[host].survey.network, out);
    fprintf(out,
            ", \"puts_per_s\": %.1f, \"put_bytes_per_s\": %.1f, \"gets_per_s\": %.1f, \"get_bytes_per_s\": %.1f, "
            "\"messages_per_s\": %.1f, \"message_bytes_per_s\": %.1f, \"asleep\": %.3f}",
            rate.puts, rate.put_bytes, rate.gets, rate.get_bytes, rate.messages, rate.message_bytes, rate.asleep);
}

static void print_json_host(const struct pair *pair, uint32_t host, const char **separator, FILE *out)
{
    if (!is_shown(pair->job, host))
        return;
    begin_json(separator, out);
    fprintf(out, "\"host\": %u, \"name\": ", host);
    top_print_json_string(pair->job->hosts[host].name, out);
    fprintf(out, ", \"answers\": %s}", pair->now->hosts[host].is_known ? "true" : "false");
}

static void print_json_pe(const struct pair *pair, uint32_t pe, const char **separator, FILE *out)
{
    char wait_desc[QUOIT_WAIT_DESC_TEXT_BYTES];
    const struct quoit_pe_survey *now = &pair->now->pes[pe];
    uint32_t host = host_of(pair, pe);
    if (!is_shown(pair->job, host))
        return;
    begin_json(separator, out);
    fprintf(out, "\"pe\": %u, \"host\": %u, \"pid\": %u, \"state\": \"%s\"", pe, host,
            pair->now->hosts[host].is_known ? now->pid : 0, state_of(pair, pe));
    if (is_waiting(pair, pe)) {
        fprintf(out, ", \"call\": ");
        top_print_json_string(now->call, out);
        fprintf(out, ", \"waiting_s\": %.6f, \"for\": ", (double)now->waiting_ns / NS_PER_S);
        describe_wait_desc(pair, pe, wait_desc);
        top_print_json_string(wait_desc[0] ? wait_desc + strlen(" for ") : wait_desc, out);
    }
    putc('}', out);
}

void top_print_json(const struct job_view *job, const struct top_sample *before, const struct top_sample *now,
                    FILE *out)
{
    struct pair pair = {.job = job, .before = before, .now = now};
    const uint32_t host_count = job->config.host_count;
    putc('{', out);
    print_json_job(job, now->now_ns, out);
    fprintf(out, ", \"interval_s\": %.6f, \"machines\": [", (double)(now->now_ns - before->now_ns) / NS_PER_S);
    const char *separator = "";
    for (uint32_t host = 0; host < host_count; host++)
        print_json_host(&pair, host, &separator, out);
    fprintf(out, "], \"links\": [");
    separator = "";
    for (uint32_t link = 0; link < host_count; link++) {
        if (!quoit_layout_has_links(&job->hosts[link].layout))
            continue;
        print_json_direction(&pair, sender(&pair, link, QUOIT_RIGHT), QUOIT_RIGHT, &separator, out);
        print_json_direction(&pair, sender(&pair, link, QUOIT_LEFT), QUOIT_LEFT, &separator, out);
    }
    fprintf(out, "], \"network\": [");
    separator = "";
    for (uint32_t host = 0; host < host_count && quoit_job_config_has_network(&job->config); host++)
        print_json_network(&pair, host, &separator, out);
    fprintf(out, "], \"PEs\": [");
    separator = "";
    for (uint32_t pe = 0; pe < job->config.pe_count; pe++)
        print_json_pe(&pair, pe, &separator, out);
    fprintf(out, "]}\n");
}

void top_print_list(const struct job_view *jobs, uint32_t job_count, bool is_json, FILE *out)
{
    uint64_t now_ns = quoit_clock_now_ns();
    fprintf(out, is_json ? "[" : "%8s %-12s %6s %6s %10s  %s\n", "pid", "user", "PEs", "hosts", "running", "program");
    for (uint32_t i = 0; i < job_count; i++) {
        const struct job_view *job = &jobs[i];
        char user[USER_BYTES];
        if (is_json) {
            fprintf(out, "%s{", i ? ", " : "");
            print_json_job(job, now_ns, out);
            putc('}', out);
        } else {
            fprintf(out, "%8d %-12s %6u %6u %8.1f s  %s%s\n", (int)job->pid, name_user(job, user), job->config.pe_count,
                    job->config.host_count, (double)(now_ns - job->start_ns) / NS_PER_S, job->program,
                    job->is_part ? " (the part of this machine)" : "");
        }
    }
    fprintf(out, is_json ? "]\n" : "");
}
