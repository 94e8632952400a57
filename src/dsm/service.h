/* SPDX-License-Identifier: BSD-3-Clause */
/* service.h - the asynchronous handler of a PE, for the protocols async, ardmar and draw: a thread that sleeps until a
 * request arrives, answers it from the frames, and never takes the library's lock nor waits for anybody.
 *
 * A PE has one fetch outstanding, so a request has a place of its own at every PE, also when a directory forwards it to
 * the home. Diffs go page by page into one of a few buffers at the home, each free again when its ACK is back. */
#ifndef QUOIT_DSM_SERVICE_H
#define QUOIT_DSM_SERVICE_H

#include "dsm/state.h"

/* Collective. start makes the symmetric buffers and the thread if the protocol has a handler. */
void quoit_dsm_service_start(struct quoit_dsm *dsm);
void quoit_dsm_service_stop(struct quoit_dsm *dsm);

/* Asks the directory for a page whose home is unknown: returns its word of homes, whose home may be the own PE,
 * appointed by this request. If it is another, the page has come, and dsm->arrived_page says so. */
uint64_t quoit_dsm_service_resolve(struct quoit_dsm *dsm, uint64_t page, int directory);
/* The page comes from its home into its frame; service_versions are those it had there. */
void quoit_dsm_service_fetch(struct quoit_dsm *dsm, uint64_t page, int home);
const uint64_t *quoit_dsm_service_versions(const struct quoit_dsm *dsm);

/* Sends the bytes of `from` that masks names, a part of a page from `offset` on, to the page's home. */
void quoit_dsm_service_diff(struct quoit_dsm *dsm, uint64_t page, size_t offset, const char *from,
                            const uint64_t *masks, size_t bytes);
/* The time-stamp that follows the diffs of a page. */
void quoit_dsm_service_version(struct quoit_dsm *dsm, uint64_t page, uint64_t version);
/* Returns when every diff sent has been applied. */
void quoit_dsm_service_settle(struct quoit_dsm *dsm);

#endif
