// A table of objects by number, each of which belongs to a client. Normally, a client can have as
// many objects as the device advertises, even if other clients have many. The objects of one client
// can be visited without those of other clients.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <new>
#include <utility>

#include "emulator/engine/base/ids.h"
#include "emulator/engine/base/linked_list.h"
#include "emulator/engine/base/table.h"

namespace rocemu::engine {

/// T has `IdType id`, `ClientId client` and `Links<T> of_client`, which links the client's objects
/// in the order in which the client got them. T's constructor gets the id and the client first.
template <class IdType, class T>
class OwnedTable : public Table<IdType, T> {
  using Base = Table<IdType, T>;

 public:
  /// The numbers are `first` to `first` + `numbers` - 1. One client gets at most `per_client` of
  /// them.
  OwnedTable(uint32_t first, uint32_t numbers, uint32_t per_client)
      : Base(first, numbers), per_client_(std::min(per_client, numbers - reserve(numbers))) {}

  /// Returns the maximum number of objects of a client. A client can reach this maximum unless all
  /// clients together use up the numbers.
  uint32_t most_of_a_client() const { return per_client_; }

  /// Creates an object of the client. Returns nullptr if the client cannot have another object, or
  /// memory is exhausted.
  template <class... Args>
  T* create(ClientId client, Args&&... args) {
    try {
      Owned& owned = owners_[client];
      T* made = has_room_for(owned) ? Base::create(client, std::forward<Args>(args)...) : nullptr;
      if (made != nullptr) append(owned, *made);
      if (owned.count == 0) owners_.erase(client);
      return made;
    } catch (const std::bad_alloc&) {
      return nullptr;
    }
  }

  void destroy(IdType id) {
    remove(*Base::find(id));
    Base::destroy(id);
  }

  /// Makes the client the owner of the object, even if the client has the maximum number of
  /// objects.
  void give(T& object, ClientId client) {
    if (object.client == client) return;
    Owned& owned = owners_[client];
    remove(object);
    object.client = client;
    append(owned, object);
  }

  /// Returns the client's first object, or nullptr if the client has none.
  T* first_of(ClientId client) const {
    const auto found = owners_.find(client);
    return found != owners_.end() ? found->second.first : nullptr;
  }
  uint32_t count_of(ClientId client) const {
    const auto found = owners_.find(client);
    return found != owners_.end() ? found->second.count : 0;
  }
  /// Calls the visitor with each object of the client. The visitor must not change the table.
  template <class Visitor>
  void for_each_of(ClientId client, Visitor visit) const {
    for (T* object = first_of(client); object != nullptr; object = object->of_client.next) {
      visit(*object);
    }
  }

 private:
  struct Owned {
    T* first = nullptr;
    T* last = nullptr;
    uint32_t count = 0;
  };

  /// The last free numbers are reserved for clients that have fewer objects than this. A few
  /// clients with very many objects thus leave numbers for others.
  static constexpr uint32_t kFew = 1024;
  static constexpr uint32_t reserve(uint32_t numbers) { return numbers / 8; }

  bool has_room_for(const Owned& owned) const {
    if (owned.count >= per_client_) return false;
    return owned.count < kFew || Base::size() < Base::limit() - reserve(Base::limit());
  }

  static void append(Owned& owned, T& object) {
    object.of_client = {.previous = owned.last, .next = nullptr};
    (owned.last != nullptr ? owned.last->of_client.next : owned.first) = &object;
    owned.last = &object;
    ++owned.count;
  }

  void remove(T& object) {
    const auto found = owners_.find(object.client);
    Owned& owned = found->second;
    const auto [previous, next] = object.of_client;
    (previous != nullptr ? previous->of_client.next : owned.first) = next;
    (next != nullptr ? next->of_client.previous : owned.last) = previous;
    if (--owned.count == 0) owners_.erase(found);
  }

  uint32_t per_client_;
  std::map<ClientId, Owned> owners_;
};

}  // namespace rocemu::engine
