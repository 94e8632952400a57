/* SPDX-License-Identifier: BSD-3-Clause */
/* folder.h - a temporary directory that is removed when this program ends, however it ends.
 *
 * A process of its own, the keeper, makes it, waits for end of file on a socket whose other end only this program
 * holds, and then removes the directory and its files. It is in a process group that no terminal signal reaches.
 */
#ifndef QUOIT_FOLDER_H
#define QUOIT_FOLDER_H

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

struct folder {
    char path[PATH_MAX - 64]; /* a name fits behind it; "": there is none */
    int keeper_fd;
    pid_t keeper;
};

/* In TMPDIR, or /tmp. False: it cannot be made, and stderr says why. */
bool folder_make(struct folder *folder);
/* Returns when it is gone. Does nothing if there is none. */
void folder_remove(struct folder *folder);

#endif
