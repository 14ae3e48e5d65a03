// The fourth function that the shim offers to the provider: which parts of the address space the
// program gives other pages by calls of the C library that the shim sees.
#pragma once

#include <cstdint>

#include "emulator/abi/rings.h"

/// From now on `changed` is called about [begin, end) by whatever thread makes the call, at any
/// moment at which a program may call munmap(2): also in a signal handler, or with locks held.
extern "C" void rocemu_watch_mappings(void (*changed)(uint64_t begin, uint64_t end,
                                                      rocemu::abi::MappingCall call));
