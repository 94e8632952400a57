/* SPDX-License-Identifier: BSD-3-Clause */
#include "boot/lost.h"
#include "boot/ended.h"

#define FIRST_NS 300000000u /* for the one host to report it, before the others do */

void quoit_lost_note(struct quoit_lost *lost, uint32_t own_host, uint32_t host, bool is_launcher, uint64_t now_ns)
{
    bool is_first = own_host == (host == 0 ? 1 : 0);
    if (!lost->is_known)
        *lost = (struct quoit_lost){.is_known = true,
                                    .is_launcher = is_launcher,
                                    .host = host,
                                    .report_ns = now_ns + (is_first ? 0 : FIRST_NS)};
}

bool quoit_lost_is_due(const struct quoit_lost *lost, uint64_t now_ns)
{
    return lost->is_known && now_ns >= lost->report_ns;
}

void quoit_lost_report(const struct quoit_lost *lost, const struct quoit_hosts *hosts,
                       const struct quoit_job_config *job)
{
    const char *name = hosts->list[lost->host].name;
    uint32_t first = quoit_job_config_first_pe(job, lost->host);
    uint32_t last = first + quoit_job_config_pes_of_host(job, lost->host) - 1;
    if (lost->is_launcher)
        quoit_ended_line("the launcher's process on host %s, which started the PEs %u..%u, ended before them; the job "
                         "was ended [Q0320]",
                         name, first, last);
    else
        quoit_ended_line("host %s, with the PEs %u..%u, was lost: it or its proxy ended, hangs or was cut off; the job "
                         "was ended [Q0315]",
                         name, first, last);
}
