// All objects of a fabric: devices, clients, and the clients' objects by number. This file has the
// tables, and counts references; other files have the behavior of the objects.
#pragma once

#include "emulator/engine/base/ids.h"
#include "emulator/engine/base/limits.h"
#include "emulator/engine/base/owned_table.h"
#include "emulator/engine/base/table.h"
#include "emulator/engine/config.h"
#include "emulator/engine/objects/address_handle.h"
#include "emulator/engine/objects/clients.h"
#include "emulator/engine/objects/completion_queue.h"
#include "emulator/engine/objects/device_memory.h"
#include "emulator/engine/objects/devices.h"
#include "emulator/engine/objects/memory_table.h"
#include "emulator/engine/objects/multicast_groups.h"
#include "emulator/engine/objects/protection_domain.h"
#include "emulator/engine/objects/queue_pair.h"
#include "emulator/engine/objects/shared_receive_queue.h"
#include "emulator/engine/objects/xrc_domain.h"

namespace rocemu::engine {

struct Objects {
  explicit Objects(const FabricConfig& config);

  Devices devices;
  Clients clients;
  OwnedTable<PdId, ProtectionDomain> pds{1, kNumbers, kMaxPds};
  OwnedTable<CqId, CompletionQueue> cqs{1, kNumbers, kMaxCqs};
  OwnedTable<AhId, AddressHandle> ahs{1, kNumbers, kMaxAhs};
  Table<XrcdId, XrcDomain> xrcds{1, kMaxXrcds};
  OwnedTable<SrqId, SharedReceiveQueue> srqs{1, kNumbers, kMaxSrqs};
  OwnedTable<QpNumber, QueuePair> qps{kFirstQpn, kNumbers - kFirstQpn, kMaxQps};
  OwnedTable<DmId, DeviceMemory> dms{1, kNumbers, kMaxDms};
  MemoryTable mrs;
  MulticastTable multicast;

  Device& device_of(const QueuePair& qp) { return devices[qp.device]; }
  Device& device_of(ClientId client) { return devices[clients.device_of(client)]; }
  /// Returns whether the client's device was removed. After the removal, every command of the
  /// client fails, and its doorbells are ignored.
  bool has_lost_its_device(ClientId client) const;

  /// Returns the QP if the client has a reference to it, or nullptr. Several clients may have
  /// references to a QP (ibv_open_qp(3)).
  QueuePair* qp_of(ClientId client, QpNumber number) const;
  SharedReceiveQueue* srq_of(ClientId client, SrqId id) const;

  void destroy(MemoryRegion& mr);
  void destroy(MemoryWindow& mw);
  void destroy(DeviceMemory& dm);
  void destroy(AddressHandle& ah);
  void destroy(SharedReceiveQueue& srq);
};

}  // namespace rocemu::engine
