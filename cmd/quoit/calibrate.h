/* SPDX-License-Identifier: BSD-3-Clause */
/* calibrate.h - what copies, wakes, switches and cache lines cost on this machine, for the simulator to reckon with. */
#ifndef QUOIT_CALIBRATE_H
#define QUOIT_CALIBRATE_H

#include <stdbool.h>
#include <stdio.h>

/* Measures for some seconds, and prints JSON. Each value is a median: a machine that does something else gives other
 * values. False: there is no memory. */
bool calibrate_print(FILE *out);

#endif
