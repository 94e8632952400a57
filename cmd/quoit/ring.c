/* SPDX-License-Identifier: BSD-3-Clause */
/* quoit ring - hosts with an Ethernet device on a ring that stays: emulated ones, or this machine on bridges. */
#include "ring_arguments.h"
#include "base/log.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "command.h"
#include "env/descriptors.h"

#define DEFAULT_HOSTS   5u
#define DEFAULT_ADDRESS 0x0a4d0000u /* 10.77.0.0 */
#define DEFAULT_PREFIX  24u
#define DEFAULT_MTU     1500u

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
           "       quoit ring list                     your rings on this machine; for root those of all users\n\n"
           "Each host has the Ethernet device " RING_DEVICE "; an emulated one is a network namespace.\n\n"
           "  --ring [USER:]NAME       which ring (ring); of another user for root alone\n"
           "  --hosts N                how many (5), 2 to 64\n"
           "  --subnet A.B.C.D/BITS    IPv4 network (10.77.0.0/24); host h has its address h + 1\n"
           "  --mtu BYTES              of the devices (1500, of join 65000), 1280 to 65000\n"
           "  --link-rate BYTES        of each link and direction, per second (unlimited)\n"
           "  --offload yes|no         pass large segments whole, and without checksums (yes)\n"
           "  --queues N               of each device (1), 1 to 8: flows are divided among them\n"
           "  --dma-bytes never|SIZE   Ethernet frames of at least SIZE leave a host by DMA, others by copy (never)\n"
           "  --jobs own|all           whose jobs may run on it, by oshrun --ring [USER:]NAME (own)\n"
           "  --user-jobs N            of one user at once (31; with --jobs all 8), 1 to 31\n"
           "  --ethernet-share PERCENT of the rate for the devices while jobs send too, 1 to 99 (as much as a job)\n"
           "  --host H                 of join: this machine's number, 0 to --hosts less one\n"
           "  --left DEV --right DEV   of join: its ports (/dev/ntb0, /dev/ntb1)\n"
           "  --config FILE            of join: lines \"option = value\" (" RING_CONFIG ", if it exists)\n"
           "  --json                   of status: print JSON\n"
           "  --help                   print this\n");
}

/* False: reported. */
static bool ask_status(const struct ring_arguments *arguments, struct ring_reply *reply)
{
    struct ring_answerer by;
    bool is_answered = ring_ask(arguments->plan.name, RING_STATUS, reply, &by);
    if (!is_answered)
        ring_report_no_answer(arguments->given, reply, &by);
    return is_answered;
}

/* The commands */

/* Binds the ring's name; the keeper listens there. -1: an error was reported. */
static int bind_name(const char *name)
{
    struct sockaddr_un address;
    socklen_t bytes = ring_address(name, &address);
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

static int up(const struct ring_arguments *arguments)
{
    struct ring_plan plan = arguments->plan;
    uint32_t address_count = UINT32_MAX >> plan.prefix; /* with that of the network */
    char text[RING_ADDRESS_BYTES];
    if (plan.dma_bytes != QUOIT_VETH_DMA_NEVER && plan.queue_count > QUOIT_DMA_CHANNEL_COUNT)
        return ring_bad_usage("--dma-bytes allows 1 or %d queues, one for each DMA channel of a port",
                              QUOIT_DMA_CHANNEL_COUNT);
    if (plan.host_count >= address_count)
        return ring_bad_usage("--subnet has addresses for %u hosts only", address_count - 1);
    if (plan.ethernet_percent != 0 && plan.knobs.rate_bytes_per_s == 0)
        return ring_bad_usage("--ethernet-share is a part of --link-rate, which is not given");
    if (plan.jobs_per_user == 0)
        plan.jobs_per_user = plan.allows_all ? RING_JOBS_PER_USER : RING_JOBS_PER_USER_MAX;
    int fd = bind_name(plan.name);
    if (fd < 0 || !ring_keeper_start(&plan, fd))
        return RING_STATUS_FAILED;
    printf("ring \"%s\": hosts 0 to %u, %s", plan.name, plan.host_count - 1, ring_address_text(&plan, 0, text));
    printf(" to %s\n", ring_address_text(&plan, plan.host_count - 1, text));
    if (strcmp(plan.name, "ring") == 0)
        printf("  quoit ring exec 0 -- ping -c 3 %s\n", ring_address_text(&plan, 1, text));
    else
        printf("  quoit ring exec --ring %s 0 -- ping -c 3 %s\n", plan.name, ring_address_text(&plan, 1, text));
    return 0;
}

/* Runs in the foreground until it is told to end, as a service manager wants it. */
static int join(const struct ring_arguments *arguments)
{
    struct ring_plan plan = arguments->plan;
    uint32_t address_count = UINT32_MAX >> plan.prefix;
    char text[RING_ADDRESS_BYTES];
    plan.is_joined = 1;
    if (!arguments->has_host || !arguments->has_host_count)
        return ring_bad_usage("join needs %s, on the command line or in %s", arguments->has_host ? "--hosts" : "--host",
                              arguments->config[0] ? arguments->config : RING_CONFIG);
    if (plan.host >= plan.host_count)
        return ring_bad_usage("--host %u: allowed is 0 to %u, below --hosts", plan.host, plan.host_count - 1);
    if (plan.host_count >= address_count)
        return ring_bad_usage("--subnet has addresses for %u hosts only", address_count - 1);
    if (strcmp(plan.devices[QUOIT_LEFT], plan.devices[QUOIT_RIGHT]) == 0)
        return ring_bad_usage("--left and --right are both %s, but a host has two ports", plan.devices[QUOIT_LEFT]);
    int fd = bind_name(plan.name);
    if (fd < 0)
        return RING_STATUS_FAILED;
    printf("ring \"%s\": host %u of %u, %s, left %s, right %s\n", plan.name, plan.host, plan.host_count,
           ring_address_text(&plan, plan.host, text), plan.devices[QUOIT_LEFT], plan.devices[QUOIT_RIGHT]);
    fflush(stdout);
    return ring_keeper_run(&plan, fd, -1);
}

static int down(const struct ring_arguments *arguments)
{
    return ring_down(arguments->plan.name, arguments->given);
}

static int status(const struct ring_arguments *arguments)
{
    struct ring_reply reply;
    if (!ask_status(arguments, &reply))
        return RING_STATUS_FAILED;
    ring_print_status(&reply, arguments->is_json);
    return 0;
}

static int set_cut(const struct ring_arguments *arguments, bool is_cut)
{
    char path[QUOIT_SHARE_PATH_BYTES];
    struct ring_reply reply;
    uint32_t link;
    if (!arguments->number || !ring_parse_number(arguments->number, 0, RING_HOSTS_MAX - 1, &link))
        return ring_bad_usage("%s needs the number of a link, that of the host at its left", arguments->command);
    if (!ask_status(arguments, &reply))
        return RING_STATUS_FAILED;
    if (reply.plan.is_joined)
        return ring_bad_usage("the links of the ring \"%s\" are cables: %s by hand", arguments->given,
                              arguments->command);
    if (link >= reply.plan.host_count)
        return ring_bad_usage("the ring \"%s\" has the links 0 to %u", arguments->given, reply.plan.host_count - 1);
    quoit_share_path(geteuid(), arguments->plan.name, path);
    enum quoit_status status = quoit_share_cut(path, link, is_cut);
    if (status != QUOIT_OK)
        quoit_say("link %u: %s", link, quoit_status_text(status));
    return status == QUOIT_OK ? 0 : RING_STATUS_FAILED;
}

static int cut(const struct ring_arguments *arguments)
{
    return set_cut(arguments, true);
}

static int mend(const struct ring_arguments *arguments)
{
    return set_cut(arguments, false);
}

/* Moves this process to the host. False: an error was reported. */
static bool enter_host(const struct ring_arguments *arguments, uint32_t host)
{
    char path[QUOIT_SHARE_PATH_BYTES];
    struct quoit_share_namespaces namespaces;
    quoit_share_path(geteuid(), arguments->plan.name, path);
    enum quoit_status status = quoit_share_get_namespaces(path, host, &namespaces);
    if (status == QUOIT_OK)
        status = quoit_share_enter_namespaces(&namespaces);
    if (status != QUOIT_OK)
        quoit_say("cannot enter host %u: %s", host,
                  status == QUOIT_AGAIN    ? "it is starting; try again in a second"
                  : status == QUOIT_SYSTEM ? strerror(errno)
                                           : quoit_status_text(status));
    else if (quoit_share_mount_sysfs() != QUOIT_OK)
        quoit_say("/sys shows the devices of this machine, not those of host %u: %s [Q0606]", host, strerror(errno));
    return status == QUOIT_OK;
}

static int run_on_host(const struct ring_arguments *arguments, char **words)
{
    struct ring_reply reply;
    uint32_t host;
    if (!arguments->number || !ring_parse_number(arguments->number, 0, RING_HOSTS_MAX - 1, &host))
        return ring_bad_usage("%s needs the number of a host%s", arguments->command,
                              strcmp(arguments->command, "exec") == 0 ? ", and a command behind --" : "");
    if (!words || !words[0])
        return ring_bad_usage("exec needs a command behind --");
    if (!ask_status(arguments, &reply))
        return RING_STATUS_FAILED;
    if (reply.plan.is_joined && host != reply.plan.host)
        return ring_bad_usage("host %u of the ring \"%s\" is another machine", host, arguments->given);
    if (host >= reply.plan.host_count)
        return ring_bad_usage("the ring \"%s\" has the hosts 0 to %u", arguments->given, reply.plan.host_count - 1);
    if (!reply.plan.is_joined && !enter_host(arguments, host))
        return RING_STATUS_FAILED;
    execvp(words[0], words);
    quoit_say("cannot run %s: %s", words[0], strerror(errno));
    return errno == ENOENT ? 127 : 126;
}

static int exec_command(const struct ring_arguments *arguments)
{
    return run_on_host(arguments, arguments->words);
}

static int shell(const struct ring_arguments *arguments)
{
    char *name = getenv("SHELL");
    char *words[] = {name && *name ? name : (char *)"/bin/sh", NULL};
    return run_on_host(arguments, words);
}

static int doctor(const struct ring_arguments *arguments)
{
    return ring_doctor(arguments->plan.name, arguments->given);
}

static int list(const struct ring_arguments *arguments)
{
    (void)arguments;
    ring_print_list();
    return 0;
}

enum { TAKES_NUMBER = 1, TAKES_COMMAND = 2, TAKES_JSON = 4 };

static const struct ring_command {
    const char *name;
    int (*run)(const struct ring_arguments *arguments);
    unsigned takes; /* beside options: TAKES_... */
} commands[] = {{"up", up, 0},
                {"join", join, 0},
                {"down", down, 0},
                {"status", status, TAKES_JSON},
                {"exec", exec_command, TAKES_NUMBER | TAKES_COMMAND},
                {"shell", shell, TAKES_NUMBER},
                {"cut", cut, TAKES_NUMBER},
                {"mend", mend, TAKES_NUMBER},
                {"doctor", doctor, 0},
                {"list", list, 0}};
#define COMMAND_COUNT (sizeof commands / sizeof commands[0])

/* A word that means nothing may have been meant as the name of a ring. An exit status, or -1: no error. */
static int check_words(const struct ring_command *command, const struct ring_arguments *arguments)
{
    if (arguments->number && !(command->takes & TAKES_NUMBER))
        return ring_bad_usage("%s takes no \"%s\"; a ring is named by --ring", command->name, arguments->number);
    if (arguments->words && arguments->words[0] && !(command->takes & TAKES_COMMAND))
        return ring_bad_usage("%s takes no command behind --", command->name);
    if (arguments->is_json && !(command->takes & TAKES_JSON))
        return ring_bad_usage("--json belongs to: quoit ring status");
    return -1;
}

/* Root acts on another user's ring as that user: it needs no trust in the keeper, and what it starts on a host has the
 * rights of that user, so `down` ends it too. */
static int run(const struct ring_command *command, const struct ring_arguments *arguments)
{
    if (arguments->uid == geteuid())
        return command->run(arguments);
    if (command->run == up || command->run == join)
        return ring_bad_usage("%s makes a ring of the user who runs it, not \"%s\"", command->name, arguments->given);
    if (geteuid() == 0 && ring_become_user(arguments->uid))
        return command->run(arguments);
    quoit_say("only its user and root control the ring \"%s\"", arguments->given);
    return RING_STATUS_FAILED;
}

/* On a slow link TCP makes its segments small, down to two packets, and on bridges each segment costs a doorbell. */
static uint32_t default_mtu(const char *command)
{
    return strcmp(command, "join") == 0 ? QUOIT_VETH_MTU_MAX : DEFAULT_MTU;
}

int command_ring(int argc, char **argv)
{
    const char *command = argc > 1 ? argv[1] : "";
    struct ring_arguments arguments = {.plan = {.name = "ring",
                                                .host_count = DEFAULT_HOSTS,
                                                .address = DEFAULT_ADDRESS,
                                                .prefix = DEFAULT_PREFIX,
                                                .mtu = default_mtu(command),
                                                .has_offload = 1,
                                                .queue_count = 1,
                                                .dma_bytes = QUOIT_VETH_DMA_NEVER,
                                                .devices = {[QUOIT_LEFT] = "/dev/ntb0", [QUOIT_RIGHT] = "/dev/ntb1"}},
                                       .given = "ring",
                                       .uid = geteuid(),
                                       .command = command};
    quoit_fill_standard_descriptors();
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            print_help();
            return 0;
        }
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        if (strcmp(arguments.command, commands[i].name) == 0) {
            int result = ring_arguments_parse(&arguments, argc, argv);
            if (result < 0)
                result = check_words(&commands[i], &arguments);
            return result >= 0 ? result : run(&commands[i], &arguments);
        }
    return ring_bad_usage("%s%s%s: up, join, down, status, exec, shell, cut, mend, doctor or list (see --help)",
                          *arguments.command ? "there is no \"" : "a command is missing", arguments.command,
                          *arguments.command ? "\"" : "");
}
