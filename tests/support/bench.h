// An engine for tests, with its clock, its memory, and the verbs of its clients as ordinary
// functions.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "emulator/engine/engine.h"
#include "tests/support/array_memory.h"

namespace rocemu::test {

using namespace std::chrono_literals;

/// An output of the engine, and its time.
struct Timed {
  engine::Instant at;
  engine::Output output;
};

/// Observes all inputs and outputs of an engine.
class BenchObserver {
 public:
  virtual ~BenchObserver() = default;
  virtual void begin(const engine::FabricConfig& config) = 0;
  virtual void before_step(engine::Instant now, const engine::Input& input) = 0;
  virtual void after_step(const engine::Outputs& outputs) = 0;
};

class Bench {
 public:
  explicit Bench(engine::FabricConfig config, BenchObserver* observer = nullptr)
      : engine_(config, memory), observer_(observer) {
    if (observer_ != nullptr) observer_->begin(config);
  }
  /// Creates an engine with another memory than `memory`. The other memory must outlive this
  /// object.
  Bench(engine::FabricConfig config, engine::HostMemory& instead)
      : engine_(std::move(config), instead) {}

  engine::Engine& engine() { return engine_; }
  const engine::Engine& engine() const { return engine_; }
  engine::Instant now() const { return now_; }

  /// Passes one input to the engine, and runs all work that results from it at the present time.
  void step(const engine::Input& input);
  void step(const engine::ReceivedFrame& frame) { step(engine::ReceivedFrames{{&frame, 1}}); }
  /// Passes one input to the engine, without running the work that the step leaves for further
  /// steps.
  void step_once(const engine::Input& input);
  /// Advances to `time` after the start, with a step at each deadline in between.
  void advance_to(engine::Duration time);

  void attach(engine::ClientId client, engine::DeviceIndex device,
              std::optional<engine::ClientId> shares_with = std::nullopt) {
    step(engine::AttachClient{client, device, shares_with});
  }
  void detach(engine::ClientId client) { step(engine::DetachClient{client}); }
  /// Executes a command of a client. If `refusal` is an errno value, the client itself refuses the
  /// call.
  abi::Reply command(engine::ClientId client, abi::Op op, const abi::Request::Body& body,
                     int refusal = 0);

  ArrayMemory memory;

 private:
  engine::Engine engine_;
  BenchObserver* observer_ = nullptr;
  engine::Instant now_{};

 public:
  /// The outputs of the engine that no test has read yet. This member is declared after the engine,
  /// because the frames in it must not outlive the engine.
  std::vector<Timed> log;
  std::vector<engine::Misuse> misuses;

 private:
  engine::Outputs outputs_;
  std::optional<abi::Reply> reply_;
};

// ---- Verbs ----------------------------------------------------------------------------------

struct Mr {
  uint32_t handle = 0;
  uint32_t lkey = 0;
  uint32_t rkey = 0;
};

struct Mw {
  uint32_t handle = 0;
  uint32_t rkey = 0;
};

/// The bind of a kBindMw. The members `remote_address` and `rkey` of its SendWr have the begin of
/// the window and its new R_Key.
struct BindWr {
  uint32_t window = 0;
  uint32_t lkey = 0;
  uint64_t length = 0;
  uint32_t access = 0;
};

/// A kFlush
struct FlushWr {
  uint32_t length = 0;
  uint32_t type = 0;
  uint32_t level = 0;
};

struct SendWr {
  uint64_t wr_id = 0;
  abi::WrOpcode opcode = abi::WrOpcode::kSend;
  uint32_t flags = abi::kSendSignaled;
  uint32_t imm = 0;
  std::vector<abi::Sge> sges = {};
  // the inline data with kSendInline; without it, the data that the provider put into the WQE
  std::vector<uint8_t> inline_data = {};
  uint64_t remote_address = 0;
  uint32_t rkey = 0;
  uint64_t compare_add = 0;
  uint64_t swap = 0;
  std::optional<BindWr> bind = {};
  std::optional<FlushWr> flush = {};
  uint32_t ah = 0;  // for UD, in place of the remote operands above
  uint32_t remote_qpn = 0;
  uint32_t remote_qkey = 0;
  uint32_t remote_srqn = 0;  // XRC
  uint32_t slot = 0;         // as SendWqe's
};

struct RecvWr {
  uint64_t wr_id = 0;
  std::vector<abi::Sge> sges = {};
};

struct QpInit {
  uint32_t pd = 0;
  uint32_t send_cq = 0;
  uint32_t recv_cq = 0;
  uint32_t srq = 0;
  uint32_t xrcd = 0;
  abi::QpType type = abi::QpType::kRc;
  abi::QpCap cap{};
  bool sig_all = false;
  uint64_t user_handle = 0;
};

struct SrqInit {
  uint32_t pd = 0;
  uint32_t max_wr = 16;
  uint32_t max_sge = 4;
  uint64_t user_handle = 0;
  abi::SrqType type = abi::SrqType::kBasic;
  uint32_t xrcd = 0;
  uint32_t cq = 0;
  uint32_t limit = 0;
};

struct SrqAttr {
  uint32_t max_wr = 0;
  uint32_t max_sge = 0;
  uint32_t limit = 0;
};

/// One ibv_context.
class Client {
 public:
  Client(Bench& bench, engine::ClientId id, engine::DeviceIndex device,
         std::optional<engine::ClientId> shares_with = std::nullopt)
      : bench_(bench), id_(id) {
    bench_.attach(id, device, shares_with);
  }

  engine::ClientId id() const { return id_; }
  Bench& bench() { return bench_; }
  abi::Reply command(abi::Op op, const abi::Request::Body& body) {
    return bench_.command(id_, op, body);
  }

  // Each function returns the new object's handle; `error` is the errno of the last command.
  uint32_t alloc_pd();
  Mr reg_mr(uint32_t pd, uint64_t address, uint64_t length,
            uint32_t access = abi::kAccessLocalWrite, std::optional<uint64_t> iova = {});
  Mr alloc_null_mr(uint32_t pd);
  /// `flags` are abi::ReregFlags. The IOVA is the address.
  Mr rereg_mr(uint32_t handle, uint32_t flags, uint32_t pd, uint64_t address, uint64_t length,
              uint32_t access);
  Mw alloc_mw(uint32_t pd, abi::MwType type);
  uint32_t alloc_dm(uint64_t length, uint32_t log_align = 0);
  uint32_t create_cq(uint32_t capacity, uint64_t user_handle = 0, uint64_t channel = 0);
  uint32_t create_qp(uint32_t pd, uint32_t send_cq, uint32_t recv_cq, const abi::QpCap& cap,
                     bool sig_all = false, uint64_t user_handle = 0);
  uint32_t create_qp(const QpInit& init);
  uint32_t create_srq(const SrqInit& init);
  uint32_t create_ah(uint32_t pd, const abi::AhAttr& attr);
  // Each function returns 0 or an errno.
  int dealloc_pd(uint32_t handle) { return on_handle(abi::Op::kDeallocPd, handle); }
  int dereg_mr(uint32_t handle) { return on_handle(abi::Op::kDeregMr, handle); }
  int dealloc_mw(uint32_t handle) { return on_handle(abi::Op::kDeallocMw, handle); }
  int free_dm(uint32_t handle) { return on_handle(abi::Op::kFreeDm, handle); }
  int query_pd(uint32_t handle) { return on_handle(abi::Op::kQueryPd, handle); }
  int advise_mr(uint32_t pd, uint32_t advice, uint32_t flags, const std::vector<abi::Sge>& sges);
  int resize_cq(uint32_t handle, uint32_t capacity);
  int modify_cq(uint32_t handle, uint32_t count, uint32_t period_us);
  int destroy_cq(uint32_t handle) { return on_handle(abi::Op::kDestroyCq, handle); }
  int destroy_qp(uint32_t qpn) { return on_handle(abi::Op::kDestroyQp, qpn); }
  int destroy_ah(uint32_t handle) { return on_handle(abi::Op::kDestroyAh, handle); }
  int destroy_srq(uint32_t handle) { return on_handle(abi::Op::kDestroySrq, handle); }
  int modify_srq(uint32_t handle, uint32_t mask, uint32_t max_wr, uint32_t limit);
  SrqAttr query_srq(uint32_t handle);
  int modify_qp(uint32_t qpn, const abi::QpAttr& attr, uint32_t mask);
  int set_state(uint32_t qpn, abi::QpState state);
  abi::QpAttr query_qp(uint32_t qpn);
  abi::QpState state(uint32_t qpn) { return static_cast<abi::QpState>(query_qp(qpn).qp_state); }

  void post_send(uint32_t qpn, const SendWr& wr);
  /// Posts all requests with one input.
  void post_sends(uint32_t qpn, const std::vector<SendWr>& wrs);
  void post_recv(uint32_t qpn, const RecvWr& wr);
  void post_srq_recv(uint32_t srq, const RecvWr& wr);
  /// Sets the number of completions that the client has polled from the CQ, in total.
  void consume(uint32_t cq, uint32_t count) {
    bench_.memory.taken[{id_, engine::CqId{cq}}] = count;
  }
  void arm(uint32_t cq, uint32_t seen, bool solicited_only = false) {
    bench_.step(engine::ArmCq{id_, engine::CqId{cq}, seen, solicited_only});
  }

  int error = 0;
  uint32_t generation = 0;  // the value that the last modify_qp returned

 private:
  int on_handle(abi::Op op, uint32_t handle);

  Bench& bench_;
  engine::ClientId id_;
};

std::vector<std::byte> send_wqe(const SendWr& wr, const abi::QpCap& cap);
std::vector<std::byte> recv_wqe(const RecvWr& wr, uint32_t max_sge);

/// Returns an address vector for the device or peer with that address.
abi::AhAttr address_vector(const wire::IpAddress& to, uint8_t sgid_index = 0);

/// The parameters of a QP's connection. The defaults are suitable for most tests.
struct Connection {
  abi::Mtu mtu = abi::Mtu::k1024;
  uint32_t sq_psn = 0;
  uint32_t rq_psn = 0;
  uint8_t timeout = 14;  // 67.108864 ms
  uint8_t retry_cnt = 7;
  uint8_t rnr_retry = 7;
  uint8_t min_rnr_timer = 12;  // 0.64 ms
  uint32_t access = 0;         // the access flags of the QP
  uint8_t max_rd_atomic = 1;   // the same for both directions
  uint32_t qkey = 0x1234;      // UD
  abi::QpType type = abi::QpType::kRc;
};

/// The attributes and mask for one change of state: to INIT, RTR or RTS. Other states need no
/// attributes.
struct Transition {
  abi::QpAttr attr{};
  uint32_t mask = 0;
};
Transition transition_to(abi::QpState to, const Connection& connection, const abi::AhAttr& peer,
                         uint32_t peer_qpn);

/// Brings the QP from RESET through INIT and RTR to `to`, which may also be SQD or ERR. Returns
/// false if a change was refused.
bool bring_up(Client& client, uint32_t qpn, abi::QpState to, const Connection& connection,
              const abi::AhAttr& peer, uint32_t peer_qpn);

}  // namespace rocemu::test
