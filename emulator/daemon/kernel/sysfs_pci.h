// Writes PCI functions as files of sysfs, in the format that libpciaccess, hwloc, lspci and NCCL
// read.
#pragma once

#include "emulator/daemon/kernel/pci_layout.h"
#include "emulator/daemon/kernel/sysfs_files.h"

namespace rocemu::daemon {

/// Adds all functions and buses of the layout, and the list of all PCI functions, which also
/// contains the machine's own functions.
void add_pci(SysfsFiles& files, const PciLayout& layout);

/// Returns a set of processors in one of the kernel's two formats: cpu_mask_text() returns
/// "3,ffffffff", and cpu_list_text() returns "0-33".
std::string cpu_mask_text(const std::vector<unsigned>& cpus, size_t machine_cpus);
std::string cpu_list_text(const std::vector<unsigned>& cpus);

}  // namespace rocemu::daemon
