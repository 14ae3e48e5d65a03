// ibv_reg_mr(3) and related verbs. No memory is pinned: the daemon accesses it in its state at the
// time of use. Every region therefore behaves like one for on-demand paging, and fork() causes no
// problems.
#include "verbs_provider/structs/mr.h"

#include <algorithm>
#include <cerrno>

#include <sys/mman.h>
#include <unistd.h>

#include "emulator/abi/advise_mr.h"
#include "verbs_provider/base/objects.h"
#include "verbs_provider/base/valgrind.h"
#include "verbs_provider/base/verbs.h"
#include "verbs_provider/context/context.h"
#include "verbs_provider/context/region_memory.h"
#include "verbs_provider/objects/register_region.h"
#include "verbs_provider/structs/pd.h"

namespace rocemu::provider {
namespace {

Mr* make_mr(ibv_pd* pd, MrType type) {
  auto* mr = make<Mr>();
  if (mr == nullptr) return nullptr;
  mr->verbs.type = type;
  mr->verbs.mr.context = pd->context;
  mr->verbs.mr.pd = pd;
  return mr;
}

/// Returns the address of the region's first byte in work requests. ibv_reg_mr(3) about
/// IBV_ACCESS_ZERO_BASED: "Use byte offset from beginning of MR to access this MR, instead of a
/// pointer address".
uint64_t iova_of(int access, uint64_t iova) {
  return (access & IBV_ACCESS_ZERO_BASED) != 0 ? 0 : iova;
}

/// Returns whether the region can begin at the iova. Linux's ib_uverbs_reg_mr() returns EINVAL for
/// every device unless the offsets within the page are equal, with IBV_ACCESS_ZERO_BASED, too:
/// libibverbs then passes the address as the iova, unless the program chooses another one.
bool can_begin_at(uint64_t iova, uint64_t address) {
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  return (address ^ iova) % page == 0;
}

/// Adds the region to those from which carry() copies messages, except with length 0 and under
/// Valgrind. If memory for the entry is exhausted, the daemon reads the data of this region.
void enter(Mr* mr, uint64_t address, uint64_t length) {
  Context::Parts& parts = context_of(mr->verbs.mr.context)->parts;
  const Guard guard(parts.regions_lock);
  mr->own_address = address;
  mr->own_length = length;
  if (length != 0 && !runs_under_valgrind())
    parts.regions.insert(region_number(mr->verbs.mr.lkey), mr);
}

void leave(Mr* mr) {
  Context::Parts& parts = context_of(mr->verbs.mr.context)->parts;
  const Guard guard(parts.regions_lock);
  parts.regions.remove(region_number(mr->verbs.mr.lkey), mr);
}

}  // namespace

Mr* register_region(ibv_pd* pd, const decltype(abi::Request::Body::reg_mr)& wanted, MrType type) {
  Mr* mr = make_mr(pd, type);
  if (mr == nullptr) return nullptr;
  abi::Request request{};
  request.op = abi::Op::kRegMr;
  request.body.reg_mr = wanted;
  request.body.reg_mr.pd = pd->handle;
  abi::Reply reply;
  if (const int error = call(pd->context, request, &reply); error != 0) {
    dispose(mr);
    return fail<Mr>(error);
  }
  mr->verbs.access = static_cast<int>(wanted.access);
  mr->verbs.mr.handle = reply.body.reg_mr.handle;
  mr->verbs.mr.lkey = reply.body.reg_mr.lkey;
  mr->verbs.mr.rkey = reply.body.reg_mr.rkey;
  hold(pd);
  return mr;
}

ibv_mr* reg_mr(ibv_pd* pd, void* address, size_t length, uint64_t iova, int access) {
  const auto own_address = reinterpret_cast<uint64_t>(address);
  if (!can_begin_at(iova, own_address)) return fail<ibv_mr>(EINVAL);
  uint32_t is_shared;
  if (const int error = check_region_memory(pd->context, own_address, length, access, &is_shared);
      error != 0) {
    return fail<ibv_mr>(error);
  }
  Mr* mr = register_region(pd,
                           {.pd = 0,
                            .access = static_cast<uint32_t>(access),
                            .address = own_address,
                            .length = length,
                            .iova = iova_of(access, iova),
                            .kind = abi::RegionKind::kMemory,
                            .is_shared = is_shared},
                           MrType::kMr);
  if (mr == nullptr) return nullptr;
  enter(mr, own_address, iova_of(access, iova) == own_address ? length : 0);
  if ((access & IBV_ACCESS_ON_DEMAND) == 0) {
    enter_memory(mr->memory, pd->context, own_address, own_address + length, is_shared != 0);
  }
  return &mr->verbs.mr;
}

ibv_mr* alloc_null_mr(ibv_pd* pd) {
  // ibv_alloc_null_mr(3): "It has the maximum length and only the lkey is valid".
  Mr* mr = register_region(pd,
                           {.pd = 0,
                            .access = abi::kAccessLocalWrite,
                            .address = 0,
                            .length = SIZE_MAX,
                            .iova = 0,
                            .kind = abi::RegionKind::kNull,
                            .is_shared = 0},
                           MrType::kNullMr);
  if (mr == nullptr) return nullptr;
  mr->verbs.mr.length = SIZE_MAX;
  return &mr->verbs.mr;
}

int rereg_mr(VerbsMr* verbs, int flags, ibv_pd* pd, void* address, size_t length, int access) {
  Mr* mr = ours<Mr>(verbs);
  const bool moves = (flags & IBV_REREG_MR_CHANGE_TRANSLATION) != 0;
  const bool changes_pd = (flags & IBV_REREG_MR_CHANGE_PD) != 0;
  const bool changes_access = (flags & IBV_REREG_MR_CHANGE_ACCESS) != 0;
  uint64_t own_address = mr->own_address, own_length = mr->own_length;
  bool own_is_shared = false;
  int error = 0;
  // Device memory and dma-bufs cannot be moved, and have no address that could refer to another
  // range.
  if (moves && (mr->dm != nullptr || mr->mapping != nullptr)) error = EINVAL;
  if (changes_pd && (pd == nullptr || pd->context != verbs->mr.context)) error = EINVAL;
  abi::Reply reply;
  if (error == 0) {
    abi::Request request{};
    request.op = abi::Op::kReregMr;
    auto& wanted = request.body.rereg_mr;
    wanted.handle = verbs->mr.handle;
    wanted.flags = static_cast<uint32_t>(flags);
    if (changes_pd) wanted.pd = pd->handle;
    if (changes_access) wanted.access = static_cast<uint32_t>(access);
    if (moves) {
      wanted.address = reinterpret_cast<uint64_t>(address);
      wanted.length = length;
      wanted.iova = iova_of(changes_access ? access : verbs->access, wanted.address);
      own_address = wanted.address;
      own_length = wanted.iova == own_address ? length : 0;
    }
    if (moves) {
      error = check_region_memory(verbs->mr.context, reinterpret_cast<uint64_t>(address), length,
                                  changes_access ? access : verbs->access, &wanted.is_shared);
    }
    own_is_shared = wanted.is_shared != 0;
    if (error == 0) error = call(verbs->mr.context, request, &reply);
  }
  if (error != 0) return error;  // the application gets an ibv_rereg_mr_err_code and errno
  leave(mr);
  verbs->mr.handle = reply.body.reg_mr.handle;
  verbs->mr.lkey = reply.body.reg_mr.lkey;
  verbs->mr.rkey = reply.body.reg_mr.rkey;
  if (changes_access) verbs->access = access;
  if (changes_pd) {
    hold(pd);
    release(verbs->mr.pd);
    verbs->mr.pd = pd;
  }
  enter(mr, own_address, own_length);
  if (moves) {
    leave_memory(mr->memory);
    if ((verbs->access & IBV_ACCESS_ON_DEMAND) == 0) {
      enter_memory(mr->memory, verbs->mr.context, own_address, own_address + length, own_is_shared);
    }
  }
  return 0;
}

int dereg_mr(VerbsMr* verbs) {
  abi::Reply reply;
  const int error = call_object(verbs->mr.context, abi::Op::kDeregMr, verbs->mr.handle, &reply);
  if (error != 0 && !is_gone_with_its_device(error)) return error;
  Mr* mr = ours<Mr>(verbs);
  leave(mr);
  leave_memory(mr->memory);
  release(verbs->mr.pd);
  if (mr->dm != nullptr) mr->dm->users.fetch_sub(1, std::memory_order_release);
  if (mr->mapping != nullptr) munmap(mr->mapping, mr->mapped);
  dispose(mr);
  return 0;
}

int advise_mr(ibv_pd* pd, ibv_advise_mr_advice advice, uint32_t flags, ibv_sge* sg_list,
              uint32_t num_sge) {
  if (sg_list == nullptr && num_sge != 0) return EINVAL;
  abi::Request request{};
  request.op = abi::Op::kAdviseMr;
  auto& wanted = request.body.advise_mr;
  wanted.pd = pd->handle;
  wanted.advice = static_cast<uint32_t>(advice);
  wanted.flags = flags;
  const bool flush = (flags & IBV_ADVISE_MR_FLAG_FLUSH) != 0;
  uint32_t done = 0;  // bytes of the first SGE
  // A request is sent even without SGEs: then only the advice and the flags are checked.
  do {
    uint64_t room = flush ? abi::kMaxFlushedBytes : UINT64_MAX;
    wanted.num_sge = 0;
    while (num_sge != 0 && wanted.num_sge < abi::kMaxAdviseSges && room != 0) {
      const uint32_t left = sg_list->length - done;
      const auto piece = static_cast<uint32_t>(std::min<uint64_t>(left, room));
      wanted.sges[wanted.num_sge++] = {sg_list->addr + done, piece, sg_list->lkey};
      room -= piece;
      done += piece;
      if (piece < left) break;
      done = 0;
      ++sg_list;
      --num_sge;
    }
    abi::Reply reply;
    if (const int error = call(pd->context, request, &reply); error != 0) return error;
  } while (num_sge != 0);
  return 0;
}

ibv_mr* import_mr(ibv_pd* pd, uint32_t handle) {
  Mr* mr = make_mr(pd, MrType::kImportedMr);
  if (mr == nullptr) return nullptr;
  abi::Reply reply;
  const int error = call_object(pd->context, abi::Op::kQueryMr, handle, &reply);
  if (error != 0) {
    dispose(mr);
    return fail<ibv_mr>(error);
  }
  // ibv_import_mr(3): "The addr field in the imported MR is not applicable, NULL value is
  // expected."
  mr->verbs.mr.handle = handle;
  mr->verbs.mr.length = reply.body.reg_mr.length;
  mr->verbs.mr.lkey = reply.body.reg_mr.lkey;
  mr->verbs.mr.rkey = reply.body.reg_mr.rkey;
  hold(pd);
  return &mr->verbs.mr;
}

/// Releases an imported region. It may be a region of this process, which another context imported
/// and deregistered.
void unimport_mr(ibv_mr* base) {
  Mr* mr = ours<Mr>(base);
  leave(mr);
  leave_memory(mr->memory);
  release(base->pd);
  dispose(mr);
}

}  // namespace rocemu::provider
