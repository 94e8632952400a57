/* SPDX-License-Identifier: BSD-3-Clause */
/* globals.h - variables of the program that DSM_SHARED marks, as a part of shared memory at their own addresses.
 *
 * The linker places them in a page-aligned section. The pages of shared memory, from the last chunks of space, are
 * mapped over it. All PEs see PE 0's initial values. Collective, one thread. */
#ifndef QUOIT_DSM_GLOBALS_H
#define QUOIT_DSM_GLOBALS_H

#include "dsm/state.h"

/* Finds the section and its place at the end of space. Called before space is reserved. */
void quoit_dsm_globals_find(struct quoit_dsm *dsm);
/* Removes all access to the section, once the library runs. */
void quoit_dsm_globals_cover(struct quoit_dsm *dsm);
/* Writes the initial values; ends with a barrier. */
void quoit_dsm_globals_fill(struct quoit_dsm *dsm);
/* Private memory again, with the current values of the variables. save before, restore after space was released. */
void quoit_dsm_globals_save(struct quoit_dsm *dsm);
void quoit_dsm_globals_restore(struct quoit_dsm *dsm);

#endif
