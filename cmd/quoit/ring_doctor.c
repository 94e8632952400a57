/* SPDX-License-Identifier: BSD-3-Clause */
/* quoit ring doctor - what keeps a ring from working, each with its remedy. */
#include "ring.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ring/route.h"

#define TUN_PATH     "/dev/net/tun"
#define MANY_OUTAGES 20u

struct findings {
    uint32_t count;
};

__attribute__((format(printf, 2, 3))) static void find(struct findings *findings, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    printf("\n");
    findings->count++;
}

static void check_machine(struct findings *findings)
{
    if (access(TUN_PATH, R_OK | W_OK) != 0)
        find(findings, TUN_PATH ": %s\n  %s", strerror(errno),
             errno == ENOENT ? "modprobe tun; in a container pass the device to it"
                             : "rings need to open it: be root, or chmod 666 " TUN_PATH);
    fflush(stdout);
    pid_t pid = fork();
    int status = 0;
    if (pid == 0)
        _exit(ring_enter_namespaces() ? 0 : errno);
    if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0)
        find(findings,
             "no network namespace: %s\n  be root, or: sysctl kernel.unprivileged_userns_clone=1 "
             "user.max_user_namespaces=10000 kernel.apparmor_restrict_unprivileged_userns=0 (those that exist)",
             WIFEXITED(status) ? strerror(WEXITSTATUS(status)) : "it could not be tried");
}

static void check_host(struct findings *findings, const struct ring_reply *reply, uint32_t index)
{
    const struct ring_host_status *host = &reply->hosts[index];
    if (!host->is_ready)
        find(findings,
             "host %u is starting, for the %u. time\n  wait a second; if it stays so, its neighbours do not answer: "
             "quoit ring status",
             index, host->start_count);
    else if (host->start_count > 1)
        find(findings,
             "host %u was started %u times: its process was killed\n  programs that ran on it have lost their "
             "network: start them again",
             index, host->start_count);
    if (host->stats.malformed_frames != 0)
        find(findings, "host %u received %llu frames that cannot be\n  a neighbour writes garbage: make the ring anew",
             index, (unsigned long long)host->stats.malformed_frames);
    if (host->stats.refused_frames != 0)
        find(findings,
             "the device of host %u did not take %llu frames\n  is quoit0 down there, or its MTU less than elsewhere?",
             index, (unsigned long long)host->stats.refused_frames);
}

/* Both ends of link i: the right of host i, the left of the next. */
static void check_link(struct findings *findings, const struct ring_reply *reply, uint32_t link)
{
    uint32_t next = quoit_ring_neighbour(reply->plan.host_count, QUOIT_RIGHT, link);
    enum quoit_link_state near = (enum quoit_link_state)reply->hosts[link].link_states[QUOIT_RIGHT];
    enum quoit_link_state far = (enum quoit_link_state)reply->hosts[next].link_states[QUOIT_LEFT];
    uint32_t outages = reply->hosts[link].outage_counts[QUOIT_RIGHT];
    if (!reply->hosts[link].is_ready || !reply->hosts[next].is_ready)
        return;
    if (near != QUOIT_LINK_STATE_UP || far != QUOIT_LINK_STATE_UP)
        find(findings, "link %u is down: %s at host %u, %s at host %u\n  if it was cut: quoit ring mend %u", link,
             quoit_link_state_name(near), link, quoit_link_state_name(far), next, link);
    else if (outages > MANY_OUTAGES)
        find(findings,
             "link %u flaps: it went down %u times\n  look for what cuts it; it is held down for a while after each",
             link, outages);
}

int ring_doctor(const char *name)
{
    struct findings findings = {0};
    struct ring_reply reply;
    check_machine(&findings);
    if (ring_ask(name, (struct ring_request){.kind = RING_STATUS}, &reply)) {
        for (uint32_t i = 0; i < reply.plan.host_count; i++)
            check_host(&findings, &reply, i);
        for (uint32_t i = 0; i < reply.plan.host_count; i++)
            check_link(&findings, &reply, i);
    } else {
        printf("the ring \"%s\" does not exist: quoit ring up --ring %s\n", name, name);
    }
    if (findings.count == 0)
        printf("nothing is wrong\n");
    return findings.count != 0;
}
