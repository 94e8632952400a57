/* SPDX-License-Identifier: BSD-3-Clause */
/* age.h - an aged job, whose counts and sequence numbers are about to wrap. */
#ifndef SIM_AGE_H
#define SIM_AGE_H

struct sim_host;

/* Called when the proxy of the host is open, its lanes do not run, and no PE has opened its fabric. */
void sim_host_age(struct sim_host *host);

#endif
