/* SPDX-License-Identifier: BSD-3-Clause */
/* The owner's end of the socket. A connection carries one request; if that took a share, the connection stays open for
 * as long as the share lives, and any further message ends it. */
#include "share/message.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define PENDING_MAX     16 /* connections without a request so far; one more evicts the oldest */
#define CONNECTIONS_MAX (QUOIT_SHARES_MAX + PENDING_MAX)

struct connection {
    int fd; /* -1: free */
    uint64_t ordinal;
    struct ucred sender;
    const struct quoit_share *share; /* NULL: none taken */
    char label[QUOIT_SHARE_LABEL_BYTES];
};

struct quoit_share_server {
    struct quoit_shared_ring *ring;
    int listen_fd;
    int epoll_fd;
    bool allows_all;
    uint32_t shares_per_user;
    pid_t (*process_of)(void *arg, uint32_t host); /* NULL: hosts have no namespaces */
    void *process_arg;
    uint64_t accepted_count;
    struct connection connections[CONNECTIONS_MAX];
};

/* The event's pointer is the connection; NULL: the listening socket. */
static bool watch(struct quoit_share_server *server, int fd, struct connection *connection)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = connection};
    return epoll_ctl(server->epoll_fd, EPOLL_CTL_ADD, fd, &event) == 0;
}

enum quoit_status quoit_share_server_open(struct quoit_shared_ring *ring, const char *path, bool allows_all,
                                          struct quoit_share_server **server_out)
{
    struct sockaddr_un address;
    socklen_t bytes = quoit_share_address(path, &address);
    struct quoit_share_server *server = bytes ? calloc(1, sizeof *server) : NULL;
    if (!server)
        return bytes ? QUOIT_NO_MEMORY : QUOIT_SYSTEM;
    server->ring = ring;
    server->allows_all = allows_all;
    server->shares_per_user = QUOIT_SHARES_MAX;
    for (uint32_t i = 0; i < CONNECTIONS_MAX; i++)
        server->connections[i].fd = -1;
    server->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    server->listen_fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    /* bind() creates a path with the mode of the descriptor, so it never has wider permissions. */
    if (server->epoll_fd >= 0 && server->listen_fd >= 0 && fchmod(server->listen_fd, allows_all ? 0666 : 0600) == 0 &&
        bind(server->listen_fd, (struct sockaddr *)&address, bytes) == 0 &&
        listen(server->listen_fd, CONNECTIONS_MAX) == 0 && watch(server, server->listen_fd, NULL)) {
        *server_out = server;
        return QUOIT_OK;
    }
    int error = errno;
    quoit_share_server_close_in_child(server);
    errno = error;
    return QUOIT_SYSTEM;
}

void quoit_share_server_set_user_limit(struct quoit_share_server *server, uint32_t shares_per_user)
{
    server->shares_per_user = shares_per_user;
}

void quoit_share_server_set_processes(struct quoit_share_server *server, pid_t (*process_of)(void *arg, uint32_t host),
                                      void *arg)
{
    server->process_of = process_of;
    server->process_arg = arg;
}

/* Connections */

static void hang_up(struct quoit_share_server *server, struct connection *connection)
{
    if (connection->share)
        quoit_share_end(server->ring, connection->share);
    /* close() alone does not remove it: a child of the owner may hold the descriptor too. */
    epoll_ctl(server->epoll_fd, EPOLL_CTL_DEL, connection->fd, NULL);
    close(connection->fd);
    *connection = (struct connection){.fd = -1};
}

static bool is_owner_or_root(const struct ucred *sender)
{
    return sender->uid == geteuid() || sender->uid == 0;
}

/* Evicts the oldest pending connection if there are PENDING_MAX, so silent clients cannot keep others out. */
static struct connection *free_connection(struct quoit_share_server *server)
{
    struct connection *oldest = NULL;
    uint32_t pending_count = 0;
    for (uint32_t i = 0; i < CONNECTIONS_MAX; i++) {
        struct connection *at = &server->connections[i];
        pending_count += at->fd >= 0 && !at->share;
        if (at->fd >= 0 && !at->share && (!oldest || at->ordinal < oldest->ordinal))
            oldest = at;
    }
    if (pending_count == PENDING_MAX)
        hang_up(server, oldest);
    for (uint32_t i = 0; i < CONNECTIONS_MAX; i++)
        if (server->connections[i].fd < 0)
            return &server->connections[i];
    return NULL;
}

/* A header alone, which every build understands. */
static void send_head(int fd, uint32_t kind, enum quoit_status status)
{
    struct quoit_share_head head = quoit_share_head_make(QUOIT_SHARE_MAGIC, sizeof(struct quoit_share_message), kind);
    head.status = (uint32_t)status;
    (void)!send(fd, &head, sizeof head, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* A user who may not connect is told so at once and takes no place among the pending connections. */
static void accept_connection(struct quoit_share_server *server)
{
    struct ucred sender;
    socklen_t bytes = sizeof sender;
    int fd = accept4(server->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) { /* out of descriptors or memory: do not spin */
        if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS)
            usleep(10000);
        return;
    }
    bool is_known = getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &sender, &bytes) == 0;
    if (is_known && !server->allows_all && !is_owner_or_root(&sender)) {
        send_head(fd, QUOIT_SHARE_REFUSED, QUOIT_UNSUPPORTED);
        is_known = false;
    }
    struct connection *connection = is_known ? free_connection(server) : NULL;
    if (!connection || !watch(server, fd, connection)) {
        close(fd);
        return;
    }
    *connection = (struct connection){.fd = fd, .ordinal = ++server->accepted_count, .sender = sender};
}

/* Requests */

static void list_clients(const struct quoit_share_server *server, struct quoit_share_list *list_out)
{
    memset(list_out, 0, sizeof *list_out);
    quoit_shared_ring_info(server->ring, &list_out->ring, &list_out->cut_links);
    for (uint32_t i = 0; i < CONNECTIONS_MAX; i++) {
        const struct connection *at = &server->connections[i];
        if (!at->share)
            continue;
        struct quoit_share_client *client = &list_out->clients[list_out->client_count++];
        *client =
            (struct quoit_share_client){.id = at->share->id, .uid = at->sender.uid, .pid = (uint32_t)at->sender.pid};
        memcpy(client->label, at->label, sizeof client->label);
    }
}

static uint32_t shares_of(const struct quoit_share_server *server, uid_t uid)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < CONNECTIONS_MAX; i++)
        count += server->connections[i].share && server->connections[i].sender.uid == uid;
    return count;
}

static enum quoit_status attach(struct quoit_share_server *server, struct connection *connection,
                                struct quoit_share_message *message)
{
    struct quoit_share_request request = message->body.request;
    if (shares_of(server, connection->sender.uid) >= server->shares_per_user)
        return QUOIT_OUT_OF_RANGE;
    request.part.percent = 0;
    enum quoit_status status = quoit_share_take(server->ring, &request, &connection->share);
    if (status != QUOIT_OK)
        return status;
    memcpy(connection->label, request.label, sizeof connection->label);
    quoit_share_clean_label(connection->label);
    message->body.share = *connection->share;
    return QUOIT_OK;
}

/* For the owner's user alone: the kernel lets no other user enter, and root should not enter a namespace that another
 * user controls. */
static enum quoit_status open_namespaces(const struct quoit_share_server *server, const struct connection *connection,
                                         uint32_t host, struct quoit_share_namespaces *namespaces_out)
{
    static const char *const names[] = {
        [QUOIT_SHARE_NS_USER] = "user", [QUOIT_SHARE_NS_NET] = "net", [QUOIT_SHARE_NS_UTS] = "uts"};
    struct quoit_share_config config;
    uint64_t cut_links;
    quoit_shared_ring_info(server->ring, &config, &cut_links);
    if (host >= config.host_count)
        return QUOIT_OUT_OF_RANGE;
    if (!server->process_of || connection->sender.uid != geteuid())
        return QUOIT_UNSUPPORTED;
    if (access("/proc/self/ns", F_OK) != 0) /* without /proc nobody can enter */
        return QUOIT_UNSUPPORTED;
    pid_t pid = server->process_of(server->process_arg, host);
    if (pid == 0)
        return QUOIT_AGAIN;
    bool is_complete = true;
    for (uint32_t i = 0; i < QUOIT_SHARE_NS_COUNT; i++) {
        char path[40];
        snprintf(path, sizeof path, "/proc/%d/ns/%s", pid, names[i]);
        namespaces_out->fds[i] = open(path, O_RDONLY | O_CLOEXEC);
        is_complete &= namespaces_out->fds[i] >= 0;
    }
    if (is_complete)
        return QUOIT_OK;
    quoit_share_close_namespaces(namespaces_out);
    return QUOIT_AGAIN;
}

/* Turns the request into its reply. */
static enum quoit_status execute(struct quoit_share_server *server, struct connection *connection,
                                 struct quoit_share_message *message)
{
    switch (message->head.kind) {
    case QUOIT_SHARE_QUERY:
        list_clients(server, &message->body.list);
        return QUOIT_OK;
    case QUOIT_SHARE_ATTACH:
        return attach(server, connection, message);
    case QUOIT_SHARE_CUT:
    case QUOIT_SHARE_MEND:
        if (!is_owner_or_root(&connection->sender))
            return QUOIT_UNSUPPORTED;
        return quoit_shared_ring_cut(server->ring, message->body.link, message->head.kind == QUOIT_SHARE_CUT);
    case QUOIT_SHARE_NAMESPACES:
        return open_namespaces(server, connection, message->body.host, &message->body.namespaces);
    default:
        return QUOIT_INVALID;
    }
}

/* Appends the descriptors to the reply's, and replaces them by markers. */
static uint32_t collect_fds(int *fds, uint32_t fd_max, int *fds_out, uint32_t count)
{
    for (uint32_t i = 0; i < fd_max; i++)
        if (fds[i] >= 0) {
            fds_out[count++] = fds[i];
            fds[i] = 0;
        }
    return count;
}

/* False: the client has gone or does not read. */
static bool send_reply(const struct connection *connection, struct quoit_share_message *message)
{
    int fds[QUOIT_SHARE_FDS_MAX];
    uint32_t fd_count = 0;
    bool is_done = message->head.status == QUOIT_OK;
    bool has_namespaces = is_done && message->head.kind == QUOIT_SHARE_NAMESPACES;
    if (is_done && message->head.kind == QUOIT_SHARE_ATTACH) {
        fd_count = collect_fds(message->body.share.wire_fds, QUOIT_SHARE_HOSTS_MAX, fds, fd_count);
        fd_count = collect_fds(message->body.share.link_fds, QUOIT_SHARE_HOSTS_MAX, fds, fd_count);
        fd_count = collect_fds(message->body.share.memory_fds, QUOIT_SHARE_HOSTS_MAX, fds, fd_count);
    }
    if (has_namespaces)
        fd_count = collect_fds(message->body.namespaces.fds, QUOIT_SHARE_NS_COUNT, fds, fd_count);
    bool is_sent = quoit_send_with_descriptors(connection->fd, message, sizeof *message, fds, fd_count, MSG_DONTWAIT) ==
                   (ssize_t)sizeof *message;
    for (uint32_t i = 0; has_namespaces && i < fd_count; i++)
        close(fds[i]);
    return is_sent;
}

/* The connection ends with its request, unless that took a share; a message on a connection with a share ends both. */
static void handle_message(struct quoit_share_server *server, struct connection *connection)
{
    struct quoit_share_message message;
    ssize_t n = recv(connection->fd, &message, sizeof message, MSG_DONTWAIT | MSG_TRUNC);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    size_t bytes = n < 0 ? 0 : (size_t)n;
    if (!connection->share && quoit_share_head_matches(&message.head, bytes, QUOIT_SHARE_MAGIC, sizeof message)) {
        message.head.status = (uint32_t)execute(server, connection, &message);
        if (send_reply(connection, &message) && connection->share)
            return;
    } else if (!connection->share && quoit_share_head_is_present(&message.head, bytes, QUOIT_SHARE_MAGIC)) {
        send_head(connection->fd, message.head.kind, QUOIT_INVALID); /* another build, which can say so */
    }
    hang_up(server, connection);
}

int quoit_share_server_fd(const struct quoit_share_server *server)
{
    return server->epoll_fd;
}

/* One event at a time: handling it may end the connection of a later one. */
void quoit_share_server_step(struct quoit_share_server *server)
{
    struct epoll_event event;
    for (uint32_t i = 0; i < CONNECTIONS_MAX && epoll_wait(server->epoll_fd, &event, 1, 0) == 1; i++) {
        if (event.data.ptr)
            handle_message(server, event.data.ptr);
        else
            accept_connection(server);
    }
}

void quoit_share_server_close_in_child(struct quoit_share_server *server)
{
    for (uint32_t i = 0; i < CONNECTIONS_MAX; i++)
        if (server->connections[i].fd >= 0)
            close(server->connections[i].fd);
    if (server->listen_fd >= 0)
        close(server->listen_fd);
    if (server->epoll_fd >= 0)
        close(server->epoll_fd);
    free(server);
}

void quoit_share_server_close(struct quoit_share_server *server)
{
    if (!server)
        return;
    for (uint32_t i = 0; i < CONNECTIONS_MAX; i++)
        if (server->connections[i].fd >= 0)
            hang_up(server, &server->connections[i]);
    quoit_share_server_close_in_child(server);
}
