// Memory regions and windows: finds them by their keys, and checks whether an access is allowed.
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
  ClientId client;  // the owner of the memory; its PD may be shared with others
  PdId pd;
  abi::RegionKind kind = abi::RegionKind::kMemory;
  uint64_t address = 0;  // in the client
  uint64_t length = 0;
  uint64_t iova = 0;  // used in work requests instead of `address`
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
  /// The region to which the window is bound; the members below have the other values of the bind.
  /// If the window is not bound, `region` is empty, and the window's R_Key permits no access.
  std::optional<MrId> region;
  uint64_t address = 0;  // as the region's bytes are addressed in work requests
  uint64_t length = 0;
  uint32_t access = 0;
  QpNumber qp;  // type 2: the only QP whose peer may use it
  Links<MemoryWindow> of_client;
};

/// The location of the bytes to which a key and an address refer
struct TranslatedAddress {
  ClientId client;
  uint64_t address = 0;
  bool null = false;        // no memory: in a null region
  bool on_demand = false;   // in a region whose pages can be added and removed
  bool is_shared = false;   // RemoteRange
  bool is_relaxed = false;  // RemoteRange
  bool by_window = false;   // by the R_Key of a memory window, not of the region
};

/// The QP that accesses memory. Its PD determines the memory that it may use (IBTA vol 1, 10.2.3),
/// and a type 2 window belongs to one QP.
struct MemoryUser {
  PdId pd;
  QpNumber qp;
};

/// The parameters of a bind work request.
struct Bind {
  MwId window;
  uint32_t rkey;  // its low 8 bits become the window's
  uint32_t lkey;  // of the region
  uint64_t address;
  uint64_t length;  // 0: unbind
  uint32_t access;
};

class MemoryTable {
 public:
  /// Creates an empty table. If `same_keys` is true, the L_Key and R_Key of each region are equal.
  explicit MemoryTable(uint64_t seed, bool same_keys = false)
      : same_keys_(same_keys),
        regions_(1, kFirstWindow - 1, kMaxRegions),
        windows_(kFirstWindow, kNumbers + 1 - kFirstWindow, kMaxWindows),
        random_(seed) {}

  static constexpr uint32_t kFirstWindow = 1u << 23;

  /// Creates a region. Returns nullptr if the table is full. A key consists of the number of its
  /// region or window and an 8-bit tag, so keys of windows and regions never coincide. The L_Key
  /// and R_Key of a region get different tags, which exposes programs that confuse the keys, unless
  /// `has_equal_keys` is true. A null region has no R_Key.
  MemoryRegion* create(ClientId client, PdId pd, abi::RegionKind kind = abi::RegionKind::kMemory,
                       bool has_equal_keys = false);
  const OwnedTable<MrId, MemoryRegion>& regions() const { return regions_; }
  MemoryRegion* find(MrId id) const { return regions_.find(id); }
  /// Destroys a region, and unbinds the windows that were bound to it.
  void destroy(MrId id);
  /// Makes the client the owner of the region.
  void give(MemoryRegion& region, ClientId client) { regions_.give(region, client); }
  /// Gives a region that was re-registered new keys, so that using the old keys is an error.
  void renew_keys(MemoryRegion& region);
  /// Returns the region with exactly that L_Key, whatever its PD; nullptr if there is none.
  const MemoryRegion* find_by_lkey(uint32_t lkey) const;
  template <class Visitor>
  void for_each(Visitor visit) const {
    regions_.for_each(visit);
  }

  /// Creates a window that is not bound, so that its R_Key permits no access yet. Returns nullptr
  /// if the table is full.
  MemoryWindow* create_window(ClientId client, PdId pd, abi::MwType type);
  const OwnedTable<MwId, MemoryWindow>& windows() const { return windows_; }
  void destroy_window(MwId id);
  template <class Visitor>
  void for_each_window(Visitor visit) const {
    windows_.for_each(visit);
  }

  /// Binds, rebinds or unbinds a window (IBTA vol 1, 10.6.7.2). Returns false, and changes nothing,
  /// if the bind is not allowed.
  bool bind(const MemoryUser& user, const Bind& bind);
  /// Unbinds the type 2 window with that R_Key. Returns false if the user has no such window
  /// (o10-37.2.26).
  bool invalidate(const MemoryUser& user, uint32_t rkey);
  /// Unbinds the windows that were bound for a QP, because the QP was destroyed.
  void unbind_windows_of(QpNumber qp);

  /// Returns the location of the bytes that a work request names. Returns nothing unless the L_Key
  /// is valid in the PD, the range is within the region and the region grants `access` (IBTA vol 1,
  /// C10-72 to C10-77). A null region allows any access.
  std::optional<TranslatedAddress> resolve_local(PdId pd, uint32_t lkey, uint64_t address,
                                                 uint64_t length, uint32_t access) const;
  /// Returns the location of the bytes to which an address and an R_Key from the peer of `user`
  /// refer, if the region or window with that R_Key allows the access.
  std::optional<TranslatedAddress> resolve_remote(const MemoryUser& user, uint32_t rkey,
                                                  uint64_t address, uint64_t length,
                                                  uint32_t access) const;
  /// The reason why resolve_remote() refuses an access. If the key is known, also the range to
  /// which the key gives access.
  struct Refusal {
    AccessObstacle obstacle;
    uint64_t address = 0, length = 0;
    bool is_window = false;
  };
  Refusal why_refused(const MemoryUser& user, uint32_t rkey, uint32_t access) const;
  /// The range of memory to which an R_Key gives access. A FLUSH can ask for all of it instead of
  /// naming a range.
  struct Extent {
    uint64_t address;
    uint64_t length;
  };
  std::optional<Extent> extent_of(uint32_t rkey) const;

 private:
  static std::optional<TranslatedAddress> translate(const MemoryRegion& region, uint64_t address,
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
  /// The capacity of the ring buffer of former R_Keys
  static constexpr size_t kFormerKeys = 256;
  std::array<uint32_t, kFormerKeys> former_keys_{};
  size_t former_keys_count_ = 0;
};

}  // namespace rocemu::engine
