/* SPDX-License-Identifier: BSD-3-Clause */
/* The client's end of the socket. */
#include "share/message.h"

#include <errno.h>
#include <poll.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/log.h"
#include "base/options.h"
#include "env/await.h"
#include "env/clock.h"

#define WAIT_S      5  /* the owner may be busy with a host that ends, or with a silent client, for some of them */
#define BUSY_S      60 /* one that runs, or gets no processor */
#define LOOK_MS     100
#define PATH_PREFIX "@quoit-share-"

uint32_t quoit_share_user(const char *text, const char **name_out)
{
    const char *colon = strchr(text, ':');
    char user[64];
    uint64_t number;
    *name_out = colon ? colon + 1 : text;
    if (!colon)
        return geteuid();
    snprintf(user, sizeof user, "%.*s", (int)(colon - text), text);
    if (quoit_parse_uint(user, &number) && number < UINT32_MAX)
        return (uint32_t)number;
    const struct passwd *entry = getpwnam(user);
    return entry ? entry->pw_uid : UINT32_MAX;
}

void quoit_share_path(uint32_t uid, const char *name, char path_out[QUOIT_SHARE_PATH_BYTES])
{
    snprintf(path_out, QUOIT_SHARE_PATH_BYTES, PATH_PREFIX "%u-%s", uid, name);
}

/* Any user may bind any abstract name, so the listener must be the user whom the name claims, or root. */
static bool is_trusted(const char *path, int fd)
{
    struct ucred owner;
    socklen_t bytes = sizeof owner;
    unsigned claimed;
    if (path[0] != '@')
        return true;
    if (sscanf(path, PATH_PREFIX "%u-", &claimed) != 1)
        claimed = geteuid();
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &owner, &bytes) == 0 && (owner.uid == claimed || owner.uid == 0);
}

static enum quoit_status connect_to(const char *path, int *fd_out)
{
    struct sockaddr_un address;
    socklen_t bytes = quoit_share_address(path, &address);
    const struct timeval limit = {.tv_sec = WAIT_S};
    int fd = bytes ? socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0) : -1;
    if (fd < 0)
        return QUOIT_SYSTEM;
    if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit) == 0 &&
        setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit) == 0 &&
        connect(fd, (struct sockaddr *)&address, bytes) == 0) {
        if (is_trusted(path, fd)) {
            *fd_out = fd;
            return QUOIT_OK;
        }
        errno = ECONNREFUSED;
    }
    int error = errno;
    close(fd);
    errno = error;
    if (error == ECONNREFUSED || error == ENOENT)
        return QUOIT_GONE;
    return error == EAGAIN ? QUOIT_TIMEOUT : QUOIT_SYSTEM;
}

bool quoit_share_exists(const char *path)
{
    struct sockaddr_un address;
    socklen_t bytes = quoit_share_address(path, &address);
    int fd = bytes ? socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0) : -1;
    bool is_refused =
        fd >= 0 && connect(fd, (struct sockaddr *)&address, bytes) != 0 && (errno == ECONNREFUSED || errno == ENOENT);
    if (fd >= 0)
        close(fd);
    return !is_refused;
}

/* NULL: the owner's build has no message headers. */
static void report_build(const struct quoit_share_head *owner)
{
    char own[QUOIT_SHARE_BUILD_BYTES], other[QUOIT_SHARE_BUILD_BYTES];
    const struct quoit_share_head head =
        quoit_share_head_make(QUOIT_SHARE_MAGIC, sizeof(struct quoit_share_message), QUOIT_SHARE_QUERY);
    quoit_say("the ring is of another build of Quoit: %s, and this program is of %s; use the same, or make the "
              "ring anew: quoit ring down, quoit ring up [Q0605]",
              quoit_share_build_text(owner, other), quoit_share_build_text(&head, own));
}

/* Replaces the owner's markers by the received descriptors. */
static uint32_t fill_fds(int *fds, uint32_t fd_max, const int *received, uint32_t received_count, uint32_t at)
{
    for (uint32_t i = 0; i < fd_max; i++)
        if (fds[i] >= 0)
            fds[i] = at < received_count ? received[at++] : -1;
    return at;
}

static void take_descriptors(struct quoit_share_message *message, const int *fds, uint32_t fd_count)
{
    struct quoit_share *share = &message->body.share;
    uint32_t at = 0;
    if (message->head.kind == QUOIT_SHARE_ATTACH && message->head.status == QUOIT_OK) {
        at = fill_fds(share->wire_fds, QUOIT_SHARE_HOSTS_MAX, fds, fd_count, at);
        at = fill_fds(share->link_fds, QUOIT_SHARE_HOSTS_MAX, fds, fd_count, at);
        at = fill_fds(share->memory_fds, QUOIT_SHARE_HOSTS_MAX, fds, fd_count, at);
    } else if (message->head.kind == QUOIT_SHARE_NAMESPACES && message->head.status == QUOIT_OK) {
        at = fill_fds(message->body.namespaces.fds, QUOIT_SHARE_NS_COUNT, fds, fd_count, at);
    }
    while (at < fd_count)
        close(fds[at++]);
}

/* What the owner does decides, not the clock, so neither a busy machine nor a stop of this process counts. False: the
 * owner is stopped or does nothing, which was reported. */
static bool await_reply(int fd)
{
    struct quoit_await await = {0};
    struct quoit_process facts = {0};
    struct pollfd reply = {.fd = fd, .events = POLLIN};
    struct ucred owner = {0};
    socklen_t bytes = sizeof owner;
    uint64_t busy_ns = 0, next_ns;
    enum quoit_await_verdict verdict = QUOIT_AWAIT_GOES_ON;
    (void)getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &owner, &bytes);
    for (int looks = 0; verdict != QUOIT_AWAIT_HANGS && looks < BUSY_S;) {
        if (poll(&reply, 1, LOOK_MS) > 0)
            return true;
        uint64_t now_ns = quoit_clock_now_ns();
        if (!quoit_await_is_due(&await, 1, BUSY_S * UINT64_C(1000000000), now_ns, &next_ns))
            continue;
        struct quoit_await_view view = {.is_idle = true};
        quoit_process_look(owner.pid, &facts);
        quoit_await_add(&view, &facts, busy_ns);
        view.is_idle |= facts.state == 'T';
        busy_ns = facts.busy_ns;
        verdict = quoit_await_step(&await, &view, WAIT_S * UINT64_C(1000000000), now_ns);
        looks++;
    }
    quoit_say("the keeper of the ring (process %d) has not answered for %u s: %s [Q0245]", (int)owner.pid,
              (unsigned)((quoit_clock_now_ns() - await.since_ns) / 1000000000u), quoit_await_state_text(&facts));
    return false;
}

/* GONE: the owner hung up without a reply. */
static enum quoit_status receive_reply(int fd, uint32_t kind, struct quoit_share_message *message_out)
{
    int fds[QUOIT_SHARE_FDS_MAX];
    struct quoit_ancillary received = {.fds = fds, .fd_max = QUOIT_SHARE_FDS_MAX};
    if (!await_reply(fd))
        return QUOIT_TIMEOUT;
    ssize_t n = quoit_receive_with_descriptors(fd, message_out, sizeof *message_out, &received, 0);
    if (n < 0 && errno == ECONNRESET) /* closed before it read the request; a refusal may still be in the queue */
        n = quoit_receive_with_descriptors(fd, message_out, sizeof *message_out, &received, 0);
    if (n < 0 && errno == EAGAIN)
        return QUOIT_TIMEOUT;
    if (n == 0 || (n < 0 && errno == ECONNRESET))
        return QUOIT_GONE;
    if (n < 0)
        return QUOIT_SYSTEM;
    const struct quoit_share_head *head = &message_out->head;
    if (quoit_share_head_matches(head, (size_t)n, QUOIT_SHARE_MAGIC, sizeof *message_out) && head->kind == kind &&
        !received.is_truncated) {
        take_descriptors(message_out, fds, received.fd_count);
        return (enum quoit_status)head->status;
    }
    bool has_head = quoit_share_head_is_present(head, (size_t)n, QUOIT_SHARE_MAGIC);
    for (uint32_t i = 0; i < received.fd_count; i++)
        close(fds[i]);
    if (has_head && head->kind == QUOIT_SHARE_REFUSED && head->protocol == QUOIT_SHARE_PROTOCOL)
        return QUOIT_UNSUPPORTED;
    report_build(has_head ? head : NULL);
    return QUOIT_INVALID;
}

/* One request and its reply, which overwrites it. */
static enum quoit_status exchange(const char *path, struct quoit_share_message *message, int *connection_out)
{
    int fd;
    uint32_t kind = message->head.kind;
    enum quoit_status status = connect_to(path, &fd);
    if (status != QUOIT_OK)
        return status;
    ssize_t n;
    do
        n = send(fd, message, sizeof *message, MSG_NOSIGNAL);
    while (n < 0 && errno == EINTR);
    if (n == (ssize_t)sizeof *message || errno == EPIPE || errno == ECONNRESET) /* a refusal may have come before */
        status = receive_reply(fd, kind, message);
    else
        status = errno == EAGAIN ? QUOIT_TIMEOUT : QUOIT_GONE;
    if (status == QUOIT_OK && connection_out)
        *connection_out = fd;
    else
        close(fd);
    return status;
}

/* An owner from before message headers hangs up on this request, every time. One that ended meanwhile, or that had to
 * make room for other clients, does so once. */
static enum quoit_status request(const char *path, struct quoit_share_message *message, int *connection_out)
{
    int probe_fd;
    message->head = quoit_share_head_make(QUOIT_SHARE_MAGIC, sizeof *message, message->head.kind);
    enum quoit_status status = exchange(path, message, connection_out);
    if (status == QUOIT_GONE)
        status = exchange(path, message, connection_out);
    if (status != QUOIT_GONE || connect_to(path, &probe_fd) != QUOIT_OK)
        return status;
    close(probe_fd);
    report_build(NULL);
    return QUOIT_INVALID;
}

static bool is_path(const char text[QUOIT_SHARE_DEVICE_BYTES])
{
    size_t length = strnlen(text, QUOIT_SHARE_DEVICE_BYTES);
    for (size_t i = 0; i < length; i++)
        if (text[i] <= ' ' || text[i] > '~' || text[i] == ',')
            return false;
    return length < QUOIT_SHARE_DEVICE_BYTES;
}

/* The owner may be another user: nothing it sends may reach past an array or change the state of a terminal. */
static bool is_valid(const struct quoit_share_config *ring)
{
    return memchr(ring->driver, '\0', sizeof ring->driver) && ring->host_count >= 2 &&
           ring->host_count <= QUOIT_SHARE_HOSTS_MAX && ring->machines.host < ring->host_count &&
           is_path(ring->machines.left) && is_path(ring->machines.right);
}

enum quoit_status quoit_share_query(const char *path, struct quoit_share_list *list_out)
{
    struct quoit_share_message message = {.head.kind = QUOIT_SHARE_QUERY};
    struct quoit_share_list *list = &message.body.list;
    enum quoit_status status = request(path, &message, NULL);
    if (status != QUOIT_OK)
        return status;
    if (!is_valid(&list->ring) || list->client_count > QUOIT_SHARES_MAX)
        return QUOIT_INVALID;
    for (uint32_t i = 0; i < list->client_count; i++)
        quoit_share_clean_label(list->clients[i].label);
    *list_out = *list;
    return QUOIT_OK;
}

enum quoit_status quoit_share_attach(const char *path, const struct quoit_share_request *share_request,
                                     struct quoit_share *share_out, int *connection_out)
{
    struct quoit_share_message message = {.head.kind = QUOIT_SHARE_ATTACH, .body.request = *share_request};
    enum quoit_status status = request(path, &message, connection_out);
    if (status != QUOIT_OK)
        return status;
    if (!is_valid(&message.body.share.ring)) {
        quoit_share_close(&message.body.share);
        close(*connection_out);
        return QUOIT_INVALID;
    }
    *share_out = message.body.share;
    return QUOIT_OK;
}

enum quoit_status quoit_share_cut(const char *path, uint32_t link, bool is_cut)
{
    struct quoit_share_message message = {.head.kind = is_cut ? QUOIT_SHARE_CUT : QUOIT_SHARE_MEND, .body.link = link};
    return request(path, &message, NULL);
}

enum quoit_status quoit_share_get_namespaces(const char *path, uint32_t host,
                                             struct quoit_share_namespaces *namespaces_out)
{
    struct quoit_share_message message = {.head.kind = QUOIT_SHARE_NAMESPACES, .body.host = host};
    enum quoit_status status = request(path, &message, NULL);
    if (status == QUOIT_OK)
        *namespaces_out = message.body.namespaces;
    return status;
}
