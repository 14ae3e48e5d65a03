// A control request to the daemon. The provider (and programs that link the shim) use this function
// of the shim, because both must send their requests through the same lock.
#pragma once

#include "emulator/abi/control.h"

/// Fills in the request's magic, version and sequence, sends it with `n_send` descriptors over the
/// connection `fd` (an open device) and waits for its reply. Descriptors of the reply go to
/// `recv_fds`, close-on-exec; missing ones are -1 there and surplus ones are closed. Returns 0, or
/// a positive errno value: the daemon's Reply::error, or EIO if the daemon has ended or its reply
/// is invalid. After an error no descriptor remains open. Does not change errno.
extern "C" int rocemu_call(int fd, const rocemu::abi::Request* request, rocemu::abi::Reply* reply,
                           const int* send_fds, int n_send, int* recv_fds, int n_recv);
