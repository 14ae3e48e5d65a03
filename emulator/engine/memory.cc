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
  if (region == nullptr || region->lkey != lkey) return std::nullopt;
  return resolve(region, client, pd, address, length, access);
}

std::optional<uint64_t> MemoryTable::resolve_remote(ClientId client, PdId pd, uint32_t rkey,
                                                    uint64_t address, uint64_t length,
                                                    uint32_t access) const {
  const MemoryRegion* region = regions_.find(MrId{rkey >> 8});
  if (region == nullptr || region->rkey != rkey) return std::nullopt;
  return resolve(region, client, pd, address, length, access);
}

std::optional<uint64_t> MemoryTable::resolve(const MemoryRegion* region, ClientId client, PdId pd,
                                             uint64_t address, uint64_t length,
                                             uint32_t access) const {
  if (region->client != client || region->pd != pd) return std::nullopt;
  if ((region->access & access) != access) return std::nullopt;
  if (address < region->iova) return std::nullopt;
  const uint64_t offset = address - region->iova;
  if (offset > region->length || length > region->length - offset) return std::nullopt;
  return region->address + offset;
}

}  // namespace rocemu::engine
