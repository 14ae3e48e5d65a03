// Protection tags and registered memory.
#include "vipl/objects.h"

namespace rocemu::vipl {

Handles<Ptag> ptags(4);

std::shared_ptr<Ptag> find_ptag(const Nic& nic, VIP_PROTECTION_HANDLE handle) {
  auto ptag = ptags.find(handle);
  if (ptag == nullptr || ptag->nic.get() != &nic || ptag->dead) return nullptr;
  return ptag;
}

namespace {

int access_of(const VIP_MEM_ATTRIBUTES& attributes) {
  int access = IBV_ACCESS_LOCAL_WRITE;
  if (attributes.EnableRdmaWrite) access |= IBV_ACCESS_REMOTE_WRITE;
  if (attributes.EnableRdmaRead) access |= IBV_ACCESS_REMOTE_READ;
  return access;
}

/// Returns the region with this handle that starts at `address`; null if the NIC has none.
Region* find_region(Nic& nic, const void* address, VIP_MEM_HANDLE handle) {
  const auto found = nic.regions.find(handle);
  if (found == nic.regions.end() || found->second.address != address) return nullptr;
  return &found->second;
}

}  // namespace
}  // namespace rocemu::vipl

using namespace rocemu::vipl;

VIP_RETURN VipCreatePtag(VIP_NIC_HANDLE NicHandle, VIP_PROTECTION_HANDLE* Ptag) {
  return guarded([&] {
    Access<Nic> nic(nics, NicHandle);
    if (!nic || Ptag == nullptr) return VIP_INVALID_PARAMETER;
    auto made = std::make_shared<rocemu::vipl::Ptag>();
    made->nic = nic.object;
    made->pd = ibv_alloc_pd(nic->context);
    if (made->pd == nullptr) return VIP_ERROR_RESOURCE;
    *Ptag = made->handle = ptags.add(made);
    return VIP_SUCCESS;
  });
}

VIP_RETURN VipDestroyPtag(VIP_NIC_HANDLE NicHandle, VIP_PROTECTION_HANDLE Ptag) {
  return guarded([&] {
    Access<Nic> nic(nics, NicHandle);
    if (!nic) return VIP_INVALID_PARAMETER;
    const auto ptag = find_ptag(*nic, Ptag);
    if (ptag == nullptr) return VIP_INVALID_PARAMETER;
    if (ptag->users != 0 || ibv_dealloc_pd(ptag->pd) != 0) return VIP_ERROR_RESOURCE;
    ptag->dead = true;
    ptags.remove(Ptag);
    return VIP_SUCCESS;
  });
}

VIP_RETURN VipRegisterMem(VIP_NIC_HANDLE NicHandle, VIP_PVOID VirtualAddress, VIP_ULONG Length,
                          VIP_MEM_ATTRIBUTES* MemAttribs, VIP_MEM_HANDLE* MemoryHandle) {
  return guarded([&] {
    Access<Nic> nic(nics, NicHandle);
    if (!nic || VirtualAddress == nullptr || Length == 0 || MemAttribs == nullptr ||
        MemoryHandle == nullptr) {
      return VIP_INVALID_PARAMETER;
    }
    auto ptag = find_ptag(*nic, MemAttribs->Ptag);
    if (ptag == nullptr) return VIP_INVALID_PTAG;
    ibv_mr* mr =
        ibv_reg_mr(ptag->pd, VirtualAddress, Length, static_cast<unsigned>(access_of(*MemAttribs)));
    if (mr == nullptr) return VIP_ERROR_RESOURCE;
    ++ptag->users;
    *MemoryHandle = mr->rkey;
    nic->regions[mr->rkey] = {mr, VirtualAddress, Length, *MemAttribs, std::move(ptag)};
    return VIP_SUCCESS;
  });
}

VIP_RETURN VipDeregisterMem(VIP_NIC_HANDLE NicHandle, VIP_PVOID VirtualAddress,
                            VIP_MEM_HANDLE MemoryHandle) {
  return guarded([&] {
    Access<Nic> nic(nics, NicHandle);
    if (!nic) return VIP_INVALID_PARAMETER;
    Region* region = find_region(*nic, VirtualAddress, MemoryHandle);
    if (region == nullptr) return VIP_INVALID_PARAMETER;
    if (ibv_dereg_mr(region->mr) != 0) return VIP_ERROR_RESOURCE;
    --region->ptag->users;
    nic->regions.erase(MemoryHandle);
    return VIP_SUCCESS;
  });
}

VIP_RETURN VipQueryMem(VIP_NIC_HANDLE NicHandle, VIP_PVOID VirtualAddress,
                       VIP_MEM_HANDLE MemoryHandle, VIP_MEM_ATTRIBUTES* MemAttribs) {
  return guarded([&] {
    Access<Nic> nic(nics, NicHandle);
    if (!nic || MemAttribs == nullptr) return VIP_INVALID_PARAMETER;
    const Region* region = find_region(*nic, VirtualAddress, MemoryHandle);
    if (region == nullptr) return VIP_INVALID_PARAMETER;
    *MemAttribs = region->attributes;
    return VIP_SUCCESS;
  });
}

VIP_RETURN VipSetMemAttributes(VIP_NIC_HANDLE NicHandle, VIP_PVOID VirtualAddress,
                               VIP_MEM_HANDLE MemoryHandle, VIP_MEM_ATTRIBUTES* MemAttribs) {
  return guarded([&] {
    Access<Nic> nic(nics, NicHandle);
    if (!nic || MemAttribs == nullptr) return VIP_INVALID_PARAMETER;
    Region* region = find_region(*nic, VirtualAddress, MemoryHandle);
    if (region == nullptr) return VIP_INVALID_PARAMETER;
    auto ptag = find_ptag(*nic, MemAttribs->Ptag);
    if (ptag == nullptr) return VIP_INVALID_PTAG;
    // The handle must not change, since peers know it. docs/vipl.md describes devices that assign a
    // new R_Key.
    const int error = ibv_rereg_mr(region->mr, IBV_REREG_MR_CHANGE_PD | IBV_REREG_MR_CHANGE_ACCESS,
                                   ptag->pd, nullptr, 0, access_of(*MemAttribs));
    if (error != 0) return VIP_ERROR_RESOURCE;
    --region->ptag->users;
    ++ptag->users;
    region->ptag = std::move(ptag);
    region->attributes = *MemAttribs;
    return VIP_SUCCESS;
  });
}
