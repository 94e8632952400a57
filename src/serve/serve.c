/* SPDX-License-Identifier: BSD-3-Clause */
#include "serve/serve.h"
#include "boot/agent.h"
#include "boot/proxy_process.h"
#include "env/limits.h"
#include "serve/proxy.h"

#include <string.h>
#include <unistd.h>

void quoit_serve_if_asked(int argc, char **argv)
{
    static const struct {
        const char *option;
        int (*serve)(void);
    } roles[] = {{QUOIT_AGENT_OPTION, quoit_agent_serve}, {QUOIT_PROXY_OPTION, quoit_serve_proxy}};
    for (size_t i = 0; i < sizeof roles / sizeof roles[0] && argc == 2; i++) {
        if (strcmp(argv[1], roles[i].option) != 0)
            continue;
        quoit_limits_raise_files(); /* a network of many hosts has many connections */
        /* Threads that were joined may still be ending, which a leak check at exit cannot judge. */
        _exit(roles[i].serve());
    }
}
