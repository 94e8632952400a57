/* SPDX-License-Identifier: BSD-3-Clause */
/* Of libshmem.a alone: a program that is linked with it carries the agent and the proxy of its hosts, and becomes them
 * when it is executed as QUOIT_PROGRAM_CARRIED. Neither needs a file of an installation then, which may have moved, or
 * not be on that machine (docs/design/launchers.md). */
#include "base/log.h"
#include "boot/program.h"
#include "env/descriptors.h"
#include "env/own_file.h"
#include "serve/serve.h"

#include <string.h>

bool quoit_program_is_carried(void)
{
    return quoit_own_is_program();
}

/* The C library passes what main() will get. */
static void serve_before_main(int argc, char **argv)
{
    if (argc == 0 || strcmp(argv[0], QUOIT_PROGRAM_CARRIED) != 0)
        return;
    quoit_fill_standard_descriptors();
    quoit_log_setup(QUOIT_LOG_WARN, "quoit");
    quoit_serve_if_asked(argc, argv);
}

/* Linkers sort these sections by name, so this precedes each constructor that the program may have: its priorities
 * begin with 101, and those without one come last. */
__attribute__((section(".init_array.00000"), used)) static void (*const first)(int, char **) = serve_before_main;
