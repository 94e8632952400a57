/* SPDX-License-Identifier: BSD-3-Clause */
/* The owner's end of the socket. A connection says one request; with a share it then stays, and says nothing more. */
#include "share/message.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define ASKING_MAX      16 /* connections that have not said their request yet; a further one takes the oldest's place */
#define CONNECTIONS_MAX (QUOIT_SHARES_MAX + ASKING_MAX)

struct connection {
    int fd; /* -1: none */
    uint64_t number;
    struct ucred sender;
    const struct quoit_share *share; /* NULL: it has none */
    char label[QUOIT_SHARE_LABEL_BYTES];
};

struct quoit_share_server {
    struct quoit_shared_ring *ring;
    int listen_fd;
    int epoll_fd;
    bool others;
    uint32_t shares_of_user;
    pid_t (*process_of)(void *arg, uint32_t host); /* NULL: hosts have no namespaces */
    void *process_arg;
    uint64_t accepted_count;
    struct connection connections[CONNECTIONS_MAX];
};

socklen_t quoit_share_address(const char *path, struct sockaddr_un *address_out)
{
    size_t length = strlen(path);
    *address_out = (struct sockaddr_un){.sun_family = AF_UNIX};
    if (length == 0 || length >= sizeof address_out->sun_path) {
        errno = ENAMETOOLONG;
        return 0;
    }
    memcpy(address_out->sun_path, path, length);
    if (path[0] != '@')
        return sizeof *address_out;
    address_out->sun_path[0] = '\0';
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length);
}

/* Its events carry a pointer: of the connection, or NULL for the listener. */
static bool watch(struct quoit_share_server *server, int fd, struct connection *connection)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = connection};
    return epoll_ctl(server->epoll_fd, EPOLL_CTL_ADD, fd, &event) == 0;
}

enum quoit_status quoit_share_server_open(struct quoit_shared_ring *ring, const char *path, bool others,
                                          struct quoit_share_server **server_out)
{
    struct sockaddr_un address;
    socklen_t bytes = quoit_share_address(path, &address);
    struct quoit_share_server *server = bytes ? calloc(1, sizeof *server) : NULL;
    if (!server)
        return bytes ? QUOIT_NO_MEMORY : QUOIT_SYSTEM;
    server->ring = ring;
    server->others = others;
    server->shares_of_user = QUOIT_SHARES_MAX;
    for (uint32_t i = 0; i < CONNECTIONS_MAX; i++)
        server->connections[i].fd = -1;
    server->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    server->listen_fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    /* The name is made with the permissions of the descriptor, so it is never open to more. */
    if (server->epoll_fd >= 0 && server->listen_fd >= 0 && fchmod(server->listen_fd, others ? 0666 : 0600) == 0 &&
        bind(server->listen_fd, (struct sockaddr *)&address, bytes) == 0 &&
        listen(server->listen_fd, CONNECTIONS_MAX) == 0 && watch(server, server->listen_fd, NULL)) {
        *server_out = server;
        return QUOIT_OK;
    }
    int error = errno;
    quoit_share_server_forget(server);
    errno = error;
    return QUOIT_SYSTEM;
}

void quoit_share_server_limit(struct quoit_share_server *server, uint32_t shares_of_user)
{
    server->shares_of_user = shares_of_user;
}

void quoit_share_server_places(struct quoit_share_server *server, pid_t (*process_of)(void *arg, uint32_t host),
                               void *arg)
{
    server->process_of = process_of;
    server->process_arg = arg;
}

static void hang_up(struct quoit_share_server *server, struct connection *connection)
{
    if (connection->share)
        quoit_share_end(server->ring, connection->share);
    epoll_ctl(server->epoll_fd, EPOLL_CTL_DEL, connection->fd, NULL); /* a child of the owner may have it open too */
    close(connection->fd);
    *connection = (struct connection){.fd = -1};
}

static bool is_owner(const struct connection *connection)
{
    return connection->sender.uid == geteuid() || connection->sender.uid == 0;
}

/* A place for a connection: the oldest of those that have said nothing makes room. */
static struct connection *place_for(struct quoit_share_server *server)
{
    struct connection *oldest = NULL;
    uint32_t asking_count = 0;
    for (uint32_t i = 0; i < CONNECTIONS_MAX; i++) {
        struct connection *at = &server->connections[i];
        asking_count += at->fd >= 0 && !at->share;
        if (at->fd >= 0 && !at->share && (!oldest || at->number < oldest->number))
            oldest = at;
    }
    if (asking_count == ASKING_MAX)
        hang_up(server, oldest);
    for (uint32_t i = 0; i < CONNECTIONS_MAX; i++)
        if (server->connections[i].fd < 0)
            return &server->connections[i];
    return NULL;
}

static void take_connection(struct quoit_share_server *server)
{
    int fd = accept4(server->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) { /* of no descriptors: not again at once */
        if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS)
            usleep(10000);
        return;
    }
    struct connection *connection = place_for(server);
    socklen_t bytes = sizeof connection->sender;
    if (!connection || getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &connection->sender, &bytes) != 0 ||
        !(server->others || is_owner(connection)) || !watch(server, fd, connection)) {
        close(fd);
        return;
    }
    connection->fd = fd;
    connection->number = ++server->accepted_count;
}

/* Collects the descriptors that go with the reply, and marks which they are. */
static int take_fds(int *from, uint32_t most, int *fds_out, int count)
{
    for (uint32_t i = 0; i < most; i++)
        if (from[i] >= 0) {
            fds_out[count++] = from[i];
            from[i] = 0;
        }
    return count;
}

/* False: the client has gone, or does not read. */
static bool reply(const struct connection *connection, struct quoit_share_message *message)
{
    int fds[QUOIT_SHARE_FDS_MAX], fd_count = 0;
    if (message->head.kind == QUOIT_SHARE_ATTACH && message->head.status == QUOIT_OK) {
        fd_count = take_fds(message->body.share.wire_fds, QUOIT_SHARE_HOSTS_MAX, fds, fd_count);
        fd_count = take_fds(message->body.share.link_fds, QUOIT_SHARE_HOSTS_MAX, fds, fd_count);
        fd_count = take_fds(message->body.share.memory_fds, QUOIT_SHARE_HOSTS_MAX, fds, fd_count);
    }
    bool has_place = message->head.kind == QUOIT_SHARE_PLACE && message->head.status == QUOIT_OK;
    if (has_place)
        fd_count = take_fds(message->body.place.fds, QUOIT_SHARE_NAMESPACE_COUNT, fds, 0);
    bool is_sent = quoit_send_with_descriptors(connection->fd, message, sizeof *message, fds, (uint32_t)fd_count,
                                               MSG_DONTWAIT) == (ssize_t)sizeof *message;
    for (int i = 0; has_place && i < fd_count; i++)
        close(fds[i]);
    return is_sent;
}

static void list(const struct quoit_share_server *server, struct quoit_share_list *list_out)
{
    memset(list_out, 0, sizeof *list_out);
    quoit_shared_ring_look(server->ring, &list_out->ring, &list_out->cut_links);
    for (uint32_t i = 0; i < CONNECTIONS_MAX; i++) {
        const struct connection *at = &server->connections[i];
        if (!at->share)
            continue;
        struct quoit_share_client *client = &list_out->clients[list_out->client_count++];
        *client = (struct quoit_share_client){
            .name = at->share->name, .uid = at->sender.uid, .pid = (uint32_t)at->sender.pid};
        memcpy(client->label, at->label, sizeof client->label);
    }
}

/* The label is for people: printable, and of its length. */
static void keep_label(struct connection *connection, const char *label)
{
    for (uint32_t i = 0; i + 1 < QUOIT_SHARE_LABEL_BYTES && label[i] != '\0'; i++)
        connection->label[i] = label[i] >= ' ' && label[i] <= '~' ? label[i] : '?';
}

static uint32_t shares_of(const struct quoit_share_server *server, uid_t uid)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < CONNECTIONS_MAX; i++)
        count += server->connections[i].share && server->connections[i].sender.uid == uid;
    return count;
}

/* For the owner's user alone: another could not enter the namespaces of this one. */
static enum quoit_status find_place(const struct quoit_share_server *server, const struct connection *connection,
                                    uint32_t host, struct quoit_share_place *place_out)
{
    static const char *const names[QUOIT_SHARE_NAMESPACE_COUNT] = {"user", "net", "uts"};
    struct quoit_share_config config;
    uint64_t cut_links;
    quoit_shared_ring_look(server->ring, &config, &cut_links);
    if (host >= config.host_count)
        return QUOIT_OUT_OF_RANGE;
    if (!server->process_of || connection->sender.uid != geteuid())
        return QUOIT_UNSUPPORTED;
    pid_t pid = server->process_of(server->process_arg, host);
    if (pid == 0)
        return QUOIT_AGAIN;
    bool is_whole = true;
    for (uint32_t i = 0; i < QUOIT_SHARE_NAMESPACE_COUNT; i++) {
        char path[40];
        snprintf(path, sizeof path, "/proc/%d/ns/%s", pid, names[i]);
        place_out->fds[i] = open(path, O_RDONLY | O_CLOEXEC);
        is_whole &= place_out->fds[i] >= 0;
    }
    if (is_whole)
        return QUOIT_OK;
    quoit_share_close_place(place_out);
    return QUOIT_AGAIN;
}

static enum quoit_status answer(struct quoit_share_server *server, struct connection *connection,
                                struct quoit_share_message *message)
{
    enum quoit_status status = QUOIT_OK;
    struct quoit_share_request request = message->body.request;
    switch (message->head.kind) {
    case QUOIT_SHARE_ASK:
        list(server, &message->body.list);
        return QUOIT_OK;
    case QUOIT_SHARE_ATTACH:
        if (shares_of(server, connection->sender.uid) >= server->shares_of_user)
            return QUOIT_OUT_OF_RANGE;
        keep_label(connection, request.label);
        request.part.percent = 0;
        status = quoit_share_take(server->ring, &request, &connection->share);
        if (status == QUOIT_OK)
            message->body.share = *connection->share;
        return status;
    case QUOIT_SHARE_CUT:
    case QUOIT_SHARE_MEND:
        if (!is_owner(connection))
            return QUOIT_UNSUPPORTED;
        return quoit_shared_ring_cut(server->ring, message->body.link, message->head.kind == QUOIT_SHARE_CUT);
    case QUOIT_SHARE_PLACE:
        return find_place(server, connection, message->body.link, &message->body.place);
    default:
        return QUOIT_INVALID;
    }
}

/* To a client of another build, which so can say what is wrong. */
static void tell_build(const struct connection *connection, uint32_t kind)
{
    struct quoit_share_head head = quoit_share_head_make(QUOIT_SHARE_MAGIC, sizeof(struct quoit_share_message), kind);
    head.status = QUOIT_INVALID;
    (void)!send(connection->fd, &head, sizeof head, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* What came, or the end of the connection. Anything but one whole request ends it. */
static void hear(struct quoit_share_server *server, struct connection *connection)
{
    struct quoit_share_message message;
    ssize_t n = recv(connection->fd, &message, sizeof message, MSG_DONTWAIT | MSG_TRUNC);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    size_t came = n < 0 ? 0 : (size_t)n;
    if (!quoit_share_head_fits(&message.head, came, QUOIT_SHARE_MAGIC, sizeof message) || connection->share) {
        if (quoit_share_head_is(&message.head, came, QUOIT_SHARE_MAGIC) && !connection->share)
            tell_build(connection, message.head.kind);
        hang_up(server, connection);
        return;
    }
    message.head.status = (uint32_t)answer(server, connection, &message);
    if (!reply(connection, &message) || !connection->share)
        hang_up(server, connection);
}

int quoit_share_server_fd(const struct quoit_share_server *server)
{
    return server->epoll_fd;
}

/* One event at a time: what one does may end the connection of another. */
void quoit_share_server_step(struct quoit_share_server *server)
{
    struct epoll_event event;
    for (uint32_t i = 0; i < CONNECTIONS_MAX && epoll_wait(server->epoll_fd, &event, 1, 0) == 1; i++) {
        if (event.data.ptr)
            hear(server, event.data.ptr);
        else
            take_connection(server);
    }
}

void quoit_share_server_forget(struct quoit_share_server *server)
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
    quoit_share_server_forget(server);
}
