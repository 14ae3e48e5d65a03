// Measures the engine alone: the cost of a message from its post to both completions, without rings
// or another process, and with memory that is an ordinary array.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <cstring>
#include <vector>

#include "tests/support/bench.h"

namespace rocemu {
namespace {

using engine::ClientId;
using engine::DeviceIndex;

constexpr wire::IpAddress kLeft = wire::IpAddress::from_v4(10, 0, 0, 1);
constexpr wire::IpAddress kRight = wire::IpAddress::from_v4(10, 0, 0, 2);
constexpr abi::QpCap kCap = {.max_send_wr = 16,
                             .max_recv_wr = 16,
                             .max_send_sge = 1,
                             .max_recv_sge = 1,
                             .max_inline_data = 64};

/// Memory of clients that are all in this process.
class OwnMemory : public engine::HostMemory {
 public:
  engine::MemoryResult read(ClientId, std::span<const engine::RemoteRange> from,
                            std::span<const std::span<uint8_t>> to) override {
    const auto* source = reinterpret_cast<const uint8_t*>(from[0].address);
    for (const std::span<uint8_t> piece : to) {
      std::memcpy(piece.data(), source, piece.size());
      source += piece.size();
    }
    return engine::MemoryResult::kDone;
  }
  engine::MemoryResult write(ClientId, std::span<const engine::RemoteRange> to,
                             std::span<const std::span<const uint8_t>> from) override {
    auto* target = reinterpret_cast<uint8_t*>(to[0].address);
    for (const std::span<const uint8_t> piece : from) {
      std::memcpy(target, piece.data(), piece.size());
      target += piece.size();
    }
    return engine::MemoryResult::kDone;
  }
  /// Returns the number of all completions in the CQ, as if the client polled each of them at once.
  uint32_t completions_taken(ClientId client, engine::CqId) override {
    return client == ClientId{1} ? added[0] : added[1];
  }

  uint32_t added[2] = {};
};

engine::FabricConfig two_devices() {
  engine::FabricConfig config;
  config.ack_coalescing = engine::kMaxAckCoalescing;  // as in the daemon
  config.devices = {
      {.name = "left", .mac = {{2, 0, 0, 0, 0, 1}}, .addresses = {kLeft}, .policy = {}},
      {.name = "right", .mac = {{2, 0, 0, 0, 0, 2}}, .addresses = {kRight}, .policy = {}}};
  return config;
}

/// One client with a buffer, a CQ and a QP.
struct Side {
  Side(test::Bench& bench, ClientId id, DeviceIndex device, size_t size)
      : client(bench, id, device), buffer(size), pd(client.alloc_pd()) {
    mr = client.reg_mr(pd, address(), size, abi::kAccessLocalWrite | abi::kAccessRemoteWrite);
    cq = client.create_cq(64);
    qpn = client.create_qp(pd, cq, cq, kCap);
  }
  uint64_t address() const { return reinterpret_cast<uint64_t>(buffer.data()); }
  abi::Sge sge() const { return {address(), static_cast<uint32_t>(buffer.size()), mr.lkey}; }

  test::Client client;
  std::vector<uint8_t> buffer;
  uint32_t pd;
  test::Mr mr;
  uint32_t cq = 0;
  uint32_t qpn = 0;
};

class Connected {
 public:
  explicit Connected(size_t size)
      : bench_(two_devices(), memory_),
        left(bench_, ClientId{1}, DeviceIndex{0}, size),
        right(bench_, ClientId{2}, DeviceIndex{1}, size) {
    const test::Connection connection{.mtu = abi::Mtu::k4096,
                                      .access = abi::kAccessLocalWrite | abi::kAccessRemoteWrite};
    bring_up(left.client, left.qpn, abi::QpState::kRts, connection, test::address_vector(kRight),
             right.qpn);
    bring_up(right.client, right.qpn, abi::QpState::kRts, connection, test::address_vector(kLeft),
             left.qpn);
  }

  /// Executes the input and all work that results from it.
  void step(const engine::Input& input) {
    engine::Engine& engine = bench_.engine();
    run(engine, input);
    for (auto due = engine.next_deadline(); due && *due <= bench_.now();
         due = engine.next_deadline()) {
      run(engine, engine::Tick{});
    }
  }
  uint64_t completions() const { return memory_.added[0] + memory_.added[1]; }

 private:
  void run(engine::Engine& engine, const engine::Input& input) {
    outputs_.clear();
    engine.step(bench_.now(), input, outputs_);
    for (const engine::Output& output : outputs_.list) {
      const auto* completion = std::get_if<engine::Completion>(&output);
      if (completion != nullptr) ++memory_.added[completion->client == ClientId{1} ? 0 : 1];
    }
  }

  OwnMemory memory_;
  test::Bench bench_;

 public:
  Side left, right;

 private:
  engine::Outputs outputs_;
};

/// Returns the data that the provider puts into the WQE of a message: short messages.
std::vector<uint8_t> carried_by(const Side& side) {
  return side.buffer.size() <= abi::kMaxCarried ? side.buffer : std::vector<uint8_t>();
}

void measure(benchmark::State& state, abi::WrOpcode opcode) {
  const auto size = static_cast<size_t>(state.range(0));
  Connected pair(size);
  const auto send = test::send_wqe({.opcode = opcode,
                                    .sges = {pair.left.sge()},
                                    .inline_data = carried_by(pair.left),
                                    .remote_address = pair.right.address(),
                                    .rkey = pair.right.mr.rkey},
                                   kCap);
  const auto recv = test::recv_wqe({.sges = {pair.right.sge()}}, kCap.max_recv_sge);
  const bool takes_receive = opcode == abi::WrOpcode::kSend;
  uint64_t wanted = 0;
  for (auto _ : state) {
    if (takes_receive) {
      pair.step(engine::PostRecv{ClientId{2}, engine::QpNumber{pair.right.qpn}, recv});
    }
    pair.step(engine::PostSend{ClientId{1}, engine::QpNumber{pair.left.qpn}, send});
    wanted += takes_receive ? 2 : 1;
    if (pair.completions() != wanted) {
      state.SkipWithError("a message was not completed at once");
      break;
    }
  }
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations()) * state.range(0));
}

void engine_send(benchmark::State& state) {
  measure(state, abi::WrOpcode::kSend);
}

void engine_write(benchmark::State& state) {
  measure(state, abi::WrOpcode::kRdmaWrite);
}

/// Measures bursts, whose messages the daemon passes to the engine as one input. The reported time
/// is that of one message.
void engine_writes_of_burst(benchmark::State& state) {
  constexpr size_t kBurst = 16;
  Connected pair(static_cast<size_t>(state.range(0)));
  const auto one = test::send_wqe({.opcode = abi::WrOpcode::kRdmaWrite,
                                   .sges = {pair.left.sge()},
                                   .inline_data = carried_by(pair.left),
                                   .remote_address = pair.right.address(),
                                   .rkey = pair.right.mr.rkey},
                                  kCap);
  std::vector<std::byte> burst;
  for (size_t i = 0; i < kBurst; ++i) burst.insert(burst.end(), one.begin(), one.end());
  while (state.KeepRunningBatch(kBurst)) {
    pair.step(engine::PostSend{ClientId{1}, engine::QpNumber{pair.left.qpn}, burst});
  }
  if (pair.completions() != static_cast<uint64_t>(state.iterations()))
    state.SkipWithError("a message did not complete");
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations()) * state.range(0));
}

BENCHMARK(engine_writes_of_burst)->Arg(64);
BENCHMARK(engine_send)->Arg(64)->Arg(4096)->Arg(65536);
BENCHMARK(engine_write)->Arg(64)->Arg(4096)->Arg(65536);

}  // namespace
}  // namespace rocemu
