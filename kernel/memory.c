// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Memory exposed through windows: pinned memory of a process. It belongs to no device. */
#include <linux/anon_inodes.h>
#include <linux/file.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "quoit_ntb_priv.h"

#define QN_MEMORY_BYTES_MAX (1ull << 40)
#define QN_PADDED_BYTES_MAX (1ull << 32) /* the list of a mapping takes up to 32 bytes a page */
#define QN_BATCH            4096ul /* pages pinned with interrupts off, or unpinned, in one go */

struct qn_memory {
	struct kref ref;
	u64 bytes;
	struct page **pages;
	unsigned long page_count;
	struct mm_struct *mm; /* the mm whose pinned_vm was charged */
};

/* By atomics: memory is put under port->alive and port->lock, which are taken with mmap_lock held. */
static void uncharge(struct mm_struct *mm, unsigned long page_count)
{
	atomic64_sub(page_count, &mm->pinned_vm);
}

static int charge(struct mm_struct *mm, unsigned long page_count)
{
	s64 pinned = atomic64_add_return(page_count, &mm->pinned_vm);

	if (pinned <= rlimit(RLIMIT_MEMLOCK) >> PAGE_SHIFT || capable(CAP_IPC_LOCK))
		return 0;
	uncharge(mm, page_count);
	return -ENOMEM;
}

static void unpin_all(struct page **pages, unsigned long count, bool is_dirty)
{
	unsigned long done, now;

	for (done = 0; done < count; done += now) {
		now = min(count - done, QN_BATCH);
		unpin_user_pages_dirty_lock(pages + done, now, is_dirty);
		cond_resched();
	}
}

static void memory_release(struct kref *ref)
{
	struct qn_memory *memory = container_of(ref, struct qn_memory, ref);

	if (memory->pages) {
		unpin_all(memory->pages, memory->page_count, true);
		uncharge(memory->mm, memory->page_count);
		mmdrop(memory->mm);
		kvfree(memory->pages);
	}
	kfree(memory);
}

void qn_memory_put(struct qn_memory *memory)
{
	if (memory)
		kref_put(&memory->ref, memory_release);
}

struct qn_memory *qn_memory_hold(struct qn_memory *memory)
{
	kref_get(&memory->ref);
	return memory;
}

u64 qn_memory_bytes(const struct qn_memory *memory)
{
	return memory->bytes;
}

static int memory_file_release(struct inode *inode, struct file *file)
{
	qn_memory_put(file->private_data);
	return 0;
}

static const struct file_operations memory_file_operations = {
	.owner = THIS_MODULE,
	.release = memory_file_release,
};

struct qn_memory *qn_memory_get(int fd)
{
	struct file *file = fget(fd);
	struct qn_memory *memory = ERR_PTR(-EINVAL);

	if (!file)
		return ERR_PTR(-EBADF);
	if (file->f_op == &memory_file_operations)
		memory = qn_memory_hold(file->private_data);
	fput(file);
	return memory;
}

static int pin(struct qn_memory *memory, u64 address)
{
	unsigned long count = memory->bytes >> PAGE_SHIFT, pinned = 0;
	struct mm_struct *mm = current->mm;
	int error;

	if (count > INT_MAX / sizeof(*memory->pages)) /* the kernel warns of more */
		return -EINVAL;
	error = charge(mm, count);
	if (error)
		return error;
	memory->pages = kvmalloc_array(count, sizeof(*memory->pages), GFP_KERNEL_ACCOUNT | __GFP_NOWARN);
	if (!memory->pages) {
		error = -ENOMEM;
		goto uncharge_mm;
	}
	while (pinned < count) {
		long now = pin_user_pages_fast(address + (pinned << PAGE_SHIFT), min(count - pinned, QN_BATCH),
					       FOLL_WRITE | FOLL_LONGTERM, memory->pages + pinned);
		if (now <= 0) {
			error = now ? now : -EFAULT;
			goto unpin;
		}
		pinned += now;
		if (fatal_signal_pending(current)) {
			error = -EINTR;
			goto unpin;
		}
		cond_resched();
	}
	memory->page_count = count;
	memory->mm = mm;
	mmgrab(mm);
	return 0;

unpin:
	unpin_all(memory->pages, pinned, false);
	kvfree(memory->pages);
	memory->pages = NULL;
uncharge_mm:
	uncharge(mm, count);
	return error;
}

int qn_memory_create(const struct quoit_ntb_memory *wanted)
{
	struct qn_memory *memory;
	int error, fd;

	if (wanted->flags || wanted->reserved || !wanted->bytes || wanted->bytes > QN_MEMORY_BYTES_MAX ||
	    !PAGE_ALIGNED(wanted->bytes) || !PAGE_ALIGNED(wanted->address) ||
	    wanted->address + wanted->bytes < wanted->address)
		return -EINVAL;
	memory = kzalloc(sizeof(*memory), GFP_KERNEL);
	if (!memory)
		return -ENOMEM;
	kref_init(&memory->ref);
	memory->bytes = wanted->bytes;
	error = pin(memory, wanted->address);
	if (error)
		goto put_memory;
	fd = anon_inode_getfd("[quoit_ntb memory]", &memory_file_operations, memory, O_RDWR | O_CLOEXEC);
	if (fd < 0) {
		error = fd;
		goto put_memory;
	}
	return fd; /* the reference now belongs to the file */

put_memory:
	qn_memory_put(memory);
	return error;
}

/*
 * Whether what the device writes there is in the memory at once. Without an IOMMU it is not where a device that does not
 * reach the memory gets another place (swiotlb), or writes past the processors' caches.
 */
static bool is_shared(struct device *dev, dma_addr_t address)
{
	return device_iommu_mapped(dev) || !dma_need_sync(dev, address);
}

/* Whether the device sees one run. Its segments may be limited in length, so a run can be several of them. */
static bool is_one_run(struct device *dev, struct sg_table *table)
{
	dma_addr_t next = sg_dma_address(table->sgl);
	struct scatterlist *segment;
	int i;

	for_each_sgtable_dma_sg(table, segment, i) {
		if (sg_dma_address(segment) != next || !is_shared(dev, next))
			return false;
		next += sg_dma_len(segment);
	}
	return true;
}

/* One run of bus addresses, or EADDRNOTAVAIL. */
static int map_pages(struct page **pages, unsigned long count, struct device *dev, struct qn_mapping *mapping)
{
	u64 bytes = (u64)count << PAGE_SHIFT;
	int error;

	if (device_iommu_mapped(dev) && bytes - 1 > dma_get_seg_boundary(dev)) /* the mapping would have gaps */
		return -EADDRNOTAVAIL;
	*mapping = (struct qn_mapping){ .dev = dev };
	error = sg_alloc_table_from_pages_segment(&mapping->table, pages, count, 0, bytes, dma_get_max_seg_size(dev),
						  GFP_KERNEL);
	if (error)
		goto forget;
	error = dma_map_sgtable(dev, &mapping->table, DMA_BIDIRECTIONAL, 0);
	if (error)
		goto free_table;
	if (!is_one_run(dev, &mapping->table)) {
		error = -EADDRNOTAVAIL;
		goto unmap;
	}
	mapping->address = sg_dma_address(mapping->table.sgl);
	return 0;

unmap:
	dma_unmap_sgtable(dev, &mapping->table, DMA_BIDIRECTIONAL, 0);
free_table:
	sg_free_table(&mapping->table);
forget:
	mapping->dev = NULL;
	return error;
}

/* A run of `align` bytes, by the same pages again and again. */
static int map_padded(struct page **pages, unsigned long count, u64 align, struct device *dev,
		      struct qn_mapping *mapping)
{
	unsigned long padded_count = align >> PAGE_SHIFT, i;
	struct page **padded;
	int error;

	if (align > QN_PADDED_BYTES_MAX)
		return -EADDRNOTAVAIL;
	padded = kvmalloc_array(padded_count, sizeof(*padded), GFP_KERNEL_ACCOUNT | __GFP_NOWARN);
	if (!padded)
		return -ENOMEM;
	for (i = 0; i < padded_count; i++)
		padded[i] = pages[i % count];
	error = map_pages(padded, padded_count, dev, mapping);
	kvfree(padded);
	return error;
}

/*
 * One run of bus addresses for [offset, offset + bytes), page aligned and inside the memory, or EADDRNOTAVAIL. An IOMMU
 * puts a run at a multiple of its length. So one that is shorter than `align`, and not at a multiple of that, is made
 * longer if that can be done: what follows the range is the range again, which the peer does not reach behind the limit
 * of the window.
 */
int qn_memory_map(struct qn_memory *memory, u64 offset, u64 bytes, u64 align, struct device *dev,
		  struct qn_mapping *mapping)
{
	struct page **pages = memory->pages + (offset >> PAGE_SHIFT);
	struct qn_mapping padded;
	int error;

	error = map_pages(pages, bytes >> PAGE_SHIFT, dev, mapping);
	if (error || bytes >= align || IS_ALIGNED(mapping->address, align))
		return error;
	if (!map_padded(pages, bytes >> PAGE_SHIFT, align, dev, &padded)) {
		qn_memory_unmap(mapping);
		*mapping = padded;
	}
	return 0;
}

/* Pages that follow each other in memory go in one piece, so an IOMMU may use large ones. */
int qn_memory_link(struct qn_memory *memory, u64 offset, u64 bytes, struct qn_run *run, u64 start,
		   struct qn_mapping *mapping)
{
	struct page **pages = memory->pages + (offset >> PAGE_SHIFT);
	unsigned long count = bytes >> PAGE_SHIFT, done = 0, run_count;
	int error = 0;

	while (done < count && !error) {
		for (run_count = 1; done + run_count < count; run_count++)
			if (page_to_pfn(pages[done + run_count]) != page_to_pfn(pages[done]) + run_count)
				break;
		error = dma_iova_link(run->dev, &run->state, page_to_phys(pages[done]), start + (done << PAGE_SHIFT),
				      run_count << PAGE_SHIFT, DMA_BIDIRECTIONAL, 0);
		if (!error)
			done += run_count;
	}
	if (!error)
		error = dma_iova_sync(run->dev, &run->state, start, bytes);
	if (error && done)
		dma_iova_unlink(run->dev, &run->state, start, done << PAGE_SHIFT, DMA_BIDIRECTIONAL, 0);
	if (!error)
		*mapping = (struct qn_mapping){ .dev = run->dev, .run = run, .start = start, .bytes = bytes };
	return error;
}

void qn_memory_unmap(struct qn_mapping *mapping)
{
	if (mapping->run) {
		dma_iova_unlink(mapping->dev, &mapping->run->state, mapping->start, mapping->bytes,
				DMA_BIDIRECTIONAL, 0);
	} else if (mapping->dev) {
		dma_unmap_sgtable(mapping->dev, &mapping->table, DMA_BIDIRECTIONAL, 0);
		sg_free_table(&mapping->table);
	}
	*mapping = (struct qn_mapping){ 0 };
}
