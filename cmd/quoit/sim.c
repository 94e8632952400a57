/* SPDX-License-Identifier: BSD-3-Clause */
/* quoit sim - runs seeds, and prints the results and how to replay a failure. */
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/json.h"
#include "base/log.h"
#include "base/options.h"
#include "calibrate.h"
#include "command.h"
#include "env/clock.h"
#include "host/schedules.h"
#include "prefix.h"
#include "sim/canary.h"
#include "sim/fault.h"
#include "sim/run.h"

#define PROGRESS_AFTER_NS 2000000000u
#define PROGRESS_EVERY_NS 500000000u
#define WORKLOADS_MAX     32
#define RANDOM_SEED_MAX   1000000000000u /* short enough to be typed again */

struct session {
    struct sim_plan plan;
    uint64_t seed;
    uint64_t seed_count;
    bool is_endless;
    bool is_random; /* of the first seed, printed before anything runs */
    bool is_json;
    bool shows_each;
    bool shows_model;
    bool wants_help;
    bool shows_machine;
    const char *calibrate_folder; /* NULL: not asked for */
    char problem[200];
};

/* Totals over all seeds, by workload. */
struct tally {
    uint64_t seed_count;
    uint64_t silent_count; /* canaries that had no opportunity */
    uint64_t run_counts[WORKLOADS_MAX];
    uint64_t events[WORKLOADS_MAX];
    uint64_t requests[WORKLOADS_MAX];
    uint64_t virtual_ns[WORKLOADS_MAX];
    struct sim_metric metrics[SIM_METRICS_MAX];
    uint32_t metric_count;
};

/* Options: each row sets the field of its name; false with session->problem set if the value is invalid. */

static bool refuse(struct session *session, const char *what, const char *value)
{
    snprintf(session->problem, sizeof session->problem, "%s: %s", what, value);
    return false;
}

static bool set_count(struct session *session, const char *text, uint64_t smallest, uint64_t largest, uint64_t *out)
{
    if (quoit_parse_bytes(text, out) && *out >= smallest && *out <= largest)
        return true;
    snprintf(session->problem, sizeof session->problem, "%s is not a number from %llu to %llu", text,
             (unsigned long long)smallest, (unsigned long long)largest);
    return false;
}

static bool set_count32(struct session *session, const char *text, uint64_t smallest, uint64_t largest, uint32_t *out)
{
    uint64_t value;
    bool is_good = set_count(session, text, smallest, largest, &value);
    if (is_good)
        *out = (uint32_t)value;
    return is_good;
}

static bool set_seed(struct session *session, const char *text)
{
    if (strcmp(text, "random") != 0)
        return set_count(session, text, 0, UINT64_MAX, &session->seed);
    uint64_t entropy;
    if (getrandom(&entropy, sizeof entropy, 0) != sizeof entropy)
        return refuse(session, "the kernel gives no random number", text);
    session->seed = entropy % RANDOM_SEED_MAX;
    session->is_random = true;
    return true;
}

static bool set_seeds(struct session *session, const char *text)
{
    return set_count(session, text, 1, UINT64_MAX, &session->seed_count);
}

static bool set_hosts(struct session *session, const char *text)
{
    return set_count32(session, text, 2, QUOIT_RING_HOSTS_MAX, &session->plan.host_count);
}

static bool set_pes(struct session *session, const char *text)
{
    return set_count32(session, text, 2, 4096, &session->plan.pe_count);
}

static bool set_lanes(struct session *session, const char *text)
{
    bool is_good = set_count32(session, text, 1, QUOIT_LANES_MAX, &session->plan.lane_count);
    uint32_t lanes = session->plan.lane_count;
    return is_good && ((lanes & (lanes - 1)) == 0 || refuse(session, "lanes are 1, 2, 4 or 8", text));
}

static bool set_slots(struct session *session, const char *text)
{
    return set_count32(session, text, QUOIT_RING_SLOTS_MIN, 4096, &session->plan.slot_count);
}

static bool set_chunk(struct session *session, const char *text)
{
    return set_count32(session, text, 64, QUOIT_CHUNK_BYTES_MAX, &session->plan.chunk_bytes) &&
           (session->plan.chunk_bytes % 64 == 0 || refuse(session, "a chunk is a multiple of 64 bytes", text));
}

static bool set_dma_bytes(struct session *session, const char *text)
{
    session->plan.has_own_dma = true;
    return quoit_parse_from_bytes(text, &session->plan.dma_bytes) || refuse(session, "not auto, never or a size", text);
}

static bool set_steps(struct session *session, const char *text)
{
    return set_count32(session, text, 1, 1u << 20, &session->plan.step_count);
}

static bool set_bytes(struct session *session, const char *text)
{
    return set_count(session, text, 1, 1u << 30, &session->plan.bytes);
}

static bool set_clients(struct session *session, const char *text)
{
    return set_count32(session, text, 1, 2, &session->plan.client_count);
}

static bool set_workload(struct session *session, const char *text)
{
    session->plan.workload = sim_workload_find(text);
    return session->plan.workload || refuse(session, "there is no such workload", text);
}

static bool add_fault(struct session *session, const char *text)
{
    const struct sim_fault *fault = sim_fault_find(text);
    session->plan.has_no_faults |= strcmp(text, "none") == 0;
    if (!fault)
        return strcmp(text, "none") == 0 || refuse(session, "there is no such fault", text);
    if (session->plan.fault_count == SIM_FAULTS_MAX)
        return refuse(session, "too many faults", text);
    session->plan.faults[session->plan.fault_count++] = fault;
    return true;
}

static bool set_kind(struct session *session, const char *text, const char *first, const char *second, uint8_t *out)
{
    *out = strcmp(text, second) == 0;
    if (*out || strcmp(text, first) == 0)
        return true;
    snprintf(session->problem, sizeof session->problem, "%s is neither %s nor %s", text, first, second);
    return false;
}

static bool set_protocol(struct session *session, const char *text)
{
    return set_kind(session, text, "queue", "scratchpad", &session->plan.protocol);
}

static bool set_payload(struct session *session, const char *text)
{
    return set_kind(session, text, "dma", "copy", &session->plan.payload);
}

static bool set_barrier(struct session *session, const char *text)
{
    return set_kind(session, text, "auto", "papers", &session->plan.barrier);
}

static bool set_schedules(struct session *session, const char *text)
{
    char problem[QUOIT_SCHEDULES_PROBLEM_BYTES];
    return quoit_schedules_force(text, &session->plan.schedules, problem) || refuse(session, "--schedules", problem);
}

static bool set_descriptors(struct session *session, const char *text)
{
    uint8_t kind = 0;
    bool is_good = set_kind(session, text, "request", "page", &kind);
    session->plan.has_page_dma = kind != 0;
    return is_good;
}

static bool set_hops(struct session *session, const char *text)
{
    return set_count32(session, text, 1, QUOIT_RING_HOSTS_MAX - 1, &session->plan.pattern.hop_count);
}

static bool find_name(const char *text, const char *const names[], unsigned count, unsigned *index_out)
{
    for (*index_out = 0; *index_out < count; ++*index_out)
        if (strcmp(text, names[*index_out]) == 0)
            return true;
    return false;
}

static bool set_issue(struct session *session, const char *text)
{
    static const char *const names[] = {"row", "quiet", "together"};
    unsigned issue;
    if (!find_name(text, names, sizeof names / sizeof names[0], &issue))
        return refuse(session, "not row, quiet or together", text);
    session->plan.pattern.issue = (enum sim_issue)issue;
    return true;
}

static bool set_sender(struct session *session, const char *text)
{
    struct sim_pattern *pattern = &session->plan.pattern;
    pattern->has_all_senders = strcmp(text, "all") == 0;
    return pattern->has_all_senders || set_count32(session, text, 0, QUOIT_RING_HOSTS_MAX - 1, &pattern->sender);
}

static bool set_sends(struct session *session, const char *text)
{
    size_t length = strlen(text);
    if (length == 0 || length > SIM_SENDS_MAX || strspn(text, "rl") != length)
        return refuse(session, "not up to 16 letters r and l", text);
    memcpy(session->plan.pattern.sends, text, length + 1);
    return true;
}

static bool set_device(struct session *session, const char *text)
{
    static const char *const names[SIM_DEVICE_COUNT] = {"papers", "ours", "gigabit"};
    unsigned device;
    if (!find_name(text, names, SIM_DEVICE_COUNT, &device))
        return refuse(session, "not papers, ours or gigabit", text);
    session->plan.pattern.device = (enum sim_device)device;
    return true;
}

static bool set_program(struct session *session, const char *text)
{
    static const char *const names[SIM_PROGRAM_COUNT] = {"driver", "netpipe", "netperf"};
    unsigned program;
    if (!find_name(text, names, SIM_PROGRAM_COUNT, &program))
        return refuse(session, "not driver, netpipe or netperf", text);
    session->plan.pattern.program = (enum sim_program)program;
    return true;
}

static bool set_canary(struct session *session, const char *text)
{
    session->plan.canary = sim_canary_find(text);
    return session->plan.canary || refuse(session, "there is no such canary", text);
}

static bool set_direct(struct session *session, const char *text)
{
    session->plan.has_own_way = true;
    session->plan.has_direct_puts = strcmp(text, "arrived") == 0;
    session->plan.has_posted_puts = strcmp(text, "posted") == 0;
    return session->plan.has_direct_puts || session->plan.has_posted_puts || strcmp(text, "no") == 0 ||
           refuse(session, "--direct is posted, arrived or no", text);
}

static bool set_model(struct session *session, const char *text)
{
    const char *problem;
    session->plan.has_own_window |= strncmp(text, "window_memory_mib", 17) == 0;
    return sim_model_set(&session->plan.model, text, &problem) || refuse(session, problem, text);
}

static bool set_trace(struct session *session, const char *text)
{
    session->plan.trace = fopen(text, "w");
    return session->plan.trace || refuse(session, "cannot be written", text);
}

static bool set_until(struct session *session, const char *text)
{
    session->is_endless = strcmp(text, "stopped") == 0;
    return session->is_endless || refuse(session, "--until knows only \"stopped\"", text);
}

static bool set_json(struct session *session, const char *text)
{
    (void)text;
    return session->is_json = true;
}

static bool set_each(struct session *session, const char *text)
{
    (void)text;
    return session->shows_each = true;
}

static bool set_show_model(struct session *session, const char *text)
{
    (void)text;
    return session->shows_model = true;
}

static bool set_machine(struct session *session, const char *text)
{
    (void)text;
    return session->shows_machine = true;
}

static bool set_calibrate(struct session *session, const char *text)
{
    session->calibrate_folder = text;
    return true;
}

static bool set_help(struct session *session, const char *text)
{
    (void)text;
    return session->wants_help = true;
}

struct option {
    const char *name;
    const char *placeholder; /* NULL: no value */
    const char *sentence;
    bool (*set)(struct session *session, const char *text);
};

static const struct option options[] = {
    {"--seed", "N|random", "first seed (1); random: a new one, which is printed", set_seed},
    {"--seeds", "N", "how many, one after the other (1)", set_seeds},
    {"--until", "stopped", "go on until a run fails, or an interrupt", set_until},
    {"--workload", "NAME", "what the PEs do", set_workload},
    {"--fault", "NAME", "what goes wrong; many times; \"none\": nothing does", add_fault},
    {"--canary", "NAME", "a mistake on purpose, which must be found", set_canary},
    {"--hosts", "N", "hosts of the ring", set_hosts},
    {"--pes", "N", "PEs, in blocks over the hosts", set_pes},
    {"--clients", "N", "jobs that share the links, each with a part of its own: 1 or 2", set_clients},
    {"--lanes", "N", "lanes of each link: 1, 2, 4 or 8", set_lanes},
    {"--slots", "N", "slots of each queue", set_slots},
    {"--chunk", "SIZE", "payload of a slot", set_chunk},
    {"--protocol", "NAME", "queue or scratchpad, as oshrun has them", set_protocol},
    {"--payload", "NAME", "dma or copy: of the protocol scratchpad, and of ethernet", set_payload},
    {"--barrier", "NAME", "auto or papers", set_barrier},
    {"--schedules", "LIST", "of collectives in the workload network, as oshrun has them", set_schedules},
    {"--dma-bytes", "SIZE", "payload from here on goes by DMA; auto: measured; never", set_dma_bytes},
    {"--descriptors", "NAME", "of DMA: request, one for all of it, or page, one a page", set_descriptors},
    {"--steps", "N", "length of the workload", set_steps},
    {"--bytes", "SIZE", "size of a transfer, for workloads that measure (1M)", set_bytes},
    {"--hops", "N", "of put and get: how many hosts to the right (1)", set_hops},
    {"--issue", "NAME",
     "of put, and of DMA by ethernet: row, quiet (each known to be there before the next) or together", set_issue},
    {"--sender", "HOST", "of links, put and get: the host that sends, or all (0)", set_sender},
    {"--sends", "LETTERS", "of turnaround: r and l, the neighbour of each put, over and over (rl)", set_sends},
    {"--device", "NAME", "of ethernet: papers, ours or gigabit (papers)", set_device},
    {"--program", "NAME", "of ethernet: driver (below TCP), netpipe or netperf (driver)", set_program},
    {"--direct", "posted|arrived|no", "whether PEs put to neighbours directly, and how", set_direct},
    {"--model", "NAME=VALUE", "a constant of the cost model, or public: those of public sources alone; many times",
     set_model},
    {"--show-model", NULL, "print the constants with their sources", set_show_model},
    {"--machine", NULL, "measure what copies, wakes and switches cost here, and print JSON", set_machine},
    {"--calibrate", "DIR", "measure this machine, predict emulated rings with that, measure them: a page in DIR",
     set_calibrate},
    {"--trace-text", "FILE", "write every event of the run as a line", set_trace},
    {"--each", NULL, "a line for each seed, with the hash of its trace", set_each},
    {"--json", NULL, "print JSON", set_json},
    {"--help", NULL, "print this", set_help},
};
#define OPTION_COUNT (sizeof options / sizeof options[0])

static void print_help(void)
{
    printf(
        "usage: quoit sim [OPTION]...\n\n"
        "Runs the production code of ring, proxies, fabric and collectives on simulated hosts and links, in virtual\n"
        "time. What is not said is chosen by the seed. When a run fails, prints the command that replays it; status "
        "1.\n\n");
    for (size_t i = 0; i < OPTION_COUNT; i++) {
        char left[40];
        snprintf(left, sizeof left, "%s %s", options[i].name, options[i].placeholder ? options[i].placeholder : "");
        printf("  %-24s %s\n", left, options[i].sentence);
    }
    printf("\nworkloads:\n");
    for (uint32_t i = 0; i < sim_workload_count; i++)
        printf("  %-24s %s%s\n", sim_workloads[i]->name, sim_workloads[i]->sentence,
               sim_workloads[i]->measures ? " (measures)" : "");
    printf("\nfaults:\n");
    for (uint32_t i = 0; i < sim_fault_count; i++)
        printf("  %-24s %s\n", sim_faults[i].name, sim_faults[i].sentence);
    printf("\ncanaries:\n");
    for (uint32_t i = 0; i < sim_canary_count; i++)
        printf("  %-24s %s\n", sim_canaries[i].name, sim_canaries[i].sentence);
}

/* The papers' protocol and barrier end a job that loses a link. */
static bool survives_faults(const struct sim_plan *plan)
{
    const struct quoit_job_config job = {.protocol = plan->protocol, .barrier = plan->barrier};
    bool has_outage = false;
    for (uint32_t i = 0; i < plan->fault_count; i++)
        has_outage |= plan->faults[i]->kind != SIM_FAULT_DELAY;
    return !has_outage || quoit_job_config_has_failover(&job);
}

static bool is_network_plan(const struct sim_plan *plan)
{
    return plan->fault_count == 0 && !plan->canary && (plan->pe_count == 0 || plan->pe_count == plan->host_count);
}

static bool read_options(struct session *session, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        const struct option *option = options;
        while (option < options + OPTION_COUNT && strcmp(option->name, argv[i]) != 0)
            option++;
        if (option == options + OPTION_COUNT)
            return refuse(session, "there is no such option (see --help)", argv[i]);
        if (option->placeholder && i + 1 == argc)
            return refuse(session, "a value is missing", argv[i]);
        if (!option->set(session, option->placeholder ? argv[++i] : ""))
            return false;
    }
    if (session->plan.host_count && session->plan.pe_count && session->plan.pe_count < session->plan.host_count)
        return refuse(session, "there must be a PE on each host", "--pes is less than --hosts");
    if (session->plan.pe_count && !session->plan.host_count)
        return refuse(session, "--pes needs --hosts", "how many PEs a host has follows from both");
    uint32_t host_count = session->plan.host_count ? session->plan.host_count : SIM_HOSTS_MEASURED;
    if (session->plan.pattern.sender >= host_count || session->plan.pattern.hop_count >= host_count)
        return refuse(session, "there are not so many hosts", "--sender and --hops are below --hosts");
    const struct sim_pattern *pattern = &session->plan.pattern;
    if (pattern->device == SIM_DEVICE_GIGABIT && pattern->program == SIM_PROGRAM_DRIVER)
        return refuse(session, "Gigabit Ethernet is measured over TCP only", "--device gigabit needs --program");
    if (session->plan.workload && session->plan.workload->is_network && !is_network_plan(&session->plan))
        return refuse(session, "network", "it has one PE a host, no faults and no canary");
    if (!survives_faults(&session->plan))
        return refuse(session, "links must not be cut", "the papers' protocol and barrier do not survive it");
    return true;
}

/* Running */

static uint32_t workload_index(const struct sim_workload *workload)
{
    uint32_t i = 0;
    while (sim_workloads[i] != workload)
        i++;
    return i;
}

static void add_metrics(struct tally *tally, const struct sim_result *result)
{
    for (uint32_t i = 0; i < result->metric_count; i++) {
        const struct sim_metric *from = &result->metrics[i];
        struct sim_metric *to = &tally->metrics[i];
        if (i >= tally->metric_count) {
            *to = *from;
            tally->metric_count = i + 1;
            continue;
        }
        to->count += from->count;
        to->sum += from->sum;
        to->least = from->least < to->least ? from->least : to->least;
        to->largest = from->largest > to->largest ? from->largest : to->largest;
    }
}

static void describe(const struct sim_config *config, const struct sim_config *second, char *text, size_t bytes)
{
    const struct quoit_job_config *job = &config->job;
    size_t at = (size_t)snprintf(text, bytes, "%s, %u hosts, %u PEs, %u lanes, %u slots of %u bytes, %u steps",
                                 config->workload->name, job->host_count, job->pe_count, job->lane_count,
                                 job->slot_count, job->chunk_bytes, config->step_count);
    if (config->has_direct_puts && at < bytes)
        at += (size_t)snprintf(text + at, bytes - at, ", direct puts that arrive on return");
    if (config->has_posted_puts && at < bytes)
        at += (size_t)snprintf(text + at, bytes - at, ", direct puts");
    if (job->protocol == QUOIT_PROTOCOL_SCRATCHPAD && at < bytes)
        at += (size_t)snprintf(text + at, bytes - at, ", scratchpad");
    for (uint32_t i = 0; i < config->fault_count && at < bytes; i++)
        at += (size_t)snprintf(text + at, bytes - at, ", %s", config->faults[i]->name);
    if (second && at < bytes) {
        at += (size_t)snprintf(text + at, bytes - at, "; and ");
        if (at < bytes)
            describe(second, NULL, text + at, bytes - at);
    }
}

/* The given options, except those that select seeds. */
static void print_replay(FILE *out, uint64_t seed, int argc, char **argv)
{
    fprintf(out, "quoit sim --seed %" PRIu64, seed);
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--seed") == 0 || strcmp(argv[i], "--seeds") == 0 || strcmp(argv[i], "--until") == 0)
            i++;
        else
            fprintf(out, " %s", argv[i]);
    }
}

static void print_failure_json(const struct sim_config *config, const struct sim_result *result, const char *run,
                               int argc, char **argv)
{
    struct quoit_json json;
    char *replay;
    size_t bytes;
    FILE *text = open_memstream(&replay, &bytes);
    if (!text)
        return;
    print_replay(text, config->seed, argc, argv);
    fclose(text);
    quoit_json_start(&json, stdout);
    quoit_json_open_object(&json, NULL);
    quoit_json_bool(&json, "ok", false);
    quoit_json_count(&json, "seed", config->seed);
    quoit_json_text(&json, "run", run);
    quoit_json_text(&json, "failure", result->failure);
    quoit_json_count(&json, "event", result->event_count);
    quoit_json_count(&json, "virtual_ns", result->virtual_ns);
    quoit_json_format(&json, "trace", "%016" PRIx64, result->trace_hash);
    quoit_json_text(&json, "replay", replay);
    quoit_json_close(&json);
    free(replay);
}

static void report_failure(const struct session *session, const struct sim_config *config, const char *text,
                           const struct sim_result *result, int argc, char **argv)
{
    if (session->is_json) {
        print_failure_json(config, result, text, argc, argv);
        return;
    }
    fprintf(stderr,
            "quoit sim: seed %" PRIu64 " fails at event %" PRIu64 ", %.3f ms: %s\n  run: %s\n  trace: %016" PRIx64
            "\n  replay: ",
            config->seed, result->event_count, (double)result->virtual_ns / 1e6, result->failure, text,
            result->trace_hash);
    print_replay(stderr, config->seed, argc, argv);
    fprintf(stderr, "\n");
}

static void print_table(const struct tally *tally, double seconds)
{
    printf("%-12s %8s %12s %12s %14s\n", "workload", "runs", "requests", "events", "virtual ms");
    for (uint32_t i = 0; i < sim_workload_count; i++)
        if (tally->run_counts[i])
            printf("%-12s %8" PRIu64 " %12" PRIu64 " %12" PRIu64 " %14.1f\n", sim_workloads[i]->name,
                   tally->run_counts[i], tally->requests[i], tally->events[i], (double)tally->virtual_ns[i] / 1e6);
    if (tally->metric_count)
        printf("\n%-28s %12s %12s %12s %6s\n", "figure", "mean", "least", "largest", "unit");
    for (uint32_t i = 0; i < tally->metric_count; i++) {
        const struct sim_metric *metric = &tally->metrics[i];
        printf("%-28s %12.2f %12.2f %12.2f %6s\n", metric->name, metric->sum / (double)metric->count, metric->least,
               metric->largest, metric->unit);
    }
    printf("\n%" PRIu64 " seeds passed in %.1f s\n", tally->seed_count, seconds);
}

static void print_json(const struct session *session, const struct tally *tally, double seconds)
{
    struct quoit_json json;
    quoit_json_start(&json, stdout);
    quoit_json_open_object(&json, NULL);
    quoit_json_bool(&json, "ok", true);
    quoit_json_count(&json, "first_seed", session->seed);
    quoit_json_count(&json, "seeds", tally->seed_count);
    quoit_json_number(&json, "seconds", seconds);
    quoit_json_open_object(&json, "workloads");
    for (uint32_t i = 0; i < sim_workload_count; i++) {
        if (!tally->run_counts[i])
            continue;
        quoit_json_open_object(&json, sim_workloads[i]->name);
        quoit_json_count(&json, "runs", tally->run_counts[i]);
        quoit_json_count(&json, "requests", tally->requests[i]);
        quoit_json_count(&json, "events", tally->events[i]);
        quoit_json_count(&json, "virtual_ns", tally->virtual_ns[i]);
        quoit_json_close(&json);
    }
    quoit_json_close(&json);
    quoit_json_open_object(&json, "figures");
    for (uint32_t i = 0; i < tally->metric_count; i++) {
        const struct sim_metric *metric = &tally->metrics[i];
        quoit_json_open_object(&json, metric->name);
        quoit_json_number(&json, "mean", metric->sum / (double)metric->count);
        quoit_json_number(&json, "least", metric->least);
        quoit_json_number(&json, "largest", metric->largest);
        quoit_json_text(&json, "unit", metric->unit);
        quoit_json_close(&json);
    }
    quoit_json_close(&json);
    sim_model_write(&session->plan.model, &json, "model");
    quoit_json_close(&json);
}

static void show_model(const struct session *session)
{
    struct quoit_json json;
    quoit_json_start(&json, stdout);
    if (session->is_json)
        sim_model_write(&session->plan.model, &json, NULL);
    else
        sim_model_print(&session->plan.model, stdout);
}

static void show_progress(const struct tally *tally, uint64_t seed, uint64_t start_ns, uint64_t *last_ns)
{
    uint64_t now_ns = quoit_clock_now_ns();
    if (now_ns - start_ns < PROGRESS_AFTER_NS || now_ns - *last_ns < PROGRESS_EVERY_NS || !isatty(STDERR_FILENO))
        return;
    *last_ns = now_ns;
    fprintf(stderr, "\r%" PRIu64 " seeds passed, at seed %" PRIu64 " ", tally->seed_count, seed);
}

static void count_run(struct tally *tally, const struct sim_config *config, const struct sim_result *result)
{
    uint32_t i = workload_index(config->workload);
    tally->seed_count++;
    tally->run_counts[i]++;
    tally->events[i] += result->event_count;
    tally->requests[i] += result->request_count;
    tally->virtual_ns[i] += result->virtual_ns;
    tally->silent_count += config->canary && !result->has_canary_sung;
    add_metrics(tally, result);
}

/* Blocked during runs, so that an interrupt is handled between two seeds. */
static bool is_interrupted(void)
{
    sigset_t pending;
    return sigpending(&pending) == 0 && (sigismember(&pending, SIGINT) == 1 || sigismember(&pending, SIGTERM) == 1);
}

static void block_interrupts(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigprocmask(SIG_BLOCK, &set, NULL);
}

/* Written if the code under test crashes. */
static char crash_text[2048];

static void on_crash(int signal_number)
{
    (void)signal_number;
    if (write(STDERR_FILENO, crash_text, strlen(crash_text)) < 0)
        _exit(2);
    _exit(1);
}

/* On a stack of its own, since a coroutine that overflows has none left. */
static void catch_crashes(void)
{
    static const int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
    static char stack[16384];
    stack_t place = {.ss_sp = stack, .ss_size = sizeof stack};
    struct sigaction action = {.sa_handler = on_crash, .sa_flags = SA_ONSTACK};
    sigaltstack(&place, NULL);
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++)
        sigaction(signals[i], &action, NULL);
}

static void prepare_crash_text(uint64_t seed, int argc, char **argv)
{
    FILE *text = fmemopen(crash_text, sizeof crash_text, "w");
    if (!text)
        return;
    fprintf(text, "quoit sim: seed %" PRIu64 " crashed the code under test\n  replay: ", seed);
    print_replay(text, seed, argc, argv);
    fprintf(text, "\n");
    fclose(text);
}

static int run_seeds(struct session *session, int argc, char **argv)
{
    uint64_t start_ns = quoit_clock_now_ns();
    uint64_t last_ns = start_ns;
    struct tally tally = {0};
    if (session->is_random)
        fprintf(stderr, "quoit sim: seeds from %" PRIu64 " on\n", session->seed);
    if (session->is_endless)
        block_interrupts();
    catch_crashes();
    for (uint64_t seed = session->seed; session->is_endless || seed - session->seed < session->seed_count; seed++) {
        struct sim_config config, second;
        struct sim_result result;
        char text[600];
        sim_config_choose(&session->plan, seed, &config);
        bool has_second = sim_config_choose_second(&session->plan, &config, &second);
        describe(&config, has_second ? &second : NULL, text, sizeof text);
        prepare_crash_text(seed, argc, argv);
        sim_run(&config, has_second ? &second : NULL, &result);
        if (!result.is_ok) {
            report_failure(session, &config, text, &result, argc, argv);
            return 1;
        }
        count_run(&tally, &config, &result);
        if (session->shows_each) {
            printf("%" PRIu64 " %016" PRIx64 " %" PRIu64 " %s\n", seed, result.trace_hash, result.event_count, text);
        }
        show_progress(&tally, seed, start_ns, &last_ns);
        if (session->is_endless && is_interrupted())
            break;
    }
    double seconds = (double)(quoit_clock_now_ns() - start_ns) / 1e9;
    if (last_ns != start_ns)
        fprintf(stderr, "\n");
    if (session->is_json)
        print_json(session, &tally, seconds);
    else
        print_table(&tally, seconds);
    if (session->plan.canary)
        fprintf(stderr, "quoit sim: the canary was not found (%" PRIu64 " runs had no occasion for it)\n",
                tally.silent_count);
    return 0;
}

static int calibrate(const char *folder)
{
    char quoit[PATH_MAX];
    if (!prefix_find("bin/quoit", quoit))
        return 1;
    return prefix_run_python("figures", (char *[]){"calibrate", quoit, (char *)folder, NULL}, NULL, NULL);
}

int command_sim(int argc, char **argv)
{
    struct session session = {.seed = 1, .seed_count = 1};
    quoit_log_setup(QUOIT_LOG_ERROR,
                    "quoit"); /* warnings of simulated hosts, such as of links that flap, are not for the user */
    sim_plan_default(&session.plan);
    if (!read_options(&session, argc, argv)) {
        fprintf(stderr, "quoit sim: %s\n", session.problem);
        return 2;
    }
    int status = 0;
    if (session.wants_help)
        print_help();
    else if (session.shows_model)
        show_model(&session);
    else if (session.shows_machine)
        status = calibrate_print(stdout) ? 0 : 1;
    else if (session.calibrate_folder)
        status = calibrate(session.calibrate_folder);
    else
        status = run_seeds(&session, argc, argv);
    if (session.plan.trace)
        fclose(session.plan.trace);
    return status;
}
