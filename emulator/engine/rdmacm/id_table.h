// The table of all rdma_cm ids, by number
#pragma once

#include <cstddef>
#include <cstdint>

#include "emulator/engine/base/random.h"
#include "emulator/engine/base/table.h"
#include "emulator/engine/rdmacm/rdma_id.h"

namespace rocemu::engine::cm {

class IdTable {
 public:
  static constexpr uint32_t kMaxIds = 1 << 18;

  /// Creates an empty table. `seed` determines the starting PSNs of the ids.
  explicit IdTable(uint64_t seed) : random_(seed ^ kSeedMix) {}

  /// Creates an id on the channel. Returns nullptr if there are too many ids.
  RdmaId* create(CmChannelId channel);
  void destroy(const RdmaId& id) { ids_.destroy(id.number); }

  RdmaId* find(RdmaIdNumber number) const { return ids_.find(number); }
  /// Finds the id that a command names. Returns 0, ENOENT if there is none, EINVAL if the id is on
  /// another channel, or ENXIO if its device was removed. `id` is set also in the case of ENXIO.
  int find(CmChannelId channel, uint32_t number, RdmaId*& id) const;
  /// Does the same as find(), and also returns EINVAL if the id has no device yet.
  int find_with_device(CmChannelId channel, uint32_t number, RdmaId*& id) const;

  /// Calls the visitor with each id, in the order of their numbers. The visitor may destroy that
  /// id.
  template <class Visitor>
  void for_each(Visitor visit) const {
    ids_.for_each(visit);
  }

 private:
  static constexpr uint64_t kSeedMix = 0x72646d61'5f636d00;

  Table<RdmaIdNumber, RdmaId> ids_{1, kMaxIds};
  Random random_;
};

}  // namespace rocemu::engine::cm
