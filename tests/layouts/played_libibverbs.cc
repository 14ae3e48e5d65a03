// Imitates rdma-core's libibverbs of the version that the macros PLAYED_... describe.
#include "tests/layouts/played_libibverbs.h"

#include <infiniband/verbs.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>

using rocemu::layouts::PlayedLibibverbs;

namespace {

PlayedLibibverbs played{.newest_public = PLAYED_NEWEST,
                        .context_head = PLAYED_HEAD,
                        .qp_ex_functions = PLAYED_FUNCTIONS,
                        .port_attr_size = PLAYED_PORT_ATTR,
                        .operations = PLAYED_OPERATIONS};

/// The number of bytes of ibv_qp_ex before its functions.
constexpr size_t kQpExHead = offsetof(ibv_qp_ex, wr_atomic_cmp_swp);
constexpr size_t kContextHead = PLAYED_HEAD;

}  // namespace

#define JOIN(name, number) name##number
#define NUMBERED(name, number) JOIN(name, number)
#define EXPORTED __attribute__((visibility("default")))

extern "C" {

EXPORTED PlayedLibibverbs* played_libibverbs() {
  return &played;
}

/// A version of public symbols exists only if a function has it.
EXPORTED void played_newest() {}

EXPORTED void NUMBERED(verbs_register_driver_, PLAYED_PRIVATE)(const void* driver) {
  played.driver = driver;
}

EXPORTED void* _verbs_init_and_alloc_context(ibv_device* device, int cmd_fd, size_t size,
                                             verbs_context* offset, uint32_t) {
  auto* memory = static_cast<char*>(calloc(1, size));
  char* verbs = memory + reinterpret_cast<uintptr_t>(offset);
  auto* context = reinterpret_cast<ibv_context*>(verbs + kContextHead);
  played.context_fits =
      reinterpret_cast<uintptr_t>(offset) + kContextHead + sizeof(ibv_context) <= size;
  memset(verbs, rocemu::layouts::kOwnBytes, kContextHead);
  const size_t sz = kContextHead + sizeof(ibv_context);
  memcpy(verbs + kContextHead - sizeof(sz), &sz, sizeof(sz));
  context->device = device;
  context->cmd_fd = cmd_fd;
  context->abi_compat = reinterpret_cast<void*>(UINTPTR_MAX);
  return memory;
}

EXPORTED void verbs_set_ops(verbs_context*, const void* ops) {
  memcpy(played.ops, ops, PLAYED_OPERATIONS * sizeof(void*));
}

EXPORTED void verbs_uninit_context(verbs_context*) {}

EXPORTED ibv_qp_ex* ibv_qp_to_qp_ex(ibv_qp* qp) {
  uint32_t mask;
  memcpy(&mask, reinterpret_cast<char*>(qp) + kQpExHead + PLAYED_FUNCTIONS * sizeof(void*),
         sizeof(mask));
  return (mask & 2) != 0 ? reinterpret_cast<ibv_qp_ex*>(qp) : nullptr;
}

}  // extern "C"
