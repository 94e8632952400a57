/* SPDX-License-Identifier: BSD-3-Clause */
/* host.h - the proxy of one host (boot/proxy_process.h), of oshrun's job (proxy.h) or of one that another launcher
 * started. The latter ends when the host's agent has ended. */
#ifndef QUOIT_SERVE_HOST_H
#define QUOIT_SERVE_HOST_H

/* Serves until the end. The exit status. */
int quoit_serve_host(void);

#endif
