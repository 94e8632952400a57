/* SPDX-License-Identifier: BSD-3-Clause */
#include "habits.h"

#include <string.h>

enum quoit_option_id habits_find(const char *name, const char **nearest_out)
{
    static const struct {
        const char *name;
        enum quoit_option_id id;
    } habits[] = {{"np", QUOIT_OPT_PES},
                  {"h", QUOIT_OPT_HELP},
                  {"V", QUOIT_OPT_VERSION},
                  {"H", QUOIT_OPT_HOST},
                  {"machinefile", QUOIT_OPT_HOSTFILE}};
    for (size_t i = 0; i < sizeof habits / sizeof habits[0]; i++)
        if (strcmp(name, habits[i].name) == 0)
            return habits[i].id;
    return quoit_option_find(name, nearest_out);
}

const char *habits_other(const char *name)
{
    static const char *const words[][2] = {{"c", "-n N"},
                                           {"oversubscribe", "no option: PEs may be more than processors"},
                                           {"allow-run-as-root", "no option: root may run jobs"},
                                           {"ppn", "--host NAME:N,..., the PEs of each machine"},
                                           {"N", "--host NAME:N,..., the PEs of each machine"},
                                           {"map-by", "--host NAME:N,... and --bind-to"},
                                           {"env", "-x VAR=value"},
                                           {"genv", "-x VAR=value"},
                                           {"wd", "--wdir DIR"},
                                           {"mca", "--network and --network-device"}};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strcmp(name, words[i][0]) == 0)
            return words[i][1];
    return NULL;
}
