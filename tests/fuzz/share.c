/* SPDX-License-Identifier: BSD-3-Clause */
/* Aim: whatever processes send on the socket of a shared ring, its owner stays consistent, and a share that is there
 * keeps its memory and its id. Method: an owner with one share of its own and four connections: each message is a
 * valid one, mutated by the input, and handled as the owner's loop does; connections end where the input says so.
 * Input: for each message the connection, the kind (with the upper bits: end it first, ask for memory), the length, the
 * number of mutations and then these. */
#include "share/message.h"
#include "fuzz.h"

#include <sys/mman.h>
#include <unistd.h>

#define HOST_COUNT       3u
#define CONNECTION_COUNT 4u
#define MEMORY_BYTES     8192u
#define OWN_ID           77u

struct rig {
    struct quoit_shared_ring *ring;
    struct quoit_share_server *server;
    const struct quoit_share *own;
    char path[48];
    int fds[CONNECTION_COUNT]; /* -1: none */
};

static uint64_t *map_own(const struct rig *rig)
{
    uint64_t *words = mmap(NULL, MEMORY_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, rig->own->memory_fds[1], 0);
    must(words != MAP_FAILED);
    return words;
}

static void open_rig(struct rig *rig)
{
    const struct quoit_share_config config = {.driver = "emulated", .host_count = HOST_COUNT};
    const struct quoit_share_request request = {.id = OWN_ID, .memory_bytes = {MEMORY_BYTES, MEMORY_BYTES}};
    snprintf(rig->path, sizeof rig->path, "@quoit-fuzz-share.%d", (int)getpid());
    must(quoit_shared_ring_open(&config, &rig->ring) == QUOIT_OK);
    must(quoit_share_take(rig->ring, &request, &rig->own) == QUOIT_OK);
    must(quoit_share_server_open(rig->ring, rig->path, false, &rig->server) == QUOIT_OK);
    memset(rig->fds, -1, sizeof rig->fds);
    uint64_t *words = map_own(rig);
    for (uint32_t i = 0; i < MEMORY_BYTES / sizeof *words; i++)
        words[i] = i + 1;
    munmap(words, MEMORY_BYTES);
}

static void hang_up(struct rig *rig, uint32_t index)
{
    if (rig->fds[index] >= 0)
        close(rig->fds[index]);
    rig->fds[index] = -1;
    quoit_share_server_step(rig->server);
}

static int connection(struct rig *rig, uint32_t index)
{
    struct sockaddr_un address;
    socklen_t bytes = quoit_share_address(rig->path, &address);
    if (rig->fds[index] >= 0)
        return rig->fds[index];
    rig->fds[index] = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    must(rig->fds[index] >= 0 && connect(rig->fds[index], (struct sockaddr *)&address, bytes) == 0);
    quoit_share_server_step(rig->server);
    return rig->fds[index];
}

static void send_changed(struct rig *rig, const struct fuzz_step *step)
{
    const uint8_t *head = step->head;
    uint32_t kind = QUOIT_SHARE_QUERY + (head[1] & 0x0fu) % (QUOIT_SHARE_NAMESPACES + 1);
    struct quoit_share_message message = {.head = quoit_share_head_make(QUOIT_SHARE_MAGIC, sizeof message, kind)};
    uint32_t index = head[0] % CONNECTION_COUNT;
    if (head[1] & 0x80)
        hang_up(rig, index);
    if (kind == QUOIT_SHARE_ATTACH)
        for (uint32_t host = 0; host < HOST_COUNT; host++)
            message.body.request.memory_bytes[host] = head[1] & 0x40 ? MEMORY_BYTES : 0;
    fuzz_change(&message, sizeof message, step->changes, step->change_bytes);
    size_t bytes = head[2] ? sizeof message * head[2] / 256 : sizeof message;
    (void)!send(connection(rig, index), &message, bytes, MSG_DONTWAIT | MSG_NOSIGNAL);
    quoit_share_server_step(rig->server);
}

/* What any client would be told. */
static struct quoit_share_list ask(struct rig *rig)
{
    struct quoit_share_message message = {
        .head = quoit_share_head_make(QUOIT_SHARE_MAGIC, sizeof message, QUOIT_SHARE_QUERY)};
    struct sockaddr_un address;
    socklen_t bytes = quoit_share_address(rig->path, &address);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    must(connect(fd, (struct sockaddr *)&address, bytes) == 0);
    must(send(fd, &message, sizeof message, MSG_NOSIGNAL) == (ssize_t)sizeof message);
    quoit_share_server_step(rig->server);
    must(recv(fd, &message, sizeof message, MSG_DONTWAIT) == (ssize_t)sizeof message);
    must(message.head.status == QUOIT_OK);
    close(fd);
    return message.body.list;
}

static void check(struct rig *rig)
{
    const struct quoit_share_list list = ask(rig);
    must(list.ring.host_count == HOST_COUNT && list.cut_links >> HOST_COUNT == 0);
    must(list.client_count <= CONNECTION_COUNT);
    for (uint32_t i = 0; i < list.client_count; i++) {
        const struct quoit_share_client *client = &list.clients[i];
        must(client->id != 0 && client->id != OWN_ID && client->pid == (uint32_t)getpid());
        must(memchr(client->label, '\0', sizeof client->label) != NULL);
        for (const char *c = client->label; *c; c++)
            must(*c >= ' ' && *c <= '~');
        for (uint32_t k = 0; k < i; k++)
            must(client->id != list.clients[k].id);
    }
}

static void close_rig(struct rig *rig)
{
    for (uint32_t i = 0; i < CONNECTION_COUNT; i++)
        hang_up(rig, i);
    must(ask(rig).client_count == 0);
    uint64_t *words = map_own(rig);
    for (uint32_t i = 0; i < MEMORY_BYTES / sizeof *words; i++)
        must(words[i] == i + 1);
    munmap(words, MEMORY_BYTES);
    quoit_share_server_close(rig->server);
    quoit_shared_ring_close(rig->ring);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct rig rig;
    struct fuzz_step step;
    open_rig(&rig);
    while (fuzz_next(&data, &bytes, &step)) {
        send_changed(&rig, &step);
        check(&rig);
    }
    close_rig(&rig);
    return 0;
}
