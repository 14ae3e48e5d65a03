// The second function that the shim offers to the provider, for ibv_import_device(3).
#pragma once

/// What this thread's next ioctl(`connection`) for the async event file will answer: libibverbs
/// asks for an imported context's by ioctl, after the provider got it with all the rest.
extern "C" void rocemu_offer_async_fd(int connection, int async_fd);
