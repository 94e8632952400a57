// SPDX-License-Identifier: BSD-3-Clause
/* Aim: every host of a ring reaches every other one through quoit0, and no byte is lost, repeated or changed. Method:
 * each host sends a stream over TCP to each other one, all at the same time; a stream is a sequence of words that
 * depend on sender, receiver and place; the receiver compares each and sends it back, the sender compares again. Host 0
 * ends the test when all have said that they are done.
 *
 * Use: ring_traffic HOST HOSTS KIB [SUBNET.]   prints the rate of each stream
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define PORT        7700
#define HOSTS_MAX   16u
#define CHUNK_WORDS 2048u
#define PATIENCE_S  300
#define DONE        UINT32_MAX /* in place of a count of words: the sender has finished */

#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            printf("ring_traffic: line %d: %s: %s\n", __LINE__, #condition, strerror(errno));                          \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

struct stream {
    uint32_t from, to, word_count;
};

static uint32_t own_host, host_count, word_count;
static const char *subnet = "10.77.0.";
static int finished[HOSTS_MAX]; /* connections of host 0 to those that are done */
static uint32_t finished_count;
static pthread_mutex_t finished_lock = PTHREAD_MUTEX_INITIALIZER;

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static uint64_t word_at(const struct stream *stream, uint32_t at)
{
    uint64_t word = ((uint64_t)stream->from << 48 | (uint64_t)stream->to << 32 | at) * UINT64_C(0x9e3779b97f4a7c15);
    return word ^ word >> 29;
}

static void send_all(int fd, const void *from, size_t bytes)
{
    for (size_t done = 0; done < bytes;) {
        ssize_t n = send(fd, (const char *)from + done, bytes - done, MSG_NOSIGNAL);
        CHECK(n > 0);
        done += (size_t)n;
    }
}

static void receive_all(int fd, void *to, size_t bytes)
{
    CHECK(recv(fd, to, bytes, MSG_WAITALL) == (ssize_t)bytes);
}

static void set_up(int fd)
{
    const struct timeval limit = {.tv_sec = PATIENCE_S};
    CHECK(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit) == 0);
    CHECK(setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit) == 0);
    CHECK(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int)) == 0);
}

/* Compares what comes; sends it back if `is_receiver`. */
static void check_stream(int fd, const struct stream *stream, bool is_receiver)
{
    uint64_t words[CHUNK_WORDS];
    for (uint32_t at = 0; at < stream->word_count;) {
        uint32_t now = stream->word_count - at < CHUNK_WORDS ? stream->word_count - at : CHUNK_WORDS;
        receive_all(fd, words, now * sizeof words[0]);
        for (uint32_t i = 0; i < now; i++)
            CHECK(words[i] == word_at(stream, at + i));
        if (is_receiver)
            send_all(fd, words, now * sizeof words[0]);
        at += now;
    }
}

static void *serve(void *arg)
{
    int fd = (int)(intptr_t)arg;
    struct stream stream;
    receive_all(fd, &stream, sizeof stream);
    CHECK(stream.to == own_host && stream.from < host_count);
    if (stream.word_count == DONE) {
        pthread_mutex_lock(&finished_lock);
        finished[finished_count++] = fd;
        pthread_mutex_unlock(&finished_lock);
        return NULL;
    }
    check_stream(fd, &stream, true);
    close(fd);
    return NULL;
}

static void *listen_for_all(void *arg)
{
    int listener = (int)(intptr_t)arg;
    for (;;) {
        pthread_t thread;
        int fd = accept(listener, NULL, NULL);
        CHECK(fd >= 0);
        set_up(fd);
        CHECK(pthread_create(&thread, NULL, serve, (void *)(intptr_t)fd) == 0 && pthread_detach(thread) == 0);
    }
    return NULL;
}

static int call(uint32_t host)
{
    char text[32];
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(PORT)};
    snprintf(text, sizeof text, "%s%u", subnet, host + 1);
    CHECK(inet_pton(AF_INET, text, &address.sin_addr) == 1);
    for (double end_s = now_s() + PATIENCE_S;; usleep(200000)) {
        int fd = socket(AF_INET, SOCK_STREAM, 0);
        CHECK(fd >= 0);
        set_up(fd);
        if (connect(fd, (struct sockaddr *)&address, sizeof address) == 0)
            return fd;
        CHECK(now_s() < end_s);
        close(fd);
    }
}

struct sender {
    int fd;
    struct stream stream;
};

static void *send_stream(void *arg)
{
    const struct sender *sender = arg;
    uint64_t words[CHUNK_WORDS];
    for (uint32_t at = 0; at < sender->stream.word_count;) {
        uint32_t now = sender->stream.word_count - at < CHUNK_WORDS ? sender->stream.word_count - at : CHUNK_WORDS;
        for (uint32_t i = 0; i < now; i++)
            words[i] = word_at(&sender->stream, at + i);
        send_all(sender->fd, words, now * sizeof words[0]);
        at += now;
    }
    return NULL;
}

static void *exchange(void *arg)
{
    uint32_t host = (uint32_t)(uintptr_t)arg;
    pthread_t thread;
    struct sender sender = {.fd = call(host), .stream = {own_host, host, word_count}};
    double begin_s = now_s();
    send_all(sender.fd, &sender.stream, sizeof sender.stream);
    CHECK(pthread_create(&thread, NULL, send_stream, &sender) == 0);
    check_stream(sender.fd, &sender.stream, false);
    CHECK(pthread_join(thread, NULL) == 0);
    close(sender.fd);
    printf("host %u to %u and back: %u KiB, %.2f MB/s\n", own_host, host, word_count / 128,
           word_count * 8e-6 / (now_s() - begin_s));
    fflush(stdout);
    return NULL;
}

/* Nobody leaves before all are done: host 0 tells them. */
static void leave(void)
{
    uint32_t go = DONE;
    if (own_host != 0) {
        const struct stream done = {own_host, 0, DONE};
        int fd = call(0);
        send_all(fd, &done, sizeof done);
        receive_all(fd, &go, sizeof go);
        return;
    }
    for (double end_s = now_s() + PATIENCE_S;; usleep(10000)) {
        pthread_mutex_lock(&finished_lock);
        bool are_all = finished_count == host_count - 1;
        pthread_mutex_unlock(&finished_lock);
        if (are_all)
            break;
        CHECK(now_s() < end_s);
    }
    for (uint32_t i = 0; i < finished_count; i++)
        send_all(finished[i], &go, sizeof go);
    sleep(1); /* the last words are on their way */
}

int main(int argc, char **argv)
{
    pthread_t threads[HOSTS_MAX], listener;
    const struct sockaddr_in any = {.sin_family = AF_INET, .sin_port = htons(PORT)};
    CHECK(argc >= 4);
    own_host = (uint32_t)strtoul(argv[1], NULL, 10);
    host_count = (uint32_t)strtoul(argv[2], NULL, 10);
    word_count = (uint32_t)strtoul(argv[3], NULL, 10) * 128;
    if (argc > 4)
        subnet = argv[4];
    CHECK(host_count >= 2 && host_count <= HOSTS_MAX && own_host < host_count && word_count > 0);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    CHECK(fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int)) == 0);
    CHECK(bind(fd, (const struct sockaddr *)&any, sizeof any) == 0 && listen(fd, (int)HOSTS_MAX) == 0);
    CHECK(pthread_create(&listener, NULL, listen_for_all, (void *)(intptr_t)fd) == 0);
    for (uint32_t host = 0; host < host_count; host++)
        CHECK(host == own_host || pthread_create(&threads[host], NULL, exchange, (void *)(uintptr_t)host) == 0);
    for (uint32_t host = 0; host < host_count; host++)
        CHECK(host == own_host || pthread_join(threads[host], NULL) == 0);
    leave();
    printf("ring_traffic: host %u passed\n", own_host);
    return 0;
}
