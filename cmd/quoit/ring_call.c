/* SPDX-License-Identifier: BSD-3-Clause */
#include "ring_call.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/options.h"
#include "veth/frame.h"

#define MTU_MIN    1280u /* of IPv6 */
#define LINE_BYTES 512   /* of a configuration file */

int ring_refuse(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fprintf(stderr, "quoit ring: ");
    vfprintf(stderr, format, args);
    fprintf(stderr, "\n");
    va_end(args);
    return RING_STATUS_USAGE;
}

bool ring_take_number(const char *text, uint64_t least, uint64_t most, uint32_t *number_out)
{
    uint64_t number;
    if (!quoit_parse_uint(text, &number) || number < least || number > most)
        return false;
    *number_out = (uint32_t)number;
    return true;
}

static bool take_text(const char *text, size_t bytes, char *text_out)
{
    size_t length = strlen(text);
    if (length == 0 || length >= bytes)
        return false;
    memcpy(text_out, text, length + 1);
    return true;
}

static bool take_name(struct ring_call *call, const char *text)
{
    return strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-") == strlen(text) &&
           take_text(text, sizeof call->plan.name, call->plan.name);
}

static bool take_hosts(struct ring_call *call, const char *text)
{
    call->has_host_count = true;
    return ring_take_number(text, 2, RING_HOSTS_MAX, &call->plan.host_count);
}

static bool take_host(struct ring_call *call, const char *text)
{
    call->has_host = true;
    return ring_take_number(text, 0, RING_HOSTS_MAX - 1, &call->plan.host);
}

static bool take_left(struct ring_call *call, const char *text)
{
    return take_text(text, sizeof call->plan.devices[QUOIT_LEFT], call->plan.devices[QUOIT_LEFT]);
}

static bool take_right(struct ring_call *call, const char *text)
{
    return take_text(text, sizeof call->plan.devices[QUOIT_RIGHT], call->plan.devices[QUOIT_RIGHT]);
}

static bool take_config(struct ring_call *call, const char *text)
{
    return take_text(text, sizeof call->config, call->config);
}

static bool take_subnet(struct ring_call *call, const char *text)
{
    char address[20];
    struct in_addr network;
    const char *slash = strchr(text, '/');
    if (!slash || slash - text >= (ptrdiff_t)sizeof address || !ring_take_number(slash + 1, 8, 30, &call->plan.prefix))
        return false;
    snprintf(address, sizeof address, "%.*s", (int)(slash - text), text);
    if (inet_pton(AF_INET, address, &network) != 1)
        return false;
    call->plan.address = ntohl(network.s_addr);
    return (call->plan.address & (UINT32_MAX >> call->plan.prefix)) == 0;
}

static bool take_mtu(struct ring_call *call, const char *text)
{
    return ring_take_number(text, MTU_MIN, QUOIT_VETH_MTU_MAX, &call->plan.mtu);
}

static bool take_rate(struct ring_call *call, const char *text)
{
    return quoit_parse_bytes(text, &call->plan.knobs.rate_bytes_per_s);
}

static bool take_offload(struct ring_call *call, const char *text)
{
    uint64_t value;
    if (!quoit_parse_bool(text, &value))
        return false;
    call->plan.has_offload = value != 0;
    return true;
}

static bool take_queues(struct ring_call *call, const char *text)
{
    return ring_take_number(text, 1, QUOIT_VETH_CHANNELS_MAX, &call->plan.queue_count);
}

static bool take_dma_bytes(struct ring_call *call, const char *text)
{
    if (strcmp(text, "never") != 0)
        return quoit_parse_bytes(text, &call->plan.dma_bytes);
    call->plan.dma_bytes = QUOIT_VETH_DMA_NEVER;
    return true;
}

static bool take_jobs(struct ring_call *call, const char *text)
{
    call->plan.serves_others = strcmp(text, "all") == 0;
    return call->plan.serves_others || strcmp(text, "own") == 0;
}

static bool take_user_jobs(struct ring_call *call, const char *text)
{
    return ring_take_number(text, 1, RING_USER_JOBS_MAX, &call->plan.jobs_of_user);
}

static bool take_ethernet_share(struct ring_call *call, const char *text)
{
    return ring_take_number(text, 1, 99, &call->plan.ethernet_percent);
}

enum { OF_UP = 1, OF_JOIN = 2 };

static const struct option {
    const char *name;
    bool (*take)(struct ring_call *call, const char *text);
    const char *allowed;
    unsigned commands; /* to which it belongs; 0: all */
} options[] = {
    {"--ring", take_name, "a name of up to 31 letters, digits and _.-", 0},
    {"--hosts", take_hosts, "2 to 64", OF_UP | OF_JOIN},
    {"--subnet", take_subnet, "a network such as 10.77.0.0/24, with no bit set behind the prefix of 8 to 30",
     OF_UP | OF_JOIN},
    {"--mtu", take_mtu, "1280 to 65000", OF_UP | OF_JOIN},
    {"--link-rate", take_rate, "bytes per second, such as 2G", OF_UP},
    {"--offload", take_offload, "yes or no", OF_UP | OF_JOIN},
    {"--queues", take_queues, "1 to 8", OF_UP | OF_JOIN},
    {"--dma-bytes", take_dma_bytes, "never, or a size such as 16K", OF_UP | OF_JOIN},
    {"--jobs", take_jobs, "own or all", OF_UP},
    {"--user-jobs", take_user_jobs, "1 to 31", OF_UP},
    {"--ethernet-share", take_ethernet_share, "1 to 99 percent", OF_UP},
    {"--host", take_host, "0 to 63, below --hosts", OF_JOIN},
    {"--left", take_left, "a device such as /dev/ntb0", OF_JOIN},
    {"--right", take_right, "a device such as /dev/ntb1", OF_JOIN},
    {"--config", take_config, "a file", OF_JOIN},
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

/* Takes option `*at` and its value; an exit status, or -1: go on. */
static int take_option(struct ring_call *call, int argc, char **argv, int *at)
{
    char *equals = strchr(argv[*at], '=');
    size_t length = equals ? (size_t)(equals - argv[*at]) : strlen(argv[*at]);
    const struct option *option = find_option(argv[*at], length);
    if (!option)
        return ring_refuse("there is no option %s (see --help)", argv[*at]);
    if (!belongs(option, call->command))
        return ring_refuse("%s belongs to: quoit ring %s", option->name,
                           option->commands == OF_UP     ? "up"
                           : option->commands == OF_JOIN ? "join"
                                                         : "up, quoit ring join");
    if (!equals && *at + 1 == argc)
        return ring_refuse("%s needs a value: %s", option->name, option->allowed);
    const char *value = equals ? equals + 1 : argv[++*at];
    if (!option->take(call, value))
        return ring_refuse("%s \"%s\": allowed is %s", option->name, value, option->allowed);
    return -1;
}

static int take_words(struct ring_call *call, int argc, char **argv)
{
    for (int i = 2; i < argc; i++) {
        if (strcmp(argv[i], "--") == 0) {
            call->words = argv + i + 1;
            return -1;
        }
        if (strcmp(argv[i], "--json") == 0) {
            call->is_json = true;
        } else if (argv[i][0] == '-') {
            int status = take_option(call, argc, argv, &i);
            if (status >= 0)
                return status;
        } else if (!call->number) {
            call->number = argv[i];
        } else {
            return ring_refuse("\"%s\" is one word too many; a command stands behind --", argv[i]);
        }
    }
    return -1;
}

/* The configuration file: lines "option = value", with the options' names without dashes. */

static char *trim(char *text)
{
    text += strspn(text, " \t");
    size_t length = strlen(text);
    while (length > 0 && strchr(" \t\r\n", text[length - 1]))
        text[--length] = 0;
    return text;
}

static int take_line(struct ring_call *call, const char *path, unsigned number, char *line)
{
    char word[LINE_BYTES + 2];
    line[strcspn(line, "#")] = 0;
    char *name = trim(line), *equals = strchr(name, '=');
    if (*name == 0)
        return -1;
    if (!equals)
        return ring_refuse("%s:%u: \"%s\": a line is: option = value", path, number, name);
    *equals = 0;
    const char *value = trim(equals + 1);
    snprintf(word, sizeof word, "--%s", trim(name));
    const struct option *option = find_option(word, strlen(word));
    if (!option || !belongs(option, "join") || option->take == take_config)
        return ring_refuse("%s:%u: there is no option \"%s\" (quoit ring --help)", path, number, word + 2);
    if (!option->take(call, value))
        return ring_refuse("%s:%u: %s \"%s\": allowed is %s", path, number, word + 2, value, option->allowed);
    return -1;
}

static int take_file(struct ring_call *call, const char *path, bool is_required)
{
    char line[LINE_BYTES];
    int status = -1;
    FILE *file = fopen(path, "re");
    if (!file)
        return errno == ENOENT && !is_required ? -1 : ring_refuse("%s: %s", path, strerror(errno));
    for (unsigned number = 1; status < 0 && fgets(line, sizeof line, file); number++)
        status = strchr(line, '\n') || feof(file)
                     ? take_line(call, path, number, line)
                     : ring_refuse("%s:%u: the line is longer than %d characters", path, number, LINE_BYTES - 2);
    fclose(file);
    return status;
}

int ring_call_take(struct ring_call *call, int argc, char **argv)
{
    struct ring_call first = *call;
    int status = take_words(&first, argc, argv); /* names the file */
    if (status < 0 && strcmp(call->command, "join") == 0)
        status = take_file(call, first.config[0] ? first.config : RING_CONFIG, first.config[0] != 0);
    return status < 0 ? take_words(call, argc, argv) : status;
}
