// Making and ending our objects without operator new: the C++ library's brings exceptions and all
// they need into other people's programs.
#pragma once

#include <cerrno>
#include <cstdlib>
#include <new>

namespace rocemu::provider {

/// A value-initialised T in zeroed memory; null with errno set if there is none.
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

/// For verbs that return a pointer: null, with the reason in errno.
template <class T = void>
T* fail(int error) {
  errno = error;
  return nullptr;
}

/// Our object around the one that libibverbs and the application know, which is its first member.
template <class Ours, class Public>
Ours* ours(Public* object) {
  return reinterpret_cast<Ours*>(object);
}

}  // namespace rocemu::provider
