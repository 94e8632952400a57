/* SPDX-License-Identifier: BSD-3-Clause */
#include "net_bare.h"

#ifdef QUOIT_HAS_LIBFABRIC

#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_rma.h>

#define WORD_OFFSET ((uint64_t)20 << 20) /* behind all that is put and got */

struct bare {
    struct fi_info *info;
    struct fid_fabric *fabric;
    struct fid_domain *domain;
    struct fid_av *av;
    struct fid_cq *cq;
    struct fid_ep *ep;
    struct fid_mr *mr;
    fi_addr_t peer;
    uint64_t base, key;
    char *memory;
    void *desc;
    uint64_t last; /* number that went or was answered */
    struct fi_context2 contexts[256];
};

struct bare_name {
    uint64_t base, key;
    char address[128];
};

static struct fi_info *find(const char *provider, const char *device)
{
    struct fi_info *hints = fi_allocinfo(), *infos = NULL, *found = NULL;
    hints->caps = FI_MSG | FI_RMA | FI_ATOMIC;
    hints->mode = FI_CONTEXT | FI_CONTEXT2;
    hints->ep_attr->type = FI_EP_RDM;
    hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
    hints->domain_attr->threading = FI_THREAD_DOMAIN;
    hints->domain_attr->data_progress = FI_PROGRESS_MANUAL;
    hints->tx_attr->op_flags = FI_DELIVERY_COMPLETE;
    hints->fabric_attr->prov_name = strdup(provider);
    if (fi_getinfo(FI_VERSION(1, 15), NULL, NULL, 0, hints, &infos) == 0)
        for (struct fi_info *info = infos; info && !found; info = info->next)
            if (strcmp(info->domain_attr->name, device) == 0 && info->addr_format == FI_SOCKADDR_IN)
                found = fi_dupinfo(info);
    fi_freeinfo(infos);
    fi_freeinfo(hints);
    return found;
}

struct bare *bare_open(struct rig *rig, const char *provider, const char *device)
{
    static const size_t space = sizeof(struct bare_name);
    struct bare *bare = calloc(1, sizeof *bare);
    struct fi_cq_attr cq = {.format = FI_CQ_FORMAT_CONTEXT, .size = 4096, .wait_obj = FI_WAIT_NONE};
    struct fi_av_attr av = {.type = FI_AV_TABLE};
    must(bare);
    bare->info = find(provider, device);
    if (!bare->info) {
        free(bare);
        return NULL;
    }
    bare->memory = rig->memory;
    must(fi_fabric(bare->info->fabric_attr, &bare->fabric, NULL) == 0);
    must(fi_domain(bare->fabric, bare->info, &bare->domain, NULL) == 0);
    must(fi_av_open(bare->domain, &av, &bare->av, NULL) == 0);
    must(fi_cq_open(bare->domain, &cq, &bare->cq, NULL) == 0);
    must(fi_endpoint(bare->domain, bare->info, &bare->ep, NULL) == 0);
    must(fi_ep_bind(bare->ep, &bare->av->fid, 0) == 0);
    must(fi_ep_bind(bare->ep, &bare->cq->fid, FI_TRANSMIT | FI_RECV) == 0);
    must(fi_enable(bare->ep) == 0);
    must(fi_mr_reg(bare->domain, rig->memory, RIG_MEMORY_BYTES, FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE,
                   0, 77, 0, &bare->mr, NULL) == 0);
    bare->desc = bare->info->domain_attr->mr_mode & FI_MR_LOCAL ? fi_mr_desc(bare->mr) : NULL;
    struct bare_name name = {.key = fi_mr_key(bare->mr)};
    if (bare->info->domain_attr->mr_mode & FI_MR_VIRT_ADDR)
        name.base = (uint64_t)(uintptr_t)rig->memory;
    size_t bytes = sizeof name.address;
    must(fi_getname(&bare->ep->fid, name.address, &bytes) == 0);
    must(space <= sizeof rig->board->addresses[0].data);
    memcpy(rig->board->addresses[rig->host].data, &name, sizeof name); /* the net's own were taken already */
    rig_barrier(rig);
    memcpy(&name, rig->board->addresses[1 - rig->host].data, sizeof name);
    must(fi_av_insert(bare->av, name.address, 1, &bare->peer, 0, NULL) == 1);
    bare->base = name.base;
    bare->key = name.key;
    return bare;
}

static uint32_t read_done(struct bare *bare)
{
    struct fi_cq_entry entries[32];
    ssize_t count = fi_cq_read(bare->cq, entries, 32);
    return count > 0 ? (uint32_t)count : 0;
}

void bare_transfer(struct bare *bare, uint64_t bytes, uint32_t batch, bool is_get)
{
    char *local = bare->memory + (8 << 20);
    uint32_t done_count = 0;
    for (uint32_t i = 0; i < batch; i++) {
        uint64_t at = bare->base + i * bytes;
        ssize_t status;
        do
            status = is_get ? fi_read(bare->ep, local + i * bytes, bytes, bare->desc, bare->peer, at, bare->key,
                                      &bare->contexts[i % 256])
                            : fi_write(bare->ep, local + i * bytes, bytes, bare->desc, bare->peer, at, bare->key,
                                       &bare->contexts[i % 256]);
        while (status == -FI_EAGAIN && (done_count += read_done(bare), true));
        must(status == 0);
    }
    while (done_count < batch)
        done_count += read_done(bare);
}

void bare_fetch_add(struct bare *bare)
{
    uint64_t *words = (uint64_t *)(bare->memory + WORD_OFFSET) + 8;
    ssize_t status;
    words[0] = 1;
    do
        status = fi_fetch_atomic(bare->ep, &words[0], 1, bare->desc, &words[1], bare->desc, bare->peer,
                                 bare->base + WORD_OFFSET + 128, bare->key, FI_UINT64, FI_SUM, &bare->contexts[0]);
    while (status == -FI_EAGAIN && (read_done(bare), true));
    must(status == 0);
    while (read_done(bare) == 0)
        ;
}

/* The own word receives; the one behind it is what goes. */
static void send_number(struct bare *bare, uint64_t number)
{
    uint64_t *words = (uint64_t *)(bare->memory + WORD_OFFSET);
    ssize_t status;
    bare->last = words[1] = number;
    do
        status = fi_write(bare->ep, &words[1], sizeof words[1], bare->desc, bare->peer, bare->base + WORD_OFFSET,
                          bare->key, &bare->contexts[1]);
    while (status == -FI_EAGAIN && (read_done(bare), true));
    must(status == 0);
    while (read_done(bare) == 0)
        ;
}

static uint64_t number_here(const struct bare *bare)
{
    return __atomic_load_n((const uint64_t *)(bare->memory + WORD_OFFSET), __ATOMIC_ACQUIRE);
}

void bare_there_and_back(struct bare *bare)
{
    send_number(bare, bare->last + 1);
    while (number_here(bare) != bare->last)
        read_done(bare);
}

void bare_answer(struct bare *bare)
{
    if (!bare)
        return;
    read_done(bare);
    if (number_here(bare) != bare->last)
        send_number(bare, number_here(bare));
}

void bare_close(struct bare *bare)
{
    if (!bare)
        return;
    fi_close(&bare->ep->fid);
    fi_close(&bare->mr->fid);
    fi_close(&bare->cq->fid);
    fi_close(&bare->av->fid);
    fi_close(&bare->domain->fid);
    fi_close(&bare->fabric->fid);
    fi_freeinfo(bare->info);
    free(bare);
}

#else

struct bare *bare_open(struct rig *rig, const char *provider, const char *device)
{
    (void)rig, (void)provider, (void)device;
    return NULL;
}

void bare_transfer(struct bare *bare, uint64_t bytes, uint32_t batch, bool is_get)
{
    (void)bare, (void)bytes, (void)batch, (void)is_get;
}

void bare_fetch_add(struct bare *bare)
{
    (void)bare;
}

void bare_there_and_back(struct bare *bare)
{
    (void)bare;
}

void bare_answer(struct bare *bare)
{
    (void)bare;
}

void bare_close(struct bare *bare)
{
    (void)bare;
}

#endif
