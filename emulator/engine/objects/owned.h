// The ownership of objects. ENOENT means that none of the client's objects has the handle, as in
// the kernel's uverbs, which look it up among the objects of the file.
#pragma once

#include "emulator/engine/base/ids.h"
#include "emulator/engine/base/table.h"
#include "emulator/engine/objects/clients.h"

namespace rocemu::engine {

/// Returns the client's object, or nullptr if it does not exist or belongs to another client.
template <class IdType, class Object>
Object* owned(const Table<IdType, Object>& table, uint32_t handle, ClientId client) {
  Object* object = table.find(IdType{handle});
  return object != nullptr && object->client == client ? object : nullptr;
}

/// Does the same for objects that can be imported (ibv_import_pd(3), ibv_import_mr(3),
/// ibv_import_dm(3)): also returns objects of clients that share objects with this one.
template <class IdType, class Object>
Object* shared(const Clients& clients, const Table<IdType, Object>& table, uint32_t handle,
               ClientId client) {
  Object* object = table.find(IdType{handle});
  return object != nullptr && clients.share_objects(object->client, client) ? object : nullptr;
}

}  // namespace rocemu::engine
