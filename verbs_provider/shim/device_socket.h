// The sockets that stand for character devices: how one is opened, and how one is recognised.
//
// A connected socket is recognised by its peer's name alone. No table of descriptors has to follow
// close(), dup(), fork() and exec(), or descriptors that came from another process.
#pragma once

#include "emulator/abi/runtime_dir.h"
#include "verbs_provider/shim/served_paths.h"

namespace rocemu::shim {

struct DeviceNumber {
  unsigned major;
  unsigned minor;

  /// rdma_cm rather than a verbs device.
  bool is_event_channel() const { return major == abi::kCmMajor; }
};

/// Whether a socket of this name stands for a device, and for which. The daemon must bind its
/// sockets under names that end so (runtime_dir.h).
bool device_of_name(const char* path, DeviceNumber* number);

/// The same for the existing socket that `path` names, relative to `dirfd` as openat(2) has it
/// (with an empty path, `dirfd` itself). Its whole name goes to `name`. For a program that went
/// into the devices' directory or opened it; asks the kernel where that is.
bool device_of_relative_path(int dirfd, const char* path, DeviceNumber* number,
                             char (&name)[kMaxPath]);

/// Whether the descriptor is connected to such a socket.
bool device_of_fd(int fd, DeviceNumber* number);

/// Whether this process image has opened or been told of a device. Until then write() need not ask.
bool has_seen_device();

/// open(2) of a device's socket: a descriptor, or a negative errno value.
int open_device(const char* path, int open_flags);

}  // namespace rocemu::shim
