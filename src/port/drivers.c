/* SPDX-License-Identifier: BSD-3-Clause */
#include "port/driver.h"

#include <string.h>

#include "port/emulated/emulated.h"

#if defined(QUOIT_TEST_DRIVERS)
extern const struct quoit_port_driver quoit_driver_lossy; /* tests/drivers/lossy.c */
#endif

static const struct quoit_port_driver *const drivers[] = {
    &quoit_driver_emulated,
#if defined(QUOIT_TEST_DRIVERS)
    &quoit_driver_lossy,
#endif
};

const struct quoit_port_driver *quoit_port_driver_at(uint32_t index)
{
    return index < sizeof drivers / sizeof drivers[0] ? drivers[index] : NULL;
}

const struct quoit_port_driver *quoit_port_driver_find(const char *name)
{
    for (uint32_t i = 0; i < sizeof drivers / sizeof drivers[0]; i++)
        if (strcmp(drivers[i]->name, name) == 0)
            return drivers[i];
    return NULL;
}
