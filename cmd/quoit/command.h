/* SPDX-License-Identifier: BSD-3-Clause */
/* command.h - the subcommands of quoit: one file each, one row each in the table of main.c. */
#ifndef QUOIT_COMMAND_H
#define QUOIT_COMMAND_H

struct command {
    const char *name;
    const char *sentence;
    /* argv[0] is the name of the subcommand. Returns the exit status; 2 for a wrong command line. */
    int (*run)(int argc, char **argv);
};

int command_docs(int argc, char **argv);
int command_explain(int argc, char **argv);
int command_figures(int argc, char **argv);
int command_info(int argc, char **argv);
int command_model(int argc, char **argv);
int command_panes(int argc, char **argv);
int command_perf(int argc, char **argv);
int command_predict(int argc, char **argv);
int command_profile(int argc, char **argv);
int command_report(int argc, char **argv);
int command_ring(int argc, char **argv);
int command_sim(int argc, char **argv);
int command_top(int argc, char **argv);
int command_tune(int argc, char **argv);

#endif
