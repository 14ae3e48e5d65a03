// Memory regions and windows: what a key names, and whether an access through it is allowed.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <utility>

#include "emulator/abi/control.h"
#include "emulator/engine/base/ids.h"
#include "emulator/engine/base/limits.h"
#include "emulator/engine/base/owned_table.h"
#include "emulator/engine/base/random.h"
#include "emulator/engine/events.h"

namespace rocemu::engine {

struct MemoryRegion {
  MemoryRegion(MrId i, ClientId c, PdId p) : id(i), client(c), pd(p) {}

  MrId id;
  ClientId client;  // whose memory it is; its PD may be shared with other clients
  PdId pd;
  abi::RegionKind kind = abi::RegionKind::kMemory;
  uint64_t address = 0;  // in the client
  uint64_t length = 0;
  uint64_t iova = 0;  // what work requests name instead of `address`
  uint32_t access = 0;
  bool is_shared = false;  // RemoteRange
  bool has_equal_keys = false;
  uint32_t lkey = 0;
  uint32_t rkey = 0;
  uint32_t windows = 0;  // bound to it
  Links<MemoryRegion> of_client;
};

struct MemoryWindow {
  MemoryWindow(MwId i, ClientId c, PdId p, abi::MwType t) : id(i), client(c), pd(p), type(t) {}

  MwId id;
  ClientId client;
  PdId pd;
  abi::MwType type;
  uint32_t rkey = 0;
  /// Of all below: what the latest bind said. Nothing: not bound, and the R_Key opens nothing.
  std::optional<MrId> region;
  uint64_t address = 0;  // as work requests name the region's bytes
  uint64_t length = 0;
  uint32_t access = 0;
  QpNumber qp;  // type 2: the only QP whose peer may use it
  Links<MemoryWindow> of_client;
};

/// Where the bytes are that a key and an address name.
struct Place {
  ClientId client;
  uint64_t address = 0;
  bool null = false;        // nowhere: of a null region
  bool on_demand = false;   // of a region whose pages may come and go
  bool is_shared = false;   // RemoteRange
  bool is_relaxed = false;  // RemoteRange
};

/// The QP on whose behalf memory is used. Its PD decides what it may use at all (IBTA vol 1,
/// 10.2.3), and a type 2 window belongs to one QP.
struct MemoryUser {
  PdId pd;
  QpNumber qp;
};

/// A bind work request.
struct Bind {
  MwId window;
  uint32_t rkey;  // its low 8 bits are the window's from now on
  uint32_t lkey;  // of the region
  uint64_t address;
  uint64_t length;  // 0: no longer bound
  uint32_t access;
};

class MemoryTable {
 public:
  /// `same_keys`: every region has equal keys.
  explicit MemoryTable(uint64_t seed, bool same_keys = false)
      : same_keys_(same_keys),
        regions_(1, kFirstWindow - 1, kMaxRegions),
        windows_(kFirstWindow, kNumbers + 1 - kFirstWindow, kMaxWindows),
        random_(seed) {}

  static constexpr uint32_t kFirstWindow = 1u << 23;

  /// Returns nullptr when the table is full. A key is the region's or window's number and an 8-bit
  /// tag, so that keys of windows and regions never meet. The L_Key and the R_Key of a region get
  /// different tags, by which a program that confuses them is found, unless `has_equal_keys`. A
  /// null region has no R_Key.
  MemoryRegion* create(ClientId client, PdId pd, abi::RegionKind kind = abi::RegionKind::kMemory,
                       bool has_equal_keys = false);
  const OwnedTable<MrId, MemoryRegion>& regions() const { return regions_; }
  MemoryRegion* find(MrId id) const { return regions_.find(id); }
  /// What was bound to it is bound no more.
  void destroy(MrId id);
  /// From now on the region is of that client's memory.
  void give(MemoryRegion& region, ClientId client) { regions_.give(region, client); }
  /// Gives a region that is registered anew new keys, so that using the old ones is an error.
  void renew_keys(MemoryRegion& region);
  /// The region with exactly that L_Key, of whatever PD.
  const MemoryRegion* find_by_lkey(uint32_t lkey) const;
  template <class Visitor>
  void for_each(Visitor visit) const {
    regions_.for_each(visit);
  }

  /// nullptr when the table is full. Not bound, with an R_Key that opens nothing yet.
  MemoryWindow* create_window(ClientId client, PdId pd, abi::MwType type);
  const OwnedTable<MwId, MemoryWindow>& windows() const { return windows_; }
  void destroy_window(MwId id);
  template <class Visitor>
  void for_each_window(Visitor visit) const {
    windows_.for_each(visit);
  }

  /// Binds, binds anew or unbinds a window, or returns false and changes nothing (IBTA vol 1,
  /// 10.6.7.2).
  bool bind(const MemoryUser& user, const Bind& bind);
  /// Unbinds the type 2 window with that R_Key; false if there is none for this user (o10-37.2.26).
  bool invalidate(const MemoryUser& user, uint32_t rkey);
  /// The QP is gone: what was bound for it opens nothing any more.
  void unbind_windows_of(QpNumber qp);

  /// Where the bytes are that a work request names, if the L_Key is valid in the PD, the range lies
  /// within the region and the region grants `access` (IBTA vol 1, C10-72 to C10-77).
  std::optional<Place> resolve_local(PdId pd, uint32_t lkey, uint64_t address, uint64_t length,
                                     uint32_t access) const;
  /// The same for an address and the R_Key, of a region or a window, that the peer of `user` names.
  std::optional<Place> resolve_remote(const MemoryUser& user, uint32_t rkey, uint64_t address,
                                      uint64_t length, uint32_t access) const;
  /// Why resolve_remote() finds nothing, and what the key opens, if anything.
  struct Refusal {
    AccessObstacle obstacle;
    uint64_t address = 0, length = 0;
    bool is_window = false;
  };
  Refusal why_refused(const MemoryUser& user, uint32_t rkey, uint32_t access) const;
  /// The length of what the R_Key opens, and the address of its first byte, for requests that mean
  /// all of it.
  struct Extent {
    uint64_t address;
    uint64_t length;
  };
  std::optional<Extent> extent_of(uint32_t rkey) const;

 private:
  static std::optional<Place> place_in(const MemoryRegion& region, uint64_t address,
                                       uint64_t length);
  bool may_bind(const MemoryUser& user, const MemoryWindow& window, const Bind& bind) const;
  void unbind(MemoryWindow& window);
  const MemoryWindow* bound_window(uint32_t rkey) const;
  void forget(uint32_t rkey);

  const bool same_keys_;
  OwnedTable<MrId, MemoryRegion> regions_;
  OwnedTable<MwId, MemoryWindow> windows_;
  std::set<std::pair<MrId, MwId>> bound_;            // windows, by region
  std::set<std::pair<QpNumber, MwId>> bound_type2_;  // those of type 2, by QP
  Random random_;
  /// R_Keys that opened memory not long ago, the latest anywhere.
  static constexpr size_t kFormerKeys = 256;
  std::array<uint32_t, kFormerKeys> former_keys_{};
  size_t former_keys_count_ = 0;
};

}  // namespace rocemu::engine
