/* SPDX-License-Identifier: BSD-3-Clause */
/* quoit ring doctor - reports what keeps a ring from working, each problem with its remedy. */
#include "ring.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ring/route.h"

#define TUN_PATH     "/dev/net/tun"
#define MANY_OUTAGES 20u

struct findings {
    const char *given; /* the ring, as the user wrote it */
    uint32_t count;
};

__attribute__((format(printf, 2, 3))) static void report(struct findings *findings, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    printf("\n");
    findings->count++;
}

static void check_device(struct findings *findings, const char *path)
{
    if (access(path, R_OK | W_OK) != 0)
        report(findings, "%s: %s\n  %s", path, strerror(errno),
               errno == ENOENT ? "no port: the chip's driver and quoit_ntb must be loaded (docs/build-a-ring.md)"
                               : "be root, or of the group ntb (kernel/60-quoit-ntb.rules)");
}

static void check_tun(struct findings *findings)
{
    if (access(TUN_PATH, R_OK | W_OK) != 0)
        report(findings, TUN_PATH ": %s\n  %s", strerror(errno),
               errno == ENOENT ? "modprobe tun; in a container pass the device to it"
                               : "rings need to open it: be root, or chmod 666 " TUN_PATH);
}

static void check_namespaces(struct findings *findings)
{
    fflush(stdout);
    pid_t pid = fork();
    int status = 0;
    if (pid == 0)
        _exit(ring_enter_namespaces() ? 0 : errno);
    if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0)
        report(findings,
               "no network namespace: %s\n  be root, or: sysctl kernel.unprivileged_userns_clone=1 "
               "user.max_user_namespaces=10000 kernel.apparmor_restrict_unprivileged_userns=0 (those that exist)",
               WIFEXITED(status) ? strerror(WEXITSTATUS(status)) : "it could not be tried");
}

/* By SIGSTOP or a debugger. */
static bool is_stopped(pid_t pid)
{
    char path[40], state = 0;
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    FILE *file = pid > 0 ? fopen(path, "re") : NULL;
    bool is_read = file && fscanf(file, "%*d (%*[^)]) %c", &state) == 1;
    if (file)
        fclose(file);
    return is_read && (state == 'T' || state == 't');
}

static void check_host(struct findings *findings, const struct ring_reply *reply, uint32_t index)
{
    const struct ring_host_status *host = &reply->hosts[index];
    if (is_stopped(host->pid))
        report(findings, "host %u is stopped, and traffic through it too\n  kill -CONT %d", index, host->pid);
    if (!host->is_ready)
        report(findings,
               "host %u is starting, for the %u. time\n  wait a second; if it stays so, its neighbours do not answer: "
               "quoit ring status --ring %s",
               index, host->start_count, findings->given);
    else if (host->start_count > 1 && !reply->plan.is_joined)
        report(findings,
               "host %u was started %u times: its process was killed\n  programs that ran on it have lost their "
               "network: start them again",
               index, host->start_count);
    if (host->stats.malformed_frames != 0)
        report(findings, "host %u received %llu malformed frames\n  a neighbour writes garbage: make the ring anew",
               index, (unsigned long long)host->stats.malformed_frames);
    if (host->stats.refused_frames != 0)
        report(
            findings,
            "the device of host %u did not take %llu frames\n  is quoit0 down there, or its MTU less than elsewhere?",
            index, (unsigned long long)host->stats.refused_frames);
}

/* Compares the states at both ends. */
static void check_link(struct findings *findings, const struct ring_reply *reply, uint32_t link)
{
    uint32_t next = quoit_ring_neighbour(reply->plan.host_count, QUOIT_RIGHT, link);
    enum quoit_link_state near = (enum quoit_link_state)reply->hosts[link].link_states[QUOIT_RIGHT];
    enum quoit_link_state far = (enum quoit_link_state)reply->hosts[next].link_states[QUOIT_LEFT];
    uint32_t outages = reply->hosts[link].outage_counts[QUOIT_RIGHT];
    if (!reply->hosts[link].is_ready || !reply->hosts[next].is_ready)
        return;
    if (near != QUOIT_LINK_STATE_UP || far != QUOIT_LINK_STATE_UP)
        report(findings, "link %u is down: %s at host %u, %s at host %u\n  if it was cut: quoit ring mend --ring %s %u",
               link, quoit_link_state_name(near), link, quoit_link_state_name(far), next, findings->given, link);
    else if (outages > MANY_OUTAGES)
        report(findings,
               "link %u flaps: it went down %u times\n  look for what cuts it; it is held down for a while after each",
               link, outages);
}

/* On bridges this machine sees only its own ports. Reports what each leads to. */
static void check_cable(struct findings *findings, const struct ring_reply *reply, enum quoit_side side)
{
    const struct ring_host_status *own = &reply->hosts[reply->plan.host];
    uint32_t neighbour = quoit_ring_neighbour(reply->plan.host_count, side, reply->plan.host);
    uint32_t host = own->peer_hosts[side] - 1;
    bool is_up = own->link_states[side] == QUOIT_LINK_STATE_UP;
    const char *name = side == QUOIT_LEFT ? "left" : "right", *device = reply->plan.devices[side];
    if (own->peer_hosts[side] == 0)
        report(
            findings,
            "%s (%s): nobody answers\n  host %u must be on, with quoit ring join; the cable must be in; dmesg | grep "
            "-i "
            "ntb",
            device, name, neighbour);
    else if (own->peer_sides[side] == (uint32_t)side + 1)
        report(
            findings,
            "%s (%s) leads to the %s port of host %u\n  a cable joins a right port to a left one: exchange --left and "
            "--right, or the cables, of one of the two",
            device, name, name, host);
    else if (host != neighbour)
        report(
            findings,
            "%s (%s) leads to host %u, but host %u belongs there\n  the cable goes to host %u, or a host has the wrong "
            "--host",
            device, name, host, neighbour, neighbour);
    else if (!is_up)
        report(
            findings,
            "%s (%s) leads to host %u, but the link is down (%s)\n  it is off, or its ring has another name, --hosts "
            "or "
            "version: quoit ring doctor there",
            device, name, host, quoit_link_state_name((enum quoit_link_state)own->link_states[side]));
    else
        printf("%s (%s) leads to host %u, up\n", device, name, host);
}

static void check_joined(struct findings *findings, const struct ring_reply *reply)
{
    for (enum quoit_side side = 0; side < QUOIT_SIDE_COUNT; side++)
        check_device(findings, reply->plan.devices[side]);
    check_host(findings, reply, reply->plan.host);
    for (enum quoit_side side = 0; side < QUOIT_SIDE_COUNT; side++)
        check_cable(findings, reply, side);
}

/* The keeper does not answer. errno and the reply are those of ring_ask(). */
static void check_keeper(struct findings *findings, const struct ring_reply *reply, const struct ring_answerer *by)
{
    if (errno == EPROTO) {
        ring_report_no_answer(findings->given, reply, by);
        findings->count++;
    } else if (errno == EAGAIN) {
        char silence[RING_SILENCE_BYTES];
        ring_describe_silence(findings->given, by, silence);
        report(findings, "%s", silence);
    } else {
        printf("the ring \"%s\" does not exist: quoit ring up --ring %s\n", findings->given, findings->given);
    }
}

/* A process that became another user may not write its own uid_map. */
static bool can_try_namespaces(void)
{
    return prctl(PR_GET_DUMPABLE) == 1;
}

int ring_doctor(const char *name, const char *given)
{
    struct findings findings = {.given = given};
    struct ring_reply reply;
    struct ring_answerer by;
    bool is_up = ring_ask(name, RING_STATUS, &reply, &by);
    int error = errno;
    check_tun(&findings);
    if ((!is_up || !reply.plan.is_joined) && can_try_namespaces())
        check_namespaces(&findings);
    errno = error;
    if (!is_up)
        check_keeper(&findings, &reply, &by);
    else if (reply.plan.is_joined)
        check_joined(&findings, &reply);
    for (uint32_t i = 0; is_up && !reply.plan.is_joined && i < reply.plan.host_count; i++)
        check_host(&findings, &reply, i);
    for (uint32_t i = 0; is_up && !reply.plan.is_joined && i < reply.plan.host_count; i++)
        check_link(&findings, &reply, i);
    if (findings.count == 0)
        printf("%s\n", is_up ? "nothing is wrong" : "nothing on this machine keeps it from being started");
    return findings.count != 0;
}
