// Continues as rocemud in a child of rocemu without execve(2), which saves the dynamic linking of
// another executable (docs/adr/0026-nic-is-forked.md).
#pragma once

#include <string>
#include <vector>

namespace rocemu::command {

/// Returns whether a child can continue as rocemud instead of executing the file `path`, with speed
/// as the only difference.
bool may_continue_as_daemon(const std::string& path);

/// Runs rocemud with these arguments, the first of which is its path, and ends this process with
/// its exit status. The caller must have set up descriptors and signals. Returns only if the kernel
/// does not let this process take rocemud's name and command line.
void continue_as_daemon(const std::vector<std::string>& arguments);

}  // namespace rocemu::command
