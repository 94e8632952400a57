/* SPDX-License-Identifier: BSD-3-Clause */
#include "port/driver.h"

#include <string.h>

#include "port/emulated/emulated.h"
#include "port/linux/linux.h"

#if defined(QUOIT_TEST_DRIVERS)
extern const struct quoit_port_driver quoit_driver_lossy, quoit_driver_split, quoit_driver_deaf; /* tests/drivers */
extern const struct quoit_port_driver quoit_driver_mask_fff0, quoit_driver_mask_12, quoit_driver_mask_holes,
    quoit_driver_mask_one;
#endif

static const struct quoit_port_driver *const drivers[] = {
    &quoit_driver_emulated, &quoit_driver_linux,
#if defined(QUOIT_TEST_DRIVERS)
    &quoit_driver_lossy,    &quoit_driver_split,      &quoit_driver_deaf,     &quoit_driver_mask_fff0,
    &quoit_driver_mask_12,  &quoit_driver_mask_holes, &quoit_driver_mask_one,
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

enum quoit_status quoit_port_driver_memory(const struct quoit_port_driver *driver, const char *label, uint64_t bytes,
                                           int *fd_out)
{
    while (driver->memory_create == NULL && driver->base != NULL)
        driver = driver->base;
    return driver->memory_create(label, bytes, fd_out);
}

bool quoit_port_driver_is_one_machine(const struct quoit_port_driver *driver)
{
    while (driver->link_create == NULL && driver->base != NULL)
        driver = driver->base;
    return driver->link_create != NULL;
}

enum quoit_status quoit_port_driver_link(const struct quoit_port_driver *driver, int *fd_out)
{
    while (driver->link_create == NULL && driver->base != NULL)
        driver = driver->base;
    *fd_out = -1;
    return driver->link_create ? driver->link_create(fd_out) : QUOIT_OK;
}

enum quoit_status quoit_port_driver_describe(const struct quoit_port_driver *driver, const struct quoit_port_site *site,
                                             struct quoit_port_endpoint *endpoint_out)
{
    while (driver->describe == NULL && driver->base != NULL)
        driver = driver->base;
    return driver->describe(site, endpoint_out);
}

enum quoit_status quoit_port_driver_probe(const struct quoit_port_driver *driver, const char *path)
{
    while (driver->probe == NULL && driver->base != NULL)
        driver = driver->base;
    return driver->probe ? driver->probe(path) : QUOIT_UNSUPPORTED;
}
