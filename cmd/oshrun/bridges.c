/* SPDX-License-Identifier: BSD-3-Clause */
#include "bridges.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define DEVICE_BYTES (QUOIT_SHARE_DEVICE_BYTES + 8)
#define PARTS_MAX    64u

/* The device of a part of the port of which `device` is one. */
static void name_part(const char *device, uint32_t part, char device_out[DEVICE_BYTES])
{
    size_t length = strlen(device), digits = 0;
    while (digits < length && device[length - digits - 1] >= '0' && device[length - digits - 1] <= '9')
        digits++;
    if (digits > 0 && digits < length && device[length - digits - 1] == '.')
        length -= digits + 1;
    if (part == 0)
        snprintf(device_out, DEVICE_BYTES, "%.*s", (int)length, device);
    else
        snprintf(device_out, DEVICE_BYTES, "%.*s.%u", (int)length, device, part);
}

static enum quoit_status probe_both(const struct quoit_port_driver *driver, const char *left, const char *right)
{
    enum quoit_status status = quoit_port_driver_probe(driver, left);
    return status == QUOIT_OK ? quoit_port_driver_probe(driver, right) : status;
}

bool bridges_find(const struct quoit_share_config *ring, char text_out[BRIDGES_TEXT_BYTES],
                  char problem_out[BRIDGES_PROBLEM_BYTES])
{
    const struct quoit_port_driver *driver = quoit_port_driver_find(ring->driver);
    const struct quoit_share_machines *machines = &ring->machines;
    char left[DEVICE_BYTES], right[DEVICE_BYTES];
    uint32_t part = 0;
    for (; driver && part < PARTS_MAX; part++) {
        name_part(machines->left, part, left);
        name_part(machines->right, part, right);
        if (access(left, F_OK) != 0)
            break;
        enum quoit_status status = probe_both(driver, left, right);
        if (status == QUOIT_OK) {
            snprintf(text_out, BRIDGES_TEXT_BYTES, "%s,%s", left, right);
            return true;
        }
        if (status != QUOIT_FULL) {
            snprintf(problem_out, BRIDGES_PROBLEM_BYTES, "cannot open the ports %s and %s: %s%s", left, right,
                     status == QUOIT_SYSTEM ? strerror(errno) : quoit_status_text(status),
                     status == QUOIT_SYSTEM && errno == EACCES ? "; be root, or of the group ntb" : "");
            return false;
        }
    }
    if (part > 1)
        snprintf(problem_out, BRIDGES_PROBLEM_BYTES, "all %u parts of the ports %s and %s are in use", part,
                 machines->left, machines->right);
    else
        snprintf(problem_out, BRIDGES_PROBLEM_BYTES,
                 "it has the ports %s and %s for itself; with quoit_ntb parts=3 on every machine a job runs beside it "
                 "(docs/build-a-ring.md)",
                 machines->left, machines->right);
    return false;
}
