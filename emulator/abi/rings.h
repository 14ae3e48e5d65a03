// Shared-memory layouts: the data that a client (the provider) and the daemon exchange without a
// system call. The data is in segments (control.h): memory files that the daemon creates, sizes and
// seals. The daemon trusts nothing that it reads here: it copies once, checks the copy and uses the
// copy.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "emulator/abi/copy_jobs.h"

namespace rocemu::abi {

static_assert(std::atomic<uint32_t>::is_always_lock_free);

// ---- Doorbells: one ring per context --------------------------------------------------------
//
// The client writes entries and then `producer`; the daemon reads them in order and writes
// `consumer`. `producer` and `consumer` count entries from 0 and wrap at 2^32. The ring is full
// when producer - consumer == kDoorbellEntries; the client then wakes the daemon and yields.

inline constexpr uint32_t kDoorbellEntries = 4096;

enum class DoorbellKind : uint32_t {
  kSend = 1,  // object: QPN; value: send WQEs ever written to the QP's send ring
  kRecv,      // object: QPN; value: receive WQEs ever written to the QP's receive ring
  kSrqRecv,   // object: SRQ; value: receive WQEs ever written to the SRQ's ring
  kCqArm,     // object: CQ; value: producer index seen; kCqArmSolicited set for solicited only
};

/// A flag in the value of a kCqArm doorbell, above the 32-bit producer index
inline constexpr uint64_t kCqArmSolicited = uint64_t{1} << 32;

struct Doorbell {
  DoorbellKind kind;
  uint32_t object;
  uint64_t value;
};
static_assert(sizeof(Doorbell) == 16);

struct DoorbellRing {
  alignas(64) std::atomic<uint32_t> producer;  // written by the client
  /// The number, from 1, of the processor on which the client wrote its latest doorbell; 0 if it is
  /// unknown. While the daemon is awake on this processor, the client cannot run there.
  std::atomic<uint32_t> client_processor;
  /// The number of the client's threads that are yielding at this moment. If the daemon shares a
  /// processor with them, it may yield too: it gets the processor back as soon as each has polled
  /// once more. Threads that do not yield could keep the processor for a whole time slice.
  std::atomic<uint32_t> giving_way;
  /// Not 0 if the client takes payload from PayloadSlots; written by the client.
  std::atomic<uint32_t> takes_payload;
  /// The number of threads that wait on the futex `round`. If it is 0, the daemon does not wake the
  /// futex.
  std::atomic<uint32_t> waiting_for_round;
  alignas(64) std::atomic<uint32_t> consumer;  // written by the daemon
  /// Non-zero while the daemon sleeps or is about to sleep. A client that then adds an entry that
  /// needs attention writes 1 to the context's eventfd. The client stores `producer` and then loads
  /// `daemon_sleeping`; the daemon stores `daemon_sleeping` and then loads `producer`. All four
  /// accesses are sequentially consistent, so at least one side observes the other's store.
  alignas(64) std::atomic<uint32_t> daemon_sleeping;
  /// Not 0 on a virtual clock; written before the client sees the ring. A thread that polls twice
  /// in one round and finds nothing waits on the futex `round`, which the daemon increments
  /// whenever there may be something new.
  std::atomic<uint32_t> is_virtual;
  std::atomic<uint32_t> round;
  /// The operations that a rule may make fail, as bits of asked_for_bit(). Before each of these
  /// operations, the client sends a request.
  std::atomic<uint32_t> asked_for;
  /// The present device time, if the clock is virtual.
  std::atomic<uint64_t> device_time_ns;
  /// The number of threads that wait by yielding, in all clients of this daemon thread, divided by
  /// the number of processors. A yield of one of them takes about this many switches between
  /// threads. 0 until the threads have been counted.
  std::atomic<uint32_t> pollers_per_processor;
  /// Not 0 if the daemon reads each message only when sending it; written before the client sees
  /// the ring. If it is not 0, the client copies no message into a WQE or a slot, except messages
  /// posted inline.
  std::atomic<uint32_t> has_exact_memory;
  alignas(64) Doorbell entries[kDoorbellEntries];
};
static_assert(sizeof(DoorbellRing) == 192 + sizeof(Doorbell) * kDoorbellEntries);

// ---- Completion queues ----------------------------------------------------------------------

/// The work queue to which a completion returns a slot
enum class WorkQueue : uint8_t { kSend = 1, kRecv = 2, kSrq = 3 };

struct Cqe {
  uint64_t wr_id;
  uint64_t timestamp_ns;  // device time
  uint32_t status;        // WcStatus
  uint32_t opcode;        // WcOpcode; valid on success only
  uint32_t vendor_err;
  uint32_t byte_len;
  uint32_t imm_data;  // network byte order, or the invalidated rkey in host byte order
  uint32_t qp_num;
  uint32_t src_qp;
  uint32_t wc_flags;
  /// For a QP's own queue: how many WQEs since the queue's creation are finished when this
  /// completion is polled, so that their slots are free. For an SRQ, whose WQEs finish in any
  /// order: the SRQ's number; each completion frees one slot.
  uint32_t wqe_count;
  uint32_t qp_generation;  // 1 + the number of the QP's RESETs; older completions are skipped
  uint16_t slid;
  uint16_t pkey_index;
  uint8_t sl;
  uint8_t dlid_path_bits;
  WorkQueue queue;
  uint8_t payload;  // 0, or 1 + the number of the PayloadSlot that has the message's payload
};
static_assert(sizeof(Cqe) == 64);

/// The payload of a short message and its destination. The client copies the payload to the
/// destination when it takes the completion, which saves the daemon a system call. Until then, only
/// the NIC may access the destination. Before the NIC accesses it, the daemon withdraws the payload
/// and writes it to the destination itself.
struct PayloadSlot {
  enum Phase : uint32_t {
    kEmpty,
    kFull,
    kTaken,      // the client is copying; it makes the slot empty
    kWithdrawn,  // the daemon is writing; it makes the slot empty
  };
  static constexpr size_t kMaxBytes = 4096, kMaxRanges = 3;
  struct Range {
    uint64_t address;
    uint64_t length;
  };

  /// The lowest 2 bits are a Phase. The bits above them identify the completion that owns the slot:
  /// its position in its CQ (modulo 2^32) and the CQ's handle. If a completion refers to a slot
  /// that another completion owns by now, its payload was withdrawn.
  std::atomic<uint64_t> state;
  uint64_t range_count;
  Range ranges[kMaxRanges];
  uint8_t bytes[kMaxBytes];
};
static_assert(sizeof(PayloadSlot) == 4160);

constexpr uint64_t payload_state(uint32_t cq, uint32_t index, PayloadSlot::Phase phase) {
  return uint64_t{cq} << 34 | uint64_t{index} << 2 | phase;
}

/// The payload slots of one context, which all its CQs share
struct PayloadSlots {
  static constexpr uint32_t kCount = 255;
  alignas(64) PayloadSlot slots[kCount];
};

/// The ring has bit_ceil(capacity) entries; the CQ overruns at `capacity`, not at the ring's size.
struct CqRing {
  alignas(64) std::atomic<uint32_t> producer;  // completions ever added; written by the daemon
  std::atomic<uint32_t> error;                 // non-zero once overrun: the CQ cannot be used
  /// A futex. A client stores 1, reads `producer` again, and then waits as long as this is 1. The
  /// daemon, after changing `producer`, stores 0 and wakes all waiting threads. All these accesses
  /// are sequentially consistent, so that the daemon sees the waiting thread or that thread sees
  /// the completion.
  std::atomic<uint32_t> waiting;
  /// The value of `producer` (modulo 2^32) at which the client wants to be woken, stored before
  /// `waiting`. Below this value, the daemon need not wake it as long as more completions will
  /// follow. A thread that waits for several completions must then read `watched`.
  std::atomic<uint32_t> wake_at;
  /// Non-zero while the daemon will notice that no more completions follow, and then wake waiting
  /// threads. If this is 0, no completion has arrived lately, and a thread must not wait for
  /// several. The daemon stores 0 before it reads `waiting`, both sequentially consistent.
  std::atomic<uint32_t> watched;
  /// The number of completions ever taken; written by the client. The daemon reads it only when the
  /// CQ seems full. The space in the CQ is thus determined at the last moment, as with a NIC that
  /// reads the consumer index from memory.
  alignas(64) std::atomic<uint32_t> consumer;
  alignas(64) Cqe entries[];
};
static_assert(sizeof(CqRing) == 128);

// ---- Work queues ----------------------------------------------------------------------------

struct Sge {
  uint64_t address;
  uint32_t length;
  uint32_t lkey;
};
static_assert(sizeof(Sge) == 16);

/// The maximum length, in bytes, of a message that a send WQE without kSendInline can contain. With
/// this length, a WQE with one Sge takes 256 bytes.
inline constexpr uint32_t kMaxCarried = 176;

/// Space for messages that are too long for a WQE, with the contents that they had when they were
/// posted. The client chooses a slot, which becomes free together with the message's WQE.
struct SendSlots {
  static constexpr uint32_t kCount = 256, kMaxBytes = 4096;
  alignas(64) uint8_t bytes[kCount][kMaxBytes];
};

/// The calls by which a program changes the pages of a part of its address space
enum class MappingCall : uint32_t { kMunmap, kMmap, kMremap, kMadvise, kLast = kMadvise };

/// The latest changes to the pages of registered memory, as far as the shim noticed them; written
/// by the client, one thread at a time.
struct MappingChanges {
  static constexpr uint32_t kCount = 64;
  struct Entry {
    std::atomic<uint64_t> begin, end;
    std::atomic<MappingCall> call;
    uint32_t reserved;
  };
  alignas(64) std::atomic<uint32_t> count;  // all changes so far; change i is in entry i % kCount
  alignas(64) Entry entries[kCount];
};

/// The memory for messages' payload that a client shares with the daemon
struct Payload {
  PayloadSlots received;
  SendSlots sent;
  MappingChanges mappings;
  CopyJobs copies;
};

/// A send WQE: this header, followed by num_sge Sges or, with kSendInline, by inline_size bytes of
/// payload. Without kSendInline, inline_size is 0 or the length of the whole message. If it is not
/// 0, the Sges are followed by the message as it was when it was posted, and the message need not
/// be read from the addresses in the Sges.
struct SendWqe {
  uint64_t wr_id;
  uint32_t opcode;    // WrOpcode
  uint32_t flags;     // SendFlags
  uint32_t imm_data;  // network byte order, or the rkey to invalidate in host byte order
  uint32_t num_sge;
  uint32_t inline_size;
  uint32_t rkey;
  uint64_t remote_address;
  union {
    struct {
      uint64_t compare_add;
      uint64_t swap;
    } atomic;
    struct {
      uint32_t ah;
      uint32_t remote_qpn;
      uint32_t remote_qkey;
      uint32_t reserved;
    } ud;
    struct {  // kBindMw: [remote_address, +length) of the region; `rkey`: the new key's low 8 bits
      uint64_t length;  // 0 unbinds
      uint32_t lkey;
      uint32_t access;
    } bind;
    struct {
      uint32_t length;
      uint32_t type;   // bit 0: globally visible, bit 1: persistent
      uint32_t level;  // 0: the range, 1: the whole region
      uint32_t reserved;
    } flush;
  };
  uint32_t remote_srqn;  // XRC
  union {
    uint32_t window;  // kBindMw: the window's handle
    uint32_t slot;    // else: 0, or 1 + the number of the SendSlot with the message
  };
};
static_assert(sizeof(SendWqe) == 64);

/// A receive WQE: this header, followed by num_sge Sges.
struct RecvWqe {
  uint64_t wr_id;
  uint32_t num_sge;
  uint32_t reserved;
};
static_assert(sizeof(RecvWqe) == 16);

/// The position of a work queue in its QP's or SRQ's memory. WQE n uses slot n % slots. A QP's slot
/// is free again when the completion of its WQE, or of a later WQE of the same queue, was polled.
/// For an SRQ, only the number of free slots matters: each polled completion adds one.
struct WorkQueueLayout {
  uint64_t offset;  // bytes from the start of that memory
  uint32_t slots;   // a power of two, or 0 for no queue
  uint32_t stride;  // bytes per slot, a multiple of 16
};
static_assert(sizeof(WorkQueueLayout) == 16);

constexpr uint32_t round_up(uint32_t value, uint32_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

constexpr uint32_t send_stride(uint32_t max_sge, uint32_t max_inline) {
  const uint32_t sges = max_sge * static_cast<uint32_t>(sizeof(Sge)) + kMaxCarried;
  return round_up(static_cast<uint32_t>(sizeof(SendWqe)) + (sges > max_inline ? sges : max_inline),
                  64);
}

constexpr uint32_t recv_stride(uint32_t max_sge) {
  return static_cast<uint32_t>(sizeof(RecvWqe) + max_sge * sizeof(Sge));
}

}  // namespace rocemu::abi
