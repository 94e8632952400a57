/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Included before each file of quoit_ntb by the build of machines.py for a module whose calls of the kernel fail. What
 * it asks for (memory, pages, mappings, descriptors, engines, the chip) fails at random, once in `fail_every` calls,
 * and what it holds is counted (failing.c).
 */
#ifndef QUOIT_NTB_FAILING_H
#define QUOIT_NTB_FAILING_H

#include <linux/anon_inodes.h>
#include <linux/dma-mapping.h>
#include <linux/dmaengine.h>
#include <linux/eventfd.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/ntb.h>
#include <linux/pci.h>
#include <linux/random.h>
#include <linux/scatterlist.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>

enum qn_kind {
    QN_BYTES,
    QN_PAGES,
    QN_PINS,
    QN_LISTS,
    QN_MAPPINGS,
    QN_RESOURCES,
    QN_INODES,
    QN_FILES,
    QN_EVENTFDS,
    QN_MMS,
    QN_CHANNELS,
    QN_ENGINES,
    QN_KINDS
};

extern atomic_long_t qn_held[QN_KINDS];

/* Whether this call is to fail. */
bool qn_fails(void);

static inline void *qn_hold(enum qn_kind kind, void *what)
{
    if (!IS_ERR_OR_NULL(what))
        atomic_long_inc(&qn_held[kind]);
    return what;
}

static inline void qn_drop(enum qn_kind kind, long count)
{
    atomic_long_sub(count, &qn_held[kind]);
}

static inline void *qn_kmalloc(size_t bytes, gfp_t flags)
{
    return qn_hold(QN_BYTES, qn_fails() ? NULL : kmalloc(bytes, flags));
}

static inline void *qn_kzalloc(size_t bytes, gfp_t flags)
{
    return qn_hold(QN_BYTES, qn_fails() ? NULL : kzalloc(bytes, flags));
}

static inline void *qn_kvmalloc_array(size_t count, size_t bytes, gfp_t flags)
{
    return qn_hold(QN_BYTES, qn_fails() ? NULL : kvmalloc_array(count, bytes, flags));
}

static inline void qn_kfree(const void *what)
{
    qn_drop(QN_BYTES, what != NULL);
    kfree(what);
}

static inline void qn_kvfree(const void *what)
{
    qn_drop(QN_BYTES, what != NULL);
    kvfree(what);
}

static inline struct page *qn_alloc_page(gfp_t flags)
{
    return qn_hold(QN_PAGES, qn_fails() ? NULL : alloc_page(flags));
}

static inline void qn_free_page(struct page *page)
{
    qn_drop(QN_PAGES, 1);
    __free_page(page);
}

/* A part of them, where not all fail. */
static inline int qn_pin(unsigned long start, int count, unsigned int flags, struct page **pages)
{
    int pinned = qn_fails() ? -ENOMEM : pin_user_pages_fast(start, qn_fails() ? 1 + count / 2 : count, flags, pages);

    if (pinned > 0)
        qn_drop(QN_PINS, -pinned);
    return pinned;
}

static inline void qn_unpin(struct page **pages, unsigned long count, bool is_dirty)
{
    qn_drop(QN_PINS, count);
    unpin_user_pages_dirty_lock(pages, count, is_dirty);
}

static inline int qn_list(struct sg_table *table, struct page **pages, unsigned int count, unsigned int offset,
                          unsigned long bytes, unsigned int segment, gfp_t flags)
{
    int error =
        qn_fails() ? -ENOMEM : sg_alloc_table_from_pages_segment(table, pages, count, offset, bytes, segment, flags);

    qn_drop(QN_LISTS, error ? 0 : -1);
    return error;
}

static inline void qn_free_list(struct sg_table *table)
{
    qn_drop(QN_LISTS, 1);
    sg_free_table(table);
}

static inline int qn_map(struct device *dev, struct sg_table *table, enum dma_data_direction direction,
                         unsigned long how)
{
    int error = qn_fails() ? -EIO : dma_map_sgtable(dev, table, direction, how);

    qn_drop(QN_MAPPINGS, error ? 0 : -1);
    return error;
}

static inline void qn_unmap(struct device *dev, struct sg_table *table, enum dma_data_direction direction,
                            unsigned long how)
{
    qn_drop(QN_MAPPINGS, 1);
    dma_unmap_sgtable(dev, table, direction, how);
}

/* Pages of a run. */
static inline int qn_link_pages(struct device *dev, struct dma_iova_state *state, phys_addr_t from, size_t at,
                                size_t bytes, enum dma_data_direction direction, unsigned long how)
{
    int error = qn_fails() ? -ENOMEM : dma_iova_link(dev, state, from, at, bytes, direction, how);

    qn_drop(QN_MAPPINGS, error ? 0 : -(long)(bytes >> PAGE_SHIFT));
    return error;
}

static inline void qn_unlink_pages(struct device *dev, struct dma_iova_state *state, size_t at, size_t bytes,
                                   enum dma_data_direction direction, unsigned long how)
{
    qn_drop(QN_MAPPINGS, bytes >> PAGE_SHIFT);
    dma_iova_unlink(dev, state, at, bytes, direction, how);
}

static inline dma_addr_t qn_map_resource(struct device *dev, phys_addr_t at, size_t bytes,
                                         enum dma_data_direction direction, unsigned long how)
{
    dma_addr_t address = qn_fails() ? DMA_MAPPING_ERROR : dma_map_resource(dev, at, bytes, direction, how);

    qn_drop(QN_RESOURCES, address == DMA_MAPPING_ERROR ? 0 : -1);
    return address;
}

static inline void qn_unmap_resource(struct device *dev, dma_addr_t address, size_t bytes,
                                     enum dma_data_direction direction, unsigned long how)
{
    qn_drop(QN_RESOURCES, 1);
    dma_unmap_resource(dev, address, bytes, direction, how);
}

static inline struct inode *qn_inode(struct super_block *sb)
{
    return qn_hold(QN_INODES, qn_fails() ? ERR_PTR(-ENOMEM) : alloc_anon_inode(sb));
}

static inline void qn_iput(struct inode *inode)
{
    qn_drop(QN_INODES, inode != NULL);
    iput(inode);
}

static inline int qn_getfd(const char *name, const struct file_operations *operations, void *what, int flags)
{
    return qn_fails() ? -EMFILE : anon_inode_getfd(name, operations, what, flags);
}

static inline struct file *qn_fget(unsigned int fd)
{
    return qn_hold(QN_FILES, qn_fails() ? NULL : fget(fd));
}

static inline void qn_fput(struct file *file)
{
    qn_drop(QN_FILES, 1);
    fput(file);
}

static inline struct eventfd_ctx *qn_eventfd_get(int fd)
{
    return qn_hold(QN_EVENTFDS, qn_fails() ? ERR_PTR(-EBADF) : eventfd_ctx_fdget(fd));
}

static inline void qn_eventfd_put(struct eventfd_ctx *context)
{
    qn_drop(QN_EVENTFDS, 1);
    eventfd_ctx_put(context);
}

static inline void qn_mmgrab(struct mm_struct *mm)
{
    qn_hold(QN_MMS, mm);
    mmgrab(mm);
}

static inline void qn_mmdrop(struct mm_struct *mm)
{
    qn_drop(QN_MMS, 1);
    mmdrop(mm);
}

static inline struct dma_chan *qn_request_channel(dma_cap_mask_t mask, dma_filter_fn filter, void *parameter)
{
    return qn_hold(QN_CHANNELS, qn_fails() ? NULL : dma_request_channel(mask, filter, parameter));
}

static inline void qn_release_channel(struct dma_chan *channel)
{
    qn_drop(QN_CHANNELS, 1);
    dma_release_channel(channel);
}

static inline struct device *qn_get_device(struct device *dev)
{
    return qn_hold(QN_ENGINES, get_device(dev));
}

static inline void qn_put_device(struct device *dev)
{
    qn_drop(QN_ENGINES, dev != NULL);
    put_device(dev);
}

static inline struct dma_async_tx_descriptor *qn_prepare(struct dma_chan *channel, dma_addr_t to, dma_addr_t from,
                                                         size_t bytes, unsigned long flags)
{
    return qn_fails() ? NULL : dmaengine_prep_dma_memcpy(channel, to, from, bytes, flags);
}

/* A chip that fails has done nothing, or all. */
static inline int qn_set_chip(struct ntb_dev *ntb, int peer, int window, dma_addr_t address, resource_size_t bytes)
{
    bool fails = qn_fails();

    if (!fails || get_random_u32_below(2))
        return ntb_mw_set_trans(ntb, peer, window, address, bytes) ?: fails ? -EIO : 0;
    return -EIO;
}

static inline int qn_clear_chip(struct ntb_dev *ntb, int peer, int window)
{
    bool fails = qn_fails();

    if (!fails || get_random_u32_below(2))
        return ntb_mw_clear_trans(ntb, peer, window) ?: fails ? -EIO : 0;
    return -EIO;
}

#undef kmalloc
#undef kzalloc
#undef kvmalloc_array
#undef alloc_page
#undef __free_page
#undef dma_map_resource
#undef dma_unmap_resource
#undef dma_request_channel
#define kmalloc                           qn_kmalloc
#define kzalloc                           qn_kzalloc
#define kvmalloc_array                    qn_kvmalloc_array
#define kfree                             qn_kfree
#define kvfree                            qn_kvfree
#define alloc_page                        qn_alloc_page
#define __free_page                       qn_free_page
#define pin_user_pages_fast               qn_pin
#define unpin_user_pages_dirty_lock       qn_unpin
#define sg_alloc_table_from_pages_segment qn_list
#define sg_free_table                     qn_free_list
#define dma_map_sgtable                   qn_map
#define dma_unmap_sgtable                 qn_unmap
#define dma_iova_link                     qn_link_pages
#define dma_iova_unlink                   qn_unlink_pages
#define dma_map_resource                  qn_map_resource
#define dma_unmap_resource                qn_unmap_resource
#define alloc_anon_inode                  qn_inode
#define iput                              qn_iput
#define anon_inode_getfd                  qn_getfd
#define fget                              qn_fget
#define fput                              qn_fput
#define eventfd_ctx_fdget                 qn_eventfd_get
#define eventfd_ctx_put                   qn_eventfd_put
#define mmgrab                            qn_mmgrab
#define mmdrop                            qn_mmdrop
#define dma_request_channel               qn_request_channel
#define dma_release_channel               qn_release_channel
#define get_device                        qn_get_device
#define put_device                        qn_put_device
#define dmaengine_prep_dma_memcpy         qn_prepare
#define ntb_mw_set_trans                  qn_set_chip
#define ntb_mw_clear_trans                qn_clear_chip

#endif
