#include "verbs_provider/system/user_memory.h"

#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "verbs_provider/system/raw.h"

namespace rocemu::shim {
namespace {

/// Copies within this process by `call`, process_vm_readv or process_vm_writev, which returns
/// EFAULT where a plain access would crash. Returns true if the copy succeeded, or if a sandbox
/// forbids the call: in that case the program's address is trusted.
bool is_accessible(long call, void* ours, void* theirs, size_t size) {
  const iovec local{ours, size};
  const iovec remote{theirs, size};
  const long copied = raw_syscall(call, raw_syscall(SYS_gettid), &local, 1, &remote, 1, 0);
  return copied == static_cast<long>(size) || (copied < 0 && copied != -EFAULT);
}

}  // namespace

// Uses symlinkat(2), which reads its first path, and then refuses the empty second one before it
// accesses any file system: it does the least of all calls that take a path.
bool is_readable_path(const char* path) {
  return raw_syscall(SYS_symlinkat, path, AT_FDCWD, "") != -EFAULT;
}

// The following two functions copy a second time by memcpy, so that valgrind notices which bytes
// were written.

int copy_from_program(void* to, const void* from, size_t size) {
  if (!is_accessible(SYS_process_vm_readv, to, const_cast<void*>(from), size)) return EFAULT;
  memcpy(to, from, size);
  return 0;
}

int copy_to_program(void* to, const void* from, size_t size) {
  if (!is_accessible(SYS_process_vm_writev, const_cast<void*>(from), to, size)) return EFAULT;
  memcpy(to, from, size);
  return 0;
}

}  // namespace rocemu::shim
