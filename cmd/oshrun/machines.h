/* SPDX-License-Identifier: BSD-3-Clause */
/* machines.h - the machines of --host and --hostfile, and how many PEs each of them takes.
 *
 * --host: "name", "name:SLOTS", separated by commas. --hostfile: a line for each machine, as Open MPI and Hydra have
 * it: name name slots=N     further words of the form key=value are ignored name:N A # begins a comment. A machine
 * without a number has one slot, and one more each time that it is named. A name may begin with USER@; one with several
 * colons is an address without a number of slots.
 */
#ifndef OSHRUN_MACHINES_H
#define OSHRUN_MACHINES_H

#include <stdbool.h>
#include <stdint.h>

#include "host/job_config.h"

#define MACHINES_MAX           QUOIT_JOB_HOSTS_MAX
#define MACHINE_NAME_BYTES     128
#define MACHINES_PROBLEM_BYTES 384
#define MACHINE_HEAD           UINT32_MAX

struct machine {
    char name[MACHINE_NAME_BYTES]; /* as --rsh gets it */
    uint32_t slot_count;
    bool has_slots; /* a number was given */
    uint32_t pe_count;
    uint32_t parent; /* the machine whose agent starts this one's; MACHINE_HEAD: oshrun does */
};

struct machines {
    uint32_t count; /* 0: all hosts are of this machine */
    struct machine list[MACHINES_MAX];
};

/* Adds those that `text`, the value of --host, names. False: problem_out says what is wrong. */
bool machines_add_list(struct machines *machines, const char *text, char problem_out[MACHINES_PROBLEM_BYTES]);
/* Adds those of a file; a problem names its line. */
bool machines_add_file(struct machines *machines, const char *path, char problem_out[MACHINES_PROBLEM_BYTES]);
/* Adds those of Slurm's list of names, "n[01-03,7],m2", with the tasks of each, "4(x2),3"; NULL: not given. */
bool machines_add_slurm(struct machines *machines, const char *names, const char *tasks,
                        char problem_out[MACHINES_PROBLEM_BYTES]);
/* Adds those of Grid Engine's file: lines "name slots queue processors". */
bool machines_add_grid(struct machines *machines, const char *path, char problem_out[MACHINES_PROBLEM_BYTES]);
/* Gives each machine its place in a tree whose root, oshrun, and machines have up to fan_out machines below each. Those
 * for which stays_flat() is true, and all of them with fan_out 0, are oshrun's. */
void machines_arrange(struct machines *machines, uint32_t fan_out, bool (*stays_flat)(void *arg, const char *name),
                      void *arg);
/* PEs that fill all slots; a machine without a number counts as one. */
uint32_t machines_slots(const struct machines *machines);
/* Gives each machine its PEs: by slots in the order of the list, over and over while PEs are left; equal numbers where
 * no machine has a number of slots. Machines that get none are dropped. */
void machines_place(struct machines *machines, uint32_t pe_count);

#endif
