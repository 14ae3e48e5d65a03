// The ownership of objects. ENOENT means that no object of the client has the handle, as in the
// kernel's uverbs, which searches for a handle among the objects of the file.
#pragma once

#include "emulator/engine/base/ids.h"
#include "emulator/engine/base/table.h"
#include "emulator/engine/objects/clients.h"

namespace rocemu::engine {

/// Returns the object with that handle; nullptr if there is none, or it belongs to another client.
template <class IdType, class Object>
Object* owned(const Table<IdType, Object>& table, uint32_t handle, ClientId client) {
  Object* object = table.find(IdType{handle});
  return object != nullptr && object->client == client ? object : nullptr;
}

/// Returns the object with that handle; nullptr if there is none, or it belongs to a client that
/// does not share its objects with this client. Used for objects that can be imported
/// (ibv_import_pd(3), ibv_import_mr(3), ibv_import_dm(3)).
template <class IdType, class Object>
Object* shared(const Clients& clients, const Table<IdType, Object>& table, uint32_t handle,
               ClientId client) {
  Object* object = table.find(IdType{handle});
  return object != nullptr && clients.share_objects(object->client, client) ? object : nullptr;
}

}  // namespace rocemu::engine
