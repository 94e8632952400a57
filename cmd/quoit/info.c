/* SPDX-License-Identifier: BSD-3-Clause */
/* quoit info - facts available before a job starts, with the environment and the given options applied. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/options.h"
#include "base/log.h"
#include "base/json.h"
#include "base/version.h"
#include "boot/info.h"
#include "net/net.h"
#include "command.h"
#include "parts.h"
#include "prefix.h"
#include "reach.h"

#define CMA_TEXT_BYTES 80

static void print_help(void)
{
    fputs("usage: quoit info [paths|schedules|networks] [--json] [OPTION]...\n"
          "\n"
          "Prints version, parts with their versions and files, build, machine, every option with its value and\n"
          "source, the transport from PE 0 to the others, the copy methods between PEs of one host, and limits.\n"
          "Options are those of oshrun (oshrun --help), such as --hosts 5 -n 10. Printed alone are with\n"
          "  paths                    the copy methods: which one each size takes, and why\n"
          "  schedules                those of collectives between the hosts of a network\n"
          "  networks                 what --network could join the hosts by: the driver, provider and device\n"
          "                           that auto takes first, and the others\n"
          "  networks --host a,b      which of these machines reach which, at which addresses, what a job of\n"
          "                           them takes, and what is in the way\n"
          "\n"
          "  --json                   print JSON\n"
          "  --help                   print this\n",
          stdout);
}

static int refuse(const char *text)
{
    quoit_say("%s", text);
    return 2;
}

/* Takes one option of oshrun that describes a job: "--name value", "--name=value", or a flag. */
static bool take(struct quoit_options *options, int argc, char **argv, int *at, char *problem)
{
    char name[64], shown[80];
    const char *text = argv[*at] + 1 + (argv[*at][1] == '-'), *equals = strchr(text, '=');
    snprintf(name, sizeof name, "%.*s", equals ? (int)(equals - text) : (int)strlen(text), text);
    snprintf(shown, sizeof shown, "--%s", name);
    enum quoit_option_id id = quoit_option_find(name, NULL);
    snprintf(problem, QUOIT_OPTION_PROBLEM_BYTES, "there is no option %s (see --help)", argv[*at]);
    if (argv[*at][0] != '-' || id == QUOIT_OPT_COUNT || quoit_options_table[id].type == QUOIT_OPTION_FLAG)
        return false;
    const char *value = equals ? equals + 1 : "1";
    if (!equals && quoit_options_table[id].type != QUOIT_OPTION_BOOL) {
        snprintf(problem, QUOIT_OPTION_PROBLEM_BYTES, "%s needs a value", argv[*at]);
        if (*at + 1 == argc)
            return false;
        value = argv[++*at];
    }
    return quoit_options_set(options, id, value, QUOIT_FROM_COMMAND_LINE, shown, problem);
}

static void say(void *arg, const char *text)
{
    (void)arg;
    quoit_say("%s", text);
}

/* Tries cma on a child; the kernel then allows it between PEs too. Returns the text to print. */
static const char *try_cma(char text_out[CMA_TEXT_BYTES])
{
    uint64_t word = 0x51756f6974; /* the child has it at the same address */
    int ends[2];
    snprintf(text_out, CMA_TEXT_BYTES, "could not be tried");
    if (pipe(ends) != 0)
        return text_out;
    pid_t pid = fork();
    if (pid == 0) {
        char end;
        close(ends[1]);
        _exit(read(ends[0], &end, 1) == 0 ? 0 : 1); /* lives until the other end is closed */
    }
    struct quoit_copy_place place = {.here = (char *)&word, .there = (uintptr_t)&word, .pid = (uint32_t)pid};
    int problem = pid > 0 ? quoit_copy_probe_cma(&place, word) : 0;
    close(ends[0]);
    close(ends[1]);
    if (pid < 0 || waitpid(pid, NULL, 0) != pid)
        return text_out;
    if (problem)
        snprintf(text_out, CMA_TEXT_BYTES, "forbidden: %s", strerror(problem));
    else
        snprintf(text_out, CMA_TEXT_BYTES, "works");
    return text_out;
}

#define NETWORKS_MAX 48
#define NAMES_MAX    QUOIT_JOB_HOSTS_MAX

/* The machines of --host, "NAME[:N],...", each once; a name with several colons is an address, also in brackets. The
 * list is cut into the names. Returns their count. */
static uint32_t split_machines(char *list, const char *names_out[NAMES_MAX])
{
    uint32_t count = 0;
    for (char *name = strsep(&list, ","); name && count < NAMES_MAX; name = strsep(&list, ",")) {
        char *colon = strchr(name, ':'), *bracket = strchr(name, ']');
        if (colon && !strchr(colon + 1, ':'))
            *colon = '\0';
        if (name[0] == '[' && bracket) {
            *bracket = '\0';
            name++;
        }
        uint32_t same = 0;
        while (same < count && strcmp(names_out[same], name) != 0)
            same++;
        if (same == count && name[0] != '\0')
            names_out[count++] = name;
    }
    return count;
}

static void add_machines(struct quoit_schedules_key *key, const char *list)
{
    const char *names[NAMES_MAX];
    char *copy = strdup(list);
    uint32_t count = copy ? split_machines(copy, names) : 0;
    for (uint32_t i = 0; i < count; i++)
        quoit_schedules_key_add(key, names[i]);
    free(copy);
}

/* The hosts of the job, what joins them, and the table for them. */
static void find_schedules(const struct quoit_options *options, struct quoit_info *info,
                           struct quoit_schedules_key *key)
{
    const struct quoit_option_value *values = options->values;
    const char *machines = values[QUOIT_OPT_HOST].text;
    char problem[QUOIT_TUNED_PROBLEM_BYTES];
    quoit_schedules_key_begin(key, options);
    if (machines[0])
        add_machines(key, machines);
    else
        quoit_schedules_key_add_own(key, (uint32_t)values[QUOIT_OPT_HOSTS].number);
    info->job.host_count = key->host_count;
    if (machines[0] ? strcmp(values[QUOIT_OPT_DRIVER].text, "linux") != 0
                    : strcmp(values[QUOIT_OPT_NETWORK].text, "ring") != 0)
        info->job.protocol = QUOIT_PROTOCOL_NETWORK;
    info->schedules = key;
    if (quoit_job_config_has_network(&info->job) &&
        !quoit_schedules_load(&info->job.schedules, values[QUOIT_OPT_SCHEDULES].text, key, problem))
        say(NULL, problem);
}

static const char *text_or_null(const struct quoit_options *options, enum quoit_option_id id)
{
    const char *text = options->values[id].text;
    return text[0] ? text : NULL;
}

static uint32_t first_usable(const struct quoit_net_choice *choices, uint32_t count)
{
    uint32_t i = 0;
    while (i < count && !choices[i].is_usable)
        i++;
    return i;
}

static int print_networks(const struct quoit_options *options, bool is_json)
{
    struct quoit_net_choice choices[NETWORKS_MAX];
    const char *driver = options->values[QUOIT_OPT_NETWORK].text;
    const struct quoit_net_config config = {.driver = strcmp(driver, "ring") == 0 ? "auto" : driver,
                                            .provider = text_or_null(options, QUOIT_OPT_NETWORK_PROVIDER),
                                            .device = text_or_null(options, QUOIT_OPT_NETWORK_DEVICE)};
    uint32_t count = quoit_net_survey(&config, choices, NETWORKS_MAX);
    uint32_t taken = first_usable(choices, count);
    bool is_auto = strcmp(config.driver, "auto") == 0;
    char order[QUOIT_NET_PROBLEM_BYTES] = "";
    struct quoit_json json;
    if (is_auto)
        quoit_net_explain_auto(order);
    if (!is_json) {
        printf("networks\n");
        if (is_auto)
            printf("  auto     %s\n", order);
        for (uint32_t i = 0; i < count; i++)
            printf("  %-8s %-8s %-16s %-10s %s\n", i == taken ? "taken" : "", choices[i].driver, choices[i].provider,
                   choices[i].device, choices[i].reason);
        return 0;
    }
    quoit_json_start(&json, stdout);
    quoit_json_open_object(&json, NULL);
    if (is_auto)
        quoit_json_text(&json, "auto", order);
    quoit_json_open_array(&json, "networks");
    for (uint32_t i = 0; i < count; i++) {
        quoit_json_open_object(&json, NULL);
        quoit_json_bool(&json, "taken", i == taken);
        quoit_json_bool(&json, "usable", choices[i].is_usable);
        quoit_json_text(&json, "driver", choices[i].driver);
        quoit_json_text(&json, "provider", choices[i].provider);
        quoit_json_text(&json, "device", choices[i].device);
        quoit_json_text(&json, "reason", choices[i].reason);
        quoit_json_close(&json);
    }
    quoit_json_close(&json);
    quoit_json_close(&json);
    return 0;
}

/* Of several machines, which reach one another. */
static int print_reach(const struct quoit_options *options, bool is_json)
{
    const char *names[NAMES_MAX];
    char *copy = strdup(options->values[QUOIT_OPT_HOST].text);
    uint32_t count = copy ? split_machines(copy, names) : 0;
    int status = count > 0 && count <= REACH_HOSTS_MAX ? reach_print(options, names, count, is_json)
                                                       : refuse("--host: 1 to 64 hosts are tested with each other");
    free(copy);
    return status;
}

/* What the options ask for; listens: for the probe of that host. */
static int run_networks(const struct quoit_options *options, const char *listens, bool is_json)
{
    char problem[QUOIT_NET_PROBLEM_BYTES];
    const char *devices = text_or_null(options, QUOIT_OPT_NETWORK_DEVICE);
    const char *ports = text_or_null(options, QUOIT_OPT_NETWORK_PORTS);
    if (!quoit_net_check(devices, ports, problem))
        return refuse(problem);
    if (listens)
        return reach_listen(listens, devices, ports);
    return options->values[QUOIT_OPT_HOST].text[0] ? print_reach(options, is_json) : print_networks(options, is_json);
}

int command_info(int argc, char **argv)
{
    struct quoit_options options;
    char problem[QUOIT_OPTION_PROBLEM_BYTES];
    char paths_problem[QUOIT_TUNED_PROBLEM_BYTES], cma[CMA_TEXT_BYTES], python[PATH_MAX], examples[PATH_MAX];
    bool is_json = false, is_paths = argc > 1 && strcmp(argv[1], "paths") == 0;
    bool is_networks = argc > 1 && strcmp(argv[1], "networks") == 0;
    bool is_schedules = argc > 1 && strcmp(argv[1], "schedules") == 0;
    bool is_probe = is_networks && argc > 3 && strcmp(argv[2], "--listen") == 0; /* reach.h */
    const char *listens = is_probe ? argv[3] : NULL;
    if (is_networks && argc == 5 && strcmp(argv[2], "--call") == 0)
        return reach_call(argv[3], argv[4]);
    quoit_options_default(&options);
    quoit_options_unknown(environ, say, NULL);
    if (!quoit_options_from_environment(&options, environ, problem))
        return refuse(problem);
    for (int i = is_probe ? 4 : is_paths || is_networks || is_schedules ? 2 : 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            print_help();
            return 0;
        }
        if (strcmp(argv[i], "--json") == 0)
            is_json = true;
        else if (!take(&options, argc, argv, &i, problem))
            return refuse(problem);
    }
    if (is_networks)
        return run_networks(&options, listens, is_json);
    struct parts parts;
    parts_find(&parts);
    struct quoit_info info = {
        .version = quoit_version()->text, .parts = parts.rows, .part_count = parts.count, .options = &options};
    struct quoit_schedules_key key;
    find_schedules(&options, &info, &key);
    info.job.pe_count = (uint32_t)options.values[QUOIT_OPT_PES].number;
    if (info.job.pe_count == 0)
        info.job.pe_count = info.job.host_count;
    if (info.job.pe_count < info.job.host_count)
        return refuse("there must be a PE on each host");
    struct quoit_paths paths;
    if (!quoit_paths_load(&paths, options.values[QUOIT_OPT_PATH].text, paths_problem))
        say(NULL, paths_problem);
    info.paths = &paths;
    if (prefix_has(QUOIT_LIBRARY_FOLDER "/quoit/python", python))
        info.python = python;
    if (prefix_has(QUOIT_DATA_FOLDER "/quoit/examples", examples))
        info.examples = examples;
    info.cma = try_cma(cma);
    if (strcmp(cma, "works") != 0 && paths.source == QUOIT_PATHS_TUNED)
        quoit_paths_drop(&paths, QUOIT_COPY_CMA); /* as a job does */
    if (is_paths)
        quoit_info_print_paths(&info, is_json, stdout);
    else if (is_schedules)
        quoit_info_print_schedules(&info, is_json, stdout);
    else
        quoit_info_print(&info, is_json, stdout);
    return 0;
}
