// Tests a requester and a responder with exactly one fault: one frame of an exchange is lost,
// duplicated, delayed until the next three frames in its direction have passed, or corrupted. Each
// frame has its turn, with different numbers of outstanding requests. Every request completes once,
// in order, with the right data, and one retry is enough.
#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <string>

#include "emulator/scenario/scenario.h"
#include "tests/support/pair.h"

namespace rocemu::test {
namespace {

using abi::WrOpcode;

constexpr uint32_t kMtu = 1024;
constexpr uint32_t kMaxMessages = 20;

constexpr uint32_t kAccess = abi::kAccessRemoteWrite | abi::kAccessRemoteRead |
                             abi::kAccessRemoteAtomic | abi::kAccessFlushGlobal;

enum class Fault { kNone, kLost, kDuplicated, kDelayed, kCorrupted };
constexpr const char* kFaultNames[] = {"none", "lost", "duplicated", "delayed", "corrupted"};

enum class Between {
  kDevicesOfOneFabric,  // frames stay inside one engine, and rules cause the faults
  kTwoEngines,
  // two engines with settings for a lossy network: send windows, READs that are requested in parts
  kANetwork,
};
constexpr const char* kBetweenNames[] = {"DevicesOfOneFabric", "TwoEngines", "ANetwork"};

struct Exchange {
  std::string name;
  std::vector<WrOpcode> opcodes;      // repeated in turn
  uint32_t message = 2 * kMtu + 500;  // bytes; three packets
  uint32_t more = 4;                  // messages that are posted after the first outstanding ones

  // Layout of the responder's receive buffer: space for messages, data for READs, and a word for
  // atomics.
  uint64_t stride() const { return (message + kMtu - 1) / kMtu * kMtu; }
  uint64_t targets() const { return 0; }
  uint64_t sources() const { return kMaxMessages * stride(); }
  uint64_t word() const { return 2 * sources(); }
  size_t buffer_size() const { return word() + sizeof(uint64_t); }
};

const std::vector<Exchange>& exchanges() {
  static const std::vector<Exchange> all{
      {"SEND", {WrOpcode::kSend}},
      {"SEND_WITH_IMM", {WrOpcode::kSendWithImm}},
      {"WRITE", {WrOpcode::kRdmaWrite}},
      {"WRITE_WITH_IMM", {WrOpcode::kRdmaWriteWithImm}},
      {"READ", {WrOpcode::kRdmaRead}},
      {"LONG_READ", {WrOpcode::kRdmaRead}, 20 * kMtu, 1},
      {"LONG_READ_SEND", {WrOpcode::kRdmaRead, WrOpcode::kSend}, 20 * kMtu, 1},
      {"CMP_AND_SWP", {WrOpcode::kAtomicCmpAndSwp}},
      {"FETCH_AND_ADD", {WrOpcode::kAtomicFetchAndAdd}},
      {"WRITE_FLUSH", {WrOpcode::kRdmaWrite, WrOpcode::kFlush}},
      {"ATOMIC_WRITE", {WrOpcode::kAtomicWrite}},
      {"READ_SEND", {WrOpcode::kRdmaRead, WrOpcode::kSend}},
      {"READ_FETCH_AND_ADD", {WrOpcode::kRdmaRead, WrOpcode::kAtomicFetchAndAdd}},
      {"ALL",
       {WrOpcode::kSend, WrOpcode::kRdmaRead, WrOpcode::kRdmaWrite, WrOpcode::kAtomicFetchAndAdd,
        WrOpcode::kRdmaRead, WrOpcode::kFlush, WrOpcode::kRdmaWriteWithImm, WrOpcode::kAtomicWrite,
        WrOpcode::kAtomicFetchAndAdd, WrOpcode::kRdmaRead}},
  };
  return all;
}

/// A fault and the frame that it affects: number `number`, counted from 1, of the frames that
/// `side` sends.
struct Disturbance {
  Fault fault = Fault::kNone;
  int side = 0;
  uint64_t number = 0;
};

uint8_t pattern(uint32_t message, uint64_t offset, uint8_t salt) {
  return static_cast<uint8_t>(message * 37 + offset * 11 + (offset >> 8) + salt);
}

/// Two connected QPs. Side 0 is the requester.
class World {
 public:
  World(const Exchange& exchange, Between between, Disturbance disturbance, uint32_t outstanding)
      : exchange_(exchange),
        between_(between),
        disturbance_(disturbance),
        outstanding_(outstanding),
        messages_(outstanding + exchange.more),
        left_bench_(config(0)),
        right_bench_(between == Between::kDevicesOfOneFabric ? std::nullopt
                                                             : std::optional(config(1))) {
    const engine::DeviceIndex right_device{between == Between::kDevicesOfOneFabric ? 1u : 0u};
    const EndpointOptions options = endpoint_options();
    left_.emplace(left_bench_, engine::ClientId{1}, engine::DeviceIndex{0}, options);
    right_.emplace(right_bench(), engine::ClientId{2}, right_device, options);
    EXPECT_TRUE(bring_up(left_->client, left_->qpn, abi::QpState::kRts, options.connection,
                         address_vector(address(1)), right_->qpn));
    EXPECT_TRUE(bring_up(right_->client, right_->qpn, abi::QpState::kRts, options.connection,
                         address_vector(address(0)), left_->qpn));
    if (between == Between::kDevicesOfOneFabric && disturbance.fault != Fault::kNone) {
      left_bench_.step(engine::AddRules{scenario::parse_rule(rule())});
    }
    collect();
  }

  /// Returns a description of the error, or "".
  std::string run() {
    prepare();
    while (posted_ < outstanding_) post_next();
    move_frames();
    if (completed_ != messages_) {
      return fmt("{} of {} work requests completed", completed_, messages_);
    }
    if (!error_.empty()) return error_;
    return check_data();
  }

  bool fault_happened() {
    if (between_ != Between::kDevicesOfOneFabric) return happened_;
    const auto reports = left_bench_.engine().rule_reports();
    return !reports.empty() && reports[0].fired != 0;
  }

 private:
  struct Arrival {
    int to;
    std::vector<uint8_t> bytes;
  };

  template <class... Args>
  static std::string fmt(const std::string& text, Args... args) {
    std::string out = text;
    const auto put = [&](const std::string& value) { out.replace(out.find("{}"), 2, value); };
    (put(std::to_string(args)), ...);
    return out;
  }

  static wire::IpAddress address(int side) {
    return wire::IpAddress::from_v4(10, 0, 0, static_cast<uint8_t>(side + 1));
  }

  engine::FabricConfig config(int side) const {
    engine::FabricConfig config;
    const auto device = [&](int i) {
      return engine::DeviceConfig{.name = i == 0 ? "left" : "right",
                                  .mac = {{2, 0, 0, 0, 0, static_cast<uint8_t>(i + 1)}},
                                  .addresses = {address(i)},
                                  .outside = between_ == Between::kANetwork,
                                  .policy = {}};
    };
    if (between_ == Between::kDevicesOfOneFabric) {
      config.devices = {device(0), device(1)};
    } else {
      config.devices = {device(side)};
    }
    return config;
  }

  EndpointOptions endpoint_options() const {
    EndpointOptions options;
    options.connection.access = kAccess;
    options.connection.max_rd_atomic = static_cast<uint8_t>(outstanding_);
    // After a frame is lost, one retry must be enough. After a frame is duplicated, none must be
    // needed.
    options.connection.retry_cnt = disturbance_.fault == Fault::kDuplicated ? 0 : 1;
    options.recv_access = kAccess | abi::kAccessLocalWrite;
    options.buffer_size = exchange_.buffer_size();
    return options;
  }

  std::string rule() const {
    const std::string does[] = {"", "drop", "{duplicate: 1}", "{reorder: 3}", "{corrupt: icrc}"};
    return std::string("{on: frame, from: ") + (disturbance_.side == 0 ? "left" : "right") +
           ", nth: " + std::to_string(disturbance_.number) +
           ", do: " + does[static_cast<int>(disturbance_.fault)] + "}";
  }

  Bench& right_bench() { return right_bench_ ? *right_bench_ : left_bench_; }

  std::span<uint8_t> buffer(Endpoint& of, uint64_t offset, size_t size) {
    return of.memory().at(of.client.id(), Endpoint::kRecvBuffer + offset, size);
  }

  void prepare() {
    for (uint32_t i = 0; i < messages_; ++i) {
      const auto sent = left_->send_bytes(exchange_.message, i * exchange_.stride());
      const auto source =
          buffer(*right_, exchange_.sources() + i * exchange_.stride(), exchange_.message);
      for (uint64_t at = 0; at < exchange_.message; ++at) {
        sent[at] = pattern(i, at, 1);
        source[at] = pattern(i, at, 2);
      }
      if (!takes_receive(opcode(i))) continue;
      right_->post_recv({.wr_id = i,
                         .sges = {right_->recv_sge(exchange_.message,
                                                   exchange_.targets() + i * exchange_.stride())}});
    }
  }

  WrOpcode opcode(uint32_t i) const { return exchange_.opcodes[i % exchange_.opcodes.size()]; }
  static bool takes_receive(WrOpcode opcode) {
    return opcode == WrOpcode::kSend || opcode == WrOpcode::kSendWithImm ||
           opcode == WrOpcode::kRdmaWriteWithImm;
  }
  static bool is_atomic(WrOpcode opcode) {
    return opcode == WrOpcode::kAtomicCmpAndSwp || opcode == WrOpcode::kAtomicFetchAndAdd;
  }

  void post_next() {
    const uint32_t i = posted_++;
    SendWr wr{.wr_id = i, .opcode = opcode(i), .imm = i, .rkey = right_->recv_mr.rkey};
    wr.remote_address = Endpoint::kRecvBuffer + exchange_.targets() + i * exchange_.stride();
    switch (wr.opcode) {
      case WrOpcode::kRdmaRead:
        wr.sges = {left_->recv_sge(exchange_.message, i * exchange_.stride())};
        wr.remote_address = Endpoint::kRecvBuffer + exchange_.sources() + i * exchange_.stride();
        break;
      case WrOpcode::kAtomicFetchAndAdd:
      case WrOpcode::kAtomicCmpAndSwp:
        wr.sges = {left_->recv_sge(sizeof(uint64_t), i * exchange_.stride())};
        wr.remote_address = Endpoint::kRecvBuffer + exchange_.word();
        wr.compare_add = wr.opcode == WrOpcode::kAtomicFetchAndAdd ? 1 : i;
        wr.swap = i + 1;
        break;
      case WrOpcode::kAtomicWrite:
        wr.sges = {left_->send_sge(sizeof(uint64_t), i * exchange_.stride())};
        break;
      case WrOpcode::kFlush:
        wr.flush = {.length = exchange_.message, .type = wire::Feth::kGlobalVisibility, .level = 0};
        wr.remote_address = Endpoint::kRecvBuffer + exchange_.targets();
        break;
      default:
        wr.sges = {left_->send_sge(exchange_.message, i * exchange_.stride())};
        break;
    }
    left_->post_send(wr);
  }

  /// Handles the outputs of the engines: completions, and frames for the link.
  void collect() {
    collect_from(left_bench_, 0);
    if (right_bench_) collect_from(*right_bench_, 1);
  }

  void collect_from(Bench& bench, int side) {
    for (const Timed& entry : std::exchange(bench.log, {})) {
      if (const auto* completion = std::get_if<engine::Completion>(&entry.output)) {
        take(*completion);
      } else if (const auto* sent = std::get_if<engine::TransmitFrame>(&entry.output)) {
        const auto bytes = sent->frame.bytes();
        transmit(entry.at, side, {bytes.begin(), bytes.end()});
      }
    }
  }

  void take(const engine::Completion& completion) {
    const abi::Cqe& cqe = completion.cqe;
    if (cqe.status != static_cast<uint32_t>(abi::WcStatus::kSuccess)) {
      error_ += fmt("wr_id {} of client {} failed with status {}; ", cqe.wr_id,
                    completion.client.value, cqe.status);
    }
    if (completion.client == left_->client.id()) {
      if (cqe.wr_id != completed_) error_ += fmt("wr_id {} completed out of order; ", cqe.wr_id);
      ++completed_;
    } else {
      received_.push_back(static_cast<uint32_t>(cqe.wr_id));
    }
  }

  void transmit(engine::Instant now, int side, std::vector<uint8_t> bytes) {
    const bool disturbed = disturbance_.fault != Fault::kNone && disturbance_.side == side &&
                           ++sent_ == disturbance_.number;
    happened_ |= disturbed;
    int copies = 1;
    if (disturbed && disturbance_.fault == Fault::kLost) return;
    if (disturbed && disturbance_.fault == Fault::kDuplicated) copies = 2;
    if (disturbed && disturbance_.fault == Fault::kCorrupted) bytes[bytes.size() - 6] ^= 0x10;
    if (disturbed && disturbance_.fault == Fault::kDelayed) {
      held_ = std::move(bytes);
      overtaken_by_ = 0;
      return;
    }
    for (int i = 0; i < copies; ++i) link_.emplace(now + kLatency, Arrival{1 - side, bytes});
    if (!held_.empty() && side == disturbance_.side && ++overtaken_by_ == 3) {
      link_.emplace(now + kLatency, Arrival{1 - side, std::exchange(held_, {})});
    }
  }

  /// Runs until no frame is in flight and the program waits for nothing.
  void move_frames() {
    for (;;) {
      collect();
      while (posted_ < messages_ && posted_ < completed_ + outstanding_) {
        post_next();
        collect();
      }
      std::optional<engine::Instant> next;
      const auto consider = [&](std::optional<engine::Instant> at) {
        if (at && (!next || *at < *next)) next = at;
      };
      consider(left_bench_.engine().next_deadline());
      consider(right_bench().engine().next_deadline());
      if (!link_.empty()) consider(link_.begin()->first);
      if (!next && !held_.empty()) {  // no later frame came to overtake it, so it arrives now
        link_.emplace(left_bench_.now() + kLatency,
                      Arrival{1 - disturbance_.side, std::exchange(held_, {})});
        continue;
      }
      if (!next || next->time_since_epoch() > kLongest) return;
      left_bench_.advance_to(next->time_since_epoch());
      if (right_bench_) right_bench_->advance_to(next->time_since_epoch());
      while (!link_.empty() && link_.begin()->first <= *next) {
        const Arrival arrival = std::move(link_.begin()->second);
        link_.erase(link_.begin());
        Bench& to = arrival.to == 0 ? left_bench_ : right_bench();
        to.step(engine::ReceivedFrame{engine::DeviceIndex{0}, arrival.bytes});
      }
    }
  }

  std::string check_data() {
    std::vector<uint32_t> receives;
    uint64_t word = 0;
    for (uint32_t i = 0; i < messages_; ++i) {
      const WrOpcode op = opcode(i);
      if (takes_receive(op)) receives.push_back(static_cast<uint32_t>(receives.size()));
      const auto got =
          op == WrOpcode::kRdmaRead
              ? buffer(*left_, i * exchange_.stride(), exchange_.message)
              : buffer(*right_, exchange_.targets() + i * exchange_.stride(), exchange_.message);
      if (is_atomic(op)) {
        uint64_t before = 0;
        std::memcpy(&before, buffer(*left_, i * exchange_.stride(), sizeof before).data(),
                    sizeof before);
        if (before != word++) return fmt("atomic {} found {}", i, before);
      } else if (op != WrOpcode::kFlush) {
        const uint64_t size = op == WrOpcode::kAtomicWrite ? sizeof(uint64_t) : exchange_.message;
        // Receives are used in the order in which they were posted, so the message's number says
        // where its data must be.
        const uint32_t source = i;
        for (uint64_t at = 0; at < size; ++at) {
          const uint8_t salt = op == WrOpcode::kRdmaRead ? 2 : 1;
          if (got[at] != pattern(source, at, salt)) return fmt("byte {} of message {}", at, i);
        }
      }
    }
    uint64_t stored = 0;
    std::memcpy(&stored, buffer(*right_, exchange_.word(), sizeof stored).data(), sizeof stored);
    if (stored != word) return fmt("the word of the atomics is {}, and not {}", stored, word);
    if (received_.size() != receives.size()) return fmt("{} receives", received_.size());
    if (!std::ranges::is_sorted(received_)) return "receives out of order";
    if (left_->state() != abi::QpState::kRts || right_->state() != abi::QpState::kRts) {
      return "a QP left RTS";
    }
    return "";
  }

  static constexpr engine::Duration kLatency = 10us;
  static constexpr engine::Duration kLongest = 60s;

  const Exchange& exchange_;
  Between between_;
  Disturbance disturbance_;
  uint32_t outstanding_;
  uint32_t messages_;
  Bench left_bench_;
  std::optional<Bench> right_bench_;
  std::optional<Endpoint> left_, right_;
  std::multimap<engine::Instant, Arrival> link_;
  std::vector<uint8_t> held_;
  uint64_t sent_ = 0, overtaken_by_ = 0;
  bool happened_ = false;
  uint32_t posted_ = 0, completed_ = 0;
  std::vector<uint32_t> received_;
  std::string error_;
};

class SingleFault : public testing::TestWithParam<std::tuple<Between, Fault, uint32_t>> {};

TEST_P(SingleFault, IsRepairedWhicheverFrameItBefalls) {
  mallopt(M_MMAP_THRESHOLD, 64 << 20);  // thousands of worlds exist, one after the other
  mallopt(M_TRIM_THRESHOLD, 64 << 20);
  const auto [between, fault, outstanding] = GetParam();
  for (const Exchange& exchange : exchanges()) {
    for (int side = 0; side < 2; ++side) {
      for (uint64_t number = 1;; ++number) {
        const Disturbance disturbance{fault, side, number};
        World world(exchange, between, disturbance, outstanding);
        const std::string wrong = world.run();
        EXPECT_EQ(wrong, "") << exchange.name << ": frame " << number << " of the "
                             << (side == 0 ? "requester" : "responder");
        if (!world.fault_happened()) break;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Frames, SingleFault,
                         testing::Combine(testing::Values(Between::kDevicesOfOneFabric,
                                                          Between::kTwoEngines, Between::kANetwork),
                                          testing::Values(Fault::kLost, Fault::kDuplicated,
                                                          Fault::kDelayed, Fault::kCorrupted),
                                          testing::Values(1u, 2u, 16u)),
                         [](const auto& one) {
                           return std::string(
                                      kBetweenNames[static_cast<int>(std::get<0>(one.param))]) +
                                  "_" + kFaultNames[static_cast<int>(std::get<1>(one.param))] +
                                  "_" + std::to_string(std::get<2>(one.param)) + "outstanding";
                         });

}  // namespace
}  // namespace rocemu::test
