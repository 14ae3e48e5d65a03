// Identifiers of the engine's objects. They are strong types, so that a CQ is never mistaken for a
// QP.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>

namespace rocemu::engine {

template <class Tag>
struct Id {
  uint32_t value = 0;
  auto operator<=>(const Id&) const = default;
};

/// One ibv_context. The daemon chooses the ID when the client attaches, and never uses it again
/// within a run.
using ClientId = Id<struct ClientTag>;
/// The position of a device in the fabric's configuration.
using DeviceIndex = Id<struct DeviceTag>;
using PdId = Id<struct PdTag>;
using MrId = Id<struct MrTag>;
using CqId = Id<struct CqTag>;
using AhId = Id<struct AhTag>;
using SrqId = Id<struct SrqTag>;
using XrcdId = Id<struct XrcdTag>;
/// A memory window. Windows and memory regions share one set of numbers, as they share one set of
/// keys.
using MwId = MrId;
using DmId = Id<struct DmTag>;
/// An rdma_cm event channel. The daemon chooses the ID, and never uses it again within a run.
using CmChannelId = Id<struct CmChannelTag>;
/// A completion channel, identified by the inode of its socket
struct ChannelId {
  uint64_t value = 0;
  auto operator<=>(const ChannelId&) const = default;
};
/// A QPN: 24 bits, unique in the whole fabric.
using QpNumber = Id<struct QpTag>;

}  // namespace rocemu::engine

template <class Tag>
struct std::hash<rocemu::engine::Id<Tag>> {
  size_t operator()(rocemu::engine::Id<Tag> id) const noexcept { return id.value; }
};
