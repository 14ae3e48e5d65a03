#include "tests/engine/random_program.h"

#include <algorithm>
#include <cstring>

#include "tests/support/matchers.h"

namespace rocemu::test {
namespace {

using abi::Op;
using abi::QpState;
using engine::ClientId;
using engine::DeviceIndex;
using wire::Opcode;

constexpr uint64_t kBuffer = 0x10000;
constexpr uint32_t kBufferSize = 8192;
constexpr wire::IpAddress kOutside = wire::IpAddress::from_v4(10, 0, 0, 9);
constexpr uint32_t kOutsideQpn = 0x777;
constexpr size_t kApps = 3;
constexpr size_t kQpsPerApp = 3;
constexpr size_t kOutsideIndex = 2;  // index of the QP whose peer is outside the fabric

wire::IpAddress device_ip(uint32_t index) {
  return wire::IpAddress::from_v4(127, 0, 0, static_cast<uint8_t>(index + 1));
}

engine::FabricConfig fabric_of(uint64_t seed, RandomProgram::Frames frames) {
  engine::FabricConfig config = engine::default_fabric(2);
  config.seed = seed;
  using enum RandomProgram::Frames;
  config.trace_frames = frames == kByChance ? seed % 2 == 0 : frames == kTraced;
  if (frames != kByChance) config.ack_coalescing = seed % 3 == 0 ? 1 : engine::kMaxAckCoalescing;
  return config;
}

std::unique_ptr<journal::Recording> make_recording(uint64_t seed, const std::string& dir,
                                                   engine::HostMemory& memory) {
  if (dir.empty()) return nullptr;
  journal::Header header;
  header.fabric = fabric_of(seed, RandomProgram::Frames::kByChance);
  return std::make_unique<journal::Recording>(dir, header, memory);
}

std::string hex(std::span<const uint8_t> bytes) {
  std::string out;
  for (const uint8_t byte : bytes) {
    out += "0123456789abcdef"[byte >> 4];
    out += "0123456789abcdef"[byte & 15];
  }
  return out;
}

}  // namespace

RandomProgram::RandomProgram(uint64_t seed, const std::string& record_dir, Frames frames)
    : random_(seed ^ 0x5eed),
      frames_(frames),
      recording_(make_recording(seed, record_dir, memory_)),
      engine_(fabric_of(seed, frames), recording_ != nullptr ? recording_->memory() : memory_),
      apps_(kApps) {
  for (size_t i = 0; i < kApps; ++i) attach(i);
}

void RandomProgram::check(bool holds, const std::string& what) {
  if (!holds && broken_.empty()) broken_ = what;
}

RandomProgram::App* RandomProgram::find(ClientId id) {
  const auto app = std::find_if(apps_.begin(), apps_.end(), [&](App& one) { return one.id == id; });
  return app != apps_.end() ? &*app : nullptr;
}

void RandomProgram::step(const engine::Input& input) {
  outputs_.clear();
  if (recording_ != nullptr) recording_->begin_step(now_, input);
  engine_.step(now_, input, outputs_);
  if (recording_ != nullptr) recording_->end_step(outputs_);
  for (const engine::Output& output : outputs_.list) look_at(output);
}

std::string RandomProgram::counters() const {
  std::string text;
  for (const auto& device : engine_.snapshot().devices) {
    for (const engine::Counter counter : engine::kCounters) {
      text += std::string(engine::name(counter)) + " " +
              std::to_string(device.counters.get(counter)) + "\n";
    }
  }
  return text;
}

void RandomProgram::look_at(const engine::Output& output) {
  if (frames_ != Frames::kByChance && std::holds_alternative<engine::FrameTrace>(output)) return;
  transcript_ += to_string(output);
  if (const auto* sent = std::get_if<engine::TransmitFrame>(&output)) {
    transcript_ += hex(sent->frame.bytes());
    check(wire::check_icrc(sent->frame.bytes()), "a frame left with a wrong ICRC");
    check(static_cast<bool>(wire::parse_frame(sent->frame.bytes())), "a frame left that is none");
  } else if (const auto* trace = std::get_if<engine::FrameTrace>(&output)) {
    transcript_ += hex(trace->frame.bytes());
  } else if (const auto* event = std::get_if<engine::AsyncEvent>(&output)) {
    check(find(event->client) != nullptr, "an event for a client that is gone");
  } else if (const auto* failed = std::get_if<engine::CqFailed>(&output)) {
    App* app = find(failed->client);
    check(app != nullptr, "a failed CQ of a client that is gone");
    for (Cq& cq : app->cqs) {
      if (cq.handle != failed->cq.value) continue;
      check(!cq.failed, "a CQ failed twice");
      cq.failed = true;
    }
  } else if (const auto* completion = std::get_if<engine::Completion>(&output)) {
    ++completions_;
    const abi::Cqe& cqe = completion->cqe;
    if (cqe.status == 0) ++successes_;
    App* app = find(completion->client);
    check(app != nullptr, "a completion for a client that is gone");
    if (app == nullptr) return;
    for (Cq& cq : app->cqs) {
      if (cq.handle != completion->cq.value) continue;
      check(!cq.failed, "a completion on a CQ that failed");
      ++cq.produced;
    }
    for (Qp& qp : app->qps) {
      if (qp.number != cqe.qp_num) continue;
      Queue& queue = cqe.queue == abi::WorkQueue::kSend ? qp.send : qp.recv;
      const uint32_t index = cqe.wqe_count - 1;
      check(index < queue.posted.size(), "more completions than WQEs");
      check(index >= queue.done, "a WQE completed twice or out of order");
      check(index >= queue.posted.size() || queue.posted[index] == cqe.wr_id,
            "a completion with another WQE's wr_id");
      queue.done = index + 1;
    }
  }
  transcript_ += '\n';
}

abi::Reply RandomProgram::command(App& app, Op op, const abi::Request::Body& body) {
  abi::Request request{};
  request.op = op;
  request.body = body;
  step(engine::Command{app.id, request});
  const abi::Reply reply = outputs_.reply.value_or(abi::Reply{});
  check(outputs_.reply.has_value(), "a command without a reply");
  transcript_ += "reply " + std::to_string(reply.error) + " " +
                 hex({reinterpret_cast<const uint8_t*>(&reply.body), sizeof(reply.body)}) + "\n";
  return reply;
}

void RandomProgram::attach(size_t slot) {
  App& app = apps_[slot];
  app = App{};
  app.id = ClientId{next_client_++};
  app.device = DeviceIndex{slot == kApps - 1 ? 1u : 0u};
  step(engine::AttachClient{app.id, app.device});
  auto& array = memory_.map(app.id, kBuffer, kBufferSize);
  array.bytes = pattern(kBufferSize, static_cast<uint32_t>(slot));

  abi::Request::Body body{};
  app.pd = command(app, Op::kAllocPd, body).body.object.handle;
  body.reg_mr = {.pd = app.pd,
                 .access = abi::kAccessLocalWrite | abi::kAccessRemoteWrite,
                 .address = kBuffer,
                 .length = kBufferSize,
                 .iova = kBuffer,
                 .kind = abi::RegionKind::kMemory,
                 .is_shared = 0};
  const abi::Reply mr = command(app, Op::kRegMr, body);
  app.mr = {mr.body.reg_mr.handle, mr.body.reg_mr.lkey, mr.body.reg_mr.rkey};
  for (int i = 0; i < 2; ++i) {
    body = {};
    body.create_cq = {.user_handle = app.id.value * 10 + static_cast<uint64_t>(i),
                      .channel_inode = 100 + random(2),
                      .capacity = static_cast<uint32_t>(one_in(10) ? 12 : 300),
                      .comp_vector = 0};
    Cq cq;
    cq.handle = command(app, Op::kCreateCq, body).body.create_cq.handle;
    app.cqs.push_back(cq);
  }
  for (size_t i = 0; i < kQpsPerApp; ++i) {
    Qp qp;
    qp.cap = {.max_send_wr = 8,
              .max_recv_wr = 8,
              .max_send_sge = 3,
              .max_recv_sge = 3,
              .max_inline_data = 64};
    body = {};
    body.create_qp = {.user_handle = 1000 + i,
                      .pd = app.pd,
                      .send_cq = app.cqs[random(2)].handle,
                      .recv_cq = app.cqs[random(2)].handle,
                      .srq = 0,
                      .xrcd = 0,
                      .type = abi::QpType::kRc,
                      .sq_sig_all = static_cast<uint32_t>(random(2)),
                      .cap = qp.cap};
    qp.number = command(app, Op::kCreateQp, body).body.create_qp.qpn;
    app.qps.push_back(qp);
  }
  for (Qp& qp : app.qps) connect(app, qp);
}

RandomProgram::Peer RandomProgram::peer_of(size_t app, size_t qp) {
  constexpr Peer kPeers[kApps][kQpsPerApp] = {
      {{1, 0}, {2, 1}, {0, 2}}, {{0, 0}, {2, 0}, {1, 2}}, {{1, 1}, {0, 1}, {2, 2}}};
  return kPeers[app][qp];
}

// Connects both QPs of a pair, or only one QP if its peer is outside the fabric.
void RandomProgram::connect(App& app, Qp& qp) {
  const auto index = static_cast<size_t>(&qp - app.qps.data());
  const Peer peer = peer_of(static_cast<size_t>(&app - apps_.data()), index);
  const Connection connection = {.mtu = static_cast<abi::Mtu>(1 + random(2)),
                                 .sq_psn = 0xfffff0,
                                 .rq_psn = 0xfffff0,
                                 .timeout = static_cast<uint8_t>(one_in(8) ? 0 : 4),
                                 .retry_cnt = static_cast<uint8_t>(random(8)),
                                 .rnr_retry = static_cast<uint8_t>(4 + random(4)),
                                 .min_rnr_timer = static_cast<uint8_t>(1 + random(4)),
                                 .access = abi::kAccessRemoteWrite};
  if (index == kOutsideIndex) return connect_end(app, qp, connection, kOutside, kOutsideQpn);
  App& other = apps_[peer.app];
  if (other.qps.size() <= peer.qp) return;  // the QP does not exist yet
  Qp& there = other.qps[peer.qp];
  connect_end(app, qp, connection, device_ip(other.device.value), there.number);
  if (one_in(10)) return;
  connect_end(other, there, connection, device_ip(app.device.value), qp.number);
}

void RandomProgram::connect_end(App& app, Qp& qp, const Connection& connection,
                                const wire::IpAddress& peer_ip, uint32_t peer_qpn) {
  for (const QpState to : {QpState::kReset, QpState::kInit, QpState::kRtr, QpState::kRts}) {
    const Transition change = transition_to(to, connection, address_vector(peer_ip), peer_qpn);
    abi::Request::Body body{};
    body.modify_qp = {.qpn = qp.number, .mask = change.mask, .attr = change.attr};
    check(command(app, Op::kModifyQp, body).error == 0, "a good modify_qp was refused");
    if (to == QpState::kReset) {
      qp.send.done = static_cast<uint32_t>(qp.send.posted.size());
      qp.recv.done = static_cast<uint32_t>(qp.recv.posted.size());
    }
    if (to != QpState::kReset && one_in(30)) return;
  }
}

void RandomProgram::post_send(App& app, Qp& qp) {
  SendWr wr;
  wr.wr_id = next_wr_id_++;
  wr.opcode = one_in(4) ? abi::WrOpcode::kSendWithImm : abi::WrOpcode::kSend;
  if (one_in(300)) wr.opcode = static_cast<abi::WrOpcode>(random(17));
  wr.flags = static_cast<uint32_t>(random(8) * 2) & ~uint32_t{abi::kSendInline};
  wr.imm = static_cast<uint32_t>(random_.next());
  if (one_in(6)) {
    wr.flags |= abi::kSendInline;
    wr.inline_data = pattern(random(one_in(50) ? 80 : 65));
  } else {
    for (uint64_t i = random(4); i > 0; --i) {
      const auto length = static_cast<uint32_t>(random(600));
      wr.sges.push_back({kBuffer + random(kBufferSize - 600), length,
                         one_in(300) ? static_cast<uint32_t>(random_.next()) : app.mr.lkey});
    }
  }
  if (qp.send.posted.size() - qp.send.done >= qp.cap.max_send_wr) return;
  qp.send.posted.push_back(wr.wr_id);
  step(engine::PostSend{app.id, engine::QpNumber{qp.number}, send_wqe(wr, qp.cap)});
}

/// Posts several short messages as one input. Most of them are in their WQEs.
void RandomProgram::post_burst(App& app, Qp& qp) {
  const auto slot = static_cast<size_t>(&app - apps_.data());
  const Peer peer = peer_of(slot, static_cast<size_t>(&qp - app.qps.data()));
  std::vector<std::byte> burst;
  for (uint64_t left = 1 + random(8); left > 0; --left) {
    if (qp.send.posted.size() - qp.send.done >= qp.cap.max_send_wr) break;
    const uint32_t length = static_cast<uint32_t>(one_in(8) ? random(600) : random(120));
    SendWr wr{.wr_id = next_wr_id_++,
              .opcode = one_in(4)   ? abi::WrOpcode::kSend
                        : one_in(8) ? abi::WrOpcode::kRdmaWriteWithImm
                                    : abi::WrOpcode::kRdmaWrite,
              .flags = static_cast<uint32_t>(random(4) * 2),
              .sges = {{kBuffer + random(kBufferSize / 2), length,
                        one_in(200) ? static_cast<uint32_t>(random_.next()) : app.mr.lkey}},
              .remote_address = kBuffer + random(one_in(100) ? kBufferSize : kBufferSize - 600),
              .rkey = one_in(200) ? app.mr.lkey : apps_[peer.app].mr.rkey};
    if (length <= abi::kMaxCarried && !one_in(8)) wr.inline_data = pattern(length, length);
    qp.send.posted.push_back(wr.wr_id);
    const auto wqe = send_wqe(wr, qp.cap);
    burst.insert(burst.end(), wqe.begin(), wqe.end());
  }
  if (!burst.empty()) step(engine::PostSend{app.id, engine::QpNumber{qp.number}, burst});
}

void RandomProgram::post_recv(App& app, Qp& qp) {
  RecvWr wr;
  wr.wr_id = next_wr_id_++;
  for (uint64_t i = 1 + random(3); i > 0; --i) {
    wr.sges.push_back({kBuffer + random(kBufferSize - 1500),
                       static_cast<uint32_t>(one_in(100) ? random(600) : 1500),
                       one_in(300) ? static_cast<uint32_t>(random_.next()) : app.mr.lkey});
  }
  if (qp.recv.posted.size() - qp.recv.done >= qp.cap.max_recv_wr) return;
  qp.recv.posted.push_back(wr.wr_id);
  step(engine::PostRecv{app.id, engine::QpNumber{qp.number}, recv_wqe(wr, qp.cap.max_recv_sge)});
}

void RandomProgram::deliver_frames() {
  const App& app = apps_[random(kApps)];
  std::vector<std::vector<uint8_t>> frames(one_in(3) ? 1 + random(20) : 1);
  std::vector<engine::ReceivedFrame> burst;
  for (uint32_t i = 0; i < frames.size(); ++i) {
    frames[i] = make_frame(app, i);
    burst.push_back({app.device, frames[i]});
  }
  step(engine::ReceivedFrames{burst});
}

/// Returns a frame from outside the fabric, which `before` other frames precede in its burst.
std::vector<uint8_t> RandomProgram::make_frame(const App& app, uint32_t before) {
  const Qp& qp = app.qps[one_in(10) ? random(kQpsPerApp) : kOutsideIndex];
  uint32_t expected = 0, unacked = 0;
  const engine::FabricSnapshot snapshot = engine_.snapshot();
  for (const auto& one : snapshot.devices[app.device.value].qps) {
    if (one.number.value != qp.number) continue;
    expected = one.expected_psn;
    unacked = one.unacked_psn;
  }
  PacketSpec spec;
  std::vector<uint8_t> payload;
  if (one_in(2)) {
    constexpr std::array kOpcodes = {
        Opcode::kRcSendFirst, Opcode::kRcSendMiddle,  Opcode::kRcSendLast, Opcode::kRcSendLastImm,
        Opcode::kRcSendOnly,  Opcode::kRcSendOnlyImm, Opcode::kRcSendOnly, Opcode::kRcSendOnly};
    const Opcode opcode = one_in(50) ? static_cast<Opcode>(random(256)) : kOpcodes[random(8)];
    const uint32_t psn_off = one_in(4) ? static_cast<uint32_t>(random(6)) - 3 : 0;
    spec = packet(opcode, psn(expected + before + psn_off));
    const bool full = opcode == Opcode::kRcSendFirst || opcode == Opcode::kRcSendMiddle;
    payload = pattern(full ? 256 : random(257), expected);
  } else {
    const uint32_t psn_off =
        one_in(8) ? static_cast<uint32_t>(random(4)) - 2 : static_cast<uint32_t>(random(2));
    const uint64_t kind = random(12);
    const uint8_t syndrome = kind < 8    ? wire::ack_syndrome()
                             : kind == 8 ? wire::rnr_nak_syndrome(static_cast<uint8_t>(random(32)))
                             : kind == 9 ? static_cast<uint8_t>(random(256))
                                         : wire::nak_syndrome(wire::NakCode::kPsnSequenceError);
    spec = response(psn(unacked + psn_off), syndrome);
  }
  wire::Packet out = spec.packet;
  out.bth.solicited = one_in(4);
  if (one_in(30)) out.bth.pkey = static_cast<uint16_t>(random_.next());
  out.src_ip = one_in(30) ? device_ip(0) : kOutside;
  out.dst_ip = device_ip(app.device.value);
  out.bth.dest_qpn = qp.number;
  auto bytes = frame_of(out, payload);
  if (one_in(8)) {
    bytes[random(bytes.size())] ^= static_cast<uint8_t>(1u << random(8));
    if (one_in(2)) wire::write_icrc(bytes);
  }
  if (one_in(30)) bytes.resize(random(bytes.size()));
  if (one_in(60)) {
    for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random_.next());
  }
  return bytes;
}

void RandomProgram::change_state(App& app, Qp& qp) {
  abi::Request::Body query{};
  query.object.handle = qp.number;
  const auto state =
      static_cast<QpState>(command(app, Op::kQueryQp, query).body.query_qp.attr.qp_state);
  if (state != QpState::kRts && state != QpState::kSqd) return connect(app, qp);
  if (state == QpState::kRts && !one_in(4)) return;
  const uint64_t choice = state == QpState::kSqd ? 6 : 3 + random(4);
  if (choice == 3) return connect(app, qp);
  abi::Request::Body body{};
  body.modify_qp.qpn = qp.number;
  body.modify_qp.mask = abi::kAttrState;
  const QpState to = choice == 4 ? QpState::kErr : choice == 5 ? QpState::kSqd : QpState::kRts;
  body.modify_qp.attr.qp_state = static_cast<uint32_t>(to);
  if (choice == 5) {
    body.modify_qp.mask |= abi::kAttrEnSqdAsyncNotify;
    body.modify_qp.attr.en_sqd_async_notify = 1;
  }
  command(app, Op::kModifyQp, body);
}

void RandomProgram::consume_or_arm(App& app) {
  Cq& cq = app.cqs[random(app.cqs.size())];
  if (one_in(3)) {
    const uint32_t seen = cq.produced - static_cast<uint32_t>(random(3));
    step(engine::ArmCq{app.id, engine::CqId{cq.handle}, one_in(50) ? cq.produced + 1 : seen,
                       one_in(2)});
    return;
  }
  const uint32_t waiting = cq.produced - cq.consumed;
  cq.consumed += static_cast<uint32_t>(random(waiting + 1));
  memory_.taken[{app.id, engine::CqId{cq.handle}}] = cq.consumed;
}

/// Makes the program's memory temporarily unavailable, or available again if it is not.
void RandomProgram::be_late(const App& app) {
  if (memory_.not_yet.insert(app.id).second) return;
  memory_.not_yet.erase(app.id);
  step(engine::MemoryReady{});
}

void RandomProgram::advance() {
  const auto next = engine_.next_deadline();
  if (next && !one_in(4)) {
    now_ = std::max(now_, *next);
  } else {
    now_ += engine::Duration(static_cast<int64_t>(random(100'000)));
  }
  step(engine::Tick{});
}

// Sends a command with random bytes as its body. Random handles are small, so that some exist.
void RandomProgram::garbage_command(App& app) {
  abi::Request::Body body{};
  for (uint8_t& byte : body.raw) byte = static_cast<uint8_t>(one_in(3) ? random(24) : 0);
  auto op = static_cast<Op>(random(20));
  // These commands would destroy objects that the random program still needs.
  if (op == Op::kDestroyQp || op == Op::kModifyQp || op == Op::kDeregMr || op == Op::kDestroyCq) {
    op = Op::kQueryQp;
  }
  if (op == Op::kCreateCq) body.create_cq.capacity %= 4;
  if (op == Op::kCreateQp) body.create_qp.cap = {};
  command(app, op, body);
}

void RandomProgram::run(uint32_t inputs) {
  for (uint32_t i = 0; i < inputs && broken_.empty(); ++i) {
    App& app = apps_[random(kApps)];
    Qp& qp = app.qps[random(kQpsPerApp)];
    const uint64_t choice = random(1000);
    if (choice < 250) {
      frames_ != Frames::kByChance && !one_in(4) ? post_burst(app, qp) : post_send(app, qp);
    } else if (choice < 500) {
      post_recv(app, qp);
    } else if (choice < 700) {
      deliver_frames();
    } else if (choice < 800) {
      consume_or_arm(app);
    } else if (choice < 930) {
      advance();
    } else if (choice < 980) {
      change_state(app, qp);
    } else if (choice < 995) {
      garbage_command(app);
    } else if (choice < 996) {
      const size_t slot = static_cast<size_t>(&app - apps_.data());
      step(engine::DetachClient{app.id});
      attach(slot);
    } else if (choice < 998) {
      be_late(app);
    } else {
      const bool spoil = one_in(4);
      memory_.protect(app.id, kBuffer, !spoil, !spoil || one_in(2));
    }
  }
}

}  // namespace rocemu::test
