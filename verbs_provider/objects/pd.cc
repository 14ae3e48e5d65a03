// ibv_alloc_pd(3), ibv_import_pd(3), ibv_alloc_td(3) and ibv_alloc_parent_domain(3).
#include "verbs_provider/structs/pd.h"

#include <cerrno>
#include <cstring>

#include "verbs_provider/base/verbs.h"
#include "verbs_provider/context/context.h"

namespace rocemu::provider {
namespace {

/// Deallocates a parent domain. It exists only in the program, so this also works after the device
/// was removed.
int dealloc_parent_domain(ibv_pd* base) {
  Pd* pd = ours<Pd>(base);
  // ibv_alloc_parent_domain(3): "All resources created with the parent domain should be destroyed
  // prior to deallocating the parent domain."
  if (pd->users.load(std::memory_order_acquire) != 1) return EBUSY;
  const int error = ask(base->context, abi::Op::kDeallocParentDomain);
  if (error != 0) return error;
  release(&pd->under->pd);
  if (pd->thread_domain != nullptr) pd->thread_domain->users.fetch_sub(1);
  release(base);
  return 0;
}

}  // namespace

ibv_pd* alloc_pd(ibv_context* context) {
  auto* pd = make<Pd>();
  if (pd == nullptr) return nullptr;
  abi::Request request{};
  request.op = abi::Op::kAllocPd;
  abi::Reply reply;
  if (const int error = call(context, request, &reply); error != 0) {
    dispose(pd);
    return fail<ibv_pd>(error);
  }
  pd->pd.handle = reply.body.object.handle;
  return &pd->pd;
}

int dealloc_pd(ibv_pd* base) {
  if (is_parent_domain(*base)) return dealloc_parent_domain(base);
  // A protection domain is also in use if parent domains over it exist.
  const bool in_use = ours<Pd>(base)->users.load(std::memory_order_acquire) != 1;
  abi::Reply reply;
  const int error = in_use ? refuse(base->context, abi::Op::kDeallocPd, EBUSY, base->handle)
                           : call_object(base->context, abi::Op::kDeallocPd, base->handle, &reply);
  if (error != 0 && !is_gone_with_its_device(error)) return error;
  release(base);
  return 0;
}

ibv_pd* import_pd(ibv_context* context, uint32_t handle) {
  auto* pd = make<Pd>();
  if (pd == nullptr) return nullptr;
  abi::Reply reply;
  if (const int error = call_object(context, abi::Op::kQueryPd, handle, &reply); error != 0) {
    dispose(pd);
    return fail<ibv_pd>(error);
  }
  pd->pd.context = context;
  pd->pd.handle = handle;
  return &pd->pd;
}

/// Releases an imported PD: "cleanup what ever is needed/opposite of the import without calling the
/// kernel". This cannot fail: objects that were created with the PD continue to work.
void unimport_pd(ibv_pd* pd) {
  release(pd);
}

// ---- Thread domains -------------------------------------------------------------------------

ibv_td* alloc_td(ibv_context* context, ibv_td_init_attr* attr) {
  if (attr == nullptr) return fail<ibv_td>(EINVAL);
  if (attr->comp_mask != 0) return fail<ibv_td>(EOPNOTSUPP);
  if (const int error = ask(context, abi::Op::kAllocTd); error != 0) return fail<ibv_td>(error);
  auto* td = make<Td>();
  if (td == nullptr) return nullptr;
  td->td.context = context;
  return &td->td;
}

int dealloc_td(ibv_td* base) {
  Td* td = ours<Td>(base);
  if (td->users.load(std::memory_order_acquire) != 0) return EBUSY;
  if (const int error = ask(base->context, abi::Op::kDeallocTd); error != 0) return error;
  dispose(td);
  return 0;
}

// ---- Parent domains -------------------------------------------------------------------------

ibv_pd* alloc_parent_domain(ibv_context* context, ibv_parent_domain_init_attr* attr) {
  constexpr uint32_t kUnderstood =
      IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS | IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT;
  if ((attr->comp_mask & ~kUnderstood) != 0) return fail<ibv_pd>(EOPNOTSUPP);
  // ibv_alloc_parent_domain(3): the member `pd` is a "reference to a protection domain, can't be
  // NULL".
  if (attr->pd == nullptr || attr->pd->context != context) return fail<ibv_pd>(EINVAL);
  if (attr->td != nullptr && attr->td->context != context) return fail<ibv_pd>(EINVAL);
  const bool allocates = (attr->comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS) != 0;
  if (allocates && (attr->alloc == nullptr || attr->free == nullptr)) return fail<ibv_pd>(EINVAL);

  if (const int error = ask(context, abi::Op::kAllocParentDomain); error != 0) {
    return fail<ibv_pd>(error);
  }
  auto* parent = make<Pd>();
  if (parent == nullptr) return nullptr;
  parent->pd.context = context;
  parent->pd.handle = attr->pd->handle;
  parent->under = ours<Pd>(attr->pd);
  hold(attr->pd);
  if (attr->td != nullptr) {
    parent->thread_domain = ours<Td>(attr->td);
    parent->thread_domain->users.fetch_add(1);
  }
  if (allocates) {
    parent->alloc = attr->alloc;
    parent->free = attr->free;
  }
  if ((attr->comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT) != 0) {
    parent->allocator_context = attr->pd_context;
  }
  return &parent->pd;
}

}  // namespace rocemu::provider
