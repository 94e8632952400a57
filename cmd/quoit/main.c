/* SPDX-License-Identifier: BSD-3-Clause */
/* quoit - tools around the ring, as subcommands. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "command.h"
#include "ring.h"
#include "base/log.h"
#include "base/version.h"

static const struct command commands[] = {
    {"docs", "open the documentation in a browser, or print where it is", command_docs},
    {"explain", "what a message means, by its code: cause, example and cure", command_explain},
    {"figures", "the figures of the papers, simulated or measured, as a page and data", command_figures},
    {"info", "version, machine, options, transports between PEs, limits", command_info},
    {"model", "machines of virtual time: list, show, check them", command_model},
    {"panes", "a pane of tmux for the debugger of each PE, in oshrun --debugger", command_panes},
    {"perf", "how fast this library is, or another one, beside the limits of the machine", command_perf},
    {"predict", "how long a program takes on machines of a model, or where a larger ring stops paying",
     command_predict},
    {"profile", "print where the time of a job went, by a file of oshrun --profile, or compare two", command_profile},
    {"report", "make a page with plots from the data of a report", command_report},
    {"ring", "emulated hosts that stay, with an Ethernet device each", command_ring},
    {"sim", "simulate a ring, with faults and checks, and measure it in virtual time", command_sim},
    {"top", "watch a running job: what its links carry, and where its PEs are", command_top},
    {"tune", "measure copies between PEs, or collectives between hosts, and store what is best here", command_tune},
};
#define COMMAND_COUNT (sizeof commands / sizeof commands[0])

static void print_help(FILE *out)
{
    fprintf(out, "usage: quoit COMMAND [OPTION]...\n\ncommands:\n");
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        fprintf(out, "  %-10s %s\n", commands[i].name, commands[i].sentence);
    fprintf(out, "\nquoit COMMAND --help tells the options of a command.\n");
}

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "";
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 || strcmp(name, "help") == 0) {
        print_help(stdout);
        return 0;
    }
    if (strcmp(name, "--version") == 0 || strcmp(name, "-V") == 0) {
        printf("quoit %s\n", quoit_version()->text);
        return 0;
    }
    if (strcmp(name, RING_KEEPER_OPTION) == 0 && argc == 2) {
        quoit_log_setup(QUOIT_LOG_WARN, "quoit ring");
        _exit(ring_keeper_serve()); /* threads that were joined may still be ending, which a leak check cannot judge */
    }
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        if (strcmp(name, commands[i].name) == 0) {
            char who[32];
            snprintf(who, sizeof who, "quoit %s", name);
            quoit_log_setup(QUOIT_LOG_WARN, who);
            return commands[i].run(argc - 1, argv + 1);
        }
    if (*name)
        quoit_say("there is no command \"%s\"", name);
    print_help(stderr);
    return 2;
}
