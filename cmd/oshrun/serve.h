/* SPDX-License-Identifier: BSD-3-Clause */
/* serve.h - oshrun --proxy: the proxy of one host of a job that another launcher started, as the agent in the host's
 * lowest PE tells it (boot/proxy_process.h). It ends when that PE has ended. */
#ifndef OSHRUN_SERVE_H
#define OSHRUN_SERVE_H

#include <stdbool.h>

bool serve_is_asked(int argc, char **argv);
/* Serves until the end. The exit status. */
int serve_host(void);

#endif
