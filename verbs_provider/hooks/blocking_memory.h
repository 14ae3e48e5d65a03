// A function that the shim offers to the provider: it detects whether a program provides pages of
// this process on demand (userfaultfd(2)).
#pragma once

/// Returns whether memory was already registered with a userfaultfd. From this call on, `told` is
/// called before each such registration.
extern "C" bool rocemu_watch_memory(void (*told)());
