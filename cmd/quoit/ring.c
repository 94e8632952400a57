/* SPDX-License-Identifier: BSD-3-Clause */
/* quoit ring - emulated hosts that stay, each a network namespace with an Ethernet device on the ring. */
#include "ring.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/json.h"
#include "base/options.h"
#include "command.h"
#include "veth/frame.h"

#define DEFAULT_HOSTS   5u
#define DEFAULT_ADDRESS 0x0a4d0000u /* 10.77.0.0 */
#define DEFAULT_PREFIX  24u
#define DEFAULT_MTU     1500u
#define MTU_MIN         1280u /* of IPv6 */
#define SOCKET_PREFIX   "quoit-ring"
#define STATUS_FAILED   1
#define STATUS_USAGE    2

static void print_help(void)
{
    printf("usage: quoit ring up [OPTION]...           make a ring of emulated hosts that stays\n"
           "       quoit ring down                     end it, and every process on its hosts\n"
           "       quoit ring status [--json]          hosts, links and Ethernet traffic\n"
           "       quoit ring exec HOST -- CMD...      run a command on a host\n"
           "       quoit ring shell HOST               run a shell on a host\n"
           "       quoit ring cut LINK | mend LINK     pull the cable between hosts LINK and LINK + 1, or put it back\n"
           "       quoit ring doctor                   what is wrong with it or with this machine, and the remedy\n"
           "       quoit ring list                     your rings on this machine\n\n"
           "Each host is a network namespace with the Ethernet device " RING_DEVICE ".\n\n"
           "  --ring NAME              which ring (ring)\n"
           "  --hosts N                how many (5), 2 to 64\n"
           "  --subnet A.B.C.D/BITS    IPv4 network (10.77.0.0/24); host h has its address h + 1\n"
           "  --mtu BYTES              of the devices (1500), 1280 to 65000\n"
           "  --link-rate BYTES        of each link and direction, per second (unlimited)\n"
           "  --offload yes|no         pass large segments whole, and without checksums (yes)\n"
           "  --jobs own|all           whose may run on it, by oshrun --ring [USER:]NAME (own)\n"
           "  --json                   of status: print JSON\n"
           "  --help                   print this\n");
}

__attribute__((format(printf, 1, 2))) static int refuse(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fprintf(stderr, "quoit ring: ");
    vfprintf(stderr, format, args);
    fprintf(stderr, "\n");
    va_end(args);
    return STATUS_USAGE;
}

/* The command line */

struct call {
    struct ring_plan plan;
    bool is_json;
    const char *command;
    const char *number; /* of the host, for exec and shell; of the link */
    char **words;       /* what exec runs, ends with NULL */
};

static bool take_number(const char *text, uint64_t least, uint64_t most, uint32_t *number_out)
{
    uint64_t number;
    if (!quoit_parse_uint(text, &number) || number < least || number > most)
        return false;
    *number_out = (uint32_t)number;
    return true;
}

static bool take_name(struct call *call, const char *text)
{
    size_t length = strlen(text);
    bool is_good = length > 0 && length < sizeof call->plan.name &&
                   strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-") == length;
    if (is_good)
        memcpy(call->plan.name, text, length + 1);
    return is_good;
}

static bool take_hosts(struct call *call, const char *text)
{
    return take_number(text, 2, RING_HOSTS_MAX, &call->plan.host_count);
}

static bool take_subnet(struct call *call, const char *text)
{
    char address[20];
    struct in_addr network;
    const char *slash = strchr(text, '/');
    if (!slash || slash - text >= (ptrdiff_t)sizeof address || !take_number(slash + 1, 8, 30, &call->plan.prefix))
        return false;
    snprintf(address, sizeof address, "%.*s", (int)(slash - text), text);
    if (inet_pton(AF_INET, address, &network) != 1)
        return false;
    call->plan.address = ntohl(network.s_addr);
    return (call->plan.address & (UINT32_MAX >> call->plan.prefix)) == 0;
}

static bool take_mtu(struct call *call, const char *text)
{
    return take_number(text, MTU_MIN, QUOIT_VETH_MTU_MAX, &call->plan.mtu);
}

static bool take_rate(struct call *call, const char *text)
{
    return quoit_parse_bytes(text, &call->plan.knobs.rate_bytes_per_s);
}

static bool take_offload(struct call *call, const char *text)
{
    uint64_t value;
    if (!quoit_parse_bool(text, &value))
        return false;
    call->plan.has_offload = value != 0;
    return true;
}

static bool take_jobs(struct call *call, const char *text)
{
    call->plan.serves_others = strcmp(text, "all") == 0;
    return call->plan.serves_others || strcmp(text, "own") == 0;
}

static const struct option {
    const char *name;
    bool (*take)(struct call *call, const char *text);
    const char *allowed;
    bool is_of_up;
} options[] = {
    {"--ring", take_name, "a name of up to 31 letters, digits and _.-", false},
    {"--hosts", take_hosts, "2 to 64", true},
    {"--subnet", take_subnet, "a network such as 10.77.0.0/24, with no bit set behind the prefix of 8 to 30", true},
    {"--mtu", take_mtu, "1280 to 65000", true},
    {"--link-rate", take_rate, "bytes per second, such as 2G", true},
    {"--offload", take_offload, "yes or no", true},
    {"--jobs", take_jobs, "own or all", true},
};
#define OPTION_COUNT (sizeof options / sizeof options[0])

/* Takes option `*at` and its value; an exit status, or -1: go on. */
static int take_option(struct call *call, int argc, char **argv, int *at)
{
    char *equals = strchr(argv[*at], '=');
    size_t length = equals ? (size_t)(equals - argv[*at]) : strlen(argv[*at]);
    const struct option *option = options;
    while (option < options + OPTION_COUNT &&
           (strlen(option->name) != length || strncmp(option->name, argv[*at], length) != 0))
        option++;
    if (option == options + OPTION_COUNT)
        return refuse("there is no option %s (see --help)", argv[*at]);
    if (option->is_of_up && strcmp(call->command, "up") != 0)
        return refuse("%s belongs to: quoit ring up", option->name);
    if (!equals && *at + 1 == argc)
        return refuse("%s needs a value: %s", option->name, option->allowed);
    const char *value = equals ? equals + 1 : argv[++*at];
    if (!option->take(call, value))
        return refuse("%s \"%s\": allowed is %s", option->name, value, option->allowed);
    return -1;
}

static int take_words(struct call *call, int argc, char **argv)
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
            return refuse("\"%s\" is one word too many; a command stands behind --", argv[i]);
        }
    }
    return -1;
}

/* The keeper's socket */

static socklen_t address_of(const char *name, struct sockaddr_un *address_out)
{
    *address_out = (struct sockaddr_un){.sun_family = AF_UNIX};
    int length =
        snprintf(address_out->sun_path + 1, sizeof address_out->sun_path - 1, SOCKET_PREFIX "-%u-%s", geteuid(), name);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
}

/* A descriptor, or -1 with errno. EACCES: somebody else has taken the name. */
static int call_keeper(const char *name, const struct ring_request *request)
{
    struct sockaddr_un address;
    struct ucred peer;
    socklen_t bytes = address_of(name, &address), peer_bytes = sizeof peer;
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&address, bytes) == 0 &&
        getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &peer_bytes) == 0) {
        if (peer.uid == geteuid() && send(fd, request, sizeof *request, MSG_NOSIGNAL) == (ssize_t)sizeof *request)
            return fd;
        errno = EACCES;
    }
    int error = errno;
    if (fd >= 0)
        close(fd);
    errno = error;
    return -1;
}

static int say_absent(const struct call *call)
{
    if (errno == ECONNREFUSED || errno == ENOENT)
        fprintf(stderr, "quoit ring: there is no ring \"%s\"; make it with: quoit ring up --ring %s\n", call->plan.name,
                call->plan.name);
    else
        fprintf(stderr, "quoit ring: the ring \"%s\" does not answer: %s\n", call->plan.name, strerror(errno));
    return STATUS_FAILED;
}

bool ring_ask(const char *name, struct ring_request request, struct ring_reply *reply)
{
    int fd = call_keeper(name, &request);
    if (fd < 0)
        return false;
    ssize_t bytes = recv(fd, reply, sizeof *reply, 0);
    close(fd);
    errno = bytes < 0 ? errno : EPROTO;
    return bytes == (ssize_t)sizeof *reply;
}

/* The commands */

static const char *address_text(const struct ring_plan *plan, uint32_t host, char text_out[INET_ADDRSTRLEN])
{
    struct in_addr address = {.s_addr = htonl(plan->address + host + 1)};
    return inet_ntop(AF_INET, &address, text_out, INET_ADDRSTRLEN);
}

static int up(const struct call *call)
{
    struct sockaddr_un address;
    socklen_t bytes = address_of(call->plan.name, &address);
    int ends[2], fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    uint32_t room = UINT32_MAX >> call->plan.prefix;
    char word, text[INET_ADDRSTRLEN];
    if (call->plan.host_count >= room)
        return refuse("--subnet has addresses for %u hosts only", room - 1);
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, bytes) != 0 || listen(fd, 8) != 0 ||
        pipe2(ends, O_CLOEXEC) != 0) {
        fprintf(stderr,
                errno == EADDRINUSE ? "quoit ring: the ring \"%s\" is up already\n"
                                    : "quoit ring: cannot make the ring \"%s\"\n",
                call->plan.name);
        return STATUS_FAILED;
    }
    pid_t pid = fork();
    if (pid == 0) {
        close(ends[0]);
        setsid();
        if (chdir("/") != 0)
            _exit(1);
        _exit(ring_keep(&call->plan, fd, ends[1]));
    }
    close(ends[1]);
    if (pid < 0 || read(ends[0], &word, 1) != 1) {
        waitpid(pid, NULL, 0);
        return STATUS_FAILED; /* the keeper has said why */
    }
    printf("ring \"%s\": hosts 0 to %u, %s", call->plan.name, call->plan.host_count - 1,
           address_text(&call->plan, 0, text));
    printf(" to %s\n  quoit ring exec%s%s 0 -- ping -c 3 ", address_text(&call->plan, call->plan.host_count - 1, text),
           strcmp(call->plan.name, "ring") == 0 ? "" : " --ring ",
           strcmp(call->plan.name, "ring") == 0 ? "" : call->plan.name);
    printf("%s\n", address_text(&call->plan, 1, text));
    return 0;
}

static int down(const struct call *call)
{
    struct ring_reply reply;
    return ring_ask(call->plan.name, (struct ring_request){.kind = RING_DOWN}, &reply) ? 0 : say_absent(call);
}

/* Jobs, without the Ethernet devices; none if the ring does not say. */
static uint32_t jobs_of(const struct ring_plan *plan, struct quoit_share_list *list_out)
{
    char path[QUOIT_SHARE_PATH_BYTES];
    uint32_t count = 0;
    quoit_share_path(geteuid(), plan->name, path);
    if (quoit_share_ask(path, list_out) == QUOIT_OK)
        count = list_out->client_count;
    return count;
}

static void print_jobs_json(struct quoit_json *json, const struct ring_plan *plan)
{
    struct quoit_share_list list;
    quoit_json_open_array(json, "jobs");
    for (uint32_t i = 0, count = jobs_of(plan, &list); i < count; i++) {
        quoit_json_open_object(json, NULL);
        quoit_json_count(json, "job", list.clients[i].name);
        quoit_json_text(json, "program", list.clients[i].label);
        quoit_json_count(json, "uid", list.clients[i].uid);
        quoit_json_count(json, "pid", list.clients[i].pid);
        quoit_json_close(json);
    }
    quoit_json_close(json);
}

static void print_json(const struct ring_reply *reply)
{
    struct quoit_json json;
    char text[INET_ADDRSTRLEN];
    quoit_json_start(&json, stdout);
    quoit_json_open_object(&json, NULL);
    quoit_json_text(&json, "ring", reply->plan.name);
    quoit_json_count(&json, "mtu", reply->plan.mtu);
    print_jobs_json(&json, &reply->plan);
    quoit_json_open_array(&json, "hosts");
    for (uint32_t i = 0; i < reply->plan.host_count; i++) {
        const struct ring_host_status *host = &reply->hosts[i];
        quoit_json_open_object(&json, NULL);
        quoit_json_count(&json, "host", i);
        quoit_json_text(&json, "address", address_text(&reply->plan, i, text));
        quoit_json_bool(&json, "ready", host->is_ready);
        quoit_json_count(&json, "pid", (uint64_t)host->pid);
        quoit_json_count(&json, "starts", host->start_count);
        for (enum quoit_side side = 0; side < QUOIT_SIDE_COUNT; side++) {
            quoit_json_open_object(&json, side == QUOIT_LEFT ? "left" : "right");
            quoit_json_text(&json, "state", quoit_link_state_name((enum quoit_link_state)host->link_states[side]));
            quoit_json_count(&json, "outages", host->outage_counts[side]);
            quoit_json_close(&json);
        }
#define X(name, sentence) quoit_json_count(&json, #name, host->stats.name);
        QUOIT_VETH_STATS_TABLE(X)
#undef X
        quoit_json_close(&json);
    }
    quoit_json_close(&json);
    quoit_json_close(&json);
}

static void print_table(const struct ring_reply *reply)
{
    char text[INET_ADDRSTRLEN];
    printf("ring \"%s\", device " RING_DEVICE ", MTU %u\n\n", reply->plan.name, reply->plan.mtu);
    printf("%-6s %-15s %-10s %-10s %12s %12s %12s %8s\n", "host", "address", "left", "right", "sent MB", "received MB",
           "forwarded", "lost");
    for (uint32_t i = 0; i < reply->plan.host_count; i++) {
        const struct ring_host_status *host = &reply->hosts[i];
        const char *states[QUOIT_SIDE_COUNT];
        for (enum quoit_side side = 0; side < QUOIT_SIDE_COUNT; side++)
            states[side] = host->is_ready ? quoit_link_state_name((enum quoit_link_state)host->link_states[side]) : "-";
        printf("%-6u %-15s %-10s %-10s %12.1f %12.1f %12llu %8llu%s\n", i, address_text(&reply->plan, i, text),
               states[QUOIT_LEFT], states[QUOIT_RIGHT], (double)host->stats.sent_bytes / 1e6,
               (double)host->stats.received_bytes / 1e6, (unsigned long long)host->stats.forwarded_frames,
               (unsigned long long)(host->stats.lost_frames + host->stats.refused_frames),
               host->is_ready ? "" : "  starting");
        if (host->start_count > 1)
            printf("       started %u times: its process died (it begins anew without what it ran)\n",
                   host->start_count);
    }
    struct quoit_share_list list;
    for (uint32_t i = 0, count = jobs_of(&reply->plan, &list); i < count; i++)
        printf("%sjob %u: %s, process %u of user %u\n", i == 0 ? "\n" : "", list.clients[i].name, list.clients[i].label,
               list.clients[i].pid, list.clients[i].uid);
}

static int status(const struct call *call)
{
    struct ring_reply reply;
    if (!ring_ask(call->plan.name, (struct ring_request){.kind = RING_STATUS}, &reply))
        return say_absent(call);
    if (call->is_json)
        print_json(&reply);
    else
        print_table(&reply);
    return 0;
}

/* By the owner of the links, for all who have a share of them. */
static int set_cut(const struct call *call, bool is_cut)
{
    char path[QUOIT_SHARE_PATH_BYTES];
    struct ring_reply reply;
    uint32_t link;
    if (!call->number || !take_number(call->number, 0, RING_HOSTS_MAX - 1, &link))
        return refuse("%s needs the number of a link, that of the host at its left", call->command);
    if (!ring_ask(call->plan.name, (struct ring_request){.kind = RING_STATUS}, &reply))
        return say_absent(call);
    if (link >= reply.plan.host_count)
        return refuse("the ring \"%s\" has the links 0 to %u", call->plan.name, reply.plan.host_count - 1);
    quoit_share_path(geteuid(), call->plan.name, path);
    enum quoit_status status = quoit_share_cut(path, link, is_cut);
    if (status != QUOIT_OK)
        fprintf(stderr, "quoit ring: link %u: %s\n", link, quoit_status_text(status));
    return status == QUOIT_OK ? 0 : STATUS_FAILED;
}

static int cut(const struct call *call)
{
    return set_cut(call, true);
}

static int mend(const struct call *call)
{
    return set_cut(call, false);
}

/* Receives the namespaces of a host; false: it does not run. */
static bool receive_namespaces(int fd, int fds_out[2])
{
    char byte;
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(2 * sizeof(int))];
    } control;
    struct iovec data = {.iov_base = &byte, .iov_len = 1};
    struct msghdr message = {
        .msg_iov = &data, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control.bytes};
    if (recvmsg(fd, &message, MSG_CMSG_CLOEXEC) != 1)
        return false;
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    if (!header || header->cmsg_type != SCM_RIGHTS || header->cmsg_len != CMSG_LEN(2 * sizeof(int)))
        return false;
    memcpy(fds_out, CMSG_DATA(header), 2 * sizeof(int));
    return true;
}

static bool enter(int user_fd, int net_fd)
{
    struct stat own, other;
    if (fstat(user_fd, &other) != 0 || stat("/proc/self/ns/user", &own) != 0)
        return false;
    return (own.st_ino == other.st_ino || setns(user_fd, CLONE_NEWUSER) == 0) && setns(net_fd, CLONE_NEWNET) == 0;
}

static int run_on_host(const struct call *call, char **words)
{
    struct ring_request request = {.kind = RING_ENTER};
    int fds[2];
    if (!call->number || !take_number(call->number, 0, RING_HOSTS_MAX - 1, &request.host))
        return refuse("%s needs the number of a host%s", call->command,
                      strcmp(call->command, "exec") == 0 ? ", and a command behind --" : "");
    if (!words || !words[0])
        return refuse("exec needs a command behind --");
    int fd = call_keeper(call->plan.name, &request);
    if (fd < 0)
        return say_absent(call);
    if (!receive_namespaces(fd, fds)) {
        fprintf(stderr, "quoit ring: the ring \"%s\" has no host %u that runs\n", call->plan.name, request.host);
        return STATUS_FAILED;
    }
    close(fd);
    if (!enter(fds[0], fds[1])) {
        fprintf(stderr, "quoit ring: cannot enter host %u: %s\n", request.host, strerror(errno));
        return STATUS_FAILED;
    }
    execvp(words[0], words);
    fprintf(stderr, "quoit ring: cannot run %s: %s\n", words[0], strerror(errno));
    return errno == ENOENT ? 127 : 126;
}

static int exec_command(const struct call *call)
{
    return run_on_host(call, call->words);
}

static int shell(const struct call *call)
{
    char *name = getenv("SHELL");
    char *words[] = {name && *name ? name : (char *)"/bin/sh", NULL};
    return run_on_host(call, words);
}

static int doctor(const struct call *call)
{
    return ring_doctor(call->plan.name);
}

/* The kernel lists abstract names with an @ in front. */
static int list(const struct call *call)
{
    char line[300], prefix[40];
    FILE *sockets = fopen("/proc/net/unix", "re");
    (void)call;
    snprintf(prefix, sizeof prefix, "@" SOCKET_PREFIX "-%u-", geteuid());
    while (sockets && fgets(line, sizeof line, sockets)) {
        const char *at = strstr(line, prefix);
        unsigned flags = 0;
        if (at && sscanf(line, "%*s %*s %*s %x", &flags) == 1 && (flags & 0x10000)) /* listening */
            printf("%.*s\n", (int)strcspn(at + strlen(prefix), "\n"), at + strlen(prefix));
    }
    if (sockets)
        fclose(sockets);
    return 0;
}

static const struct command_row {
    const char *name;
    int (*run)(const struct call *call);
} commands[] = {{"up", up},   {"down", down}, {"status", status}, {"exec", exec_command}, {"shell", shell},
                {"cut", cut}, {"mend", mend}, {"doctor", doctor}, {"list", list}};
#define COMMAND_COUNT (sizeof commands / sizeof commands[0])

int command_ring(int argc, char **argv)
{
    struct call call = {.plan = {.name = "ring",
                                 .host_count = DEFAULT_HOSTS,
                                 .address = DEFAULT_ADDRESS,
                                 .prefix = DEFAULT_PREFIX,
                                 .mtu = DEFAULT_MTU,
                                 .has_offload = 1},
                        .command = argc > 1 ? argv[1] : ""};
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            print_help();
            return 0;
        }
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        if (strcmp(call.command, commands[i].name) == 0) {
            int result = take_words(&call, argc, argv);
            return result >= 0 ? result : commands[i].run(&call);
        }
    return refuse("%s%s%s: up, down, status, exec, shell, cut, mend, doctor or list (see --help)",
                  *call.command ? "there is no \"" : "a command is missing", call.command, *call.command ? "\"" : "");
}
