/* SPDX-License-Identifier: BSD-3-Clause */
/* linux.h - the driver of real bridges, through /dev/ntbN of the kernel module (kernel/, docs/design/linux-port.md). */
#ifndef QUOIT_PORT_LINUX_LINUX_H
#define QUOIT_PORT_LINUX_LINUX_H

#include "port/driver.h"

extern const struct quoit_port_driver quoit_driver_linux;

#endif
