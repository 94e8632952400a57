/* SPDX-License-Identifier: BSD-3-Clause */
/* age.h - a job that has run for long: its counts and numbers are about to wrap. */
#ifndef SIM_AGE_H
#define SIM_AGE_H

struct sim_host;

/* The proxy of the host is open; its lanes do not run, and no PE has opened its fabric. */
void sim_host_age(struct sim_host *host);

#endif
