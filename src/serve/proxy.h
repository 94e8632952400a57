/* SPDX-License-Identifier: BSD-3-Clause */
/* proxy.h - the proxy of one host, a process of its own, whichever supervisor has started it (boot/proxy_process.h). */
#ifndef QUOIT_SERVE_PROXY_H
#define QUOIT_SERVE_PROXY_H

/* Serves until the end. The exit status. */
int quoit_serve_proxy(void);

#endif
