#include "tests/property/world.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

namespace rocemu::property {
namespace {

using namespace std::chrono_literals;
using abi::WcStatus;
using abi::WrOpcode;

constexpr uint64_t kMemory = 0x10000000;
constexpr uint64_t kMemorySize = 512 * 1024;
constexpr uint64_t kConstant = kMemory;  // never written: READs are of it
constexpr uint32_t kConstantSize = 16 * kMtu;
constexpr uint64_t kWords = kMemory + kConstantSize;  // 4 for each connection
constexpr uint64_t kFree = kWords + kConnections * 4 * sizeof(uint64_t);
constexpr uint32_t kLargest = 6 * kMtu;
constexpr abi::QpCap kCap{.max_send_wr = 256,
                          .max_recv_wr = 256,
                          .max_send_sge = 3,
                          .max_recv_sge = 1,
                          .max_inline_data = 128};
constexpr wire::IpAddress kAddress[kSides] = {wire::IpAddress::from_v4(10, 0, 0, 1),
                                              wire::IpAddress::from_v4(10, 0, 0, 2)};
constexpr uint8_t kTimeout = 8;  // about a millisecond

std::vector<uint8_t> bytes_of(uint64_t value) {
  const auto bytes = std::bit_cast<std::array<uint8_t, 8>>(value);
  return {bytes.begin(), bytes.end()};
}

WrOpcode opcode_of(Act act) {
  switch (act) {
    case Act::kSend:
      return WrOpcode::kSend;
    case Act::kSendImm:
      return WrOpcode::kSendWithImm;
    case Act::kWriteImm:
      return WrOpcode::kRdmaWriteWithImm;
    case Act::kRead:
    case Act::kReadWritten:
      return WrOpcode::kRdmaRead;
    case Act::kCompareSwap:
      return WrOpcode::kAtomicCmpAndSwp;
    case Act::kFetchAdd:
      return WrOpcode::kAtomicFetchAndAdd;
    default:
      return WrOpcode::kRdmaWrite;
  }
}

bool takes_receive(Act act) {
  return act == Act::kSend || act == Act::kSendImm || act == Act::kWriteImm;
}
bool is_write(Act act) {
  return act == Act::kWrite || act == Act::kWriteImm;
}

}  // namespace

World::World(const Program& program) : program_(program), network_(program.link) {
  for (uint32_t i = 0; i < kSides; ++i) {
    Side& side = sides_[i];
    engine::FabricConfig config = engine::default_fabric(1);
    config.devices[0].addresses = {kAddress[i]};
    side.bench = std::make_unique<test::Bench>(config);
    side.client =
        std::make_unique<test::Client>(*side.bench, engine::ClientId{1}, engine::DeviceIndex{0});
    side.bench->memory.map(side.client->id(), kMemory, kMemorySize);
    std::ranges::copy(test::pattern(kConstantSize, 99 + i),
                      memory(i, kConstant, kConstantSize).begin());
    side.free = kFree;
    const uint32_t pd = side.client->alloc_pd();
    side.mr = side.client->reg_mr(pd, kMemory, kMemorySize,
                                  abi::kAccessLocalWrite | abi::kAccessRemoteWrite |
                                      abi::kAccessRemoteRead | abi::kAccessRemoteAtomic);
    side.cq = side.client->create_cq(65536);
    for (Half& half : side.halves) {
      half.qpn = side.client->create_qp(pd, side.cq, side.cq, kCap);
    }
  }
  connect();
}

void World::connect() {
  const test::Connection connection{
      .mtu = abi::Mtu::k256,
      .sq_psn = program_.first_psn,
      .rq_psn = program_.first_psn,
      .timeout = kTimeout,
      .retry_cnt = 7,
      .rnr_retry = 7,  // for ever
      .min_rnr_timer = 1,
      .access = abi::kAccessRemoteWrite | abi::kAccessRemoteRead | abi::kAccessRemoteAtomic,
      .max_rd_atomic = program_.rd_atomic};
  for (uint32_t i = 0; i < kSides; ++i) {
    for (uint32_t c = 0; c < kConnections; ++c) {
      if (!test::bring_up(*sides_[i].client, sides_[i].halves[c].qpn, abi::QpState::kRts,
                          connection, test::address_vector(kAddress[1 - i]),
                          sides_[1 - i].halves[c].qpn)) {
        fail("a QP cannot be connected");
      }
    }
  }
}

std::string World::run() {
  for (const Op& op : program_.ops) {
    execute(op);
    if (!wrong_.empty()) return wrong_;
  }
  post_missing_receives();
  advance_to(now_ + 60s);
  check_end();
  return wrong_;
}

void World::execute(const Op& op) {
  Side& side = sides_[op.side];
  Half& half = side.halves[op.connection];
  switch (op.act) {
    case Act::kReceive:
      return post_receive(side, half);
    case Act::kWait:
      return advance_to(now_ + std::chrono::microseconds(op.size));
    default:
      return post(op);
  }
}

uint64_t World::take_memory(Side& side, size_t size) {
  const uint64_t address = side.free;
  side.free += (size + 15) / 8 * 8;  // a gap, so that a byte too many is seen
  if (side.free > kMemory + kMemorySize) fail("the program needs more memory than it has");
  return address;
}

std::span<uint8_t> World::memory(uint32_t side, uint64_t address, size_t size) {
  return sides_[side].bench->memory.at(sides_[side].client->id(), address, size);
}

std::vector<abi::Sge> World::pieces(const Side& side, uint64_t address, uint32_t size,
                                    uint32_t count) {
  std::vector<abi::Sge> list;
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t length = i + 1 == count ? size : size / 3;
    list.push_back({address, length, side.mr.lkey});
    address += length;
    size -= length;
  }
  return list;
}

void World::post(const Op& op) {
  Side& side = sides_[op.side];
  Half& half = side.halves[op.connection];
  Side& peer = sides_[1 - op.side];
  if (half.sends.size() == kCap.max_send_wr) return;
  Posted posted;
  posted.op = op;
  posted.wr_id = (uint64_t{op.connection} << 32) + half.posted;
  const bool atomic = op.act == Act::kCompareSwap || op.act == Act::kFetchAdd;
  uint32_t size = atomic ? 8 : std::min(op.size, kLargest);
  test::SendWr wr{.wr_id = posted.wr_id, .opcode = opcode_of(op.act)};
  wr.rkey = peer.mr.rkey;
  const auto fill = static_cast<uint32_t>(half.posted * 4 + op.connection * 2 + op.side);
  switch (op.act) {
    case Act::kRead:
      size = std::min(size, kConstantSize);
      wr.remote_address = kConstant;
      posted.expected = test::pattern(kConstantSize, 99 + 1 - op.side);
      posted.expected.resize(size);
      break;
    case Act::kReadWritten:
      if (!half.latest_write) return;
      size = std::min<uint32_t>(size, static_cast<uint32_t>(half.latest_write->payload.size()));
      wr.remote_address = half.latest_write->remote;
      posted.expected = half.latest_write->payload;
      posted.expected.resize(size);
      break;
    case Act::kCompareSwap:
    case Act::kFetchAdd: {
      uint64_t& word = half.words[op.word % 4];
      wr.remote_address = kWords + (op.connection * 4u + op.word % 4) * sizeof(uint64_t);
      posted.expected = bytes_of(word);
      if (op.act == Act::kFetchAdd) {
        wr.compare_add = op.size;
        word += wr.compare_add;
      } else {
        wr.compare_add = op.size % 2 != 0 ? word : word + 1;  // as often equal as not
        wr.swap = op.size;
        if (wr.compare_add == word) word = wr.swap;
      }
      break;
    }
    default:
      if (op.act == Act::kBadWrite) size = std::max(size, 1u);  // no bytes need no key (C9-88)
      posted.payload = test::pattern(size, fill);
      if (is_write(op.act)) posted.remote = wr.remote_address = take_memory(peer, size);
      if (op.act == Act::kBadWrite) {
        wr.rkey ^= 0x7f;
        broken_[op.connection] = true;
      }
      wr.imm = posted.imm = fill;
  }
  posted.local = take_memory(side, size);
  std::ranges::copy(posted.payload, memory(op.side, posted.local, size).begin());
  wr.flags = (op.signalled ? uint32_t{abi::kSendSignaled} : 0u) |
             (op.fenced ? uint32_t{abi::kSendFence} : 0u);
  if (op.is_inline && size <= kCap.max_inline_data && posted.expected.empty() && !atomic &&
      wr.opcode != WrOpcode::kRdmaRead) {
    wr.flags |= abi::kSendInline;
    wr.inline_data = posted.payload;
  } else if (size != 0) {
    wr.sges = pieces(side, posted.local, size, std::clamp<uint32_t>(op.sges, 1, 3));
  }
  ++half.posted;
  half.sends.push_back(posted);
  if (is_write(op.act)) half.latest_write = posted;
  if (takes_receive(op.act)) peer.halves[op.connection].arrivals.push_back(posted);
  side.client->post_send(half.qpn, wr);
  collect(op.side);
}

void World::post_receive(Side& side, Half& half) {
  if (half.receives.size() == kCap.max_recv_wr) return;
  const uint64_t address = take_memory(side, kLargest);
  half.receives.push_back(address);
  side.client->post_recv(half.qpn, {.wr_id = address, .sges = {{address, kLargest, side.mr.lkey}}});
  collect(static_cast<uint32_t>(&side - sides_.data()));
}

void World::post_missing_receives() {
  for (Side& side : sides_) {
    for (uint32_t c = 0; c < kConnections; ++c) {
      Half& half = side.halves[c];
      if (half.receives.size() >= half.arrivals.size()) continue;
      // A QP that has failed gives them back at once.
      const size_t missing = half.arrivals.size() - half.receives.size();
      for (size_t i = 0; i < missing; ++i) post_receive(side, half);
    }
  }
}

// ---- Time -----------------------------------------------------------------------------------

void World::advance_to(engine::Instant end) {
  for (;;) {
    engine::Instant next = end;
    for (Side& side : sides_) {
      if (const auto deadline = side.bench->engine().next_deadline()) {
        next = std::min(next, *deadline);
      }
    }
    if (const auto arrival = network_.next()) next = std::min(next, *arrival);
    now_ = std::max(now_, next);
    for (uint32_t i = 0; i < kSides; ++i) {
      sides_[i].bench->advance_to(now_.time_since_epoch());
      collect(i);
    }
    while (network_.next() && *network_.next() <= now_) {
      const Network::Arrival arrival = network_.take();
      sides_[arrival.to].bench->step(engine::ReceiveFrame{engine::DeviceIndex{0}, arrival.bytes});
      collect(arrival.to);
    }
    if (!wrong_.empty() || now_ >= end) return;
  }
}

void World::collect(uint32_t side) {
  const std::vector<test::Timed> log = std::exchange(sides_[side].bench->log, {});
  for (const test::Timed& one : log) {
    if (const auto* completion = std::get_if<engine::Completion>(&one.output)) {
      on_completion(side, completion->cqe);
    } else if (const auto* sent = std::get_if<engine::TransmitFrame>(&one.output)) {
      network_.send(now_, side, sent->frame.bytes());
    } else if (std::holds_alternative<engine::ClientViolation>(one.output)) {
      fail("the engine calls the program a violation");
    }
  }
}

// ---- The model ------------------------------------------------------------------------------

void World::on_completion(uint32_t side, const abi::Cqe& cqe) {
  ++completions_;
  for (uint32_t c = 0; c < kConnections; ++c) {
    if (sides_[side].halves[c].qpn != cqe.qp_num) continue;
    return cqe.queue == abi::WorkQueue::kSend ? on_send_completion(side, c, cqe)
                                              : on_receive_completion(side, c, cqe);
  }
  fail("a completion of a QP that is not there");
}

void World::on_send_completion(uint32_t side, uint32_t connection, const abi::Cqe& cqe) {
  Half& half = sides_[side].halves[connection];
  const auto status = static_cast<WcStatus>(cqe.status);
  // A completion stands for all unsignalled ones before it, which succeeded.
  while (!half.sends.empty() && half.sends.front().wr_id != cqe.wr_id) {
    const Posted& skipped = half.sends.front();
    if (skipped.op.signalled) return fail(fmt::format("no completion of {:#x}", skipped.wr_id));
    check_result(side, skipped);
    half.sends.pop_front();
  }
  if (half.sends.empty()) return fail(fmt::format("a completion of {:#x} again", cqe.wr_id));
  const Posted posted = std::move(half.sends.front());
  half.sends.pop_front();
  const std::string what = fmt::format("side {} connection {} wr {:#x}: status {} vendor {}", side,
                                       connection, cqe.wr_id, cqe.status, cqe.vendor_err);
  switch (status) {
    case WcStatus::kSuccess:
      if (!posted.op.signalled) return fail(what + ", but unsignalled");
      if (posted.op.act == Act::kBadWrite) return fail(what + ", with a bad R_Key");
      return check_result(side, posted);
    case WcStatus::kRemAccessErr:
      if (posted.op.act != Act::kBadWrite) fail(what);
      return;
    case WcStatus::kWrFlushErr:
      if (!broken_[connection]) fail(what);
      return;
    // A QP that has failed is silent, and its last NAK may have been lost.
    case WcStatus::kRetryExcErr:
      if (!broken_[connection]) fail(what);
      return;
    default:
      fail(what);
  }
}

void World::on_receive_completion(uint32_t side, uint32_t connection, const abi::Cqe& cqe) {
  Half& half = sides_[side].halves[connection];
  if (half.receives.empty()) return fail("a receive that was not posted");
  const uint64_t address = half.receives.front();
  half.receives.pop_front();
  const std::string what = fmt::format("side {} connection {} receive {:#x}: status {} vendor {}",
                                       side, connection, cqe.wr_id, cqe.status, cqe.vendor_err);
  if (cqe.wr_id != address) return fail(what + ", out of order");
  if (static_cast<WcStatus>(cqe.status) == WcStatus::kWrFlushErr && broken_[connection]) return;
  if (cqe.status != 0) return fail(what);
  if (half.arrivals.empty()) return fail(what + ", but nothing was sent");
  const Posted posted = std::move(half.arrivals.front());
  half.arrivals.pop_front();
  const bool immediate = posted.op.act != Act::kSend;
  if (((cqe.wc_flags & abi::kWcWithImm) != 0) != immediate ||
      (immediate && cqe.imm_data != posted.imm)) {
    return fail(what + ", wrong immediate");
  }
  if (cqe.byte_len != posted.payload.size()) return fail(what + ", wrong length");
  const uint64_t place = is_write(posted.op.act) ? posted.remote : address;
  if (!std::ranges::equal(memory(side, place, posted.payload.size()), posted.payload)) {
    fail(what + ", wrong data");
  }
}

void World::check_result(uint32_t side, const Posted& posted) {
  if (!std::ranges::equal(memory(side, posted.local, posted.expected.size()), posted.expected)) {
    return fail(fmt::format("side {} wr {:#x}: the answer is wrong", side, posted.wr_id));
  }
  if (is_write(posted.op.act) &&
      !std::ranges::equal(memory(1 - side, posted.remote, posted.payload.size()), posted.payload)) {
    fail(fmt::format("side {} wr {:#x}: the WRITE is not there", side, posted.wr_id));
  }
}

void World::check_end() {
  for (uint32_t i = 0; i < kSides; ++i) {
    for (uint32_t c = 0; c < kConnections; ++c) {
      Half& half = sides_[i].halves[c];
      for (const Posted& left : half.sends) {
        // Unsignalled ones at the end have succeeded in silence.
        if (left.op.signalled && !broken_[c]) {
          fail(fmt::format("side {} connection {}: no completion of {:#x}", i, c, left.wr_id));
        }
        if (!left.op.signalled && !broken_[c]) check_result(i, left);
      }
      if (!broken_[c] && !half.arrivals.empty()) fail("a message did not arrive");
      if (broken_[c]) continue;
      for (uint32_t word = 0; word < 4; ++word) {
        const auto there = memory(1 - i, kWords + (c * 4 + word) * sizeof(uint64_t), 8);
        if (!std::ranges::equal(there, bytes_of(half.words[word]))) {
          fail(fmt::format("side {} connection {}: word {} is wrong", i, c, word));
        }
      }
    }
  }
}

}  // namespace rocemu::property
