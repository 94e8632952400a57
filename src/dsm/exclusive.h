/* SPDX-License-Identifier: BSD-3-Clause */
/* exclusive.h - pages that no PE but their home has ever fetched: the home writes them undetected and sends no notices.
 *
 * Before its first fetch of a page a PE sets the page's mark at the home, and then increments the count of marks. The
 * home reads the count at each release, after the stores that the release covers. Either it finds the mark, logs the
 * page and detects its writes from then on, or the fetch follows those stores and reads them. A mark is never cleared.
 * DSM_EXCLUSIVE=off: no page is in this mode, and nobody marks any.
 */
#ifndef QUOIT_DSM_EXCLUSIVE_H
#define QUOIT_DSM_EXCLUSIVE_H

#include "dsm/state.h"

/* Before a fetch of pages of one home by this PE: returns when the home's marks are set. */
void quoit_dsm_exclusive_end(struct quoit_dsm *dsm, uint64_t page, uint64_t count, int home);

/* At the home: marks a page on behalf of a PE that requests it from the handler, or one whose home moves here. Any
 * thread. */
void quoit_dsm_exclusive_mark(struct quoit_dsm *dsm, uint64_t page);

/* At the home: whether no other PE has fetched the page. */
bool quoit_dsm_exclusive_may(const struct quoit_dsm *dsm, uint64_t page);

/* At the start of a release: pages that were marked since the last one leave exclusive mode and count as written. */
void quoit_dsm_exclusive_review(struct quoit_dsm *dsm);

#endif
