#include "emulator/engine/verbs/ah_commands.h"

#include <cerrno>

#include "emulator/engine/objects/owned.h"
#include "emulator/engine/transport/address_vector.h"

namespace rocemu::engine {

int create_ah(CommandContext& context, ClientId client, const abi::Request::Body& in,
              uint32_t& handle) {
  ProtectionDomain* pd =
      shared(context.objects.clients, context.objects.pds, in.create_ah.pd, client);
  if (pd == nullptr) return ENOENT;
  if (const int error = check_address_vector(
          context.objects.devices, context.objects.clients.device_of(client), in.create_ah.attr)) {
    return error;
  }
  AddressHandle* ah = context.objects.ahs.create(client, pd->id);
  if (ah == nullptr) return ENOMEM;
  ah->attr = in.create_ah.attr;
  ++pd->users;
  handle = ah->id.value;
  return 0;
}

int destroy_ah(CommandContext& context, ClientId client, uint32_t handle) {
  AddressHandle* ah = owned(context.objects.ahs, handle, client);
  if (ah == nullptr) return ENOENT;
  context.objects.destroy(*ah);
  return 0;
}

}  // namespace rocemu::engine
