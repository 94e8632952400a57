/* SPDX-License-Identifier: BSD-3-Clause */
/* calibrate.h - measures the cost of copies, wakes, switches and cache lines on this machine, for the simulator. */
#ifndef QUOIT_CALIBRATE_H
#define QUOIT_CALIBRATE_H

#include <stdbool.h>
#include <stdio.h>

/* Measures for some seconds and prints JSON. Each value is a median; other load on the machine changes it. False: out
 * of memory. */
bool calibrate_print(FILE *out);

#endif
