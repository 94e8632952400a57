/* SPDX-License-Identifier: BSD-3-Clause */
#include "setup.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Before the machines and the texts: arguments, variables, folder, remote shell, each with its 0. */
struct header {
    uint32_t host;
    uint32_t argument_count;
    uint32_t variable_count;
    uint32_t machine_count;
    uint64_t schedules;
};

static uint32_t length_of(char *const *list)
{
    uint32_t count = 0;
    while (list[count])
        count++;
    return count;
}

static void put_texts(FILE *out, char *const *list, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        fwrite(list[i], 1, strlen(list[i]) + 1, out);
}

char *setup_pack(const struct setup *setup, size_t *bytes_out)
{
    char *bytes = NULL;
    struct header header = {.host = setup->host,
                            .argument_count = (uint32_t)setup->argc,
                            .variable_count = length_of(setup->environment),
                            .machine_count = setup->machines.count,
                            .schedules = setup->schedules};
    FILE *out = open_memstream(&bytes, bytes_out);
    if (!out)
        return NULL;
    fwrite(&header, 1, sizeof header, out);
    fwrite(setup->machines.list, sizeof(struct machine), setup->machines.count, out);
    put_texts(out, setup->argv, header.argument_count);
    put_texts(out, setup->environment, header.variable_count);
    fwrite(setup->folder, 1, strlen(setup->folder) + 1, out);
    fwrite(setup->rsh, 1, strlen(setup->rsh) + 1, out);
    return fclose(out) == 0 ? bytes : NULL;
}

/* Takes `count` texts; NULL: there are fewer. */
static char **take_texts(char **at, const char *end, uint32_t count)
{
    if (count > (size_t)(end - *at))
        return NULL;
    char **list = calloc((size_t)count + 1, sizeof *list);
    for (uint32_t i = 0; i < count && list; i++) {
        char *zero = *at < end ? memchr(*at, '\0', (size_t)(end - *at)) : NULL;
        if (!zero) {
            free(list);
            return NULL;
        }
        list[i] = *at;
        *at = zero + 1;
    }
    return list;
}

static bool are_sound(const struct machines *machines)
{
    for (uint32_t i = 0; i < machines->count; i++)
        if (!memchr(machines->list[i].name, '\0', MACHINE_NAME_BYTES) || machines->list[i].pe_count == 0 ||
            (machines->list[i].parent >= i && machines->list[i].parent != MACHINE_HEAD))
            return false;
    return true;
}

/* What comes before the texts; the list is not empty, and holds this host. */
static bool take_machines(char **at, const char *end, struct header *header_out, struct machines *machines_out)
{
    if ((size_t)(end - *at) < sizeof *header_out)
        return false;
    memcpy(header_out, *at, sizeof *header_out);
    *at += sizeof *header_out;
    const uint32_t count = header_out->machine_count;
    if (count > MACHINES_MAX || header_out->host >= count || header_out->argument_count == 0 ||
        (size_t)(end - *at) < count * sizeof machines_out->list[0])
        return false;
    machines_out->count = count;
    memcpy(machines_out->list, *at, count * sizeof machines_out->list[0]);
    *at += count * sizeof machines_out->list[0];
    return are_sound(machines_out);
}

bool setup_unpack(char *bytes, size_t count, struct setup *setup_out)
{
    struct header header;
    struct machines machines = {0};
    char *at = bytes;
    const char *end = bytes + count;
    if (!take_machines(&at, end, &header, &machines))
        return false;
    char **arguments = take_texts(&at, end, header.argument_count);
    char **variables = arguments ? take_texts(&at, end, header.variable_count) : NULL;
    char **last = variables ? take_texts(&at, end, 2) : NULL;
    if (!last) {
        free(variables);
        free(arguments);
        return false;
    }
    *setup_out = (struct setup){.host = header.host,
                                .machines = machines,
                                .schedules = header.schedules,
                                .argc = (int)header.argument_count,
                                .argv = arguments,
                                .environment = variables,
                                .folder = last[0],
                                .rsh = last[1]};
    free(last); /* the list */
    return true;
}

static bool is_of_machine(const char *variable)
{
    static const char *const names[] = {"HOSTNAME",       "SSH_CLIENT",      "SSH_CONNECTION",
                                        "SSH_TTY",        "SSH_AUTH_SOCK",   "XDG_RUNTIME_DIR",
                                        "XDG_SESSION_ID", "SLURMD_NODENAME", "DBUS_SESSION_BUS_ADDRESS"};
    size_t length = strcspn(variable, "=");
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strlen(names[i]) == length && strncmp(variable, names[i], length) == 0)
            return true;
    return false;
}

char **setup_environment(char **oshruns, char **own)
{
    char **merged = calloc((size_t)length_of(oshruns) + length_of(own) + 1, sizeof *merged);
    size_t used = 0;
    for (; merged && *oshruns; oshruns++)
        if (!is_of_machine(*oshruns))
            merged[used++] = *oshruns;
    for (; merged && *own; own++)
        if (is_of_machine(*own))
            merged[used++] = *own;
    return merged;
}
