/* SPDX-License-Identifier: BSD-3-Clause */
#include "net/candidates.h"

#include <stdio.h>

static bool is_before(const struct quoit_net_candidate *a, const struct quoit_net_candidate *b)
{
    return a->cost < b->cost || (a->cost == b->cost && a < b);
}

const struct quoit_net_candidate *quoit_net_best(const struct quoit_net_candidate *candidates, uint32_t count,
                                                 uint32_t skip_count)
{
    for (const struct quoit_net_candidate *passed = NULL;; skip_count--) {
        const struct quoit_net_candidate *best = NULL;
        for (const struct quoit_net_candidate *one = candidates; one < candidates + count; one++)
            if (one->choice.is_usable && (!passed || is_before(passed, one)) && (!best || is_before(one, best)))
                best = one;
        if (!best || skip_count == 0)
            return best;
        passed = best;
    }
}

uint32_t quoit_net_survey_candidates(const struct quoit_net_candidate *candidates, uint32_t count, const char *driver,
                                     const char *provider, const char *device, struct quoit_net_choice *choices_out,
                                     uint32_t max_count)
{
    const struct quoit_net_candidate *best = quoit_net_best(candidates, count, 0);
    uint32_t said = 1;
    if (max_count == 0)
        return 0;
    choices_out[0] = (struct quoit_net_choice){0};
    if (best) {
        choices_out[0] = best->choice;
    } else {
        snprintf(choices_out[0].driver, sizeof choices_out[0].driver, "%s", driver);
        quoit_net_say_none(provider, device, choices_out[0].reason);
    }
    for (uint32_t i = 0; i < count && said < max_count; i++)
        if (&candidates[i] != best)
            choices_out[said++] = candidates[i].choice;
    return said;
}

void quoit_net_say_usable(struct quoit_net_choice *choice, const char *address, bool is_loopback)
{
    choice->is_usable = true;
    choice->is_loopback = is_loopback;
    snprintf(choice->reason, sizeof choice->reason, "%s%s%s", address[0] ? "address " : "", address,
             is_loopback ? ", this machine alone" : "");
}

void quoit_net_say_unusable(struct quoit_net_choice *choice, const char *provider, const char *device)
{
    choice->is_usable = false;
    snprintf(choice->reason, sizeof choice->reason, "%s",
             provider || device ? "another network was asked for" : "taken only if its provider is named");
}

void quoit_net_say_none(const char *provider, const char *device, char problem_out[QUOIT_NET_PROBLEM_BYTES])
{
    snprintf(problem_out, QUOIT_NET_PROBLEM_BYTES, "no network%s%.40s%s%.40s", provider ? " by provider " : "",
             provider ? provider : "", device ? " on device " : "", device ? device : "");
}
