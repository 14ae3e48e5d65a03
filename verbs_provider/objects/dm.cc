// ibv_alloc_dm(3), ibv_free_dm(3), ibv_memcpy_to_dm(3), ibv_memcpy_from_dm(3) and ibv_reg_dm_mr(3)
#include "verbs_provider/structs/dm.h"

#include <cerrno>
#include <cstring>

#include <sys/mman.h>

#include "verbs_provider/base/objects.h"
#include "verbs_provider/base/verbs.h"
#include "verbs_provider/context/context.h"
#include "verbs_provider/context/verb.h"
#include "verbs_provider/objects/register_region.h"
#include "verbs_provider/structs/mr.h"

namespace rocemu::provider {
namespace {

bool is_within(const Dm& dm, uint64_t offset, size_t length) {
  return offset <= dm.length && length <= dm.length - offset;
}

/// Returns whether the range can be copied. Only whole words can be copied, as with mlx5 and in
/// rdma-core's tests.
bool can_be_copied(const Dm& dm, uint64_t offset, size_t length) {
  constexpr uint64_t kWord = 4;
  return is_within(dm, offset, length) && offset % kWord == 0 && length % kWord == 0;
}

/// Asks the daemon whether a rule makes a copy fail. A child of fork() cannot ask.
int ask_for_copy(const ibv_dm& dm, abi::Op op) {
  return is_of_this_process(dm.context) ? ask(dm.context, op) : 0;
}

int copy_to(ibv_dm* base, uint64_t offset, const void* from, size_t length) {
  Dm* dm = ours<Dm>(base);
  if (!is_this_process(dm->allocated_by)) return EPERM;
  if (!can_be_copied(*dm, offset, length)) return EINVAL;
  if (const int error = ask_for_copy(*base, abi::Op::kMemcpyToDm); error != 0) return error;
  if (length != 0) memcpy(dm->data + offset, from, length);
  return 0;
}

int copy_out(ibv_dm* base, uint64_t offset, void* to, size_t length) {
  const Dm* dm = ours<Dm>(base);
  if (!is_this_process(dm->allocated_by)) return EPERM;
  if (!can_be_copied(*dm, offset, length)) return EINVAL;
  if (const int error = ask_for_copy(*base, abi::Op::kMemcpyFromDm); error != 0) return error;
  if (length != 0) memcpy(to, dm->data + offset, length);
  return 0;
}

int copy_from(void* to, ibv_dm* dm, uint64_t offset, size_t length) {
  return verb<copy_out, InChild::kWorks, "memcpy_from_dm">(dm, offset, to, length);
}

/// Maps the memory. A mapping is aligned to pages, and the daemon accepts no larger alignment.
int map(Dm* dm, size_t length) {
  void* mapping = mmap(nullptr, length, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping == MAP_FAILED) return errno;
  dm->data = static_cast<std::byte*>(mapping);
  dm->length = length;
  return 0;
}

void end(Dm* dm) {
  if (dm->length != 0) munmap(dm->data, dm->length);
  dispose(dm);
}

}  // namespace

ibv_dm* alloc_dm(ibv_context* context, ibv_alloc_dm_attr* attr) {
  if (attr->comp_mask != 0) return fail<ibv_dm>(EOPNOTSUPP);
  auto* dm = make<Dm>();
  if (dm == nullptr) return nullptr;
  abi::Request request{};
  request.op = abi::Op::kAllocDm;
  request.body.alloc_dm.length = attr->length;
  request.body.alloc_dm.log_align = attr->log_align_req;
  abi::Reply reply;
  int error = call(context, request, &reply);
  if (error == 0) {
    dm->dm.handle = reply.body.object.handle;
    error = map(dm, attr->length);
    abi::Reply ignored;
    if (error != 0) call_object(context, abi::Op::kFreeDm, dm->dm.handle, &ignored);
  }
  if (error != 0) {
    end(dm);
    return fail<ibv_dm>(error);
  }
  dm->dm.context = context;
  dm->dm.comp_mask = IBV_DM_MASK_HANDLE;
  dm->dm.memcpy_to_dm = verb<copy_to, InChild::kWorks, "memcpy_to_dm">;
  dm->dm.memcpy_from_dm = copy_from;
  return &dm->dm;
}

int free_dm(ibv_dm* base) {
  Dm* dm = ours<Dm>(base);
  if (!is_this_process(dm->allocated_by)) return EPERM;
  // ibv_alloc_dm(3): "ibv_free_dm() may fail if any other resources (such as an MR) is still
  // associated with the DM being freed."
  if (dm->users.load(std::memory_order_acquire) != 0) {
    return refuse(base->context, abi::Op::kFreeDm, EBUSY, base->handle);
  }
  abi::Reply reply;
  const int error = call_object(base->context, abi::Op::kFreeDm, base->handle, &reply);
  if (error != 0 && !is_gone_with_its_device(error)) return error;
  end(dm);
  return 0;
}

ibv_mr* reg_dm_mr(ibv_pd* pd, ibv_dm* base, uint64_t offset, size_t length, unsigned access) {
  constexpr unsigned kAllowed = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                                IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC |
                                IBV_ACCESS_ZERO_BASED | IBV_ACCESS_OPTIONAL_RANGE;
  Dm* dm = ours<Dm>(base);
  // ibv_alloc_dm(3): "For this type of registration, user must set the IBV_ACCESS_ZERO_BASED flag."
  if ((access & IBV_ACCESS_ZERO_BASED) == 0 || (access & ~kAllowed) != 0) {
    return fail<ibv_mr>(EINVAL);
  }
  if (pd->context != base->context || !is_within(*dm, offset, length)) return fail<ibv_mr>(EINVAL);
  Mr* mr = register_region(pd,
                           {.pd = 0,
                            .access = access,
                            .address = reinterpret_cast<uint64_t>(dm->data + offset),
                            .length = length,
                            .iova = 0,
                            .kind = abi::RegionKind::kDevice,
                            .is_shared = 0},
                           MrType::kMr);
  if (mr == nullptr) return nullptr;
  mr->verbs.mr.length = length;
  mr->dm = dm;
  dm->users.fetch_add(1, std::memory_order_relaxed);
  return &mr->verbs.mr;
}

}  // namespace rocemu::provider
