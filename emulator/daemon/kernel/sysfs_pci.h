// PCI functions in sysfs, in the form that libpciaccess, hwloc, lspci and NCCL read
#pragma once

#include "emulator/daemon/kernel/pci_layout.h"
#include "emulator/daemon/kernel/sysfs_files.h"

namespace rocemu::daemon {

/// Adds all functions and buses, and the list of all PCI functions, which includes the machine's
/// own.
void add_pci(SysfsFiles& files, const PciLayout& layout);

/// Returns "3,ffffffff" and "0-33", the kernel's two forms of a set of processors.
std::string cpu_mask_text(const std::vector<unsigned>& cpus, size_t machine_cpus);
std::string cpu_list_text(const std::vector<unsigned>& cpus);

}  // namespace rocemu::daemon
