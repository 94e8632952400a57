/* SPDX-License-Identifier: BSD-3-Clause */
/* driver_rig.h - a driver in place of all others, for tests of net.c. Included by one file of each test only.
 *
 * What it is: `fake_driver` is what quoit_net_open() finds. The test fills in open, close, send_buffer, send and
 * progress; of the rest it sets what it needs, and what it leaves does nothing.
 */
#ifndef QUOIT_NET_DRIVER_RIG_H
#define QUOIT_NET_DRIVER_RIG_H

#include <stddef.h>

#include "net/driver.h"

static uint32_t fake_survey(const char *provider, const char *device, struct quoit_net_choice *choices_out,
                            uint32_t max_count)
{
    (void)provider, (void)device, (void)choices_out, (void)max_count;
    return 0;
}

static enum quoit_status fake_connect(struct quoit_net_end *end, uint32_t host, const struct quoit_net_address *address)
{
    (void)end, (void)host, (void)address;
    return QUOIT_OK;
}

static enum quoit_status fake_reg(struct quoit_net_end *end, void *memory, uint64_t bytes,
                                  struct quoit_net_key *key_out, void **region_out)
{
    (void)end, (void)bytes, (void)key_out;
    *region_out = memory;
    return QUOIT_OK;
}

static void fake_release(struct quoit_net_end *end, void *object)
{
    (void)end, (void)object;
}

static enum quoit_status fake_attach(struct quoit_net_end *end, uint32_t host, const struct quoit_net_key *key,
                                     void **window_out)
{
    (void)end, (void)host, (void)key;
    *window_out = NULL;
    return QUOIT_OK;
}

/* Begins and never ends. */
static enum quoit_status fake_transfer(struct quoit_net_end *end, const struct quoit_net_transfer *transfer)
{
    (void)end, (void)transfer;
    return QUOIT_OK;
}

static void fake_abandon(struct quoit_net_end *end, uint32_t host)
{
    (void)end, (void)host;
}

/* Which nobody polls. */
static int fake_wait_fd(const struct quoit_net_end *end)
{
    (void)end;
    return 0;
}

static bool fake_arm(struct quoit_net_end *end)
{
    (void)end;
    return true;
}

static struct quoit_net_driver fake_driver = {.version = QUOIT_NET_DRIVER_VERSION,
                                              .name = "fake",
                                              .library = "none",
                                              .survey = fake_survey,
                                              .connect = fake_connect,
                                              .reg = fake_reg,
                                              .unreg = fake_release,
                                              .attach = fake_attach,
                                              .detach = fake_release,
                                              .put = fake_transfer,
                                              .get = fake_transfer,
                                              .abandon = fake_abandon,
                                              .wait_fd = fake_wait_fd,
                                              .arm = fake_arm};

const struct quoit_net_driver *quoit_net_driver_open(const char *name, char problem[QUOIT_NET_PROBLEM_BYTES])
{
    (void)name, (void)problem;
    return &fake_driver;
}

const char *quoit_net_driver_name(uint32_t index)
{
    return index == 0 ? fake_driver.name : NULL;
}

void quoit_net_keep_signals(struct quoit_net_signals *signals_out)
{
    (void)signals_out;
}

void quoit_net_restore_signals(const struct quoit_net_signals *signals)
{
    (void)signals;
}

#endif
