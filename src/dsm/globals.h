/* SPDX-License-Identifier: BSD-3-Clause */
/* globals.h - variables of the program that DSM_SHARED marks, as a part of shared memory at their own addresses.
 *
 * The linker gathers them in a section that begins and ends with a page. Its pages are mapped over the program's, and
 * belong to the last chunks of space. PE 0's initial values are what all see. Collective, one thread. */
#ifndef QUOIT_DSM_GLOBALS_H
#define QUOIT_DSM_GLOBALS_H

#include "dsm/state.h"

/* Finds the section, and reserves its place at the end of space: before space is reserved. */
void quoit_dsm_globals_find(struct quoit_dsm *dsm);
/* Removes all access to it; the library runs then. */
void quoit_dsm_globals_cover(struct quoit_dsm *dsm);
/* Writes the initial values; ends with a barrier. */
void quoit_dsm_globals_fill(struct quoit_dsm *dsm);
/* Private memory again, with the current values of the variables. save before, restore after space was released. */
void quoit_dsm_globals_save(struct quoit_dsm *dsm);
void quoit_dsm_globals_restore(struct quoit_dsm *dsm);

#endif
