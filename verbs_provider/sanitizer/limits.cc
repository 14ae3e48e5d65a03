#include "verbs_provider/sanitizer/limits.h"

#include <fstream>

#include "emulator/abi/control.h"
#include "emulator/abi/runtime_dir.h"
#include "verbs_provider/shim/call.h"

namespace rocemu::sanitizer {
namespace {

uint64_t allowed_of(const abi::DeviceAttr& attr, Limit limit) {
  switch (limit) {
    case Limit::kQpWr:
      return attr.max_qp_wr;
    case Limit::kSge:
      return attr.max_sge;
    case Limit::kInline:
      return attr.max_inline_data;  // which ibv_query_device() does not return
    case Limit::kCqe:
      return attr.max_cqe;
    case Limit::kSrqWr:
      return attr.max_srq_wr;
    case Limit::kSrqSge:
      return attr.max_srq_sge;
    case Limit::kReads:
      return attr.max_qp_rd_atom;
    case Limit::kInitiatedReads:
      return attr.max_qp_init_rd_atom;
  }
  return UINT64_MAX;
}

}  // namespace

std::string name_with_profile(const ibv_context* context) {
  const std::string name = context->device->name;
  std::ifstream file(std::string(context->device->ibdev_path) + "/" + abi::kProfileFile);
  std::string profile;
  return std::getline(file, profile) ? name + " (profile " + profile + ")" : name;
}

std::vector<Exceeded> exceeded_limits(ibv_context* context, const std::vector<Asked>& asked) {
  std::vector<Exceeded> exceeded;
  abi::Request request{};
  request.op = abi::Op::kQueryDevice;
  abi::Reply reply;
  if (rocemu_call(context->cmd_fd, &request, &reply, nullptr, 0, nullptr, 0) != 0) return exceeded;
  for (const Asked& one : asked) {
    const uint64_t allowed = allowed_of(reply.body.device, one.limit);
    if (one.value > allowed) exceeded.push_back({one.attribute, one.value, allowed});
  }
  return exceeded;
}

}  // namespace rocemu::sanitizer
