#include "emulator/engine/rdmacm/id_table.h"

#include <cerrno>

namespace rocemu::engine::cm {

RdmaId* IdTable::create(CmChannelId channel) {
  RdmaId* id = ids_.create(channel);
  if (id != nullptr) id->starting_psn = wire::Psn(static_cast<uint32_t>(random_.next()) & 0xffffff);
  return id;
}

int IdTable::find(CmChannelId channel, uint32_t number, RdmaId*& id) const {
  id = ids_.find(RdmaIdNumber{number});
  if (id == nullptr) return ENOENT;
  if (id->channel != channel) return EINVAL;
  return id->state == IdState::kRemoved ? ENXIO : 0;
}

int IdTable::find_with_device(CmChannelId channel, uint32_t number, RdmaId*& id) const {
  if (const int error = find(channel, number, id)) return error;
  return id->local ? 0 : EINVAL;
}

}  // namespace rocemu::engine::cm
