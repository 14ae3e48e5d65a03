// A function that the shim offers to the provider, for ibv_import_device(3).
#pragma once

/// Sets the answer to this thread's next ioctl(`connection`) for the async event file. libibverbs
/// asks by ioctl for the async event file of an imported context, and the provider has already
/// received this file with the other descriptors.
extern "C" void rocemu_offer_async_fd(int connection, int async_fd);
