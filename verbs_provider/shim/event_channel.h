// librdmacm's commands: see abi/ucma.h.
#pragma once

#include <cstddef>

#include <sys/types.h>

namespace rocemu::shim {

/// write(2) to an rdma_cm_event_channel's descriptor, with the results and errors of the kernel's.
/// Getting an event waits for one and is a cancellation point; nothing else is.
ssize_t write_to_event_channel(int fd, const void* data, size_t size);

/// What a rule makes of open(2) of an event channel, which is connected already: 0, or the errno
/// value that it fails with.
int ask_to_open_event_channel(int fd);

}  // namespace rocemu::shim
