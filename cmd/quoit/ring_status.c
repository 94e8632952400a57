/* SPDX-License-Identifier: BSD-3-Clause */
/* What `quoit ring status` and `list` print. */
#include "ring.h"

#include <arpa/inet.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"

#define LISTENING 0x10000u /* a flag in /proc/net/unix */

const char *ring_address_text(const struct ring_plan *plan, uint32_t host, char text_out[RING_ADDRESS_BYTES])
{
    struct in_addr address = {.s_addr = htonl(plan->address + host + 1)};
    return inet_ntop(AF_INET, &address, text_out, RING_ADDRESS_BYTES);
}

/* Returns the number of jobs; 0 if the owner of the links does not answer. The Ethernet devices are not listed. */
static uint32_t list_jobs(const struct ring_plan *plan, struct quoit_share_list *list_out)
{
    char path[QUOIT_SHARE_PATH_BYTES];
    quoit_share_path(geteuid(), plan->name, path);
    return !plan->is_joined && quoit_share_query(path, list_out) == QUOIT_OK ? list_out->client_count : 0;
}

static void print_jobs_json(struct quoit_json *json, const struct ring_plan *plan)
{
    struct quoit_share_list list;
    quoit_json_open_array(json, "jobs");
    for (uint32_t i = 0, count = list_jobs(plan, &list); i < count; i++) {
        quoit_json_open_object(json, NULL);
        quoit_json_count(json, "job", list.clients[i].id);
        quoit_json_text(json, "program", list.clients[i].label);
        quoit_json_count(json, "uid", list.clients[i].uid);
        quoit_json_count(json, "pid", list.clients[i].pid);
        quoit_json_close(json);
    }
    quoit_json_close(json);
}

static void print_json(const struct ring_reply *reply)
{
    struct quoit_json json;
    char text[RING_ADDRESS_BYTES];
    quoit_json_start(&json, stdout);
    quoit_json_open_object(&json, NULL);
    quoit_json_text(&json, "ring", reply->plan.name);
    quoit_json_count(&json, "mtu", reply->plan.mtu);
    print_jobs_json(&json, &reply->plan);
    quoit_json_open_array(&json, "hosts");
    for (uint32_t i = ring_host_begin(&reply->plan); i < ring_host_end(&reply->plan); i++) {
        const struct ring_host_status *host = &reply->hosts[i];
        quoit_json_open_object(&json, NULL);
        quoit_json_count(&json, "host", i);
        quoit_json_text(&json, "address", ring_address_text(&reply->plan, i, text));
        quoit_json_bool(&json, "ready", host->is_ready);
        quoit_json_count(&json, "pid", (uint64_t)host->pid);
        quoit_json_count(&json, "starts", host->start_count);
        for (enum quoit_side side = 0; side < QUOIT_SIDE_COUNT; side++) {
            quoit_json_open_object(&json, side == QUOIT_LEFT ? "left" : "right");
            quoit_json_text(&json, "state", quoit_link_state_name((enum quoit_link_state)host->link_states[side]));
            quoit_json_count(&json, "outages", host->outage_counts[side]);
            quoit_json_close(&json);
        }
#define X(name, sentence) quoit_json_count(&json, #name, host->stats.name);
        QUOIT_VETH_STATS_TABLE(X)
#undef X
        quoit_json_close(&json);
    }
    quoit_json_close(&json);
    quoit_json_close(&json);
}

static void print_table(const struct ring_reply *reply)
{
    char text[RING_ADDRESS_BYTES];
    printf("ring \"%s\", device " RING_DEVICE ", MTU %u\n\n", reply->plan.name, reply->plan.mtu);
    printf("%-6s %-15s %-10s %-10s %12s %12s %12s %8s\n", "host", "address", "left", "right", "sent MB", "received MB",
           "forwarded", "lost");
    for (uint32_t i = ring_host_begin(&reply->plan); i < ring_host_end(&reply->plan); i++) {
        const struct ring_host_status *host = &reply->hosts[i];
        const char *states[QUOIT_SIDE_COUNT];
        for (enum quoit_side side = 0; side < QUOIT_SIDE_COUNT; side++)
            states[side] = host->is_ready ? quoit_link_state_name((enum quoit_link_state)host->link_states[side]) : "-";
        printf("%-6u %-15s %-10s %-10s %12.1f %12.1f %12llu %8llu%s\n", i, ring_address_text(&reply->plan, i, text),
               states[QUOIT_LEFT], states[QUOIT_RIGHT], (double)host->stats.sent_bytes / 1e6,
               (double)host->stats.received_bytes / 1e6, (unsigned long long)host->stats.forwarded_frames,
               (unsigned long long)(host->stats.lost_frames + host->stats.refused_frames),
               host->is_ready ? "" : "  starting");
        if (host->start_count > 1)
            printf("       started %u times: its process died (it begins anew without what it ran)\n",
                   host->start_count);
    }
    struct quoit_share_list list;
    for (uint32_t i = 0, count = list_jobs(&reply->plan, &list); i < count; i++)
        printf("%sjob %u: %s, process %u of user %u\n", i == 0 ? "\n" : "", list.clients[i].id, list.clients[i].label,
               list.clients[i].pid, list.clients[i].uid);
}

void ring_print_status(const struct ring_reply *reply, bool is_json)
{
    if (is_json)
        print_json(reply);
    else
        print_table(reply);
}

/* Of an entry "@quoit-ring-UID-NAME", which is listening. */
static void print_ring(const char *entry)
{
    unsigned uid;
    int at;
    if (sscanf(entry, "@" RING_SOCKET "-%u-%n", &uid, &at) != 1)
        return;
    const char *name = entry + at;
    int length = (int)strspn(name, RING_NAME_LETTERS);
    const struct passwd *user = uid == geteuid() ? NULL : getpwuid(uid);
    if (uid == geteuid())
        printf("%.*s\n", length, name);
    else if (geteuid() == 0 && user)
        printf("%s:%.*s\n", user->pw_name, length, name);
    else if (geteuid() == 0)
        printf("%u:%.*s\n", uid, length, name);
}

void ring_print_list(void)
{
    char line[300];
    FILE *sockets = fopen("/proc/net/unix", "re");
    while (sockets && fgets(line, sizeof line, sockets)) {
        const char *entry = strchr(line, '@'); /* begins abstract names here */
        unsigned flags = 0;
        if (entry && sscanf(line, "%*s %*s %*s %x", &flags) == 1 && (flags & LISTENING))
            print_ring(entry);
    }
    if (sockets)
        fclose(sockets);
}
