// Memory regions: what a key names, and whether an access through it is allowed.
#pragma once

#include <cstdint>
#include <optional>

#include "emulator/abi/control.h"
#include "emulator/engine/ids.h"
#include "emulator/engine/random.h"
#include "emulator/engine/table.h"

namespace rocemu::engine {

struct MemoryRegion {
  MemoryRegion(MrId i, ClientId c, PdId p) : id(i), client(c), pd(p) {}

  MrId id;
  ClientId client;
  PdId pd;
  uint64_t address = 0;  // in the client
  uint64_t length = 0;
  uint64_t iova = 0;  // what work requests name instead of `address`
  uint32_t access = 0;
  uint32_t lkey = 0;
  uint32_t rkey = 0;
};

class MemoryTable {
 public:
  explicit MemoryTable(uint64_t seed) : regions_(1, kMaxRegions), random_(seed) {}

  static constexpr uint32_t kMaxRegions = 524287;

  /// nullptr when the table is full. A key is the region's number and an 8-bit tag; L_Key and R_Key
  /// get different tags, so that a program that confuses them is told so.
  MemoryRegion* create(ClientId client, PdId pd);
  MemoryRegion* find(MrId id) const { return regions_.find(id); }
  void destroy(MrId id) { regions_.destroy(id); }
  template <class Visitor>
  void for_each(Visitor visit) const {
    regions_.for_each(visit);
  }

  /// The address in the client's memory that `sge` names, if its L_Key is valid in the PD, the
  /// range lies within the region and the region grants `access` (IBTA vol 1, C10-72 to C10-77).
  std::optional<uint64_t> resolve_local(ClientId client, PdId pd, uint32_t lkey, uint64_t address,
                                        uint64_t length, uint32_t access) const;
  /// The same for an address and R_Key that the peer of a QP in that PD names.
  std::optional<uint64_t> resolve_remote(ClientId client, PdId pd, uint32_t rkey, uint64_t address,
                                         uint64_t length, uint32_t access) const;

 private:
  std::optional<uint64_t> resolve(const MemoryRegion* region, ClientId client, PdId pd,
                                  uint64_t address, uint64_t length, uint32_t access) const;

  Table<MrId, MemoryRegion> regions_;
  Random random_;
};

}  // namespace rocemu::engine
