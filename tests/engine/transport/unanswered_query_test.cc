// Tests which PSN the ACK of a duplicate may name if the duplicate was followed by READs and
// atomics whose responses may also be lost. Some tests are scripts for the clauses. Others use a
// model of a requester that loses data if the responder breaks a clause.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <deque>

#include "emulator/engine/base/random.h"
#include "emulator/engine/transport/responder.h"
#include "tests/support/script.h"

namespace rocemu::test {
namespace {

using wire::Opcode;
using wire::Psn;

constexpr uint32_t kAll = abi::kAccessLocalWrite | abi::kAccessRemoteWrite |
                          abi::kAccessRemoteRead | abi::kAccessRemoteAtomic;
constexpr uint32_t kMtu = 256;
constexpr uint32_t kMaxQueries = 4;  // max_dest_rd_atomic

// Offsets in the responder's buffer.
constexpr uint64_t kReadable = 0;      // 4 KiB of pattern()
constexpr uint64_t kWritten = 8192;    // WRITEs write here
constexpr uint64_t kReceived = 16384;  // SENDs are received here
constexpr uint64_t kWord = 32768;      // the operand of the atomics

ScriptOptions open_to_all(uint32_t ack_coalescing = 1) {
  ScriptOptions options;
  options.connection.access = kAll;
  options.connection.max_rd_atomic = kMaxQueries;
  options.connection.mtu = abi::Mtu::k256;
  options.recv_access = kAll;
  options.ack_coalescing = ack_coalescing;
  return options;
}

PacketSpec to_memory(Script& s, PacketSpec spec, uint64_t offset, uint32_t length) {
  spec.packet.reth = {
      .va = Endpoint::kRecvBuffer + offset, .rkey = s.app().recv_mr.rkey, .dma_length = length};
  return spec;
}
PacketSpec read_request(Script& s, uint32_t number, uint32_t length) {
  return to_memory(s, packet(Opcode::kRcReadRequest, psn(number)), kReadable, length);
}
PacketSpec write_only(Script& s, uint32_t number) {
  return to_memory(s, packet(Opcode::kRcWriteOnly, psn(number)).with({1, 2, 3, 4}), kWritten, 4);
}
PacketSpec fetch_add(Script& s, uint32_t number) {
  PacketSpec spec = packet(Opcode::kRcFetchAdd, psn(number));
  spec.packet.atomic = {.va = Endpoint::kRecvBuffer + kWord,
                        .rkey = s.app().recv_mr.rkey,
                        .swap_add = 1,
                        .compare = 0};
  return spec;
}
PacketSpec data(Opcode opcode, uint32_t number) {
  PacketSpec spec = packet(opcode, psn(number));
  if (opcode != Opcode::kRcReadResponseMiddle) spec.packet.aeth.syndrome = wire::ack_syndrome();
  return spec;
}
PacketSpec read_response(uint32_t number) {
  return data(Opcode::kRcReadResponseOnly, number);
}
PacketSpec atomic_response(uint32_t number) {
  return data(Opcode::kRcAtomicAck, number);
}

// IBTA vol 1, 9.7.5.1.3 and 9.7.7.2: the requester repeats a SEND whose ACK was lost. The response
// to the READ after the SEND may be lost as well, and an ACK cannot replace it.
TEST(DuplicateAck, EndsBeforeAReadThatFollowsTheDuplicate) {
  for (const bool is_write : {false, true}) {
    Script s(open_to_all());
    s.at(0ms).app_posts_recv(1);
    const PacketSpec first = is_write ? write_only(s, 0) : send_only(psn(0)).with({7});
    s.wire_delivers(first);
    if (is_write) s.expect({ack(psn(0))});
    if (!is_write) s.expect({received(1), ack(psn(0))});
    s.wire_delivers(read_request(s, 1, 8)).expect({read_response(1)});
    s.wire_delivers(first).expect({ack(psn(0)).with_msn(2)});
    s.wire_delivers(read_request(s, 1, 8)).expect({read_response(1)});
  }
}

TEST(DuplicateAck, EndsBeforeAnAtomicThatFollowsTheDuplicate) {
  Script s(open_to_all());
  s.at(0ms).wire_delivers(write_only(s, 0)).expect({ack(psn(0))});
  s.wire_delivers(fetch_add(s, 1)).expect({atomic_response(1)});
  s.wire_delivers(write_only(s, 2)).expect({ack(psn(2))});
  s.wire_delivers(write_only(s, 0)).expect({ack(psn(0)).with_msn(3)});
  s.wire_delivers(fetch_add(s, 1)).expect({atomic_response(1)});
}

// 9.7.5.1.2: the ACK covers all SENDs and WRITEs up to the next READ.
TEST(DuplicateAck, CoversTheMessagesBeforeTheNextRead) {
  Script s(open_to_all());
  s.at(0ms);
  for (const uint32_t number : {0u, 1u, 2u}) {
    s.wire_delivers(write_only(s, number)).expect({ack(psn(number))});
  }
  s.wire_delivers(read_request(s, 3, 3 * kMtu));  // takes the PSNs 3, 4 and 5
  s.expect({data(Opcode::kRcReadResponseFirst, 3), data(Opcode::kRcReadResponseMiddle, 4),
            data(Opcode::kRcReadResponseLast, 5)});
  s.wire_delivers(write_only(s, 6)).expect({ack(psn(6))});
  s.wire_delivers(read_request(s, 7, 8)).expect({read_response(7)});
  s.wire_delivers(write_only(s, 8)).expect({ack(psn(8))});
  s.wire_delivers(write_only(s, 0)).expect({ack(psn(2))});
  s.wire_delivers(write_only(s, 2)).expect({ack(psn(2))});
  s.wire_delivers(write_only(s, 6)).expect({ack(psn(6))});
  s.wire_delivers(write_only(s, 8)).expect({ack(psn(8))});
}

// 9.7.4.1.5: at most max_dest_rd_atomic READs are outstanding, so the responder forgets the PSNs of
// older ones. If a forgotten READ may be between the duplicate and the newest PSN, the ACK names
// only the duplicate.
TEST(DuplicateAck, NamesTheDuplicateBeforeReadsThatAreForgotten) {
  Script s(open_to_all());
  s.at(0ms).wire_delivers(write_only(s, 0)).expect({ack(psn(0))});
  for (uint32_t number = 1; number <= kMaxQueries + 1; ++number) {
    s.wire_delivers(read_request(s, number, 8)).expect({read_response(number)});
  }
  s.wire_delivers(write_only(s, 0)).expect({ack(psn(0)).with_msn(kMaxQueries + 2)});
}

TEST(DuplicateAck, EndsBeforeAReadBeyondThePsnWrap) {
  ScriptOptions options = open_to_all();
  options.connection.rq_psn = 0xfffffe;
  Script s(options);
  s.at(0ms).wire_delivers(write_only(s, 0xfffffe)).expect({ack(psn(0xfffffe))});
  s.wire_delivers(write_only(s, 0xffffff)).expect({ack(psn(0xffffff))});
  s.wire_delivers(read_request(s, 0, 8)).expect({read_response(0)});
  s.wire_delivers(write_only(s, 1)).expect({ack(psn(1))});
  s.wire_delivers(write_only(s, 0xfffffe)).expect({ack(psn(0xffffff))});
}

// 2 GiB of WRITEs at an MTU of 256 bytes are 2^23 packets. After them, the PSN of an older READ
// seems to be ahead of the expected one (9.7.2).
TEST(DuplicateAck, IgnoresAReadOfHalfTheCircleAgo) {
  engine::RecvHalf recv;
  recv.query_psns = {psn(291)};
  for (const uint32_t passed : {1u, 1u << 22, (1u << 23) - 2, 1u << 23, (1u << 23) + 5000}) {
    recv.expected = psn(291 + 1 + passed);
    const Psn newest = recv.expected - 1;
    EXPECT_EQ(engine::responder::psn_for_duplicate(recv, kMaxQueries, newest), newest) << passed;
  }
}

// An acknowledgement can wait because the data of a READ must be sent first. The ACK of a duplicate
// must then replace neither a newer ACK that waits nor a NAK.
TEST(DuplicateAck, DoesNotReplaceANewerAnswerThatWaits) {
  for (const bool naks : {false, true}) {
    Script s(open_to_all());
    s.at(0ms).wire_delivers(write_only(s, 0)).expect({ack(psn(0))});
    // The frames are one burst, so that the READ's data has not been sent when the WRITEs arrive.
    s.wire_delivers_burst({read_request(s, 1, 8), write_only(s, naks ? 3 : 2), write_only(s, 0)});
    if (naks) {
      s.expect({read_response(1), sequence_nak(psn(2))});
    } else {
      s.expect({read_response(1), ack(psn(2))});
    }
  }
}

// ---- A requester with the rules of Linux rxe ----

/// A requester like that of Linux, drivers/infiniband/sw/rxe/rxe_comp.c. If a response names a
/// newer PSN than that of the oldest request, check_psn() completes a SEND or WRITE, and retries a
/// READ or atomic. If an ACK names the last PSN of the oldest request, check_ack() completes the
/// request, even if it is a READ.
class RxeRequester {
 public:
  struct Wqe {
    enum class Kind { kSend, kWrite, kRead, kAtomic } kind;
    Psn first, last;
    uint32_t length = 0;
    std::vector<uint8_t> data = {};         // the data of a READ that has arrived so far
    std::optional<uint64_t> original = {};  // the original value that an atomic returned

    bool is_query() const { return kind == Kind::kRead || kind == Kind::kAtomic; }
  };

  explicit RxeRequester(std::vector<Wqe> wqes) : wqes_(std::move(wqes)) {
    if (!wqes_.empty()) expected_ = wqes_.front().first;
  }

  bool is_done() const { return done_ == wqes_.size(); }
  const std::vector<Wqe>& wqes() const { return wqes_; }
  size_t done() const { return done_; }

  /// Returns the next WQE to send, or nullptr if all were sent or a READ must wait for another one.
  const Wqe* next() {
    if (sent_ == wqes_.size()) return nullptr;
    const auto outstanding =
        std::count_if(wqes_.begin() + static_cast<ptrdiff_t>(done_),
                      wqes_.begin() + static_cast<ptrdiff_t>(sent_), std::mem_fn(&Wqe::is_query));
    if (wqes_[sent_].is_query() && outstanding == kMaxQueries) return nullptr;
    return &wqes_[sent_++];
  }

  /// Starts again from the oldest request, after a NAK or when the retransmission timer expires.
  void go_back() {
    sent_ = done_;
    if (is_done()) return;
    expected_ = wqes_[done_].first;
    wqes_[done_].data.clear();
  }

  void on_response(const wire::Packet& packet) {
    while (done_ != sent_) {
      Wqe& oldest = wqes_[done_];
      if (wire::psn_before(oldest.last, packet.bth.psn)) {
        if (oldest.is_query()) return go_back();
        complete();
        continue;
      }
      return take(oldest, packet);
    }
  }

 private:
  void take(Wqe& oldest, const wire::Packet& packet) {
    const Psn number = packet.bth.psn;
    const bool is_last = number == oldest.last;
    if (wire::psn_before(number, expected_)) {
      if (is_last) complete();
      return;
    }
    if (wire::psn_before(expected_, number) && oldest.is_query()) return;
    switch (packet.bth.opcode) {
      case Opcode::kRcAck:
        if (wire::aeth_kind(packet.aeth.syndrome) != wire::AethKind::kAck) return go_back();
        break;
      case Opcode::kRcAtomicAck:
        ASSERT_EQ(oldest.kind, Wqe::Kind::kAtomic);
        oldest.original = packet.atomic_ack.original;
        break;
      default:
        ASSERT_EQ(oldest.kind, Wqe::Kind::kRead);
        oldest.data.insert(oldest.data.end(), packet.payload.begin(), packet.payload.end());
    }
    expected_ = number + 1;
    if (is_last) complete();
  }

  void complete() {
    ++done_;
    if (!is_done()) expected_ = wqes_[done_].first;
  }

  std::vector<Wqe> wqes_;
  size_t done_ = 0, sent_ = 0;
  Psn expected_;
};

std::vector<RxeRequester::Wqe> random_wqes(engine::Random& random, Psn first) {
  using Kind = RxeRequester::Wqe::Kind;
  std::vector<RxeRequester::Wqe> wqes;
  for (int i = 0; i < 24; ++i) {
    RxeRequester::Wqe wqe{
        .kind = static_cast<Kind>(random.next() % 4), .first = first, .last = first};
    if (wqe.kind == Kind::kRead) {
      wqe.length = static_cast<uint32_t>(1 + random.next() % (3 * kMtu));
      wqe.last = first + (wqe.length - 1) / kMtu;
    }
    first = wqe.last + 1;
    wqes.push_back(wqe);
  }
  return wqes;
}

PacketSpec request(Script& s, const RxeRequester::Wqe& wqe) {
  using Kind = RxeRequester::Wqe::Kind;
  const uint32_t number = wqe.first.value();
  switch (wqe.kind) {
    case Kind::kSend:
      return send_only(wqe.first).with({1, 2, 3});
    case Kind::kWrite:
      return write_only(s, number);
    case Kind::kRead:
      return read_request(s, number, wqe.length);
    case Kind::kAtomic:
      return fetch_add(s, number);
  }
  return {};
}

/// Returns whether the ACK names a PSN of a READ or atomic. For the ACK of a duplicate, also
/// returns true if the requester has not completed a READ or atomic that is between the duplicate
/// and the PSN of the ACK.
bool acknowledges_a_query(const RxeRequester& requester, const wire::Packet& response,
                          std::optional<Psn> duplicate) {
  const Psn number = response.bth.psn;
  for (size_t i = 0; i < requester.wqes().size(); ++i) {
    const RxeRequester::Wqe& wqe = requester.wqes()[i];
    if (!wqe.is_query()) continue;
    if (!wire::psn_before(number, wqe.first) && !wire::psn_before(wqe.last, number)) return true;
    if (i >= requester.done() && duplicate && wire::psn_before(*duplicate, wqe.first) &&
        !wire::psn_before(number, wqe.first)) {
      return true;
    }
  }
  return false;
}

class RxeUnderLoss : public testing::TestWithParam<uint32_t> {};

// If requests and responses are lost at random, every READ completes with its bytes, every atomic
// with its own result, and no ACK replaces their responses.
TEST_P(RxeUnderLoss, CompletesNoReadOrAtomicWithoutItsResponse) {
  uint32_t duplicates = 0;
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    engine::Random random(seed);
    ScriptOptions options = open_to_all(GetParam());
    options.connection.rq_psn = static_cast<uint32_t>(random.next()) & wire::kPsnMask;
    if (seed % 4 == 0) options.connection.rq_psn = 0xfffff8;
    Script s(options);
    s.at(0ms);
    for (uint64_t i = 0; i < 24; ++i) s.app_posts_recv(i, 16, kReceived);
    const std::vector<uint8_t> readable = pattern(3 * kMtu);
    std::ranges::copy(
        readable,
        s.bench().memory.at(s.client().id(), Endpoint::kRecvBuffer, readable.size()).begin());
    RxeRequester requester(random_wqes(random, psn(options.connection.rq_psn)));
    std::deque<std::vector<uint8_t>> on_the_way;
    // the first PSN that the responder has not received
    Psn unseen = psn(options.connection.rq_psn);

    const auto collect = [&](std::optional<Psn> duplicate) {
      for (Timed& entry : std::exchange(s.bench().log, {})) {
        const auto* frame = std::get_if<engine::TransmitFrame>(&entry.output);
        if (frame == nullptr) continue;
        const auto bytes = frame->frame.bytes();
        const auto packet = wire::parse_frame(bytes);
        ASSERT_TRUE(packet);
        if (packet->bth.opcode == Opcode::kRcAck &&
            wire::aeth_kind(packet->aeth.syndrome) == wire::AethKind::kAck) {
          EXPECT_FALSE(acknowledges_a_query(requester, *packet, duplicate))
              << "ACK of PSN " << packet->bth.psn.value();
        }
        if (random.next() % 3 != 0) on_the_way.emplace_back(bytes.begin(), bytes.end());
      }
    };
    int rounds = 0;
    for (; rounds < 3000 && !requester.is_done(); ++rounds) {
      const RxeRequester::Wqe* wqe = requester.next();
      const bool is_idle = wqe == nullptr && on_the_way.empty();
      if (wqe != nullptr && random.next() % 8 != 0) {
        const bool is_duplicate = wire::psn_before(wqe->first, unseen);
        duplicates += is_duplicate;
        if (wqe->first == unseen) unseen = wqe->last + 1;
        s.wire_delivers(request(s, *wqe));
        collect(is_duplicate ? std::optional(wqe->first) : std::nullopt);
      }
      if (is_idle) {
        s.bench().advance_to(s.bench().now().time_since_epoch() + 100ms);
        collect(std::nullopt);
        if (on_the_way.empty()) requester.go_back();
      }
      if (!on_the_way.empty() && (wqe == nullptr || random.next() % 2 == 0)) {
        const std::vector<uint8_t> bytes = std::move(on_the_way.front());
        on_the_way.pop_front();
        requester.on_response(*wire::parse_frame(bytes));
      }
    }
    EXPECT_TRUE(requester.is_done()) << "after " << rounds << " rounds";
    uint64_t additions = 0;
    for (const RxeRequester::Wqe& wqe : requester.wqes()) {
      if (wqe.kind == RxeRequester::Wqe::Kind::kRead) {
        EXPECT_EQ(wqe.data, std::vector<uint8_t>(readable.begin(), readable.begin() + wqe.length));
      } else if (wqe.kind == RxeRequester::Wqe::Kind::kAtomic) {
        EXPECT_EQ(wqe.original, additions++);
      }
    }
    s.bench().log.clear();
    if (HasFailure()) return;  // one failed seed is enough to read
  }
  EXPECT_GT(duplicates, 1000u) << "the loss led to too few duplicates to show anything";
}

INSTANTIATE_TEST_SUITE_P(WithAckCoalescing, RxeUnderLoss, testing::Values(1u, 4u));

}  // namespace
}  // namespace rocemu::test
