// The sockets that emulate character devices: opening and recognizing them.
//
// A connected socket is recognized by its peer's name alone. No table of descriptors is needed,
// which would have to follow close(), dup(), fork() and exec(), and descriptors that other
// processes send.
#pragma once

#include "emulator/abi/runtime_dir.h"
#include "verbs_provider/shim/served_paths.h"

namespace rocemu::shim {

struct DeviceNumber {
  unsigned major;
  unsigned minor;

  /// Returns whether the device is rdma_cm and not a verbs device.
  bool is_event_channel() const { return major == abi::kCmMajor; }
};

/// Returns whether a socket of this name emulates a device, and stores the device. The daemon must
/// bind its sockets under names of this form (runtime_dir.h).
bool device_of_name(const char* path, DeviceNumber* number);

/// Does the same as device_of_name() for the existing socket that `path` names, relative to `dirfd`
/// as in openat(2) (with an empty path, `dirfd` itself). Stores the socket's whole name in `name`.
/// This is for a program that changed into the devices' directory or opened it: the kernel knows
/// the directory's name.
bool device_of_relative_path(int dirfd, const char* path, DeviceNumber* number,
                             char (&name)[kMaxPath]);

/// Returns whether the descriptor is connected to a socket that emulates a device, and stores the
/// device.
bool device_of_fd(int fd, DeviceNumber* number);

/// Returns whether this process image has opened or recognized a device. Until then write() need
/// not check.
bool has_seen_device();

/// Opens a device's socket like open(2). Returns a descriptor, or a negative errno value.
int open_device(const char* path, int open_flags);

}  // namespace rocemu::shim
