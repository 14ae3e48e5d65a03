#include "emulator/engine/memory.h"

namespace rocemu::engine {

MemoryRegion* MemoryTable::create(ClientId client, PdId pd) {
  MemoryRegion* region = regions_.create(client, pd);
  if (region == nullptr) return nullptr;
  const auto tag = static_cast<uint32_t>(random_.next() & 0xff);
  region->lkey = region->id.value << 8 | tag;
  region->rkey = region->id.value << 8 | (tag ^ 0x80);
  return region;
}

std::optional<uint64_t> MemoryTable::resolve_local(ClientId client, PdId pd, uint32_t lkey,
                                                   uint64_t address, uint64_t length,
                                                   uint32_t access) const {
  const MemoryRegion* region = regions_.find(MrId{lkey >> 8});
  if (region == nullptr || region->lkey != lkey || region->client != client || region->pd != pd) {
    return std::nullopt;
  }
  if ((region->access & access) != access) return std::nullopt;
  if (address < region->iova) return std::nullopt;
  const uint64_t offset = address - region->iova;
  if (offset > region->length || length > region->length - offset) return std::nullopt;
  return region->address + offset;
}

}  // namespace rocemu::engine
