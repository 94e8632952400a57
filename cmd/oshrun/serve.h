/* SPDX-License-Identifier: BSD-3-Clause */
/* serve.h - oshrun --proxy: the proxy of one host (boot/proxy_process.h), of oshrun's job (proxy.h) or of one that
 * another launcher started. The latter ends when the host's agent has ended. */
#ifndef OSHRUN_SERVE_H
#define OSHRUN_SERVE_H

#include <stdbool.h>

bool serve_is_asked(int argc, char **argv);
/* Serves until the end. The exit status. */
int serve_host(void);

#endif
