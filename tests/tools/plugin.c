/* SPDX-License-Identifier: BSD-3-Clause */
/* plugin.c - runs the program as a plugin: plugin FILE keep|close. With close it is unloaded, with all that only it
 * needs. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

int main(int count, char **words)
{
    void *plugin = count > 2 ? dlopen(words[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    int (*run)(int, char **) = NULL;
    if (plugin)
        *(void **)&run = dlsym(plugin, "work_main");
    if (!run) {
        fprintf(stderr, "plugin: %s\n", dlerror());
        return 2;
    }
    int status = run(1, words);
    if (strcmp(words[2], "close") == 0 && dlclose(plugin) == 0)
        puts("closed");
    return status;
}
