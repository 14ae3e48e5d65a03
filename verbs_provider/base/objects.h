// Creates and destroys the provider's objects without operator new: that of the C++ library would
// load exceptions and all their dependencies into programs.
#pragma once

#include <cerrno>
#include <cstdlib>
#include <new>

namespace rocemu::provider {

/// Returns a value-initialized T in zeroed memory, or null with errno set if memory is exhausted.
template <class T>
T* make() {
  void* memory = calloc(1, sizeof(T));
  if (memory == nullptr) {
    errno = ENOMEM;
    return nullptr;
  }
  return new (memory) T();
}

template <class T>
void dispose(T* object) {
  object->~T();
  free(object);
}

/// Stores the error in errno and returns null, as a verb that returns a pointer does when it fails.
template <class T = void>
T* fail(int error) {
  errno = error;
  return nullptr;
}

/// Returns the provider's object that begins with `object`, which libibverbs and the application
/// use.
template <class Ours, class Public>
Ours* ours(Public* object) {
  return reinterpret_cast<Ours*>(object);
}

}  // namespace rocemu::provider
