/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests to the keeper of a ring. */
#include "ring.h"
#include "base/log.h"

#include <errno.h>
#include <grp.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "env/clock.h"

#define ANSWER_SECONDS 5 /* of a keeper that sleeps */
#define END_MS         2000
#define NO_GROUP       65534u /* of a user without an entry */

bool ring_become_user(uint32_t uid)
{
    if (uid == geteuid())
        return true;
    const struct passwd *entry = getpwuid(uid);
    gid_t gid = entry ? entry->pw_gid : NO_GROUP;
    bool has_groups = entry ? initgroups(entry->pw_name, gid) == 0 : setgroups(0, NULL) == 0;
    if (!has_groups || setresgid(gid, gid, gid) != 0 || setresuid(uid, uid, uid) != 0)
        return false;
    if (!entry)
        return true;
    return setenv("HOME", entry->pw_dir, 1) == 0 && setenv("USER", entry->pw_name, 1) == 0 &&
           setenv("LOGNAME", entry->pw_name, 1) == 0;
}

socklen_t ring_address(const char *name, struct sockaddr_un *address_out)
{
    *address_out = (struct sockaddr_un){.sun_family = AF_UNIX};
    int length =
        snprintf(address_out->sun_path + 1, sizeof address_out->sun_path - 1, RING_SOCKET "-%u-%s", geteuid(), name);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
}

/* Returns a descriptor on which the reply arrives, or -1 with errno. EACCES: another user has bound the name. */
static int send_request(const char *name, enum ring_request_kind kind, pid_t *keeper_out)
{
    const struct quoit_share_head request = quoit_share_head_make(RING_MAGIC, sizeof(struct ring_reply), kind);
    const struct timeval limit = {.tv_sec = ANSWER_SECONDS};
    struct sockaddr_un address;
    struct ucred peer;
    socklen_t bytes = ring_address(name, &address), peer_bytes = sizeof peer;
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit) == 0 &&
        setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit) == 0 &&
        connect(fd, (struct sockaddr *)&address, bytes) == 0 &&
        getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &peer_bytes) == 0) {
        *keeper_out = peer.pid;
        bool is_own = peer.uid == geteuid();
        if (is_own && send(fd, &request, sizeof request, MSG_NOSIGNAL) == (ssize_t)sizeof request)
            return fd;
        errno = is_own ? errno : EACCES;
    }
    int error = errno;
    if (fd >= 0)
        close(fd);
    errno = error;
    return -1;
}

static bool is_printable(const char *text, size_t bytes)
{
    size_t length = strnlen(text, bytes);
    for (size_t i = 0; i < length; i++)
        if (text[i] < ' ' || text[i] > '~')
            return false;
    return length < bytes;
}

/* Root may read the reply of another user's keeper: nothing in it may reach past an array or control a terminal. */
static bool is_valid(const struct ring_reply *reply)
{
    const struct ring_plan *plan = &reply->plan;
    bool is_good = is_printable(plan->name, sizeof plan->name) && plan->host_count >= 2 &&
                   plan->host_count <= RING_HOSTS_MAX && (!plan->is_joined || plan->host < plan->host_count);
    for (enum quoit_side side = 0; side < QUOIT_SIDE_COUNT; side++)
        is_good &= is_printable(plan->devices[side], sizeof plan->devices[side]);
    return is_good;
}

/* False, with EAGAIN: nothing has come, and the keeper is stopped or does nothing. */
static bool await_reply(int fd, struct ring_answerer *by)
{
    struct pollfd reply = {.fd = fd, .events = POLLIN};
    int wait_ms;
    do {
        const uint64_t limit_ns = ANSWER_SECONDS * UINT64_C(1000000000);
        enum quoit_await_verdict verdict = ring_await_look(&by->await, 1, by->keeper, limit_ns, &wait_ms);
        bool is_stopped = by->await.process.state == 'T' || by->await.process.state == 't';
        if (verdict == QUOIT_AWAIT_HANGS || (verdict == QUOIT_AWAIT_REPORT && is_stopped)) {
            errno = EAGAIN;
            return false;
        }
    } while (poll(&reply, 1, wait_ms) <= 0);
    return true;
}

static bool ask_once(const char *name, enum ring_request_kind kind, struct ring_reply *reply, struct ring_answerer *by)
{
    *by = (struct ring_answerer){0};
    reply->head.magic = 0;
    int fd = send_request(name, kind, &by->keeper);
    if (fd < 0)
        return false;
    ssize_t n = await_reply(fd, by) ? recv(fd, reply, sizeof *reply, MSG_TRUNC) : -1;
    int error = n < 0 ? errno : EPROTO;
    size_t bytes = n < 0 ? 0 : (size_t)n;
    close(fd);
    if (!quoit_share_head_is_present(&reply->head, bytes, RING_MAGIC))
        reply->head.magic = 0;
    errno = error;
    if (!quoit_share_head_matches(&reply->head, bytes, RING_MAGIC, sizeof *reply))
        return false;
    errno = EBADMSG;
    return is_valid(reply);
}

/* Without a request. */
static bool has_keeper(const char *name)
{
    struct sockaddr_un address;
    socklen_t bytes = ring_address(name, &address);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    bool is_there = fd < 0 || connect(fd, (struct sockaddr *)&address, bytes) == 0 || errno != ECONNREFUSED;
    if (fd >= 0)
        close(fd);
    return is_there;
}

/* Twice, if this process was held up for so long that the keeper did not wait for its request. */
bool ring_ask(const char *name, enum ring_request_kind kind, struct ring_reply *reply, struct ring_answerer *by)
{
    uint64_t begin_ns = quoit_clock_now_ns();
    if (ask_once(name, kind, reply, by))
        return true;
    int error = errno;
    bool was_closed = (error == EPROTO && reply->head.magic != RING_MAGIC) || error == ECONNRESET || error == EPIPE;
    if (was_closed && quoit_clock_now_ns() - begin_ns >= RING_REQUEST_SECONDS * 1000000000u)
        return ask_once(name, kind, reply, by);
    if (was_closed && !has_keeper(name))
        error = ECONNREFUSED;
    errno = error;
    return false;
}

pid_t ring_keeper_pid(const char *name)
{
    pid_t keeper = 0;
    int fd = send_request(name, RING_STATUS, &keeper);
    if (fd >= 0)
        close(fd);
    return keeper;
}

void ring_describe_silence(const char *given, const struct ring_answerer *by, char text_out[RING_SILENCE_BYTES])
{
    int bytes =
        snprintf(text_out, RING_SILENCE_BYTES, "the keeper of the ring \"%s\" (process %d) does not answer: %s\n",
                 given, (int)by->keeper, quoit_await_state_text(&by->await.process));
    if (by->await.process.state == 'T')
        snprintf(text_out + bytes, RING_SILENCE_BYTES - (size_t)bytes, "  kill -CONT %d [Q0245]", (int)by->keeper);
    else
        snprintf(text_out + bytes, RING_SILENCE_BYTES - (size_t)bytes, "  quoit ring down --ring %s ends it [Q0245]",
                 given);
}

void ring_report_no_answer(const char *given, const struct ring_reply *reply, const struct ring_answerer *by)
{
    int error = errno;
    char silence[RING_SILENCE_BYTES], own[QUOIT_SHARE_BUILD_BYTES], other[QUOIT_SHARE_BUILD_BYTES];
    const struct quoit_share_head head = quoit_share_head_make(RING_MAGIC, sizeof *reply, RING_STATUS);
    const struct quoit_share_head *keeper = reply->head.magic == RING_MAGIC ? &reply->head : NULL;
    if (error == ECONNREFUSED || error == ENOENT) {
        quoit_say("there is no ring \"%s\"; make it with: quoit ring up --ring %s", given, given);
    } else if (error == EPROTO) {
        quoit_say("the ring \"%s\" is kept by another build of Quoit: %s, and this is %s; use that one's "
                  "quoit, or end the ring: quoit ring down --ring %s [Q0605]",
                  given, quoit_share_build_text(keeper, other), quoit_share_build_text(&head, own), given);
    } else if (error == EAGAIN) {
        ring_describe_silence(given, by, silence);
        quoit_say("%s", silence);
    } else {
        quoit_say("the ring \"%s\" does not answer: %s", given, strerror(error));
    }
}

/* The hosts end with their keeper, and the name becomes free. */
static bool has_ended(const char *name)
{
    for (uint32_t ms = 0; ms < END_MS; ms++) {
        if (ring_keeper_pid(name) == 0)
            return true;
        quoit_clock_sleep_ns(1000000);
    }
    return false;
}

/* SIGTERM ends a keeper of a build from before message headers, SIGKILL one that is silent. */
static int end_keeper(const char *name, const char *given, pid_t keeper, bool is_silent)
{
    fprintf(stderr,
            is_silent ? "quoit ring: process %d, which keeps the ring \"%s\", did not answer and was killed\n"
                      : "quoit ring: process %d of another build, which kept the ring \"%s\", was told to end\n",
            (int)keeper, given);
    if (!is_silent && (kill(keeper, SIGTERM) != 0 || has_ended(name)))
        return ring_keeper_pid(name) == 0 ? 0 : 1;
    if (kill(keeper, SIGKILL) != 0 && errno != ESRCH)
        return 1;
    has_ended(name);
    return 0;
}

int ring_down(const char *name, const char *given)
{
    struct ring_reply reply;
    struct ring_answerer by;
    if (ring_ask(name, RING_DOWN, &reply, &by))
        return 0;
    int error = errno;
    if (error == EPROTO && reply.head.magic == RING_MAGIC && reply.head.kind == RING_DOWN)
        return 0; /* another build, which has obeyed */
    if ((error == EAGAIN || error == EPROTO) && by.keeper > 0)
        return end_keeper(name, given, by.keeper, error == EAGAIN);
    errno = error;
    ring_report_no_answer(given, &reply, &by);
    return 1;
}
