// The third function that the shim offers to the provider: whether pages of this process may have
// to be provided by a program (userfaultfd(2)).
#pragma once

/// True once somebody asked for it. Then and later `told` is called before the memory changes.
extern "C" bool rocemu_watch_memory(void (*told)());
