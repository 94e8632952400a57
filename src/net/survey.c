/* SPDX-License-Identifier: BSD-3-Clause */
/* Which drivers there are, what networks they find, and what the user may ask for. */
#include <stdio.h>
#include <string.h>

#include "net/devices.h"
#include "net/driver.h"

bool quoit_net_check(const char *device, const char *ports, char problem[QUOIT_NET_PROBLEM_BYTES])
{
    struct quoit_ports read;
    if (device && !quoit_devices_check(device, problem))
        return false;
    if (quoit_ports_read(ports, &read))
        return true;
    snprintf(problem, QUOIT_NET_PROBLEM_BYTES,
             "--network-ports: \"%.32s\" is no port, nor two with - between, such as 50000-50100", ports);
    return false;
}

uint32_t quoit_net_driver_names(const char *driver, const char *names_out[QUOIT_NET_DRIVER_NAMES])
{
    uint32_t count = 0;
    if (driver && strcmp(driver, "auto") != 0) {
        names_out[count++] = driver;
        return count;
    }
    while ((names_out[count] = quoit_net_driver_name(count)) != NULL)
        count++;
    return count;
}

void quoit_net_load(const char *driver)
{
    const char *names[QUOIT_NET_DRIVER_NAMES];
    char problem[QUOIT_NET_PROBLEM_BYTES];
    uint32_t count = quoit_net_driver_names(driver, names);
    for (uint32_t i = 0; i < count; i++)
        if (quoit_net_driver_open(names[i], problem))
            return;
}

uint32_t quoit_net_survey(const struct quoit_net_config *config, struct quoit_net_choice *choices_out,
                          uint32_t max_count)
{
    const char *names[QUOIT_NET_DRIVER_NAMES];
    uint32_t name_count = quoit_net_driver_names(config->driver, names), count = 0;
    for (uint32_t i = 0; i < name_count && count < max_count; i++) {
        struct quoit_net_choice *missing = &choices_out[count];
        *missing = (struct quoit_net_choice){0};
        const struct quoit_net_driver *driver = quoit_net_driver_open(names[i], missing->reason);
        memcpy(missing->driver, names[i], strnlen(names[i], QUOIT_NET_NAME_BYTES - 1));
        struct quoit_net_signals signals;
        quoit_net_keep_signals(&signals);
        if (!driver)
            count++;
        else
            count += driver->survey(config->provider, config->device, missing, max_count - count);
        quoit_net_restore_signals(&signals);
    }
    return count;
}
