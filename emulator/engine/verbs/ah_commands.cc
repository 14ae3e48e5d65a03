#include "emulator/engine/verbs/ah_commands.h"

#include <cerrno>

#include "emulator/engine/objects/owned.h"
#include "emulator/engine/transport/address_vector.h"

namespace rocemu::engine {

int create_ah(Fabric& fabric, ClientId client, const abi::Request::Body& in, uint32_t& handle) {
  ProtectionDomain* pd = shared(fabric, fabric.pds, in.create_ah.pd, client);
  if (pd == nullptr) return ENOENT;
  if (const int error =
          check_address_vector(fabric, fabric.clients.at(client), in.create_ah.attr)) {
    return error;
  }
  AddressHandle* ah = fabric.ahs.create(client, pd->id);
  if (ah == nullptr) return ENOMEM;
  ah->attr = in.create_ah.attr;
  ++pd->users;
  handle = ah->id.value;
  return 0;
}

int destroy_ah(Fabric& fabric, ClientId client, uint32_t handle) {
  const AddressHandle* ah = owned(fabric.ahs, handle, client);
  if (ah == nullptr) return ENOENT;
  --fabric.pds.find(ah->pd)->users;
  fabric.ahs.destroy(ah->id);
  return 0;
}

}  // namespace rocemu::engine
