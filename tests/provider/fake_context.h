// A context of the provider without libibverbs. It is connected to a daemon that the test imitates.
#pragma once

#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <string>

#include "tests/provider/fake_daemon.h"
#include "verbs_provider/context/context.h"

namespace rocemu::provider {

class FakeContext {
 public:
  explicit FakeContext(test::FakeDaemon::Handler handler)
      : daemon_(std::move(handler)), context_(static_cast<Context*>(calloc(1, sizeof(Context)))) {
    new (&context_->parts) Context::Parts();
    ibv_context& base = context_->context;
    base.abi_compat = reinterpret_cast<void*>(UINTPTR_MAX);
    verbs_get_ctx(&context_->context)->sz = sizeof(verbs_context);
    base.num_comp_vectors = 1;
    base.async_fd = dup(STDERR_FILENO);  // any descriptor that can be passed to the daemon
    base.cmd_fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    strcpy(address.sun_path, daemon_.device().c_str());
    context_->parts.doorbells.attach(doorbells_.get(), -1, base.cmd_fd);
    connected_ = connect(base.cmd_fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0;
  }
  ~FakeContext() {
    close(context_->context.cmd_fd);
    close(context_->context.async_fd);
    context_->parts.~Parts();
    free(context_);
  }
  FakeContext(const FakeContext&) = delete;
  FakeContext& operator=(const FakeContext&) = delete;

  bool connected() const { return connected_; }
  ibv_context* get() { return &context_->context; }

 private:
  test::FakeDaemon daemon_;
  std::unique_ptr<abi::DoorbellRing> doorbells_ = std::make_unique<abi::DoorbellRing>();
  Context* context_;
  bool connected_ = false;
};

}  // namespace rocemu::provider
