#include "vipl/pingpong/side.h"

#include <arpa/inet.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

namespace rocemu::vipl::pingpong {
namespace {

constexpr size_t kDescriptors = 4096;  // bytes before the data
constexpr unsigned kSendSlot = Side::kReceives;

constexpr const char* kReturns[] = {"VIP_SUCCESS",
                                    "VIP_NOT_DONE",
                                    "VIP_INVALID_PARAMETER",
                                    "VIP_ERROR_RESOURCE",
                                    "VIP_TIMEOUT",
                                    "VIP_REJECT",
                                    "VIP_INVALID_RELIABILITY_LEVEL",
                                    "VIP_INVALID_MTU",
                                    "VIP_INVALID_QOS",
                                    "VIP_INVALID_PTAG",
                                    "VIP_INVALID_RDMAREAD",
                                    "VIP_DESCRIPTOR_ERROR",
                                    "VIP_INVALID_STATE",
                                    "VIP_ERROR_NAMESERVICE",
                                    "VIP_NO_MATCH",
                                    "VIP_NOT_REACHABLE",
                                    "VIP_ERROR_NOT_SUPPORTED"};

std::string text_of(const VIP_UINT8* host, size_t length) {
  char text[INET6_ADDRSTRLEN] = "";
  ::inet_ntop(length == 4 ? AF_INET : AF_INET6, host, text, sizeof text);
  return text;
}

void say_error(VIP_PVOID, VIP_ERROR_DESCRIPTOR* error) {
  // VIP_ERROR_CONN_LOST is not printed, because it also occurs when the peer exits at the end of a
  // run. If a thread still waits for the peer, the status of its descriptor reports the error.
  if (error->ErrorCode == VIP_ERROR_CONN_LOST) return;
  std::fprintf(stderr, "vipl_pingpong: the NIC reports VIP_ERROR_CODE %d\n", error->ErrorCode);
}

}  // namespace

void fail(const std::string& what) {
  std::fflush(stdout);
  std::fprintf(stderr, "vipl_pingpong: %s\n", what.c_str());
  std::_Exit(1);  // handlers may be running
}

const char* name_of(VIP_RETURN result) {
  return result < std::size(kReturns) ? kReturns[result] : "an unknown VIP_RETURN";
}

void check(VIP_RETURN result, const char* call) {
  if (result != VIP_SUCCESS) fail(std::string(call) + " returned " + name_of(result));
}

std::string errors_of(VIP_UINT32 status) {
  constexpr const char* kNames[] = {"FORMAT",       "PROTECTION", "LENGTH",    "PARTIAL",
                                    "DESC_FLUSHED", "TRANSPORT",  "RDMA_PROT", "REMOTE_DESC"};
  std::string text;
  for (unsigned i = 0; i < std::size(kNames); ++i) {
    if ((status & (unsigned{VIP_STATUS_FORMAT_ERROR} << i)) == 0) continue;
    text += (text.empty() ? "VIP_STATUS_" : " VIP_STATUS_") + std::string(kNames[i]) + "_ERROR";
  }
  return text;
}

struct Side::Address {
  VIP_NET_ADDRESS* get() { return reinterpret_cast<VIP_NET_ADDRESS*>(bytes); }
  void set_discriminator(const std::string& text) {
    get()->DiscriminatorLen = static_cast<VIP_UINT16>(text.size());
    std::memcpy(get()->HostAddress + get()->HostAddressLen, text.data(), text.size());
  }
  alignas(8) char bytes[128] = {};
};

void Side::Free::operator()(char* block) const {
  std::free(block);
}

Side::Side(const Options& options) : options_(options) {
  const VIP_RETURN opened = VipOpenNic(options_.device.c_str(), &nic_);
  if (opened != VIP_SUCCESS) {
    fail("there is no NIC '" + options_.device + "' (VipOpenNic: " + name_of(opened) +
         "); ibv_devices lists those there are, `rocemu run -- vipl_pingpong` brings some");
  }
  check(VipQueryNic(nic_, &nic_attributes_), "VipQueryNic");
  check(VipErrorCallback(nic_, nullptr, say_error), "VipErrorCallback");
  check(VipCreatePtag(nic_, &ptag_), "VipCreatePtag");
  const size_t bytes = kDescriptors + (kReceives + 1) * size_t{options_.size};
  const size_t rounded = (bytes + kDescriptors - 1) / kDescriptors * kDescriptors;
  block_.reset(static_cast<char*>(std::aligned_alloc(kDescriptors, rounded)));
  if (block_ == nullptr) fail("there is no memory for messages of that --size");
  std::memset(block_.get(), 0, rounded);
  VIP_MEM_ATTRIBUTES rights{ptag_, VIP_FALSE, VIP_FALSE};
  check(VipRegisterMem(nic_, block_.get(), rounded, &rights, &memory_), "VipRegisterMem");
  if (options_.mode == Mode::kNotify) check(VipCreateCQ(nic_, 16, &cq_), "VipCreateCQ");
  VIP_VI_ATTRIBUTES attributes{};
  attributes.ReliabilityLevel = static_cast<VIP_RELIABILITY_LEVEL>(
      options_.unreliable ? VIP_SERVICE_UNRELIABLE : VIP_SERVICE_RELIABLE_DELIVERY);
  attributes.MaxTransferSize = options_.size;
  attributes.Ptag = ptag_;
  check(VipCreateVi(nic_, &attributes, nullptr, cq_, &vi_), "VipCreateVi");
  for (unsigned i = 0; i < kReceives; ++i) post_receive(i);  // before the peer can send
}

Side::~Side() {
  VipCloseNic(nic_);
}

VIP_DESCRIPTOR* Side::prepare(unsigned slot) {
  auto* descriptor = reinterpret_cast<VIP_DESCRIPTOR*>(block_.get()) + slot;
  std::memset(descriptor, 0, sizeof *descriptor);
  descriptor->CS.SegCount = 1;
  descriptor->CS.Length = options_.size;
  descriptor->DS[0].Local.Data.Address = block_.get() + kDescriptors + slot * size_t{options_.size};
  descriptor->DS[0].Local.Handle = memory_;
  descriptor->DS[0].Local.Length = options_.size;
  return descriptor;
}

void Side::post_receive(unsigned which) {
  check(VipPostRecv(vi_, prepare(which % kReceives), memory_), "VipPostRecv");
}

void Side::send() {
  check(VipPostSend(vi_, prepare(kSendSlot), memory_), "VipPostSend");
  sending_ = true;
}

void Side::reap_send() {
  if (!sending_) return;
  sending_ = false;
  VIP_DESCRIPTOR* done = nullptr;
  VIP_RETURN result = VIP_NOT_DONE;
  if (options_.mode == Mode::kPoll) {
    while (result == VIP_NOT_DONE) result = VipSendDone(vi_, &done);
  } else {
    result = VipSendWait(vi_, VIP_INFINITE, &done);
  }
  if (result != VIP_SUCCESS) {
    fail(std::string("a message could not be sent: ") + name_of(result) + " " +
         (done != nullptr ? errors_of(done->CS.Status) : ""));
  }
}

void Side::check_received(VIP_RETURN result, const VIP_DESCRIPTOR* descriptor) const {
  if (result == VIP_SUCCESS) return;
  fail(std::string("no message came: ") + name_of(result) + " " +
       (descriptor != nullptr ? errors_of(descriptor->CS.Status) : ""));
}

void Side::connect() {
  Address local;
  local.get()->HostAddressLen = nic_attributes_.NicAddressLen;
  std::memcpy(local.get()->HostAddress, nic_attributes_.LocalNicAddress,
              nic_attributes_.NicAddressLen);
  local.set_discriminator(options_.discriminator);
  if (is_server()) {
    wait_for_client(local);
  } else {
    ask_server(local);
  }
}

void Side::wait_for_client(Address& local) {
  const std::string own = text_of(local.get()->HostAddress, local.get()->HostAddressLen);
  std::printf("  waiting at %s for '%s'\n", own.c_str(), options_.discriminator.c_str());
  std::fflush(stdout);
  Address client;
  VIP_VI_ATTRIBUTES theirs{};
  VIP_CONN_HANDLE connection = nullptr;
  const VIP_RETURN result = VipConnectWait(nic_, local.get(), options_.patience_s * VIP_ULONG{1000},
                                           client.get(), &theirs, &connection);
  if (result == VIP_TIMEOUT) {
    fail("no client came; start `vipl_pingpong " + own + "`, or wait longer with --patience");
  }
  check(result, "VipConnectWait");
  const VIP_RETURN accepted = VipConnectAccept(connection, vi_);
  if (accepted == VIP_SUCCESS) return;
  VipConnectReject(connection);
  fail(std::string("the client cannot be served, VipConnectAccept: ") + name_of(accepted) +
       "; --size and --unreliable must be the same on both sides");
}

void Side::ask_server(Address& local) {
  Address server;
  check(VipNSInit(nic_, nullptr), "VipNSInit");
  std::string name = options_.server;
  if (VipNSGetHostByName(nic_, name.data(), server.get(), 0) != VIP_SUCCESS) {
    fail("there is no host '" + name + "'; give the address that the server prints");
  }
  server.set_discriminator(options_.discriminator);
  const auto deadline =
      std::chrono::steady_clock::now() + std::chrono::seconds(options_.patience_s);
  VIP_RETURN result = VIP_NO_MATCH;
  VIP_VI_ATTRIBUTES theirs{};
  constexpr std::chrono::milliseconds kShortPause{2}, kLongPause{100};
  std::chrono::milliseconds pause = kShortPause;
  // The client tries again, because the server may not be waiting yet.
  while (result == VIP_NO_MATCH && std::chrono::steady_clock::now() < deadline) {
    result = VipConnectRequest(vi_, local.get(), server.get(),
                               options_.patience_s * VIP_ULONG{1000}, &theirs);
    if (result != VIP_NO_MATCH) break;
    std::this_thread::sleep_for(pause);
    pause = std::min(2 * pause, kLongPause);
  }
  if (result == VIP_NO_MATCH) {
    fail("no program waits at " + name + " for '" + options_.discriminator +
         "'; start `vipl_pingpong` there first");
  }
  if (result == VIP_TIMEOUT) {
    fail("no answer came from " + name +
         "; start `vipl_pingpong` there first, or wait longer with --patience");
  }
  if (result == VIP_REJECT) {
    fail("the server refuses; --size and --unreliable must be the same on both sides");
  }
  check(result, "VipConnectRequest");
}

void Side::disconnect() {
  check(VipDisconnect(vi_), "VipDisconnect");
}

}  // namespace rocemu::vipl::pingpong
