// Lists whose links are in the listed objects: adding and removing an object takes neither memory
// nor a search.
#pragma once

namespace rocemu::engine {

/// The neighbors of an object in a list
template <class T>
struct Links {
  T* previous = nullptr;
  T* next = nullptr;
};

/// Puts the object at the front of the list that starts with `first` and is linked by the member
/// `kLinks`.
template <auto kLinks, class T>
void join(T*& first, T& object) {
  object.*kLinks = {.previous = nullptr, .next = first};
  if (first != nullptr) (first->*kLinks).previous = &object;
  first = &object;
}

template <auto kLinks, class T>
void leave(T*& first, T& object) {
  const auto [previous, next] = object.*kLinks;
  (previous != nullptr ? (previous->*kLinks).next : first) = next;
  if (next != nullptr) (next->*kLinks).previous = previous;
  object.*kLinks = {};
}

}  // namespace rocemu::engine
