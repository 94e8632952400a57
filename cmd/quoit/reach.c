/* SPDX-License-Identifier: BSD-3-Clause */
#include "reach.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/json.h"
#include "base/log.h"
#include "base/options.h"
#include "prefix.h"

#define WORDS_MAX    (16 * REACH_HOSTS_MAX)
#define NAME_BYTES   128
#define TARGET_BYTES 80 /* of one place */
#define LINE_BYTES   256

struct reach {
    char *list; /* the names, with commas between; oshrun reads it */
    char names[REACH_HOSTS_MAX][NAME_BYTES];
    uint32_t count;
    struct quoit_net_places places[REACH_HOSTS_MAX];
    uint32_t place_counts[REACH_HOSTS_MAX];
    bool is_ready[REACH_HOSTS_MAX];
    struct reach_result results[REACH_HOSTS_MAX][REACH_HOSTS_MAX][QUOIT_NET_PLACES_MAX]; /* from, to, place */
    enum quoit_net_places_verdict verdict;
    struct quoit_net_places_trouble trouble;
    uint8_t taken[REACH_HOSTS_MAX];
};

/* Starting the probes */

struct words {
    const char *list[WORDS_MAX + 1];
    size_t count;
};

static void add(struct words *words, const char *word)
{
    if (words->count < WORDS_MAX)
        words->list[words->count++] = word;
}

/* Two words, if the option is given. */
static void add_option(struct words *words, const struct quoit_options *options, enum quoit_option_id id,
                       const char *name)
{
    if (!options->values[id].text[0])
        return;
    add(words, name);
    add(words, options->values[id].text);
}

struct probes {
    pid_t pid;
    FILE *lines;
    FILE *errors; /* shown where the probes fail; of those that are ended, nobody needs them */
};

/* In the child. oshrun is ended with the process that waits for its lines. */
__attribute__((noreturn)) static void become(const struct words *words, pid_t parent, int lines_fd, int errors_fd)
{
    int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC); /* what the user types is not the probes' */
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() == parent && dup2(nothing, STDIN_FILENO) >= 0 && dup2(lines_fd, STDOUT_FILENO) >= 0 &&
        dup2(errors_fd, STDERR_FILENO) >= 0)
        execv(words->list[0], (char *const *)words->list);
    _exit(127);
}

static bool start(const struct words *words, struct probes *probes_out)
{
    int ends[2];
    pid_t own = getpid();
    probes_out->errors = tmpfile();
    if (!probes_out->errors || pipe2(ends, O_CLOEXEC) != 0)
        return false;
    fflush(NULL);
    probes_out->pid = fork();
    if (probes_out->pid == 0)
        become(words, own, ends[1], fileno(probes_out->errors));
    close(ends[1]);
    probes_out->lines = probes_out->pid > 0 ? fdopen(ends[0], "r") : NULL;
    return probes_out->lines != NULL;
}

/* False: they have failed, and their words are passed on. is_served: they have, and are ended. */
static bool finish(struct probes *probes, bool is_served)
{
    char line[LINE_BYTES];
    int status = 0;
    if (probes->pid <= 0)
        return false;
    if (is_served)
        kill(probes->pid, SIGTERM);
    if (probes->lines)
        fclose(probes->lines);
    waitpid(probes->pid, &status, 0);
    bool is_good = is_served || (WIFEXITED(status) && WEXITSTATUS(status) == 0);
    rewind(probes->errors);
    while (!is_good && fgets(line, sizeof line, probes->errors))
        fputs(line, stderr);
    fclose(probes->errors);
    return is_good;
}

/* oshrun with a probe on each host. targets: NULL, of those that listen. */
static void make_words(const struct reach *reach, const struct quoit_options *options, const char *oshrun,
                       const char *quoit, const char *deed, char (*numbers)[12], const char *targets, struct words *out)
{
    *out = (struct words){.count = 0};
    add(out, oshrun);
    add(out, "--host");
    add(out, reach->list);
    add_option(out, options, QUOIT_OPT_RSH, "--rsh");
    for (uint32_t host = 0; host < reach->count; host++) {
        if (host > 0)
            add(out, ":");
        add(out, "-n");
        add(out, "1");
        add(out, quoit);
        add(out, "info");
        add(out, "networks");
        add(out, deed);
        add(out, numbers[host]);
        if (targets)
            add(out, targets);
        if (!targets) {
            add_option(out, options, QUOIT_OPT_NETWORK_DEVICE, "--network-device");
            add_option(out, options, QUOIT_OPT_NETWORK_PORTS, "--network-ports");
        }
    }
}

/* Their lines */

static void take_place(struct reach *reach, const char *line)
{
    char device[QUOIT_NET_PLACE_DEVICE_BYTES], address[QUOIT_ADDRESS_TEXT_BYTES];
    unsigned host, bits, kind, speed, is_ssh, port;
    if (sscanf(line, "place %u %15s %45s %u %u %u %u %u", &host, device, address, &bits, &kind, &speed, &is_ssh,
               &port) != 8 ||
        host >= reach->count || reach->place_counts[host] == QUOIT_NET_PLACES_MAX)
        return;
    struct quoit_net_place *place = &reach->places[host].list[reach->place_counts[host]++];
    *place = (struct quoit_net_place){.prefix_bits = (uint8_t)bits,
                                      .kind = (uint8_t)kind,
                                      .speed = (uint16_t)speed,
                                      .is_ssh = is_ssh != 0,
                                      .is_open = true};
    (void)quoit_address_parse(address, &place->address);
    place->address.port = htons((uint16_t)port);
    memcpy(place->device, device, sizeof device);
}

static bool take_stack(struct reach *reach, const char *line)
{
    unsigned host;
    unsigned long long stack;
    if (sscanf(line, "stack %u %llx", &host, &stack) != 2 || host >= reach->count || reach->is_ready[host])
        return false;
    reach->is_ready[host] = true;
    reach->places[host].stack = stack;
    return true;
}

static void take_result(struct reach *reach, const char *line)
{
    unsigned from, to, place, kind, detail;
    if (sscanf(line, "result %u %u %u %u %u", &from, &to, &place, &kind, &detail) == 5 && from < reach->count &&
        to < reach->count && place < QUOIT_NET_PLACES_MAX && kind < REACH_UNTRIED)
        reach->results[from][to][place] = (struct reach_result){(enum reach_kind)kind, detail};
}

/* The hosts that a host may call: link-local addresses are of a link that the caller must know. */
static char *make_targets(const struct reach *reach)
{
    size_t bytes = (size_t)reach->count * QUOIT_NET_PLACES_MAX * TARGET_BYTES + 1, used = 0;
    char *text = calloc(1, bytes);
    for (uint32_t host = 0; text && host < reach->count; host++)
        for (uint32_t i = 0; i < reach->place_counts[host]; i++) {
            const struct quoit_net_place *place = &reach->places[host].list[i];
            char address[QUOIT_ADDRESS_TEXT_BYTES];
            quoit_address_print(&place->address, address);
            if (!quoit_address_is_link_local(&place->address))
                used += (size_t)snprintf(text + used, bytes - used, "%s%u/%u/%s/%u", used ? " " : "", host, i, address,
                                         ntohs(place->address.port));
        }
    return text;
}

static bool ask_hosts(struct reach *reach, const struct quoit_options *options, const char *oshrun, const char *quoit)
{
    char numbers[REACH_HOSTS_MAX][12], line[LINE_BYTES], *targets = NULL;
    struct words words;
    struct probes listeners = {.pid = -1}, callers = {.pid = -1};
    uint32_t ready_count = 0;
    bool is_good = false;
    for (uint32_t host = 0; host < reach->count; host++)
        snprintf(numbers[host], sizeof numbers[host], "%u", host);
    make_words(reach, options, oshrun, quoit, "--listen", numbers, NULL, &words);
    if (!start(&words, &listeners))
        return false;
    while (ready_count < reach->count && fgets(line, sizeof line, listeners.lines)) {
        take_place(reach, line);
        ready_count += take_stack(reach, line);
    }
    targets = ready_count == reach->count ? make_targets(reach) : NULL;
    if (targets) {
        make_words(reach, options, oshrun, quoit, "--call", numbers, targets, &words);
        is_good = start(&words, &callers);
        while (is_good && fgets(line, sizeof line, callers.lines))
            take_result(reach, line);
        is_good = finish(&callers, false);
    }
    (void)finish(&listeners, targets != NULL);
    free(targets);
    return is_good;
}

/* Printing */

/* Returns text_out. */
static const char *describe(const struct reach *reach, const struct reach_result *result, char text_out[NAME_BYTES])
{
    switch (result->kind) {
    case REACH_OK:
        snprintf(text_out, NAME_BYTES, "%.2f ms", result->detail / 1e3);
        break;
    case REACH_NO_ANSWER:
        snprintf(text_out, NAME_BYTES, "timed out: a firewall?");
        break;
    case REACH_STALLED:
        snprintf(text_out, NAME_BYTES, "connected, 64 KiB stall: an MTU?");
        break;
    case REACH_OTHER:
        snprintf(text_out, NAME_BYTES, "%.60s answers", reach->names[result->detail % reach->count]);
        break;
    case REACH_ERROR:
        snprintf(text_out, NAME_BYTES, "%s", strerror((int)result->detail));
        break;
    default:
        snprintf(text_out, NAME_BYTES, "not tried");
        break;
    }
    return text_out;
}

static const char *kind_text(const struct quoit_net_place *place)
{
    static const char *const texts[] = {"fabric", "Ethernet", "virtual", "loopback"};
    return texts[place->kind % 4];
}

static bool is_taken(const struct reach *reach, uint32_t host, uint32_t place)
{
    return reach->verdict == QUOIT_NET_PLACES_CHOSEN && reach->taken[host] == place;
}

/* Whether all reach all by what the rule takes. */
static bool is_whole(const struct reach *reach)
{
    for (uint32_t from = 0; from < reach->count && reach->verdict == QUOIT_NET_PLACES_CHOSEN; from++)
        for (uint32_t to = 0; to < reach->count; to++)
            if (from != to && reach->results[from][to][reach->taken[to]].kind != REACH_OK)
                return false;
    return reach->verdict == QUOIT_NET_PLACES_CHOSEN;
}

static void print_places(const struct reach *reach)
{
    for (uint32_t host = 0; host < reach->count; host++)
        for (uint32_t i = 0; i < reach->place_counts[host]; i++) {
            char text[QUOIT_NET_PLACE_TEXT_BYTES], speed[32] = "";
            const struct quoit_net_place *place = &reach->places[host].list[i];
            if (place->speed != 0)
                snprintf(speed, sizeof speed, ", %g Gbit/s", place->speed / 10.0);
            printf("  %-16s %-8s %s, %s%s%s\n", i == 0 ? reach->names[host] : "",
                   is_taken(reach, host, i) ? "taken" : "", quoit_net_place_print(place, text), kind_text(place), speed,
                   place->is_ssh ? ", by ssh" : "");
        }
}

/* A row for each host that calls, a column for each that is called where the rule takes it. */
static void print_matrix(const struct reach *reach)
{
    printf("who reaches whom, there\n  %-16s", "from, to");
    for (uint32_t to = 0; to < reach->count; to++)
        printf(" %10.10s", reach->names[to]);
    for (uint32_t from = 0; from < reach->count; from++) {
        printf("\n  %-16.16s", reach->names[from]);
        for (uint32_t to = 0; to < reach->count; to++) {
            const struct reach_result *result = &reach->results[from][to][reach->taken[to]];
            char text[NAME_BYTES];
            if (from == to)
                snprintf(text, sizeof text, ".");
            else if (result->kind == REACH_OK)
                describe(reach, result, text);
            else
                snprintf(text, sizeof text, "%s", result->kind == REACH_UNTRIED ? "?" : "no");
            printf(" %10.10s", text);
        }
    }
    printf("\n");
}

static void print_failures(const struct reach *reach)
{
    uint32_t count = 0;
    for (uint32_t from = 0; from < reach->count; from++)
        for (uint32_t to = 0; to < reach->count; to++)
            for (uint32_t i = 0; i < reach->place_counts[to] && from != to; i++) {
                const struct reach_result *result = &reach->results[from][to][i];
                char place[QUOIT_NET_PLACE_TEXT_BYTES], text[NAME_BYTES];
                if (result->kind == REACH_OK || result->kind == REACH_UNTRIED)
                    continue;
                if (count++ == 0)
                    printf("who does not reach whom\n");
                printf("  %s to %s, %s: %s\n", reach->names[from], reach->names[to],
                       quoit_net_place_print(&reach->places[to].list[i], place), describe(reach, result, text));
            }
}

static void print_text(const struct reach *reach)
{
    printf("networks of %u hosts\n", reach->count);
    print_places(reach);
    if (reach->verdict == QUOIT_NET_PLACES_CHOSEN)
        print_matrix(reach);
    else
        printf("no network joins all hosts: %s and %s have %s\n", reach->names[reach->trouble.hosts[0]],
               reach->names[reach->trouble.hosts[1]],
               reach->verdict == QUOIT_NET_PLACES_SAME ? "the same address, and nothing else" : "nothing in common");
    print_failures(reach);
}

static void print_json(const struct reach *reach)
{
    static const char *const kinds[] = {"ok", "no answer", "stalled", "another host", "error", "not tried"};
    struct quoit_json json;
    char text[NAME_BYTES];
    quoit_json_start(&json, stdout);
    quoit_json_open_object(&json, NULL);
    quoit_json_bool(&json, "joined", is_whole(reach));
    quoit_json_open_array(&json, "places");
    for (uint32_t host = 0; host < reach->count; host++)
        for (uint32_t i = 0; i < reach->place_counts[host]; i++) {
            const struct quoit_net_place *place = &reach->places[host].list[i];
            char address[QUOIT_ADDRESS_TEXT_BYTES];
            quoit_address_print(&place->address, address);
            quoit_json_open_object(&json, NULL);
            quoit_json_text(&json, "host", reach->names[host]);
            quoit_json_text(&json, "device", place->device);
            quoit_json_text(&json, "address", address);
            quoit_json_count(&json, "prefix", place->prefix_bits);
            quoit_json_text(&json, "kind", kind_text(place));
            quoit_json_count(&json, "megabits", 100ull * place->speed);
            quoit_json_bool(&json, "taken", is_taken(reach, host, i));
            quoit_json_open_array(&json, "reached from");
            for (uint32_t from = 0; from < reach->count; from++) {
                const struct reach_result *result = &reach->results[from][host][i];
                if (from == host)
                    continue;
                quoit_json_open_object(&json, NULL);
                quoit_json_text(&json, "host", reach->names[from]);
                quoit_json_text(&json, "result", kinds[result->kind]);
                quoit_json_text(&json, "text", describe(reach, result, text));
                quoit_json_close(&json);
            }
            quoit_json_close(&json);
            quoit_json_close(&json);
        }
    quoit_json_close(&json);
    quoit_json_close(&json);
}

int reach_print(const struct quoit_options *options, const char *const *names, uint32_t count, bool is_json)
{
    char oshrun[PATH_MAX], quoit[PATH_MAX];
    const struct quoit_net_places *places[REACH_HOSTS_MAX];
    struct reach *reach = calloc(1, sizeof *reach);
    size_t bytes = count * NAME_BYTES + 1, used = 0;
    if (!reach || !(reach->list = calloc(1, bytes)) || !prefix_find("bin/quoit", quoit) ||
        (!prefix_has_program("oshrun", oshrun) && !prefix_find("bin/oshrun", oshrun)))
        return 1;
    reach->count = count;
    for (uint32_t host = 0; host < count; host++) {
        snprintf(reach->names[host], NAME_BYTES, "%s", names[host]);
        used += (size_t)snprintf(reach->list + used, bytes - used, "%s%s", host ? "," : "", reach->names[host]);
        places[host] = &reach->places[host];
        for (uint32_t from = 0; from < count; from++)
            for (uint32_t i = 0; i < QUOIT_NET_PLACES_MAX; i++)
                reach->results[from][host][i].kind = REACH_UNTRIED;
    }
    bool is_good = ask_hosts(reach, options, oshrun, quoit);
    if (is_good) {
        reach->verdict = quoit_net_places_choose(places, count, true, reach->taken, &reach->trouble);
        (is_json ? print_json : print_text)(reach);
        is_good = is_whole(reach);
    }
    free(reach->list);
    free(reach);
    return is_good ? 0 : 1;
}
