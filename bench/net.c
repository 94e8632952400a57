/* SPDX-License-Identifier: BSD-3-Clause */
/* What the network layer (src/net) adds to the library below it: the same puts and gets through net.h, through bare
 * libfabric calls, and a ping-pong over a TCP socket, in turns, in one run.
 *
 *   net [--driver ofi] [--provider P] [--device lo] [--rounds N] [--namespaces]
 *
 * Both hosts are processes of this machine; with --namespaces (as root) each has a network of its own, joined by a
 * veth pair. Prints minimum and median in microseconds, or the rate, and the ratio of the medians. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <getopt.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <sys/socket.h>

#include "net/net_rig.h"
#include "net_bare.h"

#define SAMPLES_MAX        4096
#define RING_ADDRESS(host) ((host) == 0 ? "10.79.13.1" : "10.79.13.2")

struct bench {
    const char *driver, *provider, *device;
    uint32_t round_count;
    bool has_namespaces;
    struct bare *bare;
    int socket;
};

struct row {
    const char *name;
    uint64_t bytes;
    uint32_t batch; /* puts before a flush; the sample is the time of one */
    bool is_get;
};

static const struct row rows[] = {
    {"put 8 B + flush", 8, 1, false},
    {"get 8 B", 8, 1, true},
    {"put 64 KiB + flush", 65536, 1, false},
    {"get 64 KiB", 65536, 1, true},
    {"put 1 MiB + flush", 1 << 20, 1, false},
    {"get 1 MiB", 1 << 20, 1, true},
    {"put 8 B, 64 before a flush", 8, 64, false},
    {"put 1 MiB, 8 before a flush", 1 << 20, 8, false},
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
        if (row->is_get)
            rig_get(rig, 1, i * row->bytes, local + i * row->bytes, row->bytes, i);
        else
            rig_put(rig, 1, i * row->bytes, local + i * row->bytes, row->bytes, i);
    }
    rig_flush(rig);
}

static double time_one(struct rig *rig, struct bench *bench, const struct row *row, bool is_bare)
{
    uint64_t begin_ns = quoit_clock_now_ns();
    if (is_bare)
        bare_transfer(bench->bare, row->bytes, row->batch, row->is_get);
    else
        run_net(rig, row);
    return (double)(quoit_clock_now_ns() - begin_ns) / 1e3 / row->batch;
}

/* Both in turns, so that what else the machine does meets both. */
static void measure(struct rig *rig, struct bench *bench, const struct row *row)
{
    static double samples[2][SAMPLES_MAX];
    uint32_t count = row->bytes * row->batch >= 65536 ? bench->round_count / 10 + 1 : bench->round_count;
    for (uint32_t i = 0; i < count + 20; i++)
        for (int is_bare = 0; is_bare <= (bench->bare != NULL); is_bare++)
            samples[is_bare][i < 20 ? 0 : i - 20] = time_one(rig, bench, row, is_bare);
    for (int is_bare = 0; is_bare < 2; is_bare++)
        qsort(samples[is_bare], count, sizeof samples[0][0], by_size);
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
    inet_pton(AF_INET, bench->has_namespaces ? RING_ADDRESS(1) : "127.0.0.1", &at.sin_addr);
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
        while (atomic_load(&rig->board->word[0]) == 0) {
            quoit_net_progress(rig->net);
            bare_progress(bench->bare);
        }
    }
    rig_barrier(rig);
    measure_tcp(rig, bench);
    bare_close(bench->bare);
}

/* Each host in a network of its own. Done by the host itself before it opens its end: the names of a pair are made by
 * the parent. */
static bool make_namespaces(void)
{
    static const char *const commands[] = {
        "ip netns add quoit-bench-0 && ip netns add quoit-bench-1",
        "ip link add qb0 netns quoit-bench-0 type veth peer name qb1 netns quoit-bench-1",
        "ip -n quoit-bench-0 addr add 10.79.13.1/24 dev qb0 && ip -n quoit-bench-1 addr add 10.79.13.2/24 dev qb1",
        "ip -n quoit-bench-0 link set lo up && ip -n quoit-bench-1 link set lo up",
        "ip -n quoit-bench-0 link set qb0 up && ip -n quoit-bench-1 link set qb1 up",
    };
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++)
        if (system(commands[i]) != 0)
            return false;
    quoit_clock_sleep_ns(1500000000); /* a new pair needs it to come up */
    return true;
}

static void drop_namespaces(void)
{
    if (system("ip netns del quoit-bench-0 2>/dev/null; ip netns del quoit-bench-1 2>/dev/null") != 0)
        fprintf(stderr, "net: ip netns del quoit-bench-0, quoit-bench-1 failed\n");
}

static void enter_namespace(struct rig *rig)
{
    static char device[8];
    char path[64];
    snprintf(path, sizeof path, "/run/netns/quoit-bench-%u", rig->host);
    snprintf(device, sizeof device, "qb%u", rig->host);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    must(fd >= 0 && setns(fd, CLONE_NEWNET) == 0);
    close(fd);
    rig->device = device;
}

int main(int argc, char **argv)
{
    static const struct option options[] = {
        {"driver", required_argument, NULL, 'd'}, {"provider", required_argument, NULL, 'p'},
        {"device", required_argument, NULL, 'e'}, {"rounds", required_argument, NULL, 'r'},
        {"namespaces", no_argument, NULL, 'n'},   {NULL, 0, NULL, 0}};
    struct bench bench = {.device = "lo", .round_count = 1000};
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
            bench.has_namespaces = true;
        else
            return 2;
    }
    if (bench.round_count == 0 || bench.round_count > SAMPLES_MAX)
        bench.round_count = SAMPLES_MAX;
    struct rig rig = {
        .driver = bench.driver, .provider = bench.provider, .device = bench.device, .host_count = 2, .arg = &bench};
    if (bench.has_namespaces && (geteuid() != 0 || !make_namespaces())) {
        fprintf(stderr, "net: --namespaces needs root and ip(8)\n");
        drop_namespaces();
        return 1;
    }
    rig.enter = bench.has_namespaces ? enter_namespace : NULL;
    uint32_t failed_mask = rig_run(&rig, run);
    if (bench.has_namespaces)
        drop_namespaces();
    return failed_mask != 0;
}
