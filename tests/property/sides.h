// The two applications of a program: their devices, objects and connections, and what the model
// knows about each.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "tests/property/image.h"
#include "tests/property/program.h"
#include "tests/support/bench.h"

namespace rocemu::property {

// Layout of a side's memory: a part that is only read, words for atomics, and the rest, of which
// each operation gets a separate range.
inline constexpr uint64_t kMemory = 0x10000000;
inline constexpr uint64_t kMemorySize = 768 * 1024;
// the memory after this many bytes is for receives at the end of the program
inline constexpr uint64_t kMemoryOfOps = 512 * 1024;
inline constexpr uint64_t kConstant = kMemory;
inline constexpr uint32_t kConstantSize = 16 * kMtu;
inline constexpr uint32_t kWordsEach = 4;  // for each connection
inline constexpr uint64_t kWords = kMemory + kConstantSize;
inline constexpr uint64_t kFirstFree = kWords + kConnections * kWordsEach * sizeof(uint64_t);

inline constexpr uint32_t kGrh = 40;
inline constexpr uint32_t kShortest = 64;  // the smallest receive
inline constexpr uint32_t kMaxReceive = kGrh + kLargest;
inline constexpr uint32_t kWindowSize = 2 * kLargest;
inline constexpr uint32_t kQkey = 0x1234;
inline constexpr abi::QpCap kCap{.max_send_wr = 256,
                                 .max_recv_wr = 512,
                                 .max_send_sge = 3,
                                 .max_recv_sge = 1,
                                 .max_inline_data = 128};

/// A send request.
struct Message {
  Op op;
  uint64_t wr_id = 0;
  bool signaled = true;
  // the status with which the request completes if no other error comes first
  abi::WcStatus fate = abi::WcStatus::kSuccess;
  uint64_t local = 0;             // address of its buffer
  uint32_t size = 0;              // the size of its buffer
  std::vector<uint8_t> expected;  // READ and atomic: the expected final contents of its buffer
  std::vector<uint8_t> payload;   // SEND, WRITE
  uint64_t remote = 0;            // WRITE: the address in the peer's memory
  uint32_t imm = 0;               // immediate data, or the R_Key that is invalidated
};

struct Receive {
  uint64_t address = 0;  // its wr_id too
  uint32_t length = 0;
};
/// The posted receives of a QP or of an SRQ, oldest first.
struct ReceiveQueue {
  std::deque<Receive> posted;
  uint32_t srq = 0;    // its handle
  uint32_t users = 0;  // the number of QPs that use the SRQ; each may be filling one receive
  uint32_t limit = 0;  // armed
};

struct Window {
  enum class State { kFree, kChanging, kBound };
  test::Mw mw;
  State state = State::kFree;
  uint32_t rkey = 0;              // the R_Key of the latest bind
  std::optional<uint32_t> stale;  // an R_Key that can never become valid again
  uint64_t area = 0;
  uint32_t used = 0;
};

/// One packet of a UC or UD message.
struct Fragment {
  Message message;
  uint32_t number = 0;
  bool last = false;
};
/// A completion that must still arrive.
struct Due {
  uint64_t wr_id = 0;
  uint32_t byte_len = 0;
  std::optional<uint32_t> imm;
};

/// One side's view of a connection.
struct Half {
  Kind kind{};
  uint32_t send_qpn = 0, recv_qpn = 0;  // different only for XRC
  uint32_t ah = 0;                      // UD
  uint64_t posted = 0;
  std::deque<Message> sends;     // the sends that are not complete yet
  std::deque<Message> arrivals;  // messages of the peer that will use a receive
  ReceiveQueue own;
  ReceiveQueue* receives = nullptr;
  // the values of the peer's words that this side's atomics change
  std::array<uint64_t, kWordsEach> words{};
  std::optional<Message> latest_write;
  std::set<abi::WcStatus> mistakes;  // statuses of requests that the peer must refuse
  uint8_t pd = 0;                    // index of the side's PD
  Window window;
  test::Mw foreign_window;  // a window of the other PD, which is never bound
  // Consequences of errors that the model predicted.
  bool send_failed = false, recv_failed = false;  // whether the QP is in ERR
  bool stopped = false;                           // whether the QP is in SQE
  bool told_last_wqe = false;
  std::optional<uint64_t> refused;  // the peer's message for which no receive was long enough
  // For UC and UD: packets to send, packets that the network may deliver, and the received part of
  // a message.
  std::deque<Fragment> to_send;
  std::map<uint32_t, Fragment> by_psn;
  bool in_message = false;
  uint32_t expected_psn = 0;
  std::deque<Due> due;

  bool failed() const { return send_failed || recv_failed; }
};

struct Side {
  std::unique_ptr<test::Bench> bench;
  std::unique_ptr<test::Client> client;
  std::array<uint32_t, 2> pds{};
  std::array<test::Mr, 2> mrs;  // a region of the same memory in each PD
  uint32_t cq = 0;
  ReceiveQueue srq, xrc_srq;
  uint64_t free = kFirstFree;
  Image image{kMemory, kMemorySize};
  std::array<Half, kConnections> halves;

  std::span<uint8_t> memory(uint64_t address, size_t size) {
    return bench->memory.at(client->id(), address, size);
  }
  /// Returns the address of memory that no other operation uses. The gap after this memory shows
  /// whether too many bytes are written.
  uint64_t take_memory(size_t size);
  /// Return the regions for sends and for receives. SRQs belong to the first PD.
  const test::Mr& mr_of_sends(const Half& half) const { return mrs[half.pd]; }
  const test::Mr& mr_of_receives(const Half& half) const {
    return mrs[is_shared(half.kind) ? 0 : half.pd];
  }
  /// Returns the region whose R_Key the peer uses. A request over XRC uses the PD of the SRQ that
  /// it names (IBTA vol 1, annex A14).
  const test::Mr& mr_for_peer(const Half& half) const {
    return mrs[half.kind == Kind::kXrc ? 0 : half.pd];
  }
  const test::Mr& mr_not_for_peer(const Half& half) const {
    return mrs[half.kind == Kind::kXrc ? 1 : 1u - half.pd];
  }
  bool has_memory() const { return free + 2 * kWindowSize < kMemory + kMemoryOfOps; }
};

using Sides = std::array<Side, kSides>;

/// Returns the handle that an async event of the connection's QPs, or of an SRQ, contains.
constexpr uint64_t handle_of(uint32_t connection) {
  return 100 + connection;
}
inline constexpr uint64_t kSrqHandle = 1, kXrcSrqHandle = 2;

/// Creates and connects all objects. Returns false if the engine refused any of them.
bool set_up(const Program& program, Sides& sides);

/// Returns the bytes that a READ of the constant part of `side` must return.
std::vector<uint8_t> constant_of(uint32_t side);

}  // namespace rocemu::property
