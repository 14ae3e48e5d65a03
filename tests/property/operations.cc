// The operations of the applications, and how the model records them.
#include <algorithm>
#include <bit>

#include "tests/property/world.h"

namespace rocemu::property {
namespace {

using abi::WcStatus;
using abi::WrOpcode;

std::vector<uint8_t> bytes_of(uint64_t value) {
  const auto bytes = std::bit_cast<std::array<uint8_t, 8>>(value);
  return {bytes.begin(), bytes.end()};
}

WrOpcode opcode_of(Act act) {
  switch (act) {
    case Act::kSendImm:
      return WrOpcode::kSendWithImm;
    case Act::kSendInvalidate:
      return WrOpcode::kSendWithInv;
    case Act::kWrite:
    case Act::kWriteWindow:
    case Act::kBadWrite:
    case Act::kStaleWindow:
    case Act::kForeignWrite:
    case Act::kForeignWindow:
      return WrOpcode::kRdmaWrite;
    case Act::kWriteImm:
      return WrOpcode::kRdmaWriteWithImm;
    case Act::kRead:
    case Act::kReadWritten:
    case Act::kBadRead:
      return WrOpcode::kRdmaRead;
    case Act::kCompareSwap:
      return WrOpcode::kAtomicCmpAndSwp;
    case Act::kFetchAdd:
    case Act::kBadAtomic:
      return WrOpcode::kAtomicFetchAndAdd;
    case Act::kBind:
    case Act::kForeignBind:
      return WrOpcode::kBindMw;
    case Act::kLocalInvalidate:
      return WrOpcode::kLocalInv;
    default:
      return WrOpcode::kSend;
  }
}

bool is_write(Act act) {
  return act == Act::kWrite || act == Act::kWriteImm;
}
/// Returns whether the act is a WRITE that the responder refuses because of its R_Key.
bool is_refused_write(Act act) {
  return act == Act::kBadWrite || act == Act::kForeignWrite;
}
/// Returns whether the act is a SEND that the requester itself refuses because of its L_Key.
bool has_bad_source(Act act) {
  return act == Act::kBadSource || act == Act::kForeignSource;
}
bool takes_receive(Act act) {
  return act == Act::kSend || act == Act::kSendImm || act == Act::kSendInvalidate ||
         act == Act::kWriteImm || act == Act::kTooLong;
}

uint32_t next_rkey(uint32_t rkey) {  // ibv_inc_rkey(3)
  return (rkey & ~0xffu) | ((rkey + 1) & 0xff);
}

}  // namespace

void World::execute(const Op& op) {
  Side& side = sides_[op.side];
  Half& half = side.halves[op.connection];
  switch (op.act) {
    case Act::kReceive:
      for (uint32_t i = 0; i < op.sges && side.has_memory(); ++i) {
        post_receive(op.side, op.connection, kMaxReceive);
      }
      return;
    case Act::kShortReceive:
      if (side.has_memory()) post_receive(op.side, op.connection, kShortest);
      return;
    case Act::kLimit:
      if (is_shared(half.kind)) arm_limit(side, half, op.word);
      return collect(op.side);
    case Act::kWait:
      return advance_to(now_ + std::chrono::microseconds(op.size));
    case Act::kResume:
      return resume(op.side, op.connection);
    default:
      return post_send(op);
  }
}

bool World::prepare_payload(const Op& op, Message& message, test::SendWr& wr) {
  const Half& half = sides_[op.side].halves[op.connection];
  Side& peer = sides_[1 - op.side];
  const bool is_ud = half.kind == Kind::kUd;
  uint32_t size = std::min(op.size, kLargest);
  switch (op.act) {
    case Act::kTooLong:
      size = is_ud ? abi::mtu_bytes(abi::Mtu::k4096) + 1 : kMaxReceive + 1;
      if (is_ud) message.fate = WcStatus::kLocLenErr;
      break;
    case Act::kBadSource:
    case Act::kForeignSource:
      message.fate = WcStatus::kLocProtErr;
      size = std::max(size, 1u);
      break;
    case Act::kBadWrite:
    case Act::kForeignWrite:
      wr.rkey = op.act == Act::kBadWrite ? wr.rkey ^ 0x7f
                                         : peer.mr_not_for_peer(peer.halves[op.connection]).rkey;
      size = std::max(size, 1u);  // at least one byte, because no key is needed for none (C9-88)
      if (is_reliable(half.kind)) message.fate = WcStatus::kRemAccessErr;
      break;
    default:
      break;
  }
  const auto fill = static_cast<uint32_t>(half.posted * 8 + op.connection * 2 + op.side);
  if (is_write(op.act) || is_refused_write(op.act)) {
    if (is_ud) return false;
    message.remote = wr.remote_address = peer.take_memory(size);
  }
  message.payload = test::pattern(size, fill);
  message.size = size;
  wr.imm = message.imm = fill;
  return true;
}

bool World::prepare_query(const Op& op, Message& message, test::SendWr& wr) {
  Half& half = sides_[op.side].halves[op.connection];
  if (!is_reliable(half.kind)) return false;
  const uint32_t size = std::min(op.size, kLargest);
  uint64_t& word = half.words[op.word % kWordsEach];
  const uint64_t address =
      kWords + (op.connection * kWordsEach + op.word % kWordsEach) * sizeof(uint64_t);
  switch (op.act) {
    case Act::kRead:
      wr.remote_address = kConstant;
      message.expected = constant_of(1 - op.side);
      message.expected.resize(size);
      message.size = size;
      return true;
    case Act::kReadWritten:
      if (!half.latest_write) return false;
      wr.remote_address = half.latest_write->remote;
      message.expected = half.latest_write->payload;
      message.expected.resize(std::min<size_t>(size, message.expected.size()));
      message.size = static_cast<uint32_t>(message.expected.size());
      return true;
    case Act::kBadRead:
      wr.remote_address = kConstant;
      wr.rkey ^= 0x7f;
      message.fate = WcStatus::kRemAccessErr;
      message.size = std::max(size, 1u);
      return true;
    case Act::kBadAtomic:  // C9-96
      wr.remote_address = address + 1 + op.word;
      message.fate = WcStatus::kRemInvReqErr;
      message.size = sizeof(uint64_t);
      return true;
    default:
      break;
  }
  wr.remote_address = address;
  message.expected = bytes_of(word);
  message.size = sizeof(uint64_t);
  if (op.act == Act::kFetchAdd) {
    wr.compare_add = op.size;
    word += wr.compare_add;
  } else {
    // in half of the cases, the comparison succeeds
    wr.compare_add = op.size % 2 != 0 ? word : word + 1;
    wr.swap = op.size;
    if (wr.compare_add == word) word = wr.swap;
  }
  return true;
}

// Prepares operations with windows of type 2. Their owner binds them, and invalidates them while
// the peer does not use them. The peer writes to them and may also invalidate them.
bool World::prepare_window(const Op& op, Message& message, test::SendWr& wr) {
  Side& side = sides_[op.side];
  Half& half = side.halves[op.connection];
  Half& peer = sides_[1 - op.side].halves[op.connection];
  if (half.kind != Kind::kRc && half.kind != Kind::kRcShared) return false;
  Window& mine = half.window;
  Window& theirs = peer.window;
  const bool i_can_write = theirs.state == Window::State::kBound;
  switch (op.act) {
    case Act::kBind:
      if (mine.state != Window::State::kFree) return false;
      mine.state = Window::State::kChanging;
      mine.rkey = wr.rkey = next_rkey(mine.rkey);
      mine.area = wr.remote_address = side.take_memory(kWindowSize);
      mine.used = 0;
      wr.bind = {.window = mine.mw.handle,
                 .lkey = side.mr_of_sends(half).lkey,
                 .length = kWindowSize,
                 .access = abi::kAccessRemoteWrite};
      message.signaled = true;
      return true;
    case Act::kForeignBind: {  // C10-72 and C10-73: window, region and QP must have the same PD
      const bool foreign_window = op.word % 2 != 0;
      if (!foreign_window && mine.state != Window::State::kFree) return false;
      const test::Mw& window = foreign_window ? half.foreign_window : mine.mw;
      wr.rkey = next_rkey(foreign_window ? window.rkey : mine.rkey);
      wr.remote_address = kConstant;
      wr.bind = {.window = window.handle,
                 .lkey = side.mrs[foreign_window ? half.pd : 1u - half.pd].lkey,
                 .length = kConstantSize,
                 .access = abi::kAccessRemoteRead};
      message.fate = WcStatus::kMwBindErr;
      return true;
    }
    case Act::kLocalInvalidate: {
      const bool in_use = std::ranges::any_of(
          peer.sends, [](const Message& it) { return it.op.act == Act::kWriteWindow; });
      if (mine.state != Window::State::kBound || in_use) return false;
      mine.state = Window::State::kChanging;
      wr.imm = mine.rkey;
      message.signaled = true;
      return true;
    }
    case Act::kSendInvalidate:
      if (!i_can_write || !prepare_payload(op, message, wr)) return false;
      theirs.state = Window::State::kChanging;
      theirs.stale = wr.imm = message.imm = theirs.rkey;
      return true;
    case Act::kWriteWindow: {
      const uint32_t place = theirs.used;
      if (!i_can_write || !prepare_payload(op, message, wr)) return false;
      if (place + message.size > kWindowSize) return false;
      theirs.used += message.size;
      message.remote = wr.remote_address = theirs.area + place;
      wr.rkey = theirs.rkey;
      return true;
    }
    case Act::kForeignWindow: {  // 10.6.7.2.1: a window of type 2B belongs to one QP
      const auto& halves = sides_[1 - op.side].halves;
      const Window& window = halves[(op.connection + 1u + op.word % 2u) % kConnections].window;
      if (window.state != Window::State::kBound) return false;
      message.fate = WcStatus::kRemAccessErr;
      message.payload = test::pattern(1);
      message.size = 1;
      wr.remote_address = window.area;
      wr.rkey = window.rkey;
      return true;
    }
    default:  // kStaleWindow
      if (!theirs.stale) return false;
      message.fate = WcStatus::kRemAccessErr;
      message.payload = test::pattern(1);
      message.size = 1;
      wr.remote_address = theirs.area;
      wr.rkey = *theirs.stale;
      return true;
  }
}

bool World::prepare(const Op& op, Message& message, test::SendWr& wr) {
  switch (op.act) {
    case Act::kRead:
    case Act::kReadWritten:
    case Act::kCompareSwap:
    case Act::kFetchAdd:
    case Act::kBadRead:
    case Act::kBadAtomic:
      return prepare_query(op, message, wr);
    case Act::kBind:
    case Act::kLocalInvalidate:
    case Act::kSendInvalidate:
    case Act::kWriteWindow:
    case Act::kStaleWindow:
    case Act::kForeignBind:
    case Act::kForeignWindow:
      return prepare_window(op, message, wr);
    default:
      return prepare_payload(op, message, wr);
  }
}

void World::post_send(const Op& op) {
  Side& side = sides_[op.side];
  Half& half = side.halves[op.connection];
  Side& peer = sides_[1 - op.side];
  Half& peer_half = peer.halves[op.connection];
  if (half.sends.size() == kCap.max_send_wr || !side.has_memory() || !peer.has_memory()) return;
  Message message;
  message.op = op;
  message.wr_id = (uint64_t{op.connection} << 32) + half.posted;
  message.signaled = op.signaled;
  test::SendWr wr{.wr_id = message.wr_id,
                  .opcode = opcode_of(op.act),
                  .rkey = peer.mr_for_peer(peer_half).rkey};
  if (!prepare(op, message, wr)) return;
  if (!is_reliable(half.kind) && (half.stopped || half.send_failed)) {
    message.fate = WcStatus::kWrFlushErr;
  }
  message.local = side.take_memory(message.size);
  std::ranges::copy(message.payload, side.memory(message.local, message.size).begin());
  side.image.set(message.local, message.payload);

  wr.flags = (message.signaled ? uint32_t{abi::kSendSignaled} : 0u) |
             (op.fenced ? uint32_t{abi::kSendFence} : 0u);
  const bool sends_bytes = !message.payload.empty() && !has_bad_source(op.act);
  if (op.is_inline && sends_bytes && message.size <= kCap.max_inline_data) {
    wr.flags |= abi::kSendInline;
    wr.inline_data = message.payload;
  } else if (message.size != 0) {
    wr.sges = pieces(side.mr_of_sends(half), message.local, message.size,
                     std::clamp<uint32_t>(op.sges, 1, 3));
    for (abi::Sge& sge : wr.sges) {
      if (op.act == Act::kBadSource) sge.lkey ^= 0x7f;
      if (op.act == Act::kForeignSource) sge.lkey = side.mrs[1u - half.pd].lkey;
    }
  }
  if (half.kind == Kind::kXrc) wr.remote_srqn = peer.xrc_srq.srq;
  if (half.kind == Kind::kUd) {
    wr.ah = half.ah;
    wr.remote_qpn = peer_half.recv_qpn;
    wr.remote_qkey = kQkey;
  }

  ++half.posted;
  half.sends.push_back(message);
  if (message.fate != WcStatus::kSuccess) half.mistakes.insert(message.fate);
  if (is_write(op.act)) half.latest_write = message;
  if (is_reliable(half.kind)) {
    if (takes_receive(op.act)) peer_half.arrivals.push_back(message);
  } else if (message.fate == WcStatus::kSuccess) {
    const uint32_t packets =
        half.kind == Kind::kUd ? 1 : std::max(1u, (message.size + kMtu - 1) / kMtu);
    for (uint32_t i = 0; i < packets; ++i) half.to_send.push_back({message, i, i + 1 == packets});
  }
  side.client->post_send(half.send_qpn, wr);
  collect(op.side);
}

std::vector<abi::Sge> World::pieces(const test::Mr& mr, uint64_t address, uint32_t size,
                                    uint32_t count) {
  std::vector<abi::Sge> list;
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t length = i + 1 == count ? size : size / 3;
    list.push_back({address, length, mr.lkey});
    address += length;
    size -= length;
  }
  return list;
}

void World::post_receive(uint32_t number, uint32_t connection, uint32_t length) {
  Side& side = sides_[number];
  Half& half = side.halves[connection];
  ReceiveQueue& queue = *half.receives;
  if (queue.posted.size() == kCap.max_recv_wr) return;
  const uint64_t address = side.take_memory(length);
  queue.posted.push_back({address, length});
  const test::RecvWr wr{.wr_id = address,
                        .sges = {{address, length, side.mr_of_receives(half).lkey}}};
  if (is_shared(half.kind)) {
    side.client->post_srq_recv(queue.srq, wr);
  } else {
    side.client->post_recv(half.recv_qpn, wr);
  }
  collect(number);
}

void World::arm_limit(Side& side, Half& half, uint32_t limit) {
  half.receives->limit = limit;
  side.client->modify_srq(half.receives->srq, abi::kSrqLimit, 0, limit);
}

void World::resume(uint32_t number, uint32_t connection) {
  Half& half = sides_[number].halves[connection];
  if (!half.stopped || half.send_failed) return;
  half.stopped = false;
  sides_[number].client->set_state(half.send_qpn, abi::QpState::kRts);
  collect(number);
}

/// Posts enough receives, so that no message waits for a receive forever.
void World::post_missing_receives() {
  for (uint32_t i = 0; i < kSides; ++i) {
    for (uint32_t c = 0; c < kConnections; ++c) {
      const Half& half = sides_[i].halves[c];
      if (!is_reliable(half.kind) || half.recv_failed) continue;
      size_t wanted = half.receives->users;
      for (const Half& other : sides_[i].halves) {
        if (other.receives == half.receives) wanted += other.arrivals.size();
      }
      while (half.receives->posted.size() < wanted && !half.recv_failed) {
        post_receive(i, c, kMaxReceive);
      }
    }
  }
}

}  // namespace rocemu::property
