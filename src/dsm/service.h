/* SPDX-License-Identifier: BSD-3-Clause */
/* service.h - the asynchronous handler of a PE, for the protocols async, ardmar and draw: a thread that sleeps until a
 * request arrives and serves it from the frames. It takes no lock of the library and waits for no other PE.
 *
 * A PE has one fetch outstanding, so each PE has one request slot per requester, which suffices also when a directory
 * forwards the request to the home. Diffs go page by page into one of a few buffers at the home; an ACK frees each. */
#ifndef QUOIT_DSM_SERVICE_H
#define QUOIT_DSM_SERVICE_H

#include "dsm/state.h"

/* Collective. start makes the symmetric buffers and the thread if the protocol has a handler. */
void quoit_dsm_service_start(struct quoit_dsm *dsm);
void quoit_dsm_service_stop(struct quoit_dsm *dsm);

/* Requests a page of unknown home from its directory, and returns the directory's word. Its home may be this PE,
 * appointed by this request. If it is another, the page has arrived, and dsm->arrived_page says so. */
uint64_t quoit_dsm_service_resolve(struct quoit_dsm *dsm, uint64_t page, int directory);
/* Fetches the page from its home into its frame; service_versions are the versions that it had there. */
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
