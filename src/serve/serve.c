/* SPDX-License-Identifier: BSD-3-Clause */
#include "serve/serve.h"
#include "boot/agent.h"
#include "boot/proxy_process.h"
#include "serve/host.h"

#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* A network of many hosts has many connections. */
static void raise_file_limit(void)
{
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) != 0)
        return;
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
}

void quoit_serve_if_asked(int argc, char **argv)
{
    static const struct {
        const char *option;
        int (*serve)(void);
    } roles[] = {{QUOIT_AGENT_OPTION, quoit_agent_serve}, {QUOIT_PROXY_OPTION, quoit_serve_host}};
    for (size_t i = 0; i < sizeof roles / sizeof roles[0] && argc == 2; i++) {
        if (strcmp(argv[1], roles[i].option) != 0)
            continue;
        raise_file_limit();
        _exit(roles[i]
                  .serve()); /* threads that were joined may still be ending, which a leak check at exit cannot judge */
    }
}
