// PCI functions in sysfs, as libpciaccess, hwloc, lspci and NCCL read them.
#pragma once

#include "emulator/daemon/kernel/pci_layout.h"
#include "emulator/daemon/kernel/sysfs_files.h"

namespace rocemu::daemon {

/// Adds all functions and buses, and the list of all PCI functions, in which the machine's own are
/// as well.
void add_pci(SysfsFiles& files, const PciLayout& layout);

/// "3,ffffffff" and "0-33", as the kernel writes processors.
std::string cpu_mask_text(const std::vector<unsigned>& cpus, size_t machine_cpus);
std::string cpu_list_text(const std::vector<unsigned>& cpus);

}  // namespace rocemu::daemon
