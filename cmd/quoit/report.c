/* SPDX-License-Identifier: BSD-3-Clause */
#include "report.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* report.py as it stands in the prefix to which this program belongs, two above it. */
static bool find_script(char path_out[PATH_MAX])
{
    char prefix[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", prefix, sizeof prefix - 1);
    if (length <= 0)
        return false;
    prefix[length] = '\0';
    for (int up = 0; up < 2; up++) {
        char *slash = strrchr(prefix, '/');
        if (slash)
            *slash = '\0';
    }
    return snprintf(path_out, PATH_MAX, "%s/%s/quoit/report.py", prefix, QUOIT_DATA_FOLDER) < PATH_MAX &&
           access(path_out, R_OK) == 0;
}

bool report_make(FILE *data, const char *path)
{
    char script[PATH_MAX];
    if (!find_script(script)) {
        fprintf(stderr, "quoit: report.py is not where it was installed, in %s/quoit beside the folder of quoit\n",
                QUOIT_DATA_FOLDER);
        return false;
    }
    fflush(NULL);
    rewind(data);
    pid_t pid = fork();
    if (pid == 0) {
        if (dup2(fileno(data), STDIN_FILENO) >= 0)
            execlp("python3", "python3", "-B", script, "-", path, (char *)NULL);
        fprintf(stderr, "quoit: no python3 to write the page; on Debian: apt-get install python3-matplotlib\n");
        _exit(127);
    }
    int status;
    if (pid < 0 || waitpid(pid, &status, 0) != pid) {
        perror("quoit: cannot run python3");
        return false;
    }
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}
