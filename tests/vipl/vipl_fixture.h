// A NIC with memory, descriptors and VIs, which are created by VIPL's own calls only. Run the tests
// under `rocemu run`.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "vipl/vipl.h"

namespace rocemu::vipl_test {

inline constexpr VIP_ULONG kPatienceMs = 60'000;  // far longer than any wait of the tests
inline constexpr size_t kSlots = 64;
inline constexpr size_t kSlotBytes = 4096;
inline constexpr VIP_ULONG kMaxTransfer = 16384;

/// A VIPL address with its discriminator.
struct Address {
  Address(const std::string& host, const std::string& discriminator) {
    get()->HostAddressLen = static_cast<VIP_UINT16>(host.size());
    get()->DiscriminatorLen = static_cast<VIP_UINT16>(discriminator.size());
    std::memcpy(get()->HostAddress, host.data(), host.size());
    std::memcpy(get()->HostAddress + host.size(), discriminator.data(), discriminator.size());
  }
  Address() : Address("", "") {}
  VIP_NET_ADDRESS* get() { return reinterpret_cast<VIP_NET_ADDRESS*>(bytes); }
  std::string host() {
    return {reinterpret_cast<char*>(get()->HostAddress), get()->HostAddressLen};
  }
  std::string discriminator() {
    return {reinterpret_cast<char*>(get()->HostAddress) + get()->HostAddressLen,
            get()->DiscriminatorLen};
  }

  alignas(8) char bytes[256] = {};
};

/// A NIC and a registered block of memory. The block is divided into slots: the first 256 bytes of
/// each are for a descriptor, the rest is for data.
class Node {
 public:
  explicit Node(const char* device = "rocemu0") {
    EXPECT_EQ(VipOpenNic(device, &nic), VIP_SUCCESS) << "is this run under `rocemu run`?";
    VIP_NIC_ATTRIBUTES attributes{};
    EXPECT_EQ(VipQueryNic(nic, &attributes), VIP_SUCCESS);
    host.assign(reinterpret_cast<const char*>(attributes.LocalNicAddress),
                attributes.NicAddressLen);
    EXPECT_EQ(VipCreatePtag(nic, &ptag), VIP_SUCCESS);
    block.reset(static_cast<char*>(std::aligned_alloc(4096, kSlots * kSlotBytes)));
    std::memset(block.get(), 0, kSlots * kSlotBytes);
    VIP_MEM_ATTRIBUTES rights{ptag, VIP_TRUE, VIP_TRUE};
    EXPECT_EQ(VipRegisterMem(nic, block.get(), kSlots * kSlotBytes, &rights, &memory), VIP_SUCCESS);
  }
  ~Node() { VipCloseNic(nic); }
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  char* data(size_t slot) { return block.get() + slot * kSlotBytes + 256; }

  /// Returns the descriptor of a slot, set up for `length` bytes of the slot's data.
  VIP_DESCRIPTOR* descriptor(size_t slot, VIP_UINT32 length = 64) {
    auto* made = reinterpret_cast<VIP_DESCRIPTOR*>(block.get() + slot * kSlotBytes);
    std::memset(made, 0, 256);
    made->CS.SegCount = 1;
    made->CS.Length = length;
    made->DS[0].Local.Data.Address = data(slot);
    made->DS[0].Local.Handle = memory;
    made->DS[0].Local.Length = length;
    return made;
  }
  /// Returns a descriptor that writes to or reads from a slot of the peer.
  VIP_DESCRIPTOR* rdma(VIP_UINT16 operation, size_t slot, Node& peer, size_t peer_slot,
                       VIP_UINT32 length = 64) {
    VIP_DESCRIPTOR* made = descriptor(slot, length);
    made->CS.Control = operation;
    made->CS.SegCount = 2;
    made->DS[1] = made->DS[0];
    made->DS[0].Remote.Data.Address = peer.data(peer_slot);
    made->DS[0].Remote.Handle = peer.memory;
    made->DS[0].Remote.Reserved = 0;
    return made;
  }

  VIP_VI_ATTRIBUTES attributes(VIP_RELIABILITY_LEVEL level = VIP_SERVICE_RELIABLE_DELIVERY) const {
    const VIP_BOOLEAN read = level == VIP_SERVICE_UNRELIABLE ? VIP_FALSE : VIP_TRUE;
    return {level, kMaxTransfer, nullptr, ptag, VIP_TRUE, read};
  }
  VIP_VI_HANDLE vi(VIP_RELIABILITY_LEVEL level = VIP_SERVICE_RELIABLE_DELIVERY,
                   VIP_CQ_HANDLE send_cq = nullptr, VIP_CQ_HANDLE recv_cq = nullptr) {
    VIP_VI_ATTRIBUTES wanted = attributes(level);
    VIP_VI_HANDLE made = nullptr;
    EXPECT_EQ(VipCreateVi(nic, &wanted, send_cq, recv_cq, &made), VIP_SUCCESS);
    return made;
  }
  VIP_CQ_HANDLE cq(VIP_ULONG entries = 64) {
    VIP_CQ_HANDLE made = nullptr;
    EXPECT_EQ(VipCreateCQ(nic, entries, &made), VIP_SUCCESS);
    return made;
  }
  Address address(const std::string& discriminator = "") const { return {host, discriminator}; }

  VIP_NIC_HANDLE nic = nullptr;
  VIP_PROTECTION_HANDLE ptag = nullptr;
  VIP_MEM_HANDLE memory = 0;
  std::string host;

 private:
  struct Free {
    void operator()(char* memory_block) const { std::free(memory_block); }
  };
  std::unique_ptr<char, Free> block;
};

inline VIP_VI_STATE state_of(VIP_VI_HANDLE vi) {
  VIP_VI_STATE state = VIP_STATE_ERROR;
  VIP_VI_ATTRIBUTES attributes{};
  VIP_BOOLEAN send = 0, recv = 0;
  EXPECT_EQ(VipQueryVi(vi, &state, &attributes, &send, &recv), VIP_SUCCESS);
  return state;
}

/// Waits until the condition is true. Returns false if it did not become true in kPatienceMs.
inline bool eventually(const std::function<bool()>& condition) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(kPatienceMs);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

/// Calls VipConnectRequest, and repeats it while the server does not wait yet.
inline VIP_RETURN request(VIP_VI_HANDLE vi, Address local, Address remote,
                          VIP_VI_ATTRIBUTES* theirs = nullptr) {
  VIP_VI_ATTRIBUTES unused{};
  for (;;) {
    const VIP_RETURN result = VipConnectRequest(vi, local.get(), remote.get(), kPatienceMs,
                                                theirs != nullptr ? theirs : &unused);
    if (result != VIP_NO_MATCH) return result;
    std::this_thread::yield();
  }
}

inline void connect(Node& client, VIP_VI_HANDLE active, Node& server, VIP_VI_HANDLE passive) {
  Address local = server.address("service");
  std::thread serving([&] {
    Address from;
    VIP_VI_ATTRIBUTES theirs{};
    VIP_CONN_HANDLE connection = nullptr;
    ASSERT_EQ(
        VipConnectWait(server.nic, local.get(), kPatienceMs, from.get(), &theirs, &connection),
        VIP_SUCCESS);
    ASSERT_EQ(VipConnectAccept(connection, passive), VIP_SUCCESS);
  });
  EXPECT_EQ(request(active, client.address("client"), local), VIP_SUCCESS);
  serving.join();
}

/// Records the arguments of handler calls.
class Calls {
 public:
  struct Call {
    VIP_PVOID context;
    VIP_NIC_HANDLE nic;
    VIP_VI_HANDLE vi;
    VIP_DESCRIPTOR* descriptor;
    VIP_BOOLEAN recv;
    std::thread::id thread;
  };
  void add(const Call& call) {
    const std::scoped_lock lock(mutex_);
    calls_.push_back(call);
    changed_.notify_all();
  }
  /// Waits for `count` calls, and returns all calls so far.
  std::vector<Call> wait_for(size_t count) {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(changed_.wait_for(lock, std::chrono::milliseconds(kPatienceMs),
                                  [&] { return calls_.size() >= count; }))
        << calls_.size() << " calls instead of " << count;
    return calls_;
  }
  size_t count() {
    const std::scoped_lock lock(mutex_);
    return calls_.size();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Call> calls_;
};

/// Records the arguments of error handler calls.
class Errors {
 public:
  explicit Errors(VIP_NIC_HANDLE nic) : nic_(nic) {
    EXPECT_EQ(VipErrorCallback(nic, this, &Errors::add), VIP_SUCCESS);
  }
  ~Errors() { VipErrorCallback(nic_, nullptr, nullptr); }
  Errors(const Errors&) = delete;
  Errors& operator=(const Errors&) = delete;

  /// Waits for an error with this code and, if `resource` is given, about this kind of object.
  /// Returns the first one.
  VIP_ERROR_DESCRIPTOR wait_for(VIP_ERROR_CODE code, int resource = -1) {
    std::unique_lock lock(mutex_);
    VIP_ERROR_DESCRIPTOR found{};
    EXPECT_TRUE(changed_.wait_for(lock, std::chrono::milliseconds(kPatienceMs),
                                  [&] {
                                    for (const auto& error : errors_) {
                                      if (error.ErrorCode != code) continue;
                                      if (resource >= 0 &&
                                          error.ResourceCode != static_cast<unsigned>(resource))
                                        continue;
                                      found = error;
                                      return true;
                                    }
                                    return false;
                                  }))
        << "no error " << code;
    return found;
  }
  size_t count() {
    const std::scoped_lock lock(mutex_);
    return errors_.size();
  }

 private:
  static void add(VIP_PVOID context, VIP_ERROR_DESCRIPTOR* error) {
    auto* self = static_cast<Errors*>(context);
    const std::scoped_lock lock(self->mutex_);
    self->errors_.push_back(*error);
    self->changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<VIP_ERROR_DESCRIPTOR> errors_;
  VIP_NIC_HANDLE nic_;
};

/// Two connected VIs of one NIC.
class PairTest : public ::testing::Test {
 protected:
  void connect_pair(VIP_RELIABILITY_LEVEL level = VIP_SERVICE_RELIABLE_DELIVERY) {
    a = node.vi(level);
    b = node.vi(level);
    connect(node, a, node, b);
  }
  void post_recv(VIP_VI_HANDLE vi, VIP_DESCRIPTOR* descriptor) {
    ASSERT_EQ(VipPostRecv(vi, descriptor, node.memory), VIP_SUCCESS);
  }
  void post_send(VIP_VI_HANDLE vi, VIP_DESCRIPTOR* descriptor) {
    ASSERT_EQ(VipPostSend(vi, descriptor, node.memory), VIP_SUCCESS);
  }
  /// Waits until the send of `expected` is complete. Returns the result of VipSendWait, and the
  /// status of the descriptor.
  std::pair<VIP_RETURN, VIP_UINT32> sent(VIP_VI_HANDLE vi, VIP_DESCRIPTOR* expected) {
    VIP_DESCRIPTOR* done = nullptr;
    const VIP_RETURN result = VipSendWait(vi, kPatienceMs, &done);
    EXPECT_EQ(done, expected);
    return {result, done != nullptr ? done->CS.Status : 0};
  }
  std::pair<VIP_RETURN, VIP_UINT32> received(VIP_VI_HANDLE vi, VIP_DESCRIPTOR* expected) {
    VIP_DESCRIPTOR* done = nullptr;
    const VIP_RETURN result = VipRecvWait(vi, kPatienceMs, &done);
    EXPECT_EQ(done, expected);
    return {result, done != nullptr ? done->CS.Status : 0};
  }
  using Outcome = std::pair<VIP_RETURN, VIP_UINT32>;
  static Outcome success(VIP_UINT32 operation) {
    return {VIP_SUCCESS, VIP_STATUS_DONE | operation};
  }
  static Outcome failure(VIP_UINT32 bits) { return {VIP_DESCRIPTOR_ERROR, VIP_STATUS_DONE | bits}; }

  Node node;
  VIP_VI_HANDLE a = nullptr;
  VIP_VI_HANDLE b = nullptr;
};

}  // namespace rocemu::vipl_test
