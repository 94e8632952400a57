/* SPDX-License-Identifier: BSD-3-Clause */
/* quoit ring - hosts with an Ethernet device on a ring that stays: emulated ones, or this machine on bridges. */
#include "ring_call.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/json.h"
#include "command.h"
#include "env/clock.h"

#define DEFAULT_HOSTS   5u
#define DEFAULT_ADDRESS 0x0a4d0000u /* 10.77.0.0 */
#define DEFAULT_PREFIX  24u
#define DEFAULT_MTU     1500u
#define SOCKET_PREFIX   "quoit-ring"
#define ANSWER_SECONDS  5
#define END_MS          2000

static void print_help(void)
{
    printf("usage: quoit ring up [OPTION]...           make a ring of emulated hosts that stays\n"
           "       quoit ring join [OPTION]...         bring this machine's two bridges into a ring, and stay\n"
           "       quoit ring down                     end it, and every process on its hosts; or leave it\n"
           "       quoit ring status [--json]          hosts, links and Ethernet traffic\n"
           "       quoit ring exec HOST -- CMD...      run a command on a host\n"
           "       quoit ring shell HOST               run a shell on a host\n"
           "       quoit ring cut LINK | mend LINK     pull the cable between hosts LINK and LINK + 1, or put it back\n"
           "       quoit ring doctor                   what is wrong with it or with this machine, and the remedy\n"
           "       quoit ring list                     your rings on this machine\n\n"
           "Each host has the Ethernet device " RING_DEVICE "; an emulated one is a network namespace.\n\n"
           "  --ring NAME              which ring (ring)\n"
           "  --hosts N                how many (5), 2 to 64\n"
           "  --subnet A.B.C.D/BITS    IPv4 network (10.77.0.0/24); host h has its address h + 1\n"
           "  --mtu BYTES              of the devices (1500), 1280 to 65000\n"
           "  --link-rate BYTES        of each link and direction, per second (unlimited)\n"
           "  --offload yes|no         pass large segments whole, and without checksums (yes)\n"
           "  --queues N               of each device (1), 1 to 8: flows are divided among them\n"
           "  --dma-bytes never|SIZE   Ethernet frames of at least SIZE leave a host by DMA, others by copy (never)\n"
           "  --jobs own|all           whose may run on it, by oshrun --ring [USER:]NAME (own)\n"
           "  --user-jobs N            of one user at once (31; with --jobs all 8), 1 to 31\n"
           "  --ethernet-share PERCENT of the rate for the devices while jobs send too, 1 to 99 (as much as a job)\n"
           "  --host H                 of join: this machine's number, 0 to --hosts less one\n"
           "  --left DEV --right DEV   of join: its ports (/dev/ntb0, /dev/ntb1)\n"
           "  --config FILE            of join: lines \"option = value\" (" RING_CONFIG ", if it exists)\n"
           "  --json                   of status: print JSON\n"
           "  --help                   print this\n");
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
static int call_keeper(const char *name, enum ring_request_kind kind, pid_t *keeper_out)
{
    const struct quoit_share_head request = quoit_share_head_make(RING_MAGIC, sizeof(struct ring_reply), kind);
    const struct timeval limit = {.tv_sec = ANSWER_SECONDS};
    struct sockaddr_un address;
    struct ucred peer;
    socklen_t bytes = address_of(name, &address), peer_bytes = sizeof peer;
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&address, bytes) == 0 &&
        getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &peer_bytes) == 0) {
        *keeper_out = peer.pid;
        if (peer.uid == geteuid() && setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit) == 0 &&
            send(fd, &request, sizeof request, MSG_NOSIGNAL) == (ssize_t)sizeof request)
            return fd;
        errno = EACCES;
    }
    int error = errno;
    if (fd >= 0)
        close(fd);
    errno = error;
    return -1;
}

/* The build of the keeper; one that is older than the head says nothing, or something without one. */
static const char *build_of(const struct ring_reply *reply, char text_out[QUOIT_SHARE_BUILD_BYTES])
{
    return quoit_share_build(reply->head.magic == RING_MAGIC ? &reply->head : NULL, text_out);
}

void ring_say_silent(const char *name, const struct ring_reply *reply)
{
    char own[QUOIT_SHARE_BUILD_BYTES], other[QUOIT_SHARE_BUILD_BYTES];
    const struct quoit_share_head head = quoit_share_head_make(RING_MAGIC, sizeof *reply, RING_STATUS);
    if (errno == ECONNREFUSED || errno == ENOENT)
        fprintf(stderr, "quoit ring: there is no ring \"%s\"; make it with: quoit ring up --ring %s\n", name, name);
    else if (errno == EPROTO)
        fprintf(stderr,
                "quoit ring: the ring \"%s\" is kept by another build of Quoit: %s, and this is %s; use that one's "
                "quoit, or end the ring: quoit ring down --ring %s [Q0605]\n",
                name, build_of(reply, other), quoit_share_build(&head, own), name);
    else
        fprintf(stderr, "quoit ring: the ring \"%s\" does not answer: %s\n", name, strerror(errno));
}

static int say_absent(const struct ring_call *call, const struct ring_reply *reply)
{
    ring_say_silent(call->plan.name, reply);
    return RING_STATUS_FAILED;
}

/* *keeper_out is the process that answers or should, and 0 if there is none. */
static bool ask(const char *name, enum ring_request_kind kind, struct ring_reply *reply, pid_t *keeper_out)
{
    *keeper_out = 0;
    reply->head.magic = 0;
    int fd = call_keeper(name, kind, keeper_out);
    if (fd < 0)
        return false;
    ssize_t bytes = recv(fd, reply, sizeof *reply, MSG_TRUNC);
    int error = bytes < 0 ? errno : EPROTO;
    size_t came = bytes < 0 ? 0 : (size_t)bytes;
    close(fd);
    if (!quoit_share_head_is(&reply->head, came, RING_MAGIC))
        reply->head.magic = 0;
    errno = error;
    return quoit_share_head_fits(&reply->head, came, RING_MAGIC, sizeof *reply);
}

bool ring_ask(const char *name, enum ring_request_kind kind, struct ring_reply *reply)
{
    pid_t keeper;
    return ask(name, kind, reply, &keeper);
}

pid_t ring_keeper_of(const char *name)
{
    pid_t keeper = 0;
    int fd = call_keeper(name, RING_STATUS, &keeper);
    if (fd >= 0)
        close(fd);
    return keeper;
}

/* The commands */

static const char *address_text(const struct ring_plan *plan, uint32_t host, char text_out[INET_ADDRSTRLEN])
{
    struct in_addr address = {.s_addr = htonl(plan->address + host + 1)};
    return inet_ntop(AF_INET, &address, text_out, INET_ADDRSTRLEN);
}

/* Takes the name of the ring for a keeper, which listens; -1: it was said why not. */
static int take_address(const char *name)
{
    struct sockaddr_un address;
    socklen_t bytes = address_of(name, &address);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (fd >= 0 && bind(fd, (struct sockaddr *)&address, bytes) == 0)
        return fd;
    fprintf(stderr,
            errno == EADDRINUSE ? "quoit ring: the ring \"%s\" is up already\n"
                                : "quoit ring: cannot make the ring \"%s\"\n",
            name);
    if (fd >= 0)
        close(fd);
    return -1;
}

static int up(const struct ring_call *call)
{
    int ends[2];
    uint32_t room = UINT32_MAX >> call->plan.prefix;
    char word, text[INET_ADDRSTRLEN];
    if (call->plan.dma_bytes != QUOIT_VETH_DMA_NEVER && call->plan.queue_count > QUOIT_DMA_CHANNEL_COUNT)
        return ring_refuse("--dma-bytes allows 1 or %d queues, one for each DMA channel of a port",
                           QUOIT_DMA_CHANNEL_COUNT);
    if (call->plan.host_count >= room)
        return ring_refuse("--subnet has addresses for %u hosts only", room - 1);
    struct ring_plan plan = call->plan;
    if (plan.jobs_of_user == 0)
        plan.jobs_of_user = plan.serves_others ? RING_USER_JOBS : RING_USER_JOBS_MAX;
    int fd = take_address(call->plan.name);
    if (fd < 0)
        return RING_STATUS_FAILED;
    pid_t pid = pipe2(ends, O_CLOEXEC) == 0 ? fork() : -1;
    if (pid == 0) {
        close(ends[0]);
        setsid();
        if (chdir("/") != 0)
            _exit(1);
        _exit(ring_keep(&plan, fd, ends[1]));
    }
    if (pid < 0) {
        fprintf(stderr, "quoit ring: cannot make the ring \"%s\": %s\n", call->plan.name, strerror(errno));
        return RING_STATUS_FAILED;
    }
    close(ends[1]);
    if (read(ends[0], &word, 1) != 1) {
        waitpid(pid, NULL, 0);
        return RING_STATUS_FAILED; /* the keeper has said why */
    }
    printf("ring \"%s\": hosts 0 to %u, %s", call->plan.name, call->plan.host_count - 1,
           address_text(&call->plan, 0, text));
    printf(" to %s\n  quoit ring exec%s%s 0 -- ping -c 3 ", address_text(&call->plan, call->plan.host_count - 1, text),
           strcmp(call->plan.name, "ring") == 0 ? "" : " --ring ",
           strcmp(call->plan.name, "ring") == 0 ? "" : call->plan.name);
    printf("%s\n", address_text(&call->plan, 1, text));
    return 0;
}

/* In the foreground, as a service manager wants it, until it is asked to end. */
static int join(const struct ring_call *call)
{
    struct ring_plan plan = call->plan;
    uint32_t room = UINT32_MAX >> plan.prefix;
    char text[INET_ADDRSTRLEN];
    plan.is_joined = 1;
    if (!call->has_host || !call->has_host_count)
        return ring_refuse("join needs %s, on the command line or in %s", call->has_host ? "--hosts" : "--host",
                           call->config[0] ? call->config : RING_CONFIG);
    if (plan.host >= plan.host_count)
        return ring_refuse("--host %u: allowed is 0 to %u, below --hosts", plan.host, plan.host_count - 1);
    if (plan.host_count >= room)
        return ring_refuse("--subnet has addresses for %u hosts only", room - 1);
    if (strcmp(plan.devices[QUOIT_LEFT], plan.devices[QUOIT_RIGHT]) == 0)
        return ring_refuse("--left and --right are both %s, but a host has two ports", plan.devices[QUOIT_LEFT]);
    int fd = take_address(plan.name);
    if (fd < 0)
        return RING_STATUS_FAILED;
    printf("ring \"%s\": host %u of %u, %s, left %s, right %s\n", plan.name, plan.host, plan.host_count,
           address_text(&plan, plan.host, text), plan.devices[QUOIT_LEFT], plan.devices[QUOIT_RIGHT]);
    fflush(stdout);
    return ring_keep(&plan, fd, -1);
}

/* Hosts end with their keeper, and free the name. */
static bool has_ended(const char *name)
{
    for (uint32_t ms = 0; ms < END_MS; ms++) {
        if (ring_keeper_of(name) == 0)
            return true;
        quoit_clock_sleep_ns(1000000);
    }
    return false;
}

/* A keeper that does not answer, or is so old that it does not understand. */
static int kill_keeper(const char *name, pid_t keeper, bool is_silent)
{
    fprintf(stderr,
            is_silent ? "quoit ring: process %d, which keeps the ring \"%s\", did not answer and was killed\n"
                      : "quoit ring: process %d of another build, which kept the ring \"%s\", was told to end\n",
            (int)keeper, name);
    if (!is_silent && (kill(keeper, SIGTERM) != 0 || has_ended(name)))
        return ring_keeper_of(name) == 0 ? 0 : RING_STATUS_FAILED;
    if (kill(keeper, SIGKILL) != 0)
        return RING_STATUS_FAILED;
    has_ended(name);
    return 0;
}

static int down(const struct ring_call *call)
{
    struct ring_reply reply;
    pid_t keeper;
    if (ask(call->plan.name, RING_DOWN, &reply, &keeper))
        return 0;
    int error = errno;
    if (error == EPROTO && reply.head.magic == RING_MAGIC && reply.head.kind == RING_DOWN)
        return 0; /* another build, which has obeyed */
    if ((error != EAGAIN && error != EPROTO) || keeper <= 0)
        return say_absent(call, &reply);
    return kill_keeper(call->plan.name, keeper, error == EAGAIN);
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
    for (uint32_t i = ring_first(&reply->plan); i < ring_end(&reply->plan); i++) {
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
    for (uint32_t i = ring_first(&reply->plan); i < ring_end(&reply->plan); i++) {
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

static int status(const struct ring_call *call)
{
    struct ring_reply reply;
    if (!ring_ask(call->plan.name, RING_STATUS, &reply))
        return say_absent(call, &reply);
    if (call->is_json)
        print_json(&reply);
    else
        print_table(&reply);
    return 0;
}

/* By the owner of the links, for all who have a share of them. */
static int set_cut(const struct ring_call *call, bool is_cut)
{
    char path[QUOIT_SHARE_PATH_BYTES];
    struct ring_reply reply;
    uint32_t link;
    if (!call->number || !ring_take_number(call->number, 0, RING_HOSTS_MAX - 1, &link))
        return ring_refuse("%s needs the number of a link, that of the host at its left", call->command);
    if (!ring_ask(call->plan.name, RING_STATUS, &reply))
        return say_absent(call, &reply);
    if (reply.plan.is_joined)
        return ring_refuse("the links of the ring \"%s\" are cables: %s by hand", call->plan.name, call->command);
    if (link >= reply.plan.host_count)
        return ring_refuse("the ring \"%s\" has the links 0 to %u", call->plan.name, reply.plan.host_count - 1);
    quoit_share_path(geteuid(), call->plan.name, path);
    enum quoit_status status = quoit_share_cut(path, link, is_cut);
    if (status != QUOIT_OK)
        fprintf(stderr, "quoit ring: link %u: %s\n", link, quoit_status_text(status));
    return status == QUOIT_OK ? 0 : RING_STATUS_FAILED;
}

static int cut(const struct ring_call *call)
{
    return set_cut(call, true);
}

static int mend(const struct ring_call *call)
{
    return set_cut(call, false);
}

static int run_on_host(const struct ring_call *call, char **words)
{
    char path[QUOIT_SHARE_PATH_BYTES];
    struct ring_reply reply;
    struct quoit_share_place place;
    uint32_t host;
    if (!call->number || !ring_take_number(call->number, 0, RING_HOSTS_MAX - 1, &host))
        return ring_refuse("%s needs the number of a host%s", call->command,
                           strcmp(call->command, "exec") == 0 ? ", and a command behind --" : "");
    if (!words || !words[0])
        return ring_refuse("exec needs a command behind --");
    if (!ring_ask(call->plan.name, RING_STATUS, &reply))
        return say_absent(call, &reply);
    if (reply.plan.is_joined && host != reply.plan.host)
        return ring_refuse("host %u of the ring \"%s\" is another machine", host, call->plan.name);
    if (host >= reply.plan.host_count)
        return ring_refuse("the ring \"%s\" has the hosts 0 to %u", call->plan.name, reply.plan.host_count - 1);
    quoit_share_path(geteuid(), call->plan.name, path);
    enum quoit_status status = reply.plan.is_joined ? QUOIT_OK : quoit_share_find_place(path, host, &place);
    if (status == QUOIT_OK && !reply.plan.is_joined)
        status = quoit_share_enter_place(&place);
    if (status != QUOIT_OK) {
        fprintf(stderr, "quoit ring: cannot enter host %u: %s\n", host,
                status == QUOIT_AGAIN    ? "it is starting; try again in a second"
                : status == QUOIT_SYSTEM ? strerror(errno)
                                         : quoit_status_text(status));
        return RING_STATUS_FAILED;
    }
    if (!reply.plan.is_joined && quoit_share_renew_sysfs() != QUOIT_OK)
        fprintf(stderr, "quoit ring: /sys shows the devices of this machine, not those of host %u: %s [Q0606]\n", host,
                strerror(errno));
    execvp(words[0], words);
    fprintf(stderr, "quoit ring: cannot run %s: %s\n", words[0], strerror(errno));
    return errno == ENOENT ? 127 : 126;
}

static int exec_command(const struct ring_call *call)
{
    return run_on_host(call, call->words);
}

static int shell(const struct ring_call *call)
{
    char *name = getenv("SHELL");
    char *words[] = {name && *name ? name : (char *)"/bin/sh", NULL};
    return run_on_host(call, words);
}

static int doctor(const struct ring_call *call)
{
    return ring_doctor(call->plan.name);
}

/* The kernel lists abstract names with an @ in front. */
static int list(const struct ring_call *call)
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
    int (*run)(const struct ring_call *call);
} commands[] = {{"up", up},       {"join", join}, {"down", down}, {"status", status}, {"exec", exec_command},
                {"shell", shell}, {"cut", cut},   {"mend", mend}, {"doctor", doctor}, {"list", list}};
#define COMMAND_COUNT (sizeof commands / sizeof commands[0])

int command_ring(int argc, char **argv)
{
    struct ring_call call = {.plan = {.name = "ring",
                                      .host_count = DEFAULT_HOSTS,
                                      .address = DEFAULT_ADDRESS,
                                      .prefix = DEFAULT_PREFIX,
                                      .mtu = DEFAULT_MTU,
                                      .has_offload = 1,
                                      .queue_count = 1,
                                      .dma_bytes = QUOIT_VETH_DMA_NEVER,
                                      .devices = {[QUOIT_LEFT] = "/dev/ntb0", [QUOIT_RIGHT] = "/dev/ntb1"}},
                             .command = argc > 1 ? argv[1] : ""};
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            print_help();
            return 0;
        }
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        if (strcmp(call.command, commands[i].name) == 0) {
            int result = ring_call_take(&call, argc, argv);
            return result >= 0 ? result : commands[i].run(&call);
        }
    return ring_refuse("%s%s%s: up, join, down, status, exec, shell, cut, mend, doctor or list (see --help)",
                       *call.command ? "there is no \"" : "a command is missing", call.command,
                       *call.command ? "\"" : "");
}
