// SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0
/*
 * ntb_hw_ivshmem: QEMU's ivshmem-doorbell as a bridge of the kernel's NTB subsystem, for tests. The server of the link
 * (vm_ivshmem_link) puts memory of the other machine behind the windows; registers are words that both ends share.
 *
 * A doorbell bit that is set while it is masked interrupts no more when it is unmasked, as with Intel's chip.
 */
#include <linux/delay.h>
#include <linux/interrupt.h>
#include <linux/io.h>
#include <linux/iommu.h>
#include <linux/module.h>
#include <linux/ntb.h>
#include <linux/pci.h>

#include "ivshmem_link.h"

#define REGISTER_END  8 /* of BAR 0: this end's number */
#define REGISTER_RING 12
#define BAR_MEMORY    2
#define WAIT_MS       10000 /* for the server, on a machine that has other work */

struct shared_end {
    struct ntb_dev ntb;
    void __iomem *registers;
    struct ivshmem_link *link;
    u32 number;
    spinlock_t mask_lock;
};

static struct shared_end *end_of(struct ntb_dev *ntb)
{
    return container_of(ntb, struct shared_end, ntb);
}

static struct ivshmem_end *own(struct ntb_dev *ntb)
{
    return &end_of(ntb)->link->ends[end_of(ntb)->number];
}

static struct ivshmem_end *peer(struct ntb_dev *ntb)
{
    return &end_of(ntb)->link->ends[!end_of(ntb)->number];
}

/* Everything written before is seen by whom it interrupts. */
static void ring(struct shared_end *end, u32 whom, u32 vector)
{
    smp_mb();
    iowrite32(whom << 16 | vector, end->registers + REGISTER_RING);
}

static bool is_carrying(struct shared_end *end)
{
    return smp_load_acquire(&end->link->is_up);
}

/* A driver that asks has taken note of the latest loss. */
static u64 link_is_up(struct ntb_dev *ntb, enum ntb_speed *speed, enum ntb_width *width)
{
    struct shared_end *end = end_of(ntb);
    bool is_up = is_carrying(end);
    u32 epoch = READ_ONCE(end->link->epoch);

    if (!is_up && READ_ONCE(own(ntb)->seen_epoch) != epoch) {
        WRITE_ONCE(own(ntb)->seen_epoch, epoch);
        ring(end, IVSHMEM_SERVER, 0);
    }
    if (speed)
        *speed = is_up ? NTB_SPEED_GEN1 : NTB_SPEED_NONE;
    if (width)
        *width = is_up ? NTB_WIDTH_1 : NTB_WIDTH_NONE;
    return is_up;
}

static int link_want(struct ntb_dev *ntb, bool is_wanted)
{
    WRITE_ONCE(own(ntb)->is_wanted, is_wanted);
    ring(end_of(ntb), IVSHMEM_SERVER, 0);
    return 0;
}

static int link_enable(struct ntb_dev *ntb, enum ntb_speed speed, enum ntb_width width)
{
    return link_want(ntb, true);
}

static int link_disable(struct ntb_dev *ntb)
{
    return link_want(ntb, false);
}

static int window_count(struct ntb_dev *ntb, int peer_index)
{
    return IVSHMEM_WINDOWS;
}

static int peer_window_count(struct ntb_dev *ntb)
{
    return IVSHMEM_WINDOWS;
}

static int window_align(struct ntb_dev *ntb, int peer_index, int window, resource_size_t *address_align,
                        resource_size_t *bytes_align, resource_size_t *bytes_max)
{
    if (address_align)
        *address_align = IVSHMEM_PAGE_BYTES;
    if (bytes_align)
        *bytes_align = IVSHMEM_PAGE_BYTES;
    if (bytes_max)
        *bytes_max = end_of(ntb)->link->window_bytes;
    return 0;
}

/* The server has put it behind the other end's window, or taken it away. */
static int ask(struct ntb_dev *ntb)
{
    struct ivshmem_end *self = own(ntb);
    u32 asked = self->asked + 1;
    int waited;

    smp_store_release(&self->asked, asked);
    ring(end_of(ntb), IVSHMEM_SERVER, 0);
    for (waited = 0; smp_load_acquire(&self->answered) != asked; waited++) {
        if (waited == WAIT_MS)
            return -ETIMEDOUT;
        usleep_range(1000, 1100);
    }
    return 0;
}

static int window_clear(struct ntb_dev *ntb, int peer_index, int window)
{
    own(ntb)->translations[window].page_count = 0;
    return ask(ntb);
}

static int window_set(struct ntb_dev *ntb, int peer_index, int window, dma_addr_t address, resource_size_t bytes)
{
    struct ivshmem_translation *translation = &own(ntb)->translations[window];
    struct iommu_domain *domain = iommu_get_domain_for_dev(&ntb->pdev->dev);
    u64 i, count = bytes / IVSHMEM_PAGE_BYTES;

    if (bytes > end_of(ntb)->link->window_bytes || !IS_ALIGNED(address | bytes, IVSHMEM_PAGE_BYTES))
        return -EINVAL;
    for (i = 0; i < count; i++, address += IVSHMEM_PAGE_BYTES)
        translation->pages[i] = domain ? iommu_iova_to_phys(domain, address) : address;
    translation->page_count = count;
    return ask(ntb);
}

static int peer_window_address(struct ntb_dev *ntb, int window, phys_addr_t *base, resource_size_t *bytes)
{
    if (base)
        *base = pci_resource_start(ntb->pdev, BAR_MEMORY) + (window + 1) * end_of(ntb)->link->window_bytes;
    if (bytes)
        *bytes = end_of(ntb)->link->window_bytes;
    return 0;
}

static u64 bits_valid(struct ntb_dev *ntb)
{
    return BIT(IVSHMEM_BITS) - 1;
}

static int bit_vectors(struct ntb_dev *ntb)
{
    return 1;
}

static u64 bits_of_vector(struct ntb_dev *ntb, int vector)
{
    return bits_valid(ntb);
}

static u64 bits_read(struct ntb_dev *ntb)
{
    return READ_ONCE(own(ntb)->doorbell);
}

static int bits_clear(struct ntb_dev *ntb, u64 bits)
{
    atomic_andnot(bits, (atomic_t *)&own(ntb)->doorbell);
    smp_mb__after_atomic();
    return 0;
}

static int set_mask(struct ntb_dev *ntb, u32 set, u32 clear)
{
    struct shared_end *end = end_of(ntb);
    unsigned long flags;

    spin_lock_irqsave(&end->mask_lock, flags);
    WRITE_ONCE(own(ntb)->mask, (own(ntb)->mask | set) & ~clear);
    smp_mb(); /* before the bits are read again; pairs with bits_ring() */
    spin_unlock_irqrestore(&end->mask_lock, flags);
    return 0;
}

static int bits_mask(struct ntb_dev *ntb, u64 bits)
{
    return set_mask(ntb, bits, 0);
}

static int bits_unmask(struct ntb_dev *ntb, u64 bits)
{
    return set_mask(ntb, 0, bits);
}

static int bits_ring(struct ntb_dev *ntb, u64 bits)
{
    struct shared_end *end = end_of(ntb);

    if (!is_carrying(end))
        return 0; /* it is lost, as on a cable */
    smp_mb();     /* after what was written to the windows */
    atomic_or(bits, (atomic_t *)&peer(ntb)->doorbell);
    smp_mb__after_atomic(); /* pairs with set_mask() */
    if (bits & ~READ_ONCE(peer(ntb)->mask))
        ring(end, !end->number, IVSHMEM_VECTOR_DOORBELL);
    return 0;
}

static int scratchpad_count(struct ntb_dev *ntb)
{
    return IVSHMEM_SCRATCHPADS;
}

static u32 scratchpad_read(struct ntb_dev *ntb, int index)
{
    return READ_ONCE(own(ntb)->scratchpads[index]);
}

static int scratchpad_write(struct ntb_dev *ntb, int index, u32 value)
{
    WRITE_ONCE(own(ntb)->scratchpads[index], value);
    return 0;
}

/* Out of reach without the cable. */
static u32 peer_scratchpad_read(struct ntb_dev *ntb, int peer_index, int index)
{
    return is_carrying(end_of(ntb)) ? READ_ONCE(peer(ntb)->scratchpads[index]) : ~0u;
}

static int peer_scratchpad_write(struct ntb_dev *ntb, int peer_index, int index, u32 value)
{
    if (is_carrying(end_of(ntb))) {
        smp_wmb();
        WRITE_ONCE(peer(ntb)->scratchpads[index], value);
    }
    return 0;
}

static const struct ntb_dev_ops operations = {
    .link_is_up = link_is_up,
    .link_enable = link_enable,
    .link_disable = link_disable,
    .port_number = ntb_default_port_number,
    .peer_port_count = ntb_default_peer_port_count,
    .peer_port_number = ntb_default_peer_port_number,
    .peer_port_idx = ntb_default_peer_port_idx,
    .mw_count = window_count,
    .mw_get_align = window_align,
    .mw_set_trans = window_set,
    .mw_clear_trans = window_clear,
    .peer_mw_count = peer_window_count,
    .peer_mw_get_addr = peer_window_address,
    .db_valid_mask = bits_valid,
    .db_vector_count = bit_vectors,
    .db_vector_mask = bits_of_vector,
    .db_read = bits_read,
    .db_clear = bits_clear,
    .db_set_mask = bits_mask,
    .db_clear_mask = bits_unmask,
    .peer_db_set = bits_ring,
    .spad_count = scratchpad_count,
    .spad_read = scratchpad_read,
    .spad_write = scratchpad_write,
    .peer_spad_read = peer_scratchpad_read,
    .peer_spad_write = peer_scratchpad_write,
};

static irqreturn_t on_doorbell(int irq, void *context)
{
    struct shared_end *end = context;

    ntb_db_event(&end->ntb, 0);
    return IRQ_HANDLED;
}

static irqreturn_t on_link(int irq, void *context)
{
    struct shared_end *end = context;

    ntb_link_event(&end->ntb);
    return IRQ_HANDLED;
}

static int map(struct pci_dev *pdev, struct shared_end *end)
{
    int waited;

    end->registers = pcim_iomap(pdev, 0, 0);
    end->link = (__force struct ivshmem_link *)devm_memremap(&pdev->dev, pci_resource_start(pdev, BAR_MEMORY),
                                                             sizeof(*end->link), MEMREMAP_WB);
    if (!end->registers || IS_ERR(end->link))
        return -ENOMEM;
    for (waited = 0; smp_load_acquire(&end->link->magic) != IVSHMEM_MAGIC; waited++) {
        if (waited == WAIT_MS)
            return dev_err_probe(&pdev->dev, -ENODEV, "no server of a link\n");
        usleep_range(1000, 1100);
    }
    end->number = ioread32(end->registers + REGISTER_END);
    return end->number < ARRAY_SIZE(end->link->ends) ? 0 : -ENODEV;
}

static int interrupts_begin(struct pci_dev *pdev, struct shared_end *end)
{
    int error = pci_alloc_irq_vectors(pdev, IVSHMEM_VECTORS, IVSHMEM_VECTORS, PCI_IRQ_MSIX);

    if (error < 0)
        return error;
    error = request_irq(pci_irq_vector(pdev, IVSHMEM_VECTOR_DOORBELL), on_doorbell, 0, "ntb_doorbell", end);
    if (error)
        goto free_vectors;
    error = request_irq(pci_irq_vector(pdev, IVSHMEM_VECTOR_LINK), on_link, 0, "ntb_link", end);
    if (error)
        goto free_doorbell;
    return 0;

free_doorbell:
    free_irq(pci_irq_vector(pdev, IVSHMEM_VECTOR_DOORBELL), end);
free_vectors:
    pci_free_irq_vectors(pdev);
    return error;
}

static void interrupts_end(struct pci_dev *pdev, struct shared_end *end)
{
    free_irq(pci_irq_vector(pdev, IVSHMEM_VECTOR_LINK), end);
    free_irq(pci_irq_vector(pdev, IVSHMEM_VECTOR_DOORBELL), end);
    pci_free_irq_vectors(pdev);
}

static int probe(struct pci_dev *pdev, const struct pci_device_id *id)
{
    struct shared_end *end = devm_kzalloc(&pdev->dev, sizeof(*end), GFP_KERNEL);
    int error = end ? pcim_enable_device(pdev) : -ENOMEM;

    if (error)
        return error;
    spin_lock_init(&end->mask_lock);
    pci_set_master(pdev);
    error = dma_set_mask_and_coherent(&pdev->dev, DMA_BIT_MASK(64));
    if (!error)
        error = map(pdev, end);
    if (!error)
        error = interrupts_begin(pdev, end);
    if (error)
        return error;
    end->ntb.pdev = pdev;
    end->ntb.topo = end->number ? NTB_TOPO_SEC : NTB_TOPO_PRI;
    end->ntb.ops = &operations;
    pci_set_drvdata(pdev, end);
    set_mask(&end->ntb, bits_valid(&end->ntb), 0);
    error = ntb_register_device(&end->ntb);
    if (error)
        interrupts_end(pdev, end);
    return error;
}

static void remove(struct pci_dev *pdev)
{
    struct shared_end *end = pci_get_drvdata(pdev);

    ntb_unregister_device(&end->ntb);
    link_disable(&end->ntb);
    interrupts_end(pdev, end);
}

static const struct pci_device_id ids[] = {{PCI_DEVICE(PCI_VENDOR_ID_REDHAT_QUMRANET, 0x1110)}, {0}};
MODULE_DEVICE_TABLE(pci, ids);

static struct pci_driver ivshmem_driver = {.name = KBUILD_MODNAME, .id_table = ids, .probe = probe, .remove = remove};
module_pci_driver(ivshmem_driver);

MODULE_DESCRIPTION("QEMU's ivshmem-doorbell as a bridge, for tests");
MODULE_LICENSE("Dual BSD/GPL");
