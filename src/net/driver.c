/* SPDX-License-Identifier: BSD-3-Clause */
#include "net/driver.h"

static void ignore_done(void *arg, uint32_t host, uint64_t cookie, enum quoit_status status, uint64_t bytes)
{
    (void)arg, (void)host, (void)cookie, (void)status, (void)bytes;
}

static void ignore_message(void *arg, const void *message, uint32_t bytes)
{
    (void)arg, (void)message, (void)bytes;
}

static void ignore_broken(void *arg, uint32_t host)
{
    (void)arg, (void)host;
}

static void ignore_narrowed(void *arg, uint32_t host, uint32_t bytes, uint32_t lost_bytes)
{
    (void)arg, (void)host, (void)bytes, (void)lost_bytes;
}

const struct quoit_net_events quoit_net_no_events = {
    .done = ignore_done, .message = ignore_message, .broken = ignore_broken, .narrowed = ignore_narrowed};
