// A side of vipl_pingpong: its VI, connected, with the memory of one message in each direction.
// Errors end the program with a message that says what to do.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "vipl/pingpong/options.h"
#include "vipl/vipl.h"

namespace rocemu::vipl::pingpong {

[[noreturn]] void fail(const std::string& what);
/// Ends the program with a message that names `call`, unless `result` is VIP_SUCCESS.
void check(VIP_RETURN result, const char* call);
const char* name_of(VIP_RETURN result);
/// Returns the names of the error bits that are set, such as "VIP_STATUS_TRANSPORT_ERROR".
std::string errors_of(VIP_UINT32 status);

class Side {
 public:
  explicit Side(const Options& options);
  ~Side();
  Side(const Side&) = delete;
  Side& operator=(const Side&) = delete;

  void connect();
  void disconnect();

  void post_receive(unsigned which);
  void send();
  /// Waits until the last send, if any, is complete and its descriptor can be used again.
  void reap_send();
  /// Ends the program with a message if the descriptor that VipRecvDone or VipRecvWait returned has
  /// an error.
  void check_received(VIP_RETURN result, const VIP_DESCRIPTOR* descriptor) const;

  bool is_server() const { return options_.server.empty(); }
  VIP_VI_HANDLE vi() const { return vi_; }
  VIP_CQ_HANDLE cq() const { return cq_; }

  static constexpr unsigned kReceives = 2;  // one is posted while the other is handled

 private:
  struct Address;
  VIP_DESCRIPTOR* prepare(unsigned slot);
  void wait_for_client(Address& local);
  void ask_server(Address& local);

  Options options_;
  VIP_NIC_HANDLE nic_ = nullptr;
  VIP_NIC_ATTRIBUTES nic_attributes_{};
  VIP_PROTECTION_HANDLE ptag_ = nullptr;
  VIP_CQ_HANDLE cq_ = nullptr;
  VIP_VI_HANDLE vi_ = nullptr;
  VIP_MEM_HANDLE memory_ = 0;
  bool sending_ = false;
  struct Free {
    void operator()(char* block) const;
  };
  std::unique_ptr<char, Free> block_;
};

}  // namespace rocemu::vipl::pingpong
