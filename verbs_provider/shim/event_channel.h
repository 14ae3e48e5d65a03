// Executes the commands of librdmacm (abi/ucma.h).
#pragma once

#include <cstddef>

#include <sys/types.h>

namespace rocemu::shim {

/// Emulates write(2) to an rdma_cm_event_channel's descriptor, with the kernel's results and
/// errors. Getting an event waits for one and is a cancellation point; all other commands are not.
ssize_t write_to_event_channel(int fd, const void* data, size_t size);

/// Applies rules to open(2) of an event channel, which is connected already. Returns 0, or the
/// errno value with which open(2) fails.
int ask_to_open_event_channel(int fd);

}  // namespace rocemu::shim
