// A function that the shim offers to the provider: it reports the parts of the address space whose
// pages the program changes by calls of the C library.
#pragma once

#include <cstdint>

#include "emulator/abi/rings.h"

/// Makes each call that changes the pages of [begin, end) also call `changed`, on the same thread
/// and at any time at which a program can call munmap(2), including in a signal handler or with
/// locks held.
extern "C" void rocemu_watch_mappings(void (*changed)(uint64_t begin, uint64_t end,
                                                      rocemu::abi::MappingCall call));
