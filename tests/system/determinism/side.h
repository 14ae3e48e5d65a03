// Common parts of the programs in this folder: a device, queue pairs that are connected to each
// other or to those of another process, and lines of output that name the thread or process that
// wrote them.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace rocemu::determinism {

[[noreturn]] void fail(const std::string& what);

/// Writes a line to standard output with one system call, so that lines of different threads and
/// processes do not mix. Their order is part of the output.
void say(const std::string& line);

struct Device {
  explicit Device(const char* name = "rocemu0");
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  ibv_context* context = nullptr;
  ibv_pd* pd = nullptr;
};

/// The address of a queue pair and its buffer, in the form that is sent to the other process.
struct Address {
  uint64_t buffer = 0;
  uint32_t rkey = 0;
  uint32_t qp_num = 0;
  ibv_gid gid = {};
};

/// An RC queue pair in INIT, with its buffer.
class Side {
 public:
  struct Options {
    ibv_cq* cq = nullptr;  // if null, the Side creates one with the next two options
    ibv_comp_channel* channel = nullptr;
    int cqe = 64;
    uint32_t size = 64;         // size of a message in bytes
    ibv_cq* recv_cq = nullptr;  // another for receives
  };

  explicit Side(Device& device) : Side(device, Options()) {}
  Side(Device& device, const Options& options);
  ~Side();
  Side(const Side&) = delete;
  Side& operator=(const Side&) = delete;

  ibv_cq* cq() const { return cq_; }
  ibv_qp* qp() const { return qp_; }
  Address address() const;
  void connect(const Address& peer);

  void post_recv(uint64_t wr_id);
  void post_send(uint64_t wr_id, ibv_wr_opcode opcode = IBV_WR_SEND);
  /// The last byte of the data to send, and the last byte of the received data, which a WRITE of
  /// the peer changes last.
  uint8_t& last_byte_to_send() { return buffer_[size_ - 1]; }
  const volatile uint8_t& last_byte_that_comes() const { return buffer_.back(); }
  /// Polls for one completion. Returns whether there was a completion. Ends the program if the
  /// completion is not successful.
  bool poll(ibv_wc& wc);
  /// Polls until this number of completions was found.
  void poll_for(int completions);

 private:
  Device& device_;
  uint32_t size_;
  std::vector<uint8_t> buffer_;
  ibv_mr* mr_ = nullptr;
  bool owns_cq_;
  ibv_cq* cq_;
  ibv_qp* qp_ = nullptr;
  Address peer_;
};

void connect(Side& a, Side& b);
/// Connects to a queue pair of the process at the socket's other end.
void connect_over(Side& side, int socket);

void send_all(int fd, const void* data, size_t size);
void receive_all(int fd, void* data, size_t size);

/// Starts a child that calls `work` and then exits with 0. The child ends when its parent does, at
/// the latest.
pid_t start_child(const std::function<void()>& work);
/// Ends the program if one of its children failed.
void wait_for_children(size_t count);

struct SocketPair {
  SocketPair();
  int ours = -1, theirs = -1;
};

}  // namespace rocemu::determinism
