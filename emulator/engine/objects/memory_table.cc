#include "emulator/engine/objects/memory_table.h"

#include <algorithm>

namespace rocemu::engine {
namespace {

constexpr uint32_t number_of(uint32_t key) {
  return key >> 8;
}

constexpr uint32_t key_of(uint32_t number, uint32_t tag) {
  return number << 8 | (tag & 0xff);
}

/// Returns whether [address, address + length) is within [begin, begin + size). The sums may exceed
/// 2^64.
constexpr bool within(uint64_t address, uint64_t length, uint64_t begin, uint64_t size) {
  if (address < begin) return false;
  const uint64_t offset = address - begin;
  return offset <= size && length <= size - offset;
}

/// Returns the address that the peer uses for the first byte of a window.
constexpr uint64_t first_address(const MemoryWindow& window) {
  return (window.access & abi::kAccessZeroBased) != 0 ? 0 : window.address;
}

}  // namespace

MemoryRegion* MemoryTable::create(ClientId client, PdId pd, abi::RegionKind kind,
                                  bool has_equal_keys) {
  MemoryRegion* region = regions_.create(client, pd);
  if (region == nullptr) return nullptr;
  region->kind = kind;
  region->has_equal_keys = has_equal_keys || same_keys_;
  renew_keys(*region);
  return region;
}

void MemoryTable::renew_keys(MemoryRegion& region) {
  const uint32_t old_lkey = region.lkey, old_rkey = region.rkey;
  forget(old_rkey);
  do {
    const auto tag = static_cast<uint32_t>(random_.next());
    region.lkey = key_of(region.id.value, tag);
    // ibv_alloc_null_mr(3): "the MR is not exposed as an rkey".
    const bool exposed = region.kind != abi::RegionKind::kNull;
    region.rkey = exposed ? key_of(region.id.value, region.has_equal_keys ? tag : tag ^ 0x80) : 0;
  } while (region.lkey == old_lkey || (region.rkey != 0 && region.rkey == old_rkey));
}

void MemoryTable::destroy(MrId id) {
  for (auto at = bound_.lower_bound({id, MwId{}}); at != bound_.end() && at->first == id;) {
    unbind(*windows_.find((at++)->second));
  }
  if (const MemoryRegion* region = regions_.find(id)) forget(region->rkey);
  regions_.destroy(id);
}

void MemoryTable::forget(uint32_t rkey) {
  if (rkey != 0) former_keys_[former_keys_count_++ % kFormerKeys] = rkey;
}

const MemoryRegion* MemoryTable::find_by_lkey(uint32_t lkey) const {
  const MemoryRegion* region = regions_.find(MrId{number_of(lkey)});
  return region != nullptr && region->lkey == lkey ? region : nullptr;
}

MemoryWindow* MemoryTable::create_window(ClientId client, PdId pd, abi::MwType type) {
  MemoryWindow* window = windows_.create(client, pd, type);
  if (window == nullptr) return nullptr;
  window->rkey = key_of(window->id.value, static_cast<uint32_t>(random_.next()));
  return window;
}

void MemoryTable::destroy_window(MwId id) {
  unbind(*windows_.find(id));
  windows_.destroy(id);
}

void MemoryTable::unbind(MemoryWindow& window) {
  if (!window.region) return;
  --regions_.find(*window.region)->windows;
  bound_.erase({*window.region, window.id});
  if (window.type == abi::MwType::k2) bound_type2_.erase({window.qp, window.id});
  window.region.reset();
}

bool MemoryTable::may_bind(const MemoryUser& user, const MemoryWindow& window,
                           const Bind& bind) const {
  constexpr uint32_t kNeedsLocalWrite = abi::kAccessRemoteWrite | abi::kAccessRemoteAtomic;
  constexpr uint32_t kFlush = abi::kAccessFlushGlobal | abi::kAccessFlushPersistent;
  // ibv_bind_mw(3) does not list LOCAL_WRITE among its flags, but programs set this flag, and NICs
  // ignore it.
  constexpr uint32_t kKnown = kNeedsLocalWrite | kFlush | abi::kAccessRemoteRead |
                              abi::kAccessZeroBased | abi::kAccessLocalWrite;
  if (window.pd != user.pd) return false;
  if (window.type == abi::MwType::k2) {
    // o10-37.2.30: only an unbound window can be bound. o10-37.2.40: a bind of length 0 does not
    // unbind a type 2 window; only an invalidate does.
    if (window.region || bind.length == 0) return false;
  } else if ((bind.access & abi::kAccessZeroBased) != 0) {
    return false;  // o10-36.2.2: a type 1 window is never zero-based
  }
  if (bind.length == 0) return true;
  const MemoryRegion* region = find_by_lkey(bind.lkey);
  // C10-72, C10-73: the region must have the same PD as the QP, and be registered for windows.
  // ibv_alloc_null_mr(3): the region must not be a null MR.
  if (region == nullptr || region->pd != user.pd || region->kind == abi::RegionKind::kNull ||
      (region->access & abi::kAccessMwBind) == 0) {
    return false;
  }
  // Windows are bound by virtual address; a zero-based region has no virtual addresses.
  if ((region->access & abi::kAccessZeroBased) != 0) return false;
  // C10-74: "remote write or remote atomic require local write". The region need not grant the
  // window's other rights, except for FLUSH.
  if ((bind.access & ~kKnown) != 0) return false;
  if ((bind.access & kNeedsLocalWrite) != 0 && (region->access & abi::kAccessLocalWrite) == 0) {
    return false;
  }
  if ((bind.access & kFlush & ~region->access) != 0) return false;
  // C10-75: the window must be within the region.
  return within(bind.address, bind.length, region->iova, region->length);
}

bool MemoryTable::bind(const MemoryUser& user, const Bind& bind) {
  MemoryWindow* window = windows_.find(bind.window);
  if (window == nullptr || !may_bind(user, *window, bind)) return false;
  unbind(*window);
  // The consumer chooses the low 8 bits of the key of a type 2 window (10.6.7.2). NICs ignore the
  // other bits of the key in a bind, and so does rocemu.
  window->rkey = key_of(window->id.value, bind.rkey);
  if (bind.length == 0) return true;
  MemoryRegion* region = regions_.find(MrId{number_of(bind.lkey)});
  ++region->windows;
  window->region = region->id;
  window->address = bind.address;
  window->length = bind.length;
  window->access = bind.access;
  window->qp = user.qp;
  bound_.emplace(region->id, window->id);
  if (window->type == abi::MwType::k2) bound_type2_.emplace(window->qp, window->id);
  return true;
}

const MemoryWindow* MemoryTable::bound_window(uint32_t rkey) const {
  const MemoryWindow* window = windows_.find(MwId{number_of(rkey)});
  return window != nullptr && window->rkey == rkey && window->region ? window : nullptr;
}

bool MemoryTable::invalidate(const MemoryUser& user, uint32_t rkey) {
  const MemoryWindow* bound = bound_window(rkey);
  if (bound == nullptr || bound->type != abi::MwType::k2) return false;
  if (bound->pd != user.pd || bound->qp != user.qp) return false;
  unbind(*windows_.find(bound->id));
  return true;
}

void MemoryTable::unbind_windows_of(QpNumber qp) {
  for (auto at = bound_type2_.lower_bound({qp, MwId{}});
       at != bound_type2_.end() && at->first == qp;) {
    unbind(*windows_.find((at++)->second));
  }
}

std::optional<TranslatedAddress> MemoryTable::resolve_local(PdId pd, uint32_t lkey,
                                                            uint64_t address, uint64_t length,
                                                            uint32_t access) const {
  const MemoryRegion* region = find_by_lkey(lkey);
  if (region == nullptr || region->pd != pd) return std::nullopt;
  if (region->kind == abi::RegionKind::kNull) {
    return TranslatedAddress{.client = region->client, .address = 0, .null = true};
  }
  if ((region->access & access) != access) return std::nullopt;
  return translate(*region, address, length);
}

std::optional<TranslatedAddress> MemoryTable::resolve_remote(const MemoryUser& user, uint32_t rkey,
                                                             uint64_t address, uint64_t length,
                                                             uint32_t access) const {
  if (number_of(rkey) < kFirstWindow) {
    const MemoryRegion* region = regions_.find(MrId{number_of(rkey)});
    if (region == nullptr || region->rkey != rkey || region->pd != user.pd) return std::nullopt;
    if ((region->access & access) != access) return std::nullopt;
    return translate(*region, address, length);
  }
  const MemoryWindow* window = bound_window(rkey);
  if (window == nullptr || window->pd != user.pd) return std::nullopt;
  // 10.6.7.2.1, type 2B: both the PD and the QP must be those of the bind.
  if (window->type == abi::MwType::k2 && window->qp != user.qp) return std::nullopt;
  if ((window->access & access) != access) return std::nullopt;
  if (!within(address, length, first_address(*window), window->length)) return std::nullopt;
  const uint64_t offset = address - first_address(*window);
  auto found = translate(*regions_.find(*window->region), window->address + offset, length);
  if (found) found->by_window = true;
  return found;
}

MemoryTable::Refusal MemoryTable::why_refused(const MemoryUser& user, uint32_t rkey,
                                              uint32_t access) const {
  using enum AccessObstacle;
  const auto extent = extent_of(rkey);
  if (!extent) {
    const bool was_known = rkey != 0 && std::ranges::find(former_keys_, rkey) != former_keys_.end();
    return {was_known ? kDeregistered : kUnknownKey};
  }
  const MemoryWindow* const window = bound_window(rkey);
  const auto of = [&](AccessObstacle obstacle) {
    return Refusal{obstacle, extent->address, extent->length, window != nullptr};
  };
  const MemoryRegion* const region =
      window == nullptr ? regions_.find(MrId{number_of(rkey)}) : nullptr;
  if ((window != nullptr ? window->pd : region->pd) != user.pd) return of(kOtherPd);
  if (window != nullptr && window->type == abi::MwType::k2 && window->qp != user.qp)
    return of(kOtherQp);
  if (((window != nullptr ? window->access : region->access) & access) != access)
    return of(kNoAccess);
  return of(kBeyond);
}

std::optional<MemoryTable::Extent> MemoryTable::extent_of(uint32_t rkey) const {
  if (number_of(rkey) < kFirstWindow) {
    const MemoryRegion* region = regions_.find(MrId{number_of(rkey)});
    if (region == nullptr || region->rkey != rkey) return std::nullopt;
    return Extent{region->iova, region->length};
  }
  const MemoryWindow* window = bound_window(rkey);
  if (window == nullptr) return std::nullopt;
  return Extent{first_address(*window), window->length};
}

std::optional<TranslatedAddress> MemoryTable::translate(const MemoryRegion& region,
                                                        uint64_t address, uint64_t length) {
  if (!within(address, length, region.iova, region.length)) return std::nullopt;
  const bool on_demand = (region.access & abi::kAccessOnDemand) != 0;
  return TranslatedAddress{.client = region.client,
                           .address = region.address + (address - region.iova),
                           .on_demand = on_demand,
                           .is_shared = region.is_shared || on_demand,  // its mappings can change
                           .is_relaxed = (region.access & abi::kAccessRelaxedOrdering) != 0};
}

}  // namespace rocemu::engine
