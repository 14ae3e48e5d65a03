// Tries the two methods by which a daemon reads and writes the memory of a program.
#pragma once

namespace rocemu::command {

struct MemoryAccess {
  bool process_vm = false;     // process_vm_readv and process_vm_writev
  bool passed_mem_fd = false;  // /proc/self/mem, opened by the program and passed to the daemon
};

/// Tries the methods between two new processes that are related like a program and its NIC: neither
/// is the other's parent.
MemoryAccess probe_memory_access();

}  // namespace rocemu::command
