/* SPDX-License-Identifier: BSD-3-Clause */
/* links.h - brings the two links of a host up, and up again after each loss. Private to proxy.
 *
 * One thread, the manager, walks each side through these phases; the lanes follow it, and it waits for them, never they
 * for it:
 *
 *   UP        both ends offered clean windows: lanes send, PEs put directly
 *   STOPPING  the link went down: every lane is told, and acknowledges that it writes nothing more and looks at nothing
 *   AWAY      all lanes have; waits for the link to come up physically
 *   DOWN      it is: the own opening is bound to the new epoch; we told the neighbour that we are down, and propose an
 *             incarnation; waits for the neighbour to say the same
 *   CLEAN     nobody writes any more, so slots and credits were zeroed and the windows offered; we told the neighbour;
 *             waits for it to say so too. Then the link is UP
 *   LOST      the link went down and the job does not survive it: the launcher was told, and ends it
 *
 * A link that goes down again on the way goes back to AWAY. What was told is wiped with it and the opening is bound, so
 * no word of an earlier attempt is ever taken for one of this.
 *
 * An end goes down only when its own port shows a new epoch or no link, which both ends see, never because the other
 * end was heard to be down: the other way round it would go down alone when the news is older than the link.
 *
 * Threads: quoit_links_start() and the manager, one after the other; the lanes touch the atomics of struct quoit_lane.
 */
#ifndef QUOIT_PROXY_LINKS_H
#define QUOIT_PROXY_LINKS_H

#include "lane/lane.h"
#include "proxy/proxy.h"

enum quoit_link_phase {
    QUOIT_LINK_PHASE_UP,
    QUOIT_LINK_PHASE_STOPPING,
    QUOIT_LINK_PHASE_AWAY,
    QUOIT_LINK_PHASE_DOWN,
    QUOIT_LINK_PHASE_CLEAN,
    QUOIT_LINK_PHASE_LOST,
};

struct quoit_link {
    enum quoit_link_phase phase;
    struct quoit_port *port;
    uint32_t epoch;       /* of the port, to which the opening is bound; from DOWN on */
    uint32_t incarnation; /* proposed in DOWN, agreed from CLEAN on */
};

struct quoit_links {
    const struct quoit_proxy_config *config;
    struct quoit_lane *lanes; /* NULL before they are open */
    struct quoit_link sides[QUOIT_SIDE_COUNT];
    uint64_t cut_off_since_ns; /* two links are known to be dead; 0: not so */
    bool is_cut_off_told;
    enum quoit_status status; /* what ended the manager */
};

/* Brings both links up for the first time, in incarnation 0, or a later one if a link was lost again meanwhile. TIMEOUT
 * names who did not come; INVALID: a neighbour of another job config or the wrong one. */
QUOIT_MUST_USE enum quoit_status quoit_links_start(struct quoit_links *links, const struct quoit_proxy_config *config,
                                                   struct quoit_port *const ports[QUOIT_SIDE_COUNT]);
/* The lanes are open and do not run yet: from now on they follow the manager. */
void quoit_links_lead(struct quoit_links *links, struct quoit_lane *lanes);
/* The manager: looks after the links until the header says stop, or something fails. */
void quoit_links_run(struct quoit_links *links);

#endif
