#include "tests/conformance/player.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>

#include "tests/support/bench.h"
#include "wire/aeth.h"

namespace rocemu::conformance {
namespace {

using abi::WrOpcode;
using wire::ExtendedHeader;
using wire::Operation;

constexpr uint64_t kSendBuffers = 0x10'0000'0000;
constexpr uint64_t kReceiveBuffers = 0x20'0000'0000;
constexpr uint64_t kShared = 0x30'0000'0000;  // memory that the peer reads and writes
constexpr uint64_t kAreaSize = 16 * 1024 * 1024;

uint32_t hash_of(std::span<const uint8_t> bytes) {
  uint32_t hash = 2166136261u;
  for (const uint8_t byte : bytes) hash = (hash ^ byte) * 16777619u;
  return hash;
}

/// Describes all fields of a frame that the protocol determines.
std::string describe(const wire::Packet& packet, const Setting& setting) {
  const wire::OpcodeInfo& info = *wire::find_opcode(packet.bth.opcode);
  // If the rest of a READ response is requested again, rocemu begins a new response, as in
  // 9.7.5.2.1, and rxe continues the old one. Losses decide which READs are requested again. So
  // opcode and AETH of READ responses are not compared if there were losses.
  const bool read_answer = info.operation == Operation::kReadResponse;
  std::string text = fmt::format(
      "{} psn {:#x}", setting.disturbed && read_answer ? "RC RDMA READ Response" : info.name,
      packet.bth.psn.value());
  if (packet.bth.ack_req) text += " ackreq";
  if (packet.bth.solicited) text += " solicited";
  if (packet.bth.mig_req) text += " migreq";
  text += fmt::format(" pkey {:#x} qpn {:#x}", packet.bth.pkey, packet.bth.dest_qpn);
  if (info.has(ExtendedHeader::kDeth)) {
    text += fmt::format(" qkey {:#x} from {:#x}", packet.deth.qkey, packet.deth.src_qpn);
  }
  if (info.has(ExtendedHeader::kReth)) {
    text += fmt::format(" va {:#x} length {}", packet.reth.va, packet.reth.dma_length);
  }
  if (info.has(ExtendedHeader::kAtomicEth)) {
    text += fmt::format(" va {:#x} swap/add {:#x} compare {:#x}", packet.atomic.va,
                        packet.atomic.swap_add, packet.atomic.compare);
  }
  if (info.has(ExtendedHeader::kAeth) && !(setting.disturbed && read_answer)) {
    text += fmt::format(" syndrome {:#04x} msn {}", packet.aeth.syndrome, packet.aeth.msn);
  }
  if (info.has(ExtendedHeader::kAtomicAckEth)) {
    text += fmt::format(" original {:#x}", packet.atomic_ack.original);
  }
  if (info.has(ExtendedHeader::kImmDt)) text += fmt::format(" imm {:#x}", packet.imm.value);
  if (info.has_payload) {
    text += fmt::format(" {} bytes {:08x}", packet.payload.size(), hash_of(packet.payload));
  }
  if (setting.udp_port_is_known) text += fmt::format(" port {}", packet.udp_src_port);
  text += fmt::format(" ttl {} tos {}", packet.hop_limit, packet.traffic_class);
  return text;
}

void note(Said& said, const wire::Packet& packet, const Setting& setting) {
  const bool response = wire::find_opcode(packet.bth.opcode)->is_response;
  (response ? said.responses : said.requests).push_back(describe(packet, setting));
}

WrOpcode work_of(const wire::OpcodeInfo& last) {
  const bool immediate = last.has(ExtendedHeader::kImmDt);
  switch (last.operation) {
    case Operation::kSend:
      if (last.has(ExtendedHeader::kIeth)) return WrOpcode::kSendWithInv;
      return immediate ? WrOpcode::kSendWithImm : WrOpcode::kSend;
    case Operation::kWrite:
      return immediate ? WrOpcode::kRdmaWriteWithImm : WrOpcode::kRdmaWrite;
    case Operation::kReadRequest:
      return WrOpcode::kRdmaRead;
    case Operation::kCompareSwap:
      return WrOpcode::kAtomicCmpAndSwp;
    case Operation::kFetchAdd:
      return WrOpcode::kAtomicFetchAndAdd;
    default:
      throw std::runtime_error("a request that no work request makes");
  }
}

class Player {
 public:
  Player(const Conversation& conversation, int end, const Setting& setting)
      : talk_(conversation),
        end_(end),
        setting_(setting),
        bench_(fabric()),
        client_(bench_, engine::ClientId{1}, engine::DeviceIndex{0}),
        messages_(find_messages()) {
    set_up();
  }

  Said play() {
    for (size_t i = 0; i < talk_.frames.size(); ++i) {
      const CapturedFrame& frame = talk_.frames[i];
      bench_.advance_to(frame.at);
      if (!talk_.is_from(frame, end_)) {
        prepare_for(i);
        deliver(frame);
      } else if (!frame.info().is_response) {
        post_up_to(frame.packet.bth.psn);
      }
    }
    bench_.advance_to(talk_.frames.back().at + std::chrono::milliseconds(1));
    Said said;
    for (const test::Timed& one : bench_.log) {
      const auto* sent = std::get_if<engine::TransmitFrame>(&one.output);
      if (sent == nullptr) continue;
      note(said, *wire::parse_frame(sent->frame.bytes()), setting_);
    }
    return said;
  }

 private:
  const End& own() const { return talk_.ends[end_]; }
  const End& peer() const { return talk_.ends[1 - end_]; }

  engine::FabricConfig fabric() const {
    engine::FabricConfig config = engine::default_fabric(1);
    config.devices[0].addresses = {own().address};
    return config;
  }

  void set_up() {
    const uint32_t pd = client_.alloc_pd();
    const uint32_t cq = client_.create_cq(65536);
    bench_.memory.map(client_.id(), kSendBuffers, kAreaSize);
    bench_.memory.map(client_.id(), kReceiveBuffers, kAreaSize);
    sends_ = client_.reg_mr(pd, kSendBuffers, kAreaSize);
    receives_ = client_.reg_mr(pd, kReceiveBuffers, kAreaSize);
    share_memory(pd);
    const abi::QpCap cap{.max_send_wr = 1024,
                         .max_recv_wr = 1024,
                         .max_send_sge = 1,
                         .max_recv_sge = 1,
                         .max_inline_data = 0};
    // The client gets QPNs in order, so QPs are created until the wanted number comes.
    do {
      qpn_ =
          client_.create_qp({.pd = pd, .send_cq = cq, .recv_cq = cq, .type = type(), .cap = cap});
    } while (qpn_ != 0 && qpn_ < own_qpn());
    if (type() == abi::QpType::kUd) {
      ah_ = client_.create_ah(pd, test::address_vector(peer().address));
    }
    if (is_gone()) return;
    const test::Connection connection{
        .mtu = static_cast<abi::Mtu>(std::bit_width(talk_.mtu) - 8),
        .sq_psn = first_psn(end_),
        .rq_psn = first_psn(1 - end_),
        .timeout = setting_.timeout,
        .retry_cnt = setting_.retry_cnt,
        .rnr_retry = setting_.rnr_retry,
        .min_rnr_timer = setting_.min_rnr_timer,
        .access = setting_.qp_access &
                  (abi::kAccessRemoteRead | abi::kAccessRemoteWrite | abi::kAccessRemoteAtomic),
        .max_rd_atomic = setting_.max_rd_atomic,
        .qkey = qkey(),
        .type = type()};
    if (!test::bring_up(client_, qpn_, abi::QpState::kRts, connection,
                        test::address_vector(peer().address), peer().qpn)) {
      throw std::runtime_error("the QP cannot be connected");
    }
  }

  uint32_t own_qpn() const {
    if (own().qpn != 0) return own().qpn;
    for (const CapturedFrame& frame : talk_.frames) {
      if (talk_.is_from(frame, end_) && frame.info().has(ExtendedHeader::kDeth)) {
        return frame.packet.deth.src_qpn;
      }
    }
    return setting_.unheard_qpn;
  }

  /// Returns the Q_Key of a UD QP: the one that the peer's first packet names.
  uint32_t qkey() const {
    for (const CapturedFrame& frame : talk_.frames) {
      if (!talk_.is_from(frame, end_)) return frame.packet.deth.qkey;
    }
    return 0;
  }

  /// Returns whether this end of an RC connection sent nothing in the capture. The engine then gets
  /// no QP for it.
  bool is_gone() const {
    return type() == abi::QpType::kRc &&
           std::ranges::none_of(talk_.frames,
                                [this](const auto& frame) { return talk_.is_from(frame, end_); });
  }

  abi::QpType type() const {
    switch (talk_.transport) {
      case wire::Transport::kUc:
        return abi::QpType::kUc;
      case wire::Transport::kUd:
        return abi::QpType::kUd;
      default:
        return abi::QpType::kRc;
    }
  }

  /// Returns the first PSN that the end sent, which can be earlier than that of the first captured
  /// packet.
  uint32_t first_psn(int end) const {
    std::optional<wire::Psn> first;
    for (const CapturedFrame& frame : talk_.frames) {
      if (!talk_.is_from(frame, end) || frame.info().is_response) continue;
      if (!first || wire::psn_before(frame.packet.bth.psn, *first)) first = frame.packet.bth.psn;
    }
    return first.value_or(wire::Psn()).value();
  }

  /// Registers a region for each R_Key in the peer's requests, which contains all addresses used
  /// with this key.
  void share_memory(uint32_t pd) {
    for (const CapturedFrame& frame : talk_.frames) {
      if (talk_.is_from(frame, end_)) continue;
      const auto cover = [this](uint32_t rkey, uint64_t address, uint64_t length) {
        Region& region = regions_[rkey];
        region.begin = std::min(region.begin, address);
        region.end = std::max(region.end, address + length);
      };
      const wire::Packet& packet = frame.packet;
      if (frame.info().has(ExtendedHeader::kReth)) {
        cover(packet.reth.rkey, packet.reth.va, packet.reth.dma_length);
      }
      if (frame.info().has(ExtendedHeader::kAtomicEth)) {
        cover(packet.atomic.rkey, packet.atomic.va, sizeof(uint64_t));
      }
    }
    uint64_t place = kShared;
    for (auto& [rkey, region] : regions_) {
      const uint64_t named = region.end - region.begin;
      region.place = place;
      place += named + 4096;
      bench_.memory.map(client_.id(), region.place, named + 1);
      constexpr uint32_t kAll = abi::kAccessLocalWrite | abi::kAccessRemoteRead |
                                abi::kAccessRemoteWrite | abi::kAccessRemoteAtomic;
      const uint64_t size = setting_.region_end != 0 ? setting_.region_end : named;
      region.rkey = client_.reg_mr(pd, region.place, size, kAll, region.begin).rkey;
      if (setting_.bad_rkey) region.rkey ^= 0x5500;
    }
  }

  struct Region {
    uint64_t begin = ~uint64_t{0}, end = 0;  // range of the addresses that requests name
    uint64_t place = 0;                      // the address in our client's memory
    uint32_t rkey = 0;                       // ours
  };

  struct Message {
    const CapturedFrame* first = nullptr;
    const CapturedFrame* last = nullptr;
    std::vector<uint8_t> payload;
  };

  /// Returns the messages that the end's application posts, in order. A packet may have been lost
  /// before it could be captured, but in the end each message arrived.
  std::vector<Message> find_messages() const {
    std::map<uint32_t, const CapturedFrame*> by_psn;
    for (const CapturedFrame& frame : talk_.frames) {
      if (talk_.is_from(frame, end_) && !frame.info().is_response) {
        by_psn.try_emplace(frame.packet.bth.psn.value(), &frame);
      }
    }
    std::vector<Message> messages;
    wire::Psn psn(first_psn(end_));
    for (auto found = by_psn.find(psn.value()); found != by_psn.end();
         found = by_psn.find(psn.value())) {
      const CapturedFrame& frame = *found->second;
      if (frame.info().is_first)
        messages.push_back({.first = &frame, .last = nullptr, .payload = {}});
      Message& message = messages.back();
      message.payload.insert(message.payload.end(), frame.packet.payload.begin(),
                             frame.packet.payload.end());
      if (frame.info().is_last) message.last = &frame;
      const bool reads = frame.info().operation == Operation::kReadRequest;
      psn += reads ? std::max(1u, (frame.packet.reth.dma_length + talk_.mtu - 1) / talk_.mtu) : 1;
    }
    return messages;
  }

  /// Posts all messages whose first packet does not come after this PSN.
  void post_up_to(wire::Psn psn) {
    for (; posted_ < messages_.size(); ++posted_) {
      const Message& message = messages_[posted_];
      if (wire::psn_before(psn, message.first->packet.bth.psn)) return;
      if (message.last == nullptr) throw std::runtime_error("a message without an end");
      post(message);
    }
  }

  void post(const Message& message) {
    const CapturedFrame& frame = *message.first;
    test::SendWr wr{.wr_id = frame.packet.bth.psn.value(), .opcode = work_of(message.last->info())};
    if (message.last->packet.bth.solicited) wr.flags |= abi::kSendSolicited;
    wr.imm = message.last->packet.imm.value;
    wr.remote_address = frame.packet.reth.va;
    wr.rkey = frame.packet.reth.rkey;
    if (type() == abi::QpType::kUd) {
      wr.ah = ah_;
      wr.remote_qpn = frame.packet.bth.dest_qpn;
      wr.remote_qkey = frame.packet.deth.qkey;
    }
    uint32_t length = static_cast<uint32_t>(message.payload.size());
    switch (wr.opcode) {
      case WrOpcode::kRdmaRead:
        length = frame.packet.reth.dma_length;
        break;
      case WrOpcode::kAtomicCmpAndSwp:
        wr.compare_add = frame.packet.atomic.compare;
        wr.swap = frame.packet.atomic.swap_add;
        break;
      case WrOpcode::kAtomicFetchAndAdd:
        wr.compare_add = frame.packet.atomic.swap_add;
        break;
      default:
        break;
    }
    if (frame.info().has(ExtendedHeader::kAtomicEth)) {
      wr.remote_address = frame.packet.atomic.va;
      wr.rkey = frame.packet.atomic.rkey;
      length = 8;
    }
    const uint64_t at = kSendBuffers + send_offset_;
    send_offset_ += length;
    if (length != 0) wr.sges = {{at, length, sends_.lkey}};
    std::ranges::copy(message.payload,
                      bench_.memory.at(client_.id(), at, message.payload.size()).begin());
    client_.post_send(qpn_, wr);
  }

  /// Does what the application must have done before the peer's request number `index` arrives.
  void prepare_for(size_t index) {
    const CapturedFrame& frame = talk_.frames[index];
    if (frame.info().operation == Operation::kReadRequest) return fill_for_read(frame);
    if (frame.info().has(ExtendedHeader::kAtomicEth)) return fill_for_atomic(frame);
    const bool takes_receive = frame.info().operation == Operation::kSend
                                   ? frame.info().is_first
                                   : frame.info().has(ExtendedHeader::kImmDt);
    if (!takes_receive || was_refused_as_not_ready(index)) return;
    if (!received_.insert(frame.packet.bth.psn.value()).second) return;
    client_.post_recv(qpn_, {.wr_id = frame.packet.bth.psn.value(),
                             .sges = {{kReceiveBuffers, setting_.receive_size, receives_.lkey}}});
  }

  bool was_refused_as_not_ready(size_t index) const {
    const wire::Psn psn = talk_.frames[index].packet.bth.psn;
    for (size_t i = index + 1; i < talk_.frames.size(); ++i) {
      const CapturedFrame& frame = talk_.frames[i];
      if (frame.packet.bth.psn != psn) continue;
      if (!talk_.is_from(frame, end_)) {
        if (!frame.info().is_response) return false;  // the request was repeated before any RNR NAK
      } else if (frame.info().operation == Operation::kAck &&
                 wire::aeth_kind(frame.packet.aeth.syndrome) == wire::AethKind::kRnrNak) {
        return true;
      }
    }
    return false;
  }

  std::span<uint8_t> shared_at(uint32_t rkey, uint64_t va, size_t size) {
    const Region& region = regions_.at(rkey);
    return bench_.memory.at(client_.id(), region.place + (va - region.begin), size);
  }

  /// Writes the data that the READ request must find, as far as the captured responses show it.
  void fill_for_read(const CapturedFrame& request) {
    for (const CapturedFrame& frame : talk_.frames) {
      if (!talk_.is_from(frame, end_) || frame.info().operation != Operation::kReadResponse) {
        continue;
      }
      const int32_t number = wire::psn_distance(request.packet.bth.psn, frame.packet.bth.psn);
      const uint64_t offset = static_cast<uint64_t>(number) * talk_.mtu;
      if (number < 0 || offset >= request.packet.reth.dma_length) continue;
      std::ranges::copy(frame.packet.payload,
                        shared_at(request.packet.reth.rkey, request.packet.reth.va + offset,
                                  frame.packet.payload.size())
                            .begin());
    }
  }

  /// Writes the value that the first atomic to an address found. Later atomics find the result of
  /// earlier ones.
  void fill_for_atomic(const CapturedFrame& request) {
    if (setting_.bad_rkey || !filled_.insert(request.packet.atomic.va).second) return;
    for (const CapturedFrame& frame : talk_.frames) {
      if (!talk_.is_from(frame, end_) || frame.packet.bth.psn != request.packet.bth.psn ||
          frame.info().operation != Operation::kAtomicAck) {
        continue;
      }
      const auto bytes = std::bit_cast<std::array<uint8_t, 8>>(frame.packet.atomic_ack.original);
      std::ranges::copy(bytes,
                        shared_at(request.packet.atomic.rkey, request.packet.atomic.va, 8).begin());
      return;
    }
  }

  /// Delivers the captured frame with the R_Key of our region in the place of the captured one.
  void deliver(const CapturedFrame& frame) {
    wire::Packet packet = frame.packet;
    if (frame.info().has(ExtendedHeader::kReth)) {
      packet.reth.rkey = regions_.at(packet.reth.rkey).rkey;
    }
    if (frame.info().has(ExtendedHeader::kAtomicEth)) {
      packet.atomic.rkey = regions_.at(packet.atomic.rkey).rkey;
    }
    if (packet.bth.dest_qpn != qpn_) throw std::runtime_error("a frame for another QP");
    std::vector<uint8_t> bytes(wire::frame_size(packet, packet.payload.size()));
    wire::emit_frame(packet, bytes);
    bench_.step(engine::ReceivedFrame{engine::DeviceIndex{0}, bytes});
  }

  const Conversation& talk_;
  const int end_;
  const Setting& setting_;
  test::Bench bench_;
  test::Client client_;
  const std::vector<Message> messages_;
  size_t posted_ = 0;  // the number of messages that were posted
  uint32_t qpn_ = 0;
  uint32_t ah_ = 0;  // UD
  test::Mr sends_, receives_;
  std::map<uint32_t, Region> regions_;  // the key is the R_Key in the capture
  uint64_t send_offset_ = 0;
  std::set<uint32_t> received_;
  std::set<uint64_t> filled_;
};

}  // namespace

Said said_in_capture(const Conversation& conversation, int end, const Setting& setting) {
  Said said;
  for (const CapturedFrame& frame : conversation.frames) {
    if (conversation.is_from(frame, end)) note(said, frame.packet, setting);
  }
  return said;
}

Said said_by_engine(const Conversation& conversation, int end, const Setting& setting) {
  return Player(conversation, end, setting).play();
}

}  // namespace rocemu::conformance
