#include "tests/property/sides.h"

namespace rocemu::property {
namespace {

using abi::QpType;

constexpr wire::IpAddress kAddress[kSides] = {wire::IpAddress::from_v4(10, 0, 0, 1),
                                              wire::IpAddress::from_v4(10, 0, 0, 2)};
constexpr uint8_t kTimeout = 8;  // about a millisecond
constexpr uint32_t kRemoteAccess =
    abi::kAccessRemoteWrite | abi::kAccessRemoteRead | abi::kAccessRemoteAtomic;

uint32_t open_xrcd(test::Client& client) {
  abi::Request::Body body{};
  body.open_xrcd = {.device = 0, .inode = 0, .create = 1, .exclusive = 0};
  return client.command(abi::Op::kOpenXrcd, body).body.object.handle;
}

QpType type_of(Kind kind) {
  switch (kind) {
    case Kind::kRc:
    case Kind::kRcShared:
      return QpType::kRc;
    case Kind::kXrc:
      return QpType::kXrcSend;
    case Kind::kUc:
      return QpType::kUc;
    case Kind::kUd:
      return QpType::kUd;
  }
  return QpType::kRc;
}

void create_qps(Side& side, uint32_t connection, uint32_t xrcd) {
  Half& half = side.halves[connection];
  const uint32_t pd = side.pds[half.pd];
  test::QpInit init{.pd = pd,
                    .send_cq = side.cq,
                    .recv_cq = side.cq,
                    .type = type_of(half.kind),
                    .cap = kCap,
                    .user_handle = handle_of(connection)};
  half.receives = &half.own;
  if (half.kind == Kind::kRcShared) {
    half.receives = &side.srq;
    init.srq = side.srq.srq;
  } else if (half.kind == Kind::kXrc) {
    half.receives = &side.xrc_srq;
  }
  ++half.receives->users;
  half.send_qpn = half.recv_qpn = side.client->create_qp(init);
  if (half.kind == Kind::kXrc) {
    half.recv_qpn = side.client->create_qp(
        {.xrcd = xrcd, .type = QpType::kXrcRecv, .user_handle = handle_of(connection)});
  }
  if (type_of(half.kind) == QpType::kRc) {
    half.window.mw = side.client->alloc_mw(pd, abi::MwType::k2);
    half.window.rkey = half.window.mw.rkey;
    half.foreign_window = side.client->alloc_mw(side.pds[1u - half.pd], abi::MwType::k2);
  }
}

void create(const Program& program, uint32_t number, Side& side) {
  engine::FabricConfig config = engine::default_fabric(1);
  config.devices[0].addresses = {kAddress[number]};
  side.bench = std::make_unique<test::Bench>(config);
  side.client =
      std::make_unique<test::Client>(*side.bench, engine::ClientId{1}, engine::DeviceIndex{0});
  side.bench->memory.map(side.client->id(), kMemory, kMemorySize);
  const auto constant = constant_of(number);
  std::ranges::copy(constant, side.memory(kConstant, kConstantSize).begin());
  side.image.set(kConstant, constant);
  for (size_t i = 0; i < side.pds.size(); ++i) {
    side.pds[i] = side.client->alloc_pd();
    side.mrs[i] = side.client->reg_mr(side.pds[i], kMemory, kMemorySize,
                                      abi::kAccessLocalWrite | abi::kAccessMwBind | kRemoteAccess);
  }
  const uint32_t pd = side.pds[0];
  const uint32_t xrcd = open_xrcd(*side.client);
  side.cq = side.client->create_cq(65536);
  side.srq.srq = side.client->create_srq(
      {.pd = pd, .max_wr = kCap.max_recv_wr, .max_sge = 1, .user_handle = kSrqHandle});
  side.xrc_srq.srq = side.client->create_srq({.pd = pd,
                                              .max_wr = kCap.max_recv_wr,
                                              .max_sge = 1,
                                              .user_handle = kXrcSrqHandle,
                                              .type = abi::SrqType::kXrc,
                                              .xrcd = xrcd,
                                              .cq = side.cq});
  for (uint32_t c = 0; c < kConnections; ++c) {
    Half& half = side.halves[c];
    half.kind = program.kinds[c];
    half.pd = static_cast<uint8_t>(program.pds[c] >> number & 1);
    create_qps(side, c, xrcd);
    if (half.kind == Kind::kUd) {
      half.ah =
          side.client->create_ah(side.pds[half.pd], test::address_vector(kAddress[1 - number]));
    }
  }
}

}  // namespace

uint64_t Side::take_memory(size_t size) {
  const uint64_t address = free;
  free += (size + 15) / 8 * 8;
  return address;
}

std::vector<uint8_t> constant_of(uint32_t side) {
  return test::pattern(kConstantSize, 99 + side);
}

bool set_up(const Program& program, Sides& sides) {
  for (uint32_t i = 0; i < kSides; ++i) create(program, i, sides[i]);
  test::Connection connection{.mtu = abi::Mtu::k256,
                              .sq_psn = program.first_psn,
                              .rq_psn = program.first_psn,
                              .timeout = kTimeout,
                              .retry_cnt = 7,
                              .rnr_retry = 7,  // no limit
                              .min_rnr_timer = 1,
                              .access = kRemoteAccess,
                              .max_rd_atomic = program.rd_atomic,
                              .qkey = kQkey};
  for (uint32_t i = 0; i < kSides; ++i) {
    for (uint32_t c = 0; c < kConnections; ++c) {
      Half& half = sides[i].halves[c];
      const Half& peer = sides[1 - i].halves[c];
      const auto to_rts = [&](uint32_t qpn, QpType type, uint32_t peer_qpn) {
        connection.type = type;
        return test::bring_up(*sides[i].client, qpn, abi::QpState::kRts, connection,
                              test::address_vector(kAddress[1 - i]), peer_qpn);
      };
      if (!to_rts(half.send_qpn, type_of(half.kind), peer.recv_qpn)) return false;
      if (half.kind == Kind::kXrc && !to_rts(half.recv_qpn, QpType::kXrcRecv, peer.send_qpn)) {
        return false;
      }
      half.expected_psn = program.first_psn;
    }
  }
  return true;
}

}  // namespace rocemu::property
