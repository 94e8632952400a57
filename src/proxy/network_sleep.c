/* SPDX-License-Identifier: BSD-3-Clause */
#include "proxy/network_sleep.h"
#include "env/clock.h"
#include "env/thread.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct quoit_network_sleep {
    struct quoit_net *net;
    struct quoit_park *park;
    int net_fd;  /* -1: it has none */
    int kick_fd; /* an event counter: the lane has armed, or closes */
    pthread_t thread;
    _Atomic bool is_closing;
    _Atomic bool is_armed;      /* writer: the lane true, the thread false */
    _Atomic uint64_t until_ns;  /* of the sleep that is armed */
    _Atomic bool has_net_event; /* whether the descriptor says anything in this sleep */
};

static void kick(struct quoit_network_sleep *sleep)
{
    const uint64_t one = 1;
    while (write(sleep->kick_fd, &one, sizeof one) < 0 && errno == EINTR)
        ;
}

/* Until the lane kicks. */
static void wait_for_kick(struct quoit_network_sleep *sleep)
{
    uint64_t count;
    while (read(sleep->kick_fd, &count, sizeof count) < 0 && errno == EINTR)
        ;
}

/* Until the network has something or the time has come. False: the lane has kicked once more. */
static bool wait_for_network(struct quoit_network_sleep *sleep)
{
    uint64_t now_ns = quoit_clock_now_ns(), until_ns = atomic_load_explicit(&sleep->until_ns, memory_order_relaxed);
    struct pollfd fds[2] = {{.fd = sleep->kick_fd, .events = POLLIN}, {.fd = sleep->net_fd, .events = POLLIN}};
    nfds_t count = atomic_load_explicit(&sleep->has_net_event, memory_order_relaxed) ? 2 : 1;
    uint64_t left_ns = until_ns > now_ns ? until_ns - now_ns : 0;
    struct timespec timeout = {.tv_sec = (time_t)(left_ns / 1000000000), .tv_nsec = (long)(left_ns % 1000000000)};
    return ppoll(fds, count, &timeout, NULL) <= 0 || fds[0].revents == 0;
}

static void *watch(void *arg)
{
    struct quoit_network_sleep *sleep = arg;
    for (;;) {
        wait_for_kick(sleep);
        if (atomic_load_explicit(&sleep->is_closing, memory_order_acquire))
            return NULL;
        if (!wait_for_network(sleep))
            continue; /* the sleep is armed still, and ends by another time */
        atomic_store_explicit(&sleep->is_armed, false, memory_order_release); /* pairs with the lane's exchange */
        quoit_park_wake(sleep->park);
    }
}

enum quoit_status quoit_network_sleep_open(struct quoit_net *net, struct quoit_park *park,
                                           struct quoit_network_sleep **sleep_out)
{
    struct quoit_network_sleep *sleep = calloc(1, sizeof *sleep);
    if (!sleep)
        return QUOIT_NO_MEMORY;
    sleep->net = net;
    sleep->park = park;
    sleep->net_fd = quoit_net_wait_fd(net);
    enum quoit_status status = QUOIT_SYSTEM;
    sleep->kick_fd = eventfd(0, EFD_CLOEXEC);
    if (sleep->kick_fd < 0)
        goto free_sleep;
    status = quoit_thread_status(pthread_create(&sleep->thread, NULL, watch, sleep));
    if (status != QUOIT_OK)
        goto close_kick;
    *sleep_out = sleep;
    return QUOIT_OK;

close_kick:
    close(sleep->kick_fd);
free_sleep:
    free(sleep);
    return status;
}

void quoit_network_sleep_close(struct quoit_network_sleep *sleep)
{
    if (!sleep)
        return;
    atomic_store_explicit(&sleep->is_closing, true, memory_order_release);
    kick(sleep);
    pthread_join(sleep->thread, NULL);
    close(sleep->kick_fd);
    free(sleep);
}

/* A thread that is armed still, from an earlier sleep, polls the descriptor already; it is kicked only to end by an
 * earlier time, or to look at a descriptor that it does not look at. */
void quoit_network_sleep_arm(struct quoit_network_sleep *sleep)
{
    uint64_t until_ns, old_until_ns = atomic_load_explicit(&sleep->until_ns, memory_order_relaxed);
    bool has_event = quoit_net_arm(sleep->net, &until_ns);
    bool had_event = atomic_load_explicit(&sleep->has_net_event, memory_order_relaxed);
    bool was_armed = atomic_exchange_explicit(&sleep->is_armed, true, memory_order_acq_rel);
    if (was_armed && until_ns >= old_until_ns && has_event == had_event)
        return;
    atomic_store_explicit(&sleep->has_net_event, has_event, memory_order_relaxed);
    atomic_store_explicit(&sleep->until_ns, until_ns, memory_order_relaxed);
    kick(sleep);
}
