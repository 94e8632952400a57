/* SPDX-License-Identifier: BSD-3-Clause */
#include "ring_arguments.h"
#include "base/log.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/options.h"
#include "veth/frame.h"

#define MTU_MIN    1280u /* of IPv6 */
#define LINE_BYTES 512   /* of a configuration file */
/* First bytes of addresses that no host may have, like 0. */
#define LOOPBACK_FIRST  127u
#define MULTICAST_FIRST 224u

int ring_bad_usage(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    quoit_say_va(format, args);
    va_end(args);
    return RING_STATUS_USAGE;
}

bool ring_parse_number(const char *text, uint64_t least, uint64_t most, uint32_t *number_out)
{
    uint64_t number;
    if (!quoit_parse_uint(text, &number) || number < least || number > most)
        return false;
    *number_out = (uint32_t)number;
    return true;
}

static bool parse_text(const char *text, size_t bytes, char *text_out)
{
    size_t length = strlen(text);
    if (length == 0 || length >= bytes)
        return false;
    memcpy(text_out, text, length + 1);
    return true;
}

/* [USER:]NAME */
static bool parse_name(struct ring_arguments *arguments, const char *text)
{
    const char *name;
    arguments->uid = quoit_share_user(text, &name);
    return arguments->uid != UINT32_MAX && strspn(name, RING_NAME_LETTERS) == strlen(name) &&
           parse_text(name, sizeof arguments->plan.name, arguments->plan.name) &&
           parse_text(text, sizeof arguments->given, arguments->given);
}

static bool parse_hosts(struct ring_arguments *arguments, const char *text)
{
    arguments->has_host_count = true;
    return ring_parse_number(text, 2, RING_HOSTS_MAX, &arguments->plan.host_count);
}

static bool parse_host(struct ring_arguments *arguments, const char *text)
{
    arguments->has_host = true;
    return ring_parse_number(text, 0, RING_HOSTS_MAX - 1, &arguments->plan.host);
}

static bool parse_left(struct ring_arguments *arguments, const char *text)
{
    return parse_text(text, sizeof arguments->plan.devices[QUOIT_LEFT], arguments->plan.devices[QUOIT_LEFT]);
}

static bool parse_right(struct ring_arguments *arguments, const char *text)
{
    return parse_text(text, sizeof arguments->plan.devices[QUOIT_RIGHT], arguments->plan.devices[QUOIT_RIGHT]);
}

static bool parse_config(struct ring_arguments *arguments, const char *text)
{
    return parse_text(text, sizeof arguments->config, arguments->config);
}

static bool parse_subnet(struct ring_arguments *arguments, const char *text)
{
    char address[20];
    struct in_addr network;
    const char *slash = strchr(text, '/');
    if (!slash || slash - text >= (ptrdiff_t)sizeof address ||
        !ring_parse_number(slash + 1, 8, 30, &arguments->plan.prefix))
        return false;
    snprintf(address, sizeof address, "%.*s", (int)(slash - text), text);
    if (inet_pton(AF_INET, address, &network) != 1)
        return false;
    arguments->plan.address = ntohl(network.s_addr);
    uint32_t first = arguments->plan.address >> 24;
    return first != 0 && first != LOOPBACK_FIRST && first < MULTICAST_FIRST &&
           (arguments->plan.address & (UINT32_MAX >> arguments->plan.prefix)) == 0;
}

static bool parse_mtu(struct ring_arguments *arguments, const char *text)
{
    return ring_parse_number(text, MTU_MIN, QUOIT_VETH_MTU_MAX, &arguments->plan.mtu);
}

static bool parse_rate(struct ring_arguments *arguments, const char *text)
{
    return quoit_parse_bytes(text, &arguments->plan.knobs.rate_bytes_per_s);
}

static bool parse_offload(struct ring_arguments *arguments, const char *text)
{
    uint64_t value;
    if (!quoit_parse_bool(text, &value))
        return false;
    arguments->plan.has_offload = value != 0;
    return true;
}

static bool parse_queues(struct ring_arguments *arguments, const char *text)
{
    return ring_parse_number(text, 1, QUOIT_VETH_CHANNELS_MAX, &arguments->plan.queue_count);
}

static bool parse_dma_bytes(struct ring_arguments *arguments, const char *text)
{
    if (strcmp(text, "never") != 0)
        return quoit_parse_bytes(text, &arguments->plan.dma_bytes);
    arguments->plan.dma_bytes = QUOIT_VETH_DMA_NEVER;
    return true;
}

static bool parse_jobs(struct ring_arguments *arguments, const char *text)
{
    arguments->plan.allows_all = strcmp(text, "all") == 0;
    return arguments->plan.allows_all || strcmp(text, "own") == 0;
}

static bool parse_user_jobs(struct ring_arguments *arguments, const char *text)
{
    return ring_parse_number(text, 1, RING_JOBS_PER_USER_MAX, &arguments->plan.jobs_per_user);
}

static bool parse_ethernet_share(struct ring_arguments *arguments, const char *text)
{
    return ring_parse_number(text, 1, 99, &arguments->plan.ethernet_percent);
}

enum { OF_UP = 1, OF_JOIN = 2 };

static const struct option {
    const char *name;
    bool (*parse)(struct ring_arguments *arguments, const char *text);
    const char *allowed;
    unsigned commands; /* that have it: OF_...; 0: all */
} options[] = {
    {"--ring", parse_name, "[USER:]NAME, the name of up to 31 letters, digits and _.-, of a user who exists", 0},
    {"--hosts", parse_hosts, "2 to 64", OF_UP | OF_JOIN},
    {"--subnet", parse_subnet, "a network of hosts such as 10.77.0.0/24, with no bit set behind the prefix of 8 to 30",
     OF_UP | OF_JOIN},
    {"--mtu", parse_mtu, "1280 to 65000", OF_UP | OF_JOIN},
    {"--link-rate", parse_rate, "bytes per second, such as 2G", OF_UP},
    {"--offload", parse_offload, "yes or no", OF_UP | OF_JOIN},
    {"--queues", parse_queues, "1 to 8", OF_UP | OF_JOIN},
    {"--dma-bytes", parse_dma_bytes, "never, or a size such as 16K", OF_UP | OF_JOIN},
    {"--jobs", parse_jobs, "own or all", OF_UP},
    {"--user-jobs", parse_user_jobs, "1 to 31", OF_UP},
    {"--ethernet-share", parse_ethernet_share, "1 to 99 percent", OF_UP},
    {"--host", parse_host, "0 to 63, below --hosts", OF_JOIN},
    {"--left", parse_left, "a device such as /dev/ntb0", OF_JOIN},
    {"--right", parse_right, "a device such as /dev/ntb1", OF_JOIN},
    {"--config", parse_config, "a file", OF_JOIN},
};
#define OPTION_COUNT (sizeof options / sizeof options[0])

static const struct option *find_option(const char *name, size_t length)
{
    for (size_t i = 0; i < OPTION_COUNT; i++)
        if (strlen(options[i].name) == length && strncmp(options[i].name, name, length) == 0)
            return &options[i];
    return NULL;
}

static bool belongs(const struct option *option, const char *command)
{
    return option->commands == 0 || ((option->commands & OF_UP) && strcmp(command, "up") == 0) ||
           ((option->commands & OF_JOIN) && strcmp(command, "join") == 0);
}

/* Parses the option at *at, and its value. An exit status, or -1: no error. */
static int parse_option(struct ring_arguments *arguments, int argc, char **argv, int *at)
{
    char *equals = strchr(argv[*at], '=');
    size_t length = equals ? (size_t)(equals - argv[*at]) : strlen(argv[*at]);
    const struct option *option = find_option(argv[*at], length);
    if (!option)
        return ring_bad_usage("there is no option %s (see --help)", argv[*at]);
    if (!belongs(option, arguments->command))
        return ring_bad_usage("%s belongs to: quoit ring %s", option->name,
                              option->commands == OF_UP     ? "up"
                              : option->commands == OF_JOIN ? "join"
                                                            : "up, quoit ring join");
    if (!equals && *at + 1 == argc)
        return ring_bad_usage("%s needs a value: %s", option->name, option->allowed);
    const char *value = equals ? equals + 1 : argv[++*at];
    if (!option->parse(arguments, value))
        return ring_bad_usage("%s \"%s\": allowed is %s", option->name, value, option->allowed);
    return -1;
}

static int parse_words(struct ring_arguments *arguments, int argc, char **argv)
{
    for (int i = 2; i < argc; i++) {
        if (strcmp(argv[i], "--") == 0) {
            arguments->words = argv + i + 1;
            return -1;
        }
        if (strcmp(argv[i], "--json") == 0) {
            arguments->is_json = true;
        } else if (argv[i][0] == '-') {
            int status = parse_option(arguments, argc, argv, &i);
            if (status >= 0)
                return status;
        } else if (!arguments->number) {
            arguments->number = argv[i];
        } else {
            return ring_bad_usage("\"%s\" is one word too many; a command stands behind --", argv[i]);
        }
    }
    return -1;
}

/* The configuration file: lines "option = value", the option without its dashes */

static char *trim(char *text)
{
    text += strspn(text, " \t");
    size_t length = strlen(text);
    while (length > 0 && strchr(" \t\r\n", text[length - 1]))
        text[--length] = 0;
    return text;
}

static int parse_line(struct ring_arguments *arguments, const char *path, unsigned number, char *line)
{
    char word[LINE_BYTES + 2];
    line[strcspn(line, "#")] = 0;
    char *name = trim(line), *equals = strchr(name, '=');
    if (*name == 0)
        return -1;
    if (!equals)
        return ring_bad_usage("%s:%u: \"%s\": a line is: option = value", path, number, name);
    *equals = 0;
    const char *value = trim(equals + 1);
    snprintf(word, sizeof word, "--%s", trim(name));
    const struct option *option = find_option(word, strlen(word));
    if (!option || !belongs(option, "join") || option->parse == parse_config)
        return ring_bad_usage("%s:%u: there is no option \"%s\" (quoit ring --help)", path, number, word + 2);
    if (!option->parse(arguments, value))
        return ring_bad_usage("%s:%u: %s \"%s\": allowed is %s", path, number, word + 2, value, option->allowed);
    return -1;
}

static int parse_file(struct ring_arguments *arguments, const char *path, bool is_required)
{
    char line[LINE_BYTES];
    int status = -1;
    FILE *file = fopen(path, "re");
    if (!file)
        return errno == ENOENT && !is_required ? -1 : ring_bad_usage("%s: %s", path, strerror(errno));
    for (unsigned number = 1; status < 0 && fgets(line, sizeof line, file); number++)
        status = strchr(line, '\n') || feof(file)
                     ? parse_line(arguments, path, number, line)
                     : ring_bad_usage("%s:%u: the line is longer than %d characters", path, number, LINE_BYTES - 2);
    fclose(file);
    return status;
}

int ring_arguments_parse(struct ring_arguments *arguments, int argc, char **argv)
{
    struct ring_arguments first = *arguments;
    int status = parse_words(&first, argc, argv); /* for --config; the command line overrides the file */
    if (status < 0 && strcmp(arguments->command, "join") == 0)
        status = parse_file(arguments, first.config[0] ? first.config : RING_CONFIG, first.config[0] != 0);
    return status < 0 ? parse_words(arguments, argc, argv) : status;
}
