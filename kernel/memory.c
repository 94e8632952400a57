// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Memory exposed through windows: contiguous memory of a device, or pinned memory of a process. */
#include <linux/anon_inodes.h>
#include <linux/file.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "quoit_ntb_priv.h"

#define QN_MEMORY_BYTES_MAX (1ull << 40)

struct qn_memory {
	struct kref ref;
	u64 bytes;
	/* of the kernel */
	struct device *dev;
	void *base;
	dma_addr_t address;
	/* of a process */
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

static void memory_release(struct kref *ref)
{
	struct qn_memory *memory = container_of(ref, struct qn_memory, ref);

	if (memory->base)
		dma_free_attrs(memory->dev, memory->bytes, memory->base, memory->address, DMA_ATTR_FORCE_CONTIGUOUS);
	if (memory->pages) {
		unpin_user_pages_dirty_lock(memory->pages, memory->page_count, true);
		uncharge(memory->mm, memory->page_count);
		mmdrop(memory->mm);
		kvfree(memory->pages);
	}
	if (memory->dev)
		put_device(memory->dev);
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

static int memory_file_mmap(struct file *file, struct vm_area_struct *vma)
{
	struct qn_memory *memory = file->private_data;

	if (!memory->base)
		return -EINVAL;
	/* checks offset and length against the allocation */
	return dma_mmap_attrs(memory->dev, vma, memory->base, memory->address, memory->bytes,
			      DMA_ATTR_FORCE_CONTIGUOUS);
}

static const struct file_operations memory_file_operations = {
	.owner = THIS_MODULE,
	.release = memory_file_release,
	.mmap = memory_file_mmap,
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

static int allocate(struct qn_memory *memory)
{
	memory->base = dma_alloc_attrs(memory->dev, memory->bytes, &memory->address,
				       GFP_KERNEL | __GFP_ZERO | __GFP_NOWARN, DMA_ATTR_FORCE_CONTIGUOUS);
	return memory->base ? 0 : -ENOMEM;
}

static int pin(struct qn_memory *memory, u64 address)
{
	unsigned long count = memory->bytes >> PAGE_SHIFT, pinned = 0;
	struct mm_struct *mm = current->mm;
	int error;

	if (count > INT_MAX)
		return -EINVAL;
	error = charge(mm, count);
	if (error)
		return error;
	memory->pages = kvmalloc_array(count, sizeof(*memory->pages), GFP_KERNEL);
	if (!memory->pages) {
		error = -ENOMEM;
		goto uncharge_mm;
	}
	while (pinned < count) {
		long now = pin_user_pages_fast(address + (pinned << PAGE_SHIFT), count - pinned,
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
	}
	memory->page_count = count;
	memory->mm = mm;
	mmgrab(mm);
	return 0;

unpin:
	unpin_user_pages(memory->pages, pinned);
	kvfree(memory->pages);
	memory->pages = NULL;
uncharge_mm:
	uncharge(mm, count);
	return error;
}

int qn_memory_create(struct device *dev, const struct quoit_ntb_memory *wanted)
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
	memory->dev = get_device(dev);
	error = wanted->address ? pin(memory, wanted->address) : allocate(memory);
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

static int table_of(struct qn_memory *memory, u64 offset, u64 bytes, struct sg_table *table)
{
	if (memory->pages)
		return sg_alloc_table_from_pages(table, memory->pages + (offset >> PAGE_SHIFT), bytes >> PAGE_SHIFT, 0,
						 bytes, GFP_KERNEL);
	/* Memory of another device: mapped whole, as it is contiguous. */
	return dma_get_sgtable_attrs(memory->dev, table, memory->base, memory->address, memory->bytes,
				     DMA_ATTR_FORCE_CONTIGUOUS);
}

/* Whether the device sees one run. Its segments may be limited in length, so a run can be several of them. */
static bool is_one_run(struct sg_table *table)
{
	dma_addr_t next = sg_dma_address(table->sgl);
	struct scatterlist *segment;
	int i;

	for_each_sgtable_dma_sg(table, segment, i) {
		if (sg_dma_address(segment) != next)
			return false;
		next += sg_dma_len(segment);
	}
	return true;
}

/* One run of bus addresses for [offset, offset + bytes), page aligned and inside the memory, or EADDRNOTAVAIL. */
int qn_memory_map(struct qn_memory *memory, u64 offset, u64 bytes, struct device *dev, struct qn_mapping *mapping)
{
	int error;

	*mapping = (struct qn_mapping){ .dev = dev };
	if (memory->base && memory->dev == dev) {
		mapping->address = memory->address + offset;
		return 0;
	}
	error = table_of(memory, offset, bytes, &mapping->table);
	if (error)
		goto forget;
	error = dma_map_sgtable(dev, &mapping->table, DMA_BIDIRECTIONAL, 0);
	if (error)
		goto free_table;
	if (!is_one_run(&mapping->table)) {
		error = -EADDRNOTAVAIL;
		goto unmap;
	}
	mapping->has_table = true;
	mapping->address = sg_dma_address(mapping->table.sgl) + (memory->pages ? 0 : offset);
	return 0;

unmap:
	dma_unmap_sgtable(dev, &mapping->table, DMA_BIDIRECTIONAL, 0);
free_table:
	sg_free_table(&mapping->table);
forget:
	mapping->dev = NULL;
	return error;
}

void qn_memory_unmap(struct qn_mapping *mapping)
{
	if (mapping->dev && mapping->has_table) {
		dma_unmap_sgtable(mapping->dev, &mapping->table, DMA_BIDIRECTIONAL, 0);
		sg_free_table(&mapping->table);
	}
	*mapping = (struct qn_mapping){ 0 };
}
