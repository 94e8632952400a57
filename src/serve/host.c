/* SPDX-License-Identifier: BSD-3-Clause */
#include "serve/host.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "base/step.h"
#include "boot/proxy_process.h"
#include "boot/silence.h"
#include "env/calls.h"
#include "env/clock.h"
#include "env/descriptors.h"
#include "env/map.h"
#include "net/net.h"
#include "proxy/proxy.h"
#include "serve/proxy.h"

#define PORT     0          /* of words between proxies */
#define SEND_NS  500000000u /* for the last words to arrive at all hosts, of which some may be gone */
#define RETRY_NS 200000u

/* What a proxy sends to others, in its own byte order, as far as bytes_of() its kind. */
struct word {
    uint32_t kind; /* READY, FINALIZED, END, LAUNCHER_LOST, LEAVING, ELSEWHERE, STILL, STILL_SEEN, SILENCE, of enum
                      quoit_proxy_kind */
    int32_t status;
    union quoit_proxy_word is;
};

/* What is known of one host. */
struct seen {
    uint32_t ready_count;
    uint32_t finalized_count;
    bool is_absent;
};

struct serve {
    struct quoit_layout layout;
    void *memory;
    struct quoit_proxy *proxy;
    pthread_mutex_t lock; /* of the rest */
    struct seen hosts[QUOIT_JOB_HOSTS_MAX];
    uint32_t gone_count;          /* how often all were ready, */
    uint32_t done_count;          /* and had finalized */
    struct quoit_proxy_left left; /* of the other hosts that have finalized since the last GO, as the agent knows it */
    bool has_left;
    bool is_absent_told;
    bool is_ending;
};

/* Words of and to other hosts */

static void say(uint32_t kind, uint32_t host, int32_t status)
{
    struct quoit_proxy_message message = {.magic = QUOIT_BOOT_MAGIC, .kind = kind};
    if (kind == QUOIT_PROXY_END)
        message.body.status = status;
    else
        message.body.lost.host = host;
    quoit_proxy_process_say(QUOIT_PROGRAM_FD, &message);
}

static uint32_t bytes_of(uint32_t kind)
{
    uint32_t head = offsetof(struct word, is);
    switch (kind) {
    case QUOIT_PROXY_FINALIZED:
        return head + (uint32_t)sizeof(struct quoit_proxy_left);
    case QUOIT_PROXY_ELSEWHERE:
        return head + (uint32_t)sizeof(struct quoit_proxy_elsewhere);
    case QUOIT_PROXY_STILL:
        return head + (uint32_t)sizeof(struct quoit_rounds_question);
    case QUOIT_PROXY_STILL_SEEN:
        return head + (uint32_t)sizeof(struct quoit_rounds_answer);
    case QUOIT_PROXY_SILENCE:
        return head + (uint32_t)sizeof(struct quoit_proxy_silence);
    default:
        return head;
    }
}

static bool is_for_agent(uint32_t kind)
{
    return kind == QUOIT_PROXY_LEAVING || kind == QUOIT_PROXY_ELSEWHERE || kind == QUOIT_PROXY_STILL ||
           kind == QUOIT_PROXY_STILL_SEEN || kind == QUOIT_PROXY_SILENCE;
}

static void pass_to_agent(uint32_t host, const struct word *word)
{
    struct quoit_proxy_message message = {.magic = QUOIT_BOOT_MAGIC, .kind = word->kind};
    message.body.word.host = host;
    message.body.word.is = word->is;
    quoit_proxy_process_offer(QUOIT_PROGRAM_FD, &message);
}

/* Tells the agent what has become true of all hosts. Hosts whose PEs have ended wait for nobody. Under the lock. */
static void step(struct serve *serve)
{
    uint32_t ready_count = UINT32_MAX, finalized_count = UINT32_MAX, absent = UINT32_MAX;
    for (uint32_t i = 0; i < serve->layout.job.host_count; i++) {
        const struct seen *seen = &serve->hosts[i];
        if (seen->ready_count < ready_count)
            ready_count = seen->ready_count;
        if (seen->finalized_count < finalized_count && !seen->is_absent)
            finalized_count = seen->finalized_count;
        if (seen->is_absent)
            absent = i;
    }
    const struct seen *own = &serve->hosts[serve->layout.host];
    for (; serve->gone_count < ready_count; serve->gone_count++) {
        serve->has_left = false;
        say(QUOIT_PROXY_GO, 0, 0);
    }
    for (; serve->done_count < finalized_count && serve->done_count < own->finalized_count; serve->done_count++)
        say(QUOIT_PROXY_FINALIZED, 0, 0);
    if (absent != UINT32_MAX && own->ready_count > serve->gone_count && !serve->is_absent_told) {
        serve->is_absent_told = true;
        say(QUOIT_PROXY_ABSENT, absent, 0);
    }
}

/* Under the lock. */
static void note_left(struct serve *serve, uint32_t host, const struct quoit_proxy_left *left)
{
    struct quoit_proxy_message message = {.magic = QUOIT_BOOT_MAGIC, .kind = QUOIT_PROXY_HOST_FINALIZED};
    if (serve->has_left && serve->left.meeting_count <= left->meeting_count)
        return;
    serve->has_left = true;
    serve->left = *left;
    message.body.word.host = host;
    message.body.word.is.left = *left;
    quoit_proxy_process_say(QUOIT_PROGRAM_FD, &message);
}

static bool is_end(uint32_t kind)
{
    return kind == QUOIT_PROXY_END || kind == QUOIT_PROXY_LAUNCHER_LOST;
}

static void note(struct serve *serve, uint32_t host, const struct word *word)
{
    pthread_mutex_lock(&serve->lock);
    serve->hosts[host].ready_count += word->kind == QUOIT_PROXY_READY;
    serve->hosts[host].finalized_count += word->kind == QUOIT_PROXY_FINALIZED;
    if (word->kind == QUOIT_PROXY_FINALIZED && host != serve->layout.host)
        note_left(serve, host, &word->is.left);
    if (is_end(word->kind) && !serve->is_ending) {
        serve->is_ending = true;
        say(word->kind, host, word->status);
    }
    step(serve);
    pthread_mutex_unlock(&serve->lock);
}

static void on_message(void *arg, uint32_t source_host, uint32_t port, const void *payload, uint32_t bytes)
{
    struct word word = {0};
    if (port != PORT || bytes < offsetof(struct word, is) || bytes > sizeof word)
        return;
    memcpy(&word, payload, bytes);
    if (bytes != bytes_of(word.kind))
        return;
    if (is_for_agent(word.kind))
        pass_to_agent(source_host, &word);
    else
        note(arg, source_host, &word);
}

/* Once its PEs have finalized, nobody needs a host but who calls shmem_init again. */
static void on_lost(void *arg, uint32_t host, bool is_silent)
{
    struct serve *serve = arg;
    (void)is_silent; /* the PEs of this host are told that it is one or the other */
    pthread_mutex_lock(&serve->lock);
    struct seen *seen = &serve->hosts[host];
    if (serve->gone_count > 0 && seen->finalized_count == serve->gone_count) {
        seen->is_absent = true;
        step(serve);
    } else if (!serve->is_ending) {
        say(QUOIT_PROXY_LOST, host, 0);
    }
    pthread_mutex_unlock(&serve->lock);
}

static void on_silence(void *arg, uint32_t host, enum quoit_net_silence silence, uint64_t silent_ns, uint64_t dark_ns)
{
    const struct serve *serve = arg;
    quoit_serve_silence(serve->layout.host, host, silence, silent_ns, dark_ns);
}

static bool is_absent(struct serve *serve, uint32_t host)
{
    pthread_mutex_lock(&serve->lock);
    bool is_so = serve->hosts[host].is_absent;
    pthread_mutex_unlock(&serve->lock);
    return is_so;
}

/* While words are under way the agent has no other to say but END, or is gone. */
static bool is_agent_silent(void)
{
    struct pollfd agent = {.fd = QUOIT_PROGRAM_FD, .events = POLLIN};
    return poll(&agent, 1, 0) == 0;
}

/* The queue is short, and may be full for a while, or for ever when many hosts hang. */
static void send_to(struct serve *serve, uint32_t host, const struct word *word, bool is_final, uint64_t deadline_ns)
{
    while (!is_absent(serve, host) &&
           quoit_proxy_send(serve->proxy, host, PORT, word, bytes_of(word->kind)) == QUOIT_FULL &&
           (is_final ? quoit_clock_now_ns() < deadline_ns : is_agent_silent()))
        quoit_clock_sleep_ns(RETRY_NS);
}

/* To all other hosts that are there. Last words are waited for until they have arrived. */
static void spread(struct serve *serve, const struct word *word)
{
    bool is_final = is_end(word->kind);
    uint64_t deadline_ns = quoit_clock_now_ns() + SEND_NS;
    for (uint32_t host = 0; host < serve->layout.job.host_count; host++)
        if (host != serve->layout.host)
            send_to(serve, host, word, is_final, deadline_ns);
    while (is_final && !quoit_proxy_has_sent(serve->proxy) && quoit_clock_now_ns() < deadline_ns)
        quoit_clock_sleep_ns(RETRY_NS);
}

/* Until what was said has arrived at every host that is there, or the job ends. */
static void flush(struct serve *serve)
{
    while (!quoit_proxy_has_sent(serve->proxy) && is_agent_silent())
        quoit_clock_sleep_ns(RETRY_NS);
}

/* Words of the agent */

__attribute__((noreturn)) static void end(struct serve *serve, const struct word *word)
{
    pthread_mutex_lock(&serve->lock);
    serve->is_ending = true;
    pthread_mutex_unlock(&serve->lock);
    spread(serve, word);
    _exit(0);
}

static void take(struct serve *serve, const struct quoit_proxy_message *message)
{
    struct word word = {.kind = message->kind, .is = message->body.word.is};
    switch (message->kind) {
    case QUOIT_PROXY_READY:
    case QUOIT_PROXY_FINALIZED:
        spread(serve, &word);
        if (message->kind == QUOIT_PROXY_FINALIZED)
            flush(serve); /* the answer lets this host's PEs end, and the proxy with them */
        note(serve, serve->layout.host, &word);
        break;
    case QUOIT_PROXY_PING:
        quoit_proxy_process_tell(QUOIT_PROGRAM_FD, QUOIT_PROXY_PING);
        break;
    case QUOIT_PROXY_STILL:
        spread(serve, &word);
        break;
    case QUOIT_PROXY_LEAVING:
    case QUOIT_PROXY_ELSEWHERE:
    case QUOIT_PROXY_STILL_SEEN:
        send_to(serve, 0, &word, false, 0);
        break;
    case QUOIT_PROXY_SILENCE:
        send_to(serve, quoit_silence_reporter(word.is.silence.host), &word, false, 0);
        break;
    case QUOIT_PROXY_LAUNCHER_LOST:
        end(serve, &word);
    case QUOIT_PROXY_END:
        word.status = message->body.status;
        end(serve, &word);
    default:
        break;
    }
}

static void *converse(void *arg)
{
    struct serve *serve = arg;
    struct quoit_proxy_message message;
    for (;;) {
        ssize_t n = recv(QUOIT_PROGRAM_FD, &message, sizeof message, 0);
        if (n < 0 && errno == EINTR)
            continue;
        if (n != (ssize_t)sizeof message || message.magic != QUOIT_BOOT_MAGIC)
            _exit(0); /* the kernel ends this process with the agent, and may be about to */
        take(serve, &message);
    }
    return NULL;
}

/* Start */

/* Through the lowest PE, which puts it into the launcher's exchange. */
static bool exchange(void *arg, const void *own, uint32_t bytes, void *all_out)
{
    const struct serve *serve = arg;
    struct quoit_proxy_message message = {.magic = QUOIT_BOOT_MAGIC, .kind = QUOIT_PROXY_CONTACT};
    memcpy(message.body.contact.bytes, own, bytes);
    quoit_step("proxy", serve->layout.host, "contact");
    quoit_proxy_process_say(QUOIT_PROGRAM_FD, &message);
    for (uint32_t i = 0; i < serve->layout.job.host_count; i++) {
        ssize_t n;
        do
            n = recv(QUOIT_PROGRAM_FD, &message, sizeof message, 0);
        while (n < 0 && errno == EINTR);
        if (n != (ssize_t)sizeof message || message.kind != QUOIT_PROXY_CONTACT || message.body.contact.host != i)
            return false; /* the agent has ended, which its PEs see */
        memcpy((char *)all_out + (size_t)i * bytes, message.body.contact.bytes, bytes);
    }
    return true;
}

/* START and its descriptors. False: who would send it has ended, or it was reported. */
static bool receive_start(struct quoit_proxy_message *message_out, struct quoit_ancillary *came)
{
    ssize_t n = quoit_receive_with_descriptors(QUOIT_PROGRAM_FD, message_out, sizeof *message_out, came, 0);
    bool is_whole = n == (ssize_t)sizeof *message_out && message_out->magic == QUOIT_BOOT_MAGIC;
    if (is_whole && message_out->kind == QUOIT_PROXY_LOAD) {
        message_out->body.driver[QUOIT_PROXY_TEXT_BYTES - 1] = '\0';
        quoit_net_load(message_out->body.driver);
        return receive_start(message_out, came);
    }
    if (is_whole && message_out->kind == QUOIT_PROXY_START && came->fd_count > 0)
        return true;
    if (n != 0)
        quoit_say("a message of another version of Quoit to the proxy of a host: is this the oshrun of its library? "
                  "[Q0311]");
    return false;
}

static bool open_host(struct serve *serve, struct quoit_proxy_message *start, int memory_fd)
{
    char who[24];
    snprintf(who, sizeof who, "host%u", start->body.start.host);
    quoit_log_setup((enum quoit_log_level)start->body.start.log_level, who);
    if (quoit_layout_make(&start->body.start.job, start->body.start.host, &serve->layout) != QUOIT_OK)
        return false;
    serve->memory = quoit_map_file(memory_fd, serve->layout.total_bytes, PROT_READ | PROT_WRITE);
    if (!serve->memory)
        quoit_say("cannot map %llu MiB: %s", (unsigned long long)(serve->layout.total_bytes >> 20), strerror(errno));
    return serve->memory != NULL;
}

/* Of another launcher's job. */
static int serve_agent(struct quoit_proxy_message *start, int memory_fd)
{
    struct serve serve = {.lock = PTHREAD_MUTEX_INITIALIZER};
    pthread_t thread;
    if (!quoit_calls_check(QUOIT_CALLS_NETWORK))
        return 1;
    quoit_program_ignore_signals();
    quoit_step("proxy", start->body.start.host, "start");
    if (!open_host(&serve, start, memory_fd))
        return 1;
    struct quoit_lane_network network = quoit_serve_network(start);
    network.exchange = exchange;
    network.on_lost = on_lost;
    network.on_silence = on_silence;
    network.arg = &serve;
    const struct quoit_proxy_config config = {
        .layout = &serve.layout,
        .memory = serve.memory,
        .network = &network,
        .machine = start->body.start.machine,
        .link_timeout_ns = start->body.start.link_timeout_ns,
        .dma_bytes = QUOIT_DMA_NEVER,
        .on_message = on_message,
        .on_message_arg = &serve,
    };
    if (quoit_proxy_open(&config, &serve.proxy) != QUOIT_OK)
        return 1;
    quoit_step("proxy", start->body.start.host, "ready");
    if (pthread_create(&thread, NULL, converse, &serve) != 0)
        return 1;
    if (quoit_proxy_serve(serve.proxy, 0) != QUOIT_OK)
        _exit(1); /* all see that; the thread may speak through the proxy meanwhile */
    pthread_join(thread, NULL);
    quoit_proxy_close(serve.proxy);
    return 0;
}

int quoit_serve_host(void)
{
    struct quoit_proxy_message start;
    int fds[QUOIT_PROXY_FDS_MAX];
    struct quoit_ancillary came = {.fds = fds, .fd_max = QUOIT_PROXY_FDS_MAX};
    if (!quoit_program_has_starter(QUOIT_PROXY_OPTION))
        return 2;
    prctl(PR_SET_NAME, "quoit-proxy");
    quoit_program_end_with_starter();
    quoit_step("proxy", QUOIT_STEP_ANY, "begin");
    if (!receive_start(&start, &came) || getppid() != (pid_t)start.body.start.starter)
        return 1;
    return start.body.start.is_of_oshrun ? quoit_serve_proxy(&start, fds, came.fd_count) : serve_agent(&start, fds[0]);
}
