// Fuzzes a connection manager with calls of its consumers and MADs from its network. The input is a
// sequence of records:
//   0x00..0x7f   a call (the number modulo kCalls), for the latest connection
//   0x80..0xff   the next 256 bytes as a MAD; bit 0 puts that connection's ID into its second word,
//                bit 1 into its first, so that a mutation need not guess it
// Apart from crashes it checks two properties: a MAD that is parsed and emitted again parses as the
// same, and after all connections are destroyed, time removes all their state.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <set>
#include <vector>

#include "emulator/engine/fabric.h"
#include "tests/support/array_memory.h"
#include "wire/cm/cm_print.h"

using namespace rocemu;
using engine::cm::ConnectionId;

namespace {

constexpr uint8_t kCalls = 12;
constexpr uint64_t kServices[] = {0x0000000001061c06, 0x0000000001061d2f, 0x0000000001111c06};

struct Manager {
  Manager() : fabric(config(), memory) {
    fabric.begin_step(now, outputs);
    fabric.begin_expiry();
    for (const uint64_t service : kServices) (void)manager().listen({.service_id = service});
    finish_step();
  }

  // The corpus was made from captures, whose both ends are this device.
  static engine::FabricConfig config() {
    engine::FabricConfig config = engine::default_fabric(1);
    config.devices[0].addresses = {wire::IpAddress::from_v4(10, 7, 0, 1),
                                   wire::IpAddress::from_v4(10, 7, 0, 2)};
    return config;
  }

  engine::cm::ConnectionManager& manager() { return fabric.connections; }

  void finish_step() {
    fabric.run();
    while (const auto event = manager().next_event()) remember(event->connection);
    outputs.clear();
  }

  void remember(ConnectionId id) {
    latest = id;
    known.insert(id);
  }

  void call(uint8_t which) {
    engine::cm::Route route;
    route.remote = wire::IpAddress::from_v4(10, 7, 0, 9);
    switch (which % kCalls) {
      case 0:
      case 1: {
        engine::cm::Connect connect;
        connect.route = route;
        connect.service_id = kServices[0];
        connect.qpn.value = 17;
        connect.peer_to_peer = which % kCalls == 1;
        if (const auto id = manager().connect(connect)) remember(*id);
        return;
      }
      case 2: {
        engine::cm::Accept accept;
        accept.qpn.value = 18;
        (void)manager().accept(latest, accept);
        return;
      }
      case 3:
        (void)manager().ready(latest);
        return;
      case 4:
        (void)manager().reject(latest);
        return;
      case 5:
        (void)manager().delay(latest, 10);
        return;
      case 6:
        (void)manager().disconnect(latest);
        return;
      case 7:
        (void)manager().answer_disconnect(latest);
        return;
      case 8:
        return manager().destroy(latest);
      case 9:
        (void)manager().notify_established(latest);
        return;
      case 10: {
        engine::cm::Resolve resolve;
        resolve.route = route;
        if (const auto id = manager().resolve(resolve)) remember(*id);
        (void)manager().answer_resolve(latest, {});
        return;
      }
      default:
        if (const auto next = manager().next_deadline()) now = std::max(now, *next);
        (void)manager().qp_attributes(latest, abi::QpState::kRtr);
    }
  }

  void receive(std::span<const uint8_t> mad) {
    wire::Packet packet;
    packet.src_ip = wire::IpAddress::from_v4(10, 7, 0, 9);
    packet.dst_ip = wire::IpAddress::from_v4(10, 7, 0, 1);
    packet.bth.opcode = wire::Opcode::kUdSendOnly;
    packet.bth.dest_qpn = wire::kGsiQpn;
    packet.deth = {.qkey = wire::kGsiQkey, .src_qpn = wire::kGsiQpn};
    packet.payload = mad;
    manager().receive(engine::DeviceIndex{0}, packet);
  }

  void end() {
    fabric.begin_step(now, outputs);
    fabric.begin_expiry();
    for (const ConnectionId id : known) manager().destroy(id);
    finish_step();
    while (const auto next = manager().next_deadline()) {
      now = std::max(now, *next);
      fabric.begin_step(now, outputs);
      fabric.begin_expiry();
      finish_step();
    }
    if (manager().size() != 0) std::abort();
  }

  test::ArrayMemory memory;
  engine::Fabric fabric;
  engine::Outputs outputs;
  engine::Instant now{};
  ConnectionId latest;
  std::set<ConnectionId> known;
};

void check_codec(std::span<const uint8_t> bytes) {
  const auto mad = wire::parse_cm_mad(bytes);
  if (!mad) return;
  (void)to_string(*mad);
  std::array<uint8_t, wire::kMadSize> emitted;
  wire::emit(*mad, emitted);
  const auto again = wire::parse_cm_mad(emitted);
  if (!again || *again != *mad) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Manager manager;
  for (size_t at = 0; at < size;) {
    const uint8_t record = data[at++];
    manager.fabric.begin_step(manager.now, manager.outputs);
    manager.fabric.begin_expiry();
    if (record < 0x80) {
      manager.call(record);
    } else {
      std::vector<uint8_t> mad(data + at, data + at + std::min(size - at, wire::kMadSize));
      at += mad.size();
      for (unsigned i = 0; i < 4 && mad.size() == wire::kMadSize; ++i) {
        const auto byte = static_cast<uint8_t>(manager.latest.value >> (24 - 8 * i));
        if ((record & 1) != 0) mad[wire::MadHeader::kSize + 4 + i] = byte;
        if ((record & 2) != 0) mad[wire::MadHeader::kSize + i] = byte;
      }
      check_codec(mad);
      manager.receive(mad);
    }
    manager.finish_step();
  }
  manager.end();
  return 0;
}
