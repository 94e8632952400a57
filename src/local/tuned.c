/* SPDX-License-Identifier: BSD-3-Clause */
#include "local/tuned.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool quoit_tuned_file(const char *name, char path_out[QUOIT_TUNED_NAME_BYTES])
{
    const char *folder = getenv("XDG_CONFIG_HOME"), *below = "";
    if (!folder || folder[0] != '/') { /* the XDG specification: a relative path counts as unset */
        folder = getenv("HOME");
        below = "/.config";
    }
    if (!folder || folder[0] != '/' || strchr(name, '/'))
        return false;
    int length = snprintf(path_out, QUOIT_TUNED_NAME_BYTES, "%s%s/quoit/%s", folder, below, name);
    return length < (int)QUOIT_TUNED_NAME_BYTES;
}

/* The number of bytes read, more than QUOIT_TUNED_FILE_BYTES if the file is larger; -1 with errno if it cannot be read.
 */
static ssize_t read_file(const char *path, char text_out[QUOIT_TUNED_FILE_BYTES + 2])
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a file that blocks, such as a pipe, is no table */
    if (fd < 0)
        return -1;
    ssize_t bytes = read(fd, text_out, QUOIT_TUNED_FILE_BYTES + 1);
    int problem = errno;
    text_out[bytes > 0 ? bytes : 0] = '\0';
    close(fd);
    errno = problem;
    return bytes;
}

static bool is_missing(const char *path, int error)
{
    char folder[QUOIT_TUNED_NAME_BYTES];
    if (error != EACCES)
        return error == ENOENT || error == ENOTDIR;
    snprintf(folder, sizeof folder, "%.*s", (int)(strrchr(path, '/') - path), path);
    return access(folder, X_OK) != 0;
}

enum quoit_tuned_found quoit_tuned_read(const char *path, char text_out[QUOIT_TUNED_FILE_BYTES + 2],
                                        char problem_out[QUOIT_TUNED_PROBLEM_BYTES])
{
    ssize_t bytes = read_file(path, text_out);
    if (bytes < 0 && is_missing(path, errno))
        return QUOIT_TUNED_MISSING;
    if (bytes < 0)
        snprintf(problem_out, QUOIT_TUNED_PROBLEM_BYTES, "cannot be read: %s", strerror(errno));
    else if (bytes > (ssize_t)QUOIT_TUNED_FILE_BYTES)
        snprintf(problem_out, QUOIT_TUNED_PROBLEM_BYTES, "is larger than any table");
    else
        return QUOIT_TUNED_READ;
    return QUOIT_TUNED_UNUSABLE;
}

const char *quoit_tuned_word(const char *text, const char *word, char after)
{
    size_t length = strlen(word);
    return strncmp(text, word, length) == 0 && text[length] == after ? text + length + 1 : NULL;
}
