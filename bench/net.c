/* SPDX-License-Identifier: BSD-3-Clause */
/* What the network layer (src/net) adds to the library below it: the same puts and gets through net.h, through bare
 * libfabric calls, and a ping-pong over a TCP socket, in turns, in one run. The library alone also adds atomically and
 * writes a word that the other host answers, which the layer has no calls for.
 *
 *   net [--driver ofi] [--provider P] [--device lo] [--rounds N] [--namespaces A,B --address OF_B]
 *
 * Both hosts are processes of this machine; with --namespaces (as root) each enters the network namespace named, where
 * the device is (bench/network makes them). Prints minimum and median in microseconds, or the rate, and the ratio of
 * the medians. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <getopt.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/socket.h>

#include "net/net_rig.h"
#include "net_bare.h"

#define SAMPLES_MAX 4096
#define LOST_NS     30000000000u /* of a busy machine */

struct bench {
    const char *driver, *provider, *device, *address;
    char *namespaces; /* NULL: that of the caller */
    uint32_t round_count;
    struct bare *bare;
    int socket;
};

enum kind { PUT, GET, FETCH_ADD, ONE_WAY }; /* the last two by the library alone */

struct row {
    const char *name;
    uint64_t bytes;
    uint32_t batch; /* operations before a flush; the sample is the time of one */
    enum kind kind;
};

static const struct row rows[] = {
    {"put 8 B + flush", 8, 1, PUT},
    {"get 8 B", 8, 1, GET},
    {"put 64 KiB + flush", 65536, 1, PUT},
    {"get 64 KiB", 65536, 1, GET},
    {"put 1 MiB + flush", 1 << 20, 1, PUT},
    {"get 1 MiB", 1 << 20, 1, GET},
    {"put 8 B, 64 before a flush", 8, 64, PUT},
    {"put 1 MiB, 8 before a flush", 1 << 20, 8, PUT},
    {"get 1 MiB, 8 before a flush", 1 << 20, 8, GET},
    {"fetch-add", 8, 1, FETCH_ADD},
    {"a word seen, one way", 8, 2, ONE_WAY},
};

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void run_net(struct rig *rig, const struct row *row)
{
    char *local = rig->memory + (8 << 20);
    for (uint32_t i = 0; i < row->batch; i++) {
        if (row->kind == GET)
            rig_get(rig, 1, i * row->bytes, local + i * row->bytes, row->bytes, i);
        else
            rig_put(rig, 1, i * row->bytes, local + i * row->bytes, row->bytes, i);
    }
    rig_flush(rig);
}

static double time_one(struct rig *rig, struct bench *bench, const struct row *row, bool is_bare)
{
    quoit_net_progress(rig->net); /* heartbeats */
    uint64_t begin_ns = quoit_clock_now_ns();
    if (!is_bare)
        run_net(rig, row);
    else if (row->kind == FETCH_ADD)
        bare_fetch_add(bench->bare);
    else if (row->kind == ONE_WAY)
        bare_there_and_back(bench->bare);
    else
        bare_transfer(bench->bare, row->bytes, row->batch, row->kind == GET);
    return (double)(quoit_clock_now_ns() - begin_ns) / 1e3 / row->batch;
}

/* Both in turns, so that what else the machine does meets both. */
static void measure(struct rig *rig, struct bench *bench, const struct row *row)
{
    static double samples[2][SAMPLES_MAX];
    uint32_t count = row->bytes * row->batch >= 65536 ? bench->round_count / 10 + 1 : bench->round_count;
    bool has_net = row->kind == PUT || row->kind == GET;
    if (!has_net && !bench->bare)
        return;
    atomic_store(&rig->board->word[1], !has_net);
    for (uint32_t i = 0; i < count + 20; i++)
        for (int is_bare = !has_net; is_bare <= (bench->bare != NULL); is_bare++)
            samples[is_bare][i < 20 ? 0 : i - 20] = time_one(rig, bench, row, is_bare);
    for (int is_bare = 0; is_bare < 2; is_bare++)
        qsort(samples[is_bare], count, sizeof samples[0][0], by_size);
    if (!has_net) {
        printf("%-28s %9s %9s %9.2f %9.2f\n", row->name, "-", "-", samples[1][0], samples[1][count / 2]);
        return;
    }
    printf("%-28s %9.2f %9.2f", row->name, samples[0][0], samples[0][count / 2]);
    if (bench->bare)
        printf(" %9.2f %9.2f %6.2f", samples[1][0], samples[1][count / 2],
               samples[0][count / 2] / samples[1][count / 2]);
    printf("  %9.0f MB/s\n", (double)row->bytes / samples[0][count / 2]);
}

/* A ping-pong of 8 bytes over a TCP socket, both sides polling. */
static void ping(int fd, bool is_first)
{
    char word[8] = {0};
    if (is_first)
        must(send(fd, word, sizeof word, 0) == (ssize_t)sizeof word);
    size_t got = 0;
    while (got < sizeof word) {
        ssize_t bytes = recv(fd, word + got, sizeof word - got, MSG_DONTWAIT);
        must(bytes > 0 || (bytes < 0 && errno == EAGAIN));
        got += bytes > 0 ? (size_t)bytes : 0;
    }
    if (!is_first)
        must(send(fd, word, sizeof word, 0) == (ssize_t)sizeof word);
}

static int join_by_tcp(struct rig *rig, const struct bench *bench)
{
    int one = 1, fd = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(17913)};
    must(inet_pton(AF_INET, bench->address, &at.sin_addr) == 1);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (rig->host == 1) {
        must(bind(fd, (struct sockaddr *)&at, sizeof at) == 0 && listen(fd, 1) == 0);
        rig_barrier(rig);
        int other = accept(fd, NULL, NULL);
        close(fd);
        fd = other;
    } else {
        rig_barrier(rig);
        must(connect(fd, (struct sockaddr *)&at, sizeof at) == 0);
    }
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    return fd;
}

static void measure_tcp(struct rig *rig, struct bench *bench)
{
    static double samples[SAMPLES_MAX];
    int fd = join_by_tcp(rig, bench);
    for (uint32_t i = 0; i < bench->round_count; i++) {
        uint64_t begin_ns = quoit_clock_now_ns();
        ping(fd, rig->host == 0);
        samples[i] = (double)(quoit_clock_now_ns() - begin_ns) / 1e3;
    }
    close(fd);
    qsort(samples, bench->round_count, sizeof samples[0], by_size);
    if (rig->host == 0)
        printf("%-28s %9.2f %9.2f\n", "TCP socket, round trip", samples[0], samples[bench->round_count / 2]);
}

static void run(struct rig *rig)
{
    struct bench *bench = rig->arg;
    const struct quoit_net_choice *choice = quoit_net_choice(rig->net);
    bench->bare = bare_open(rig, choice->provider, choice->device);
    rig_barrier(rig);
    if (rig->host == 0) {
        printf("driver %s, provider %s, device %s\n", choice->driver, choice->provider, choice->device);
        printf("%-28s %9s %9s %9s %9s %6s\n", "microseconds", "net min", "median", "bare min", "median", "ratio");
        for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
            measure(rig, bench, &rows[i]);
        atomic_store(&rig->board->word[0], 1);
    } else {
        for (uint32_t look = 0; atomic_load(&rig->board->word[0]) == 0; look++) {
            if (atomic_load(&rig->board->word[1]) == 0 ||
                look % 1000 == 0) /* else the library's row: heartbeats only */
                quoit_net_progress(rig->net);
            bare_answer(bench->bare);
        }
    }
    rig_barrier(rig);
    measure_tcp(rig, bench);
    bare_close(bench->bare);
}

/* As ip-netns(8) does: UCX looks for devices in /sys, which shows those of the namespace that mounted it. */
static void enter_namespace(struct rig *rig)
{
    const struct bench *bench = rig->arg;
    const char *comma = strchr(bench->namespaces, ',');
    char path[128];
    must(comma);
    if (rig->host == 0)
        snprintf(path, sizeof path, "/run/netns/%.*s", (int)(comma - bench->namespaces), bench->namespaces);
    else
        snprintf(path, sizeof path, "/run/netns/%s", comma + 1);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    must(fd >= 0 && setns(fd, CLONE_NEWNET) == 0);
    close(fd);
    must(unshare(CLONE_NEWNS) == 0 && mount("", "/", NULL, MS_SLAVE | MS_REC, NULL) == 0);
    must(umount2("/sys", MNT_DETACH) == 0 && mount("sysfs", "/sys", "sysfs", 0, NULL) == 0);
}

int main(int argc, char **argv)
{
    static const struct option options[] = {{"driver", required_argument, NULL, 'd'},
                                            {"provider", required_argument, NULL, 'p'},
                                            {"device", required_argument, NULL, 'e'},
                                            {"rounds", required_argument, NULL, 'r'},
                                            {"namespaces", required_argument, NULL, 'n'},
                                            {"address", required_argument, NULL, 'a'},
                                            {NULL, 0, NULL, 0}};
    struct bench bench = {.device = "lo", .address = "127.0.0.1", .round_count = 1000};
    for (int option; (option = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        if (option == 'd')
            bench.driver = optarg;
        else if (option == 'p')
            bench.provider = optarg;
        else if (option == 'e')
            bench.device = optarg;
        else if (option == 'r')
            bench.round_count = (uint32_t)strtoul(optarg, NULL, 10);
        else if (option == 'n')
            bench.namespaces = optarg;
        else if (option == 'a')
            bench.address = optarg;
        else
            return 2;
    }
    if (bench.round_count == 0 || bench.round_count > SAMPLES_MAX)
        bench.round_count = SAMPLES_MAX;
    struct rig rig = {.driver = bench.driver,
                      .provider = bench.provider,
                      .device = bench.device,
                      .lost_limit_ns = LOST_NS,
                      .host_count = 2,
                      .arg = &bench};
    rig.enter = bench.namespaces ? enter_namespace : NULL;
    return rig_run(&rig, run) != 0;
}
