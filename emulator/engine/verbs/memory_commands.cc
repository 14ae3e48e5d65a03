#include "emulator/engine/verbs/memory_commands.h"

#include <algorithm>
#include <array>
#include <cerrno>

#include "emulator/abi/advise_mr.h"
#include "emulator/engine/objects/owned.h"

namespace rocemu::engine {
namespace {

constexpr uint64_t kPage = 4096;
constexpr uint64_t kWholeAddressSpace = ~uint64_t{0};

/// Returns whether the client's memory is readable at each of these addresses.
bool readable(CommandContext& context, ClientId client, std::span<const uint64_t> addresses) {
  constexpr size_t kAtOnce = 256;
  std::array<RemoteRange, kAtOnce> ranges;
  std::array<uint8_t, kAtOnce> bytes;
  while (!addresses.empty()) {
    const size_t count = std::min(addresses.size(), kAtOnce);
    for (size_t i = 0; i < count; ++i) ranges[i] = {addresses[i], 1};
    const std::array<std::span<uint8_t>, 1> target{std::span(bytes).first(count)};
    const auto result = context.memory.read(client, {ranges.data(), count}, target);
    // Memory that the program has yet to provide (userfaultfd(2)) counts as existing.
    if (result != MemoryResult::kDone && result != MemoryResult::kNotYet) return false;
    addresses = addresses.subspan(count);
  }
  return true;
}

/// The parameters of a memory registration
struct Registration {
  uint32_t access;
  uint64_t address;
  uint64_t length;
  uint64_t iova;
  bool is_shared;

  bool on_demand() const { return (access & abi::kAccessOnDemand) != 0; }
  /// Returns whether the region is an implicit ODP region. ibv_reg_mr(3): "To create an implicit
  /// ODP MR, IBV_ACCESS_ON_DEMAND should be set, addr should be 0 and length should be SIZE_MAX."
  bool implicit() const { return on_demand() && address == 0 && length == kWholeAddressSpace; }
};

int check_access(uint32_t access) {
  constexpr uint32_t kKnown =
      abi::kAccessLocalWrite | abi::kAccessRemoteWrite | abi::kAccessRemoteRead |
      abi::kAccessRemoteAtomic | abi::kAccessMwBind | abi::kAccessZeroBased | abi::kAccessOnDemand |
      abi::kAccessHugetlb | abi::kAccessFlushGlobal | abi::kAccessFlushPersistent;
  constexpr uint32_t kOptional = 0x3ff00000;  // IBV_ACCESS_OPTIONAL_RANGE: may be ignored
  if ((access & ~(kKnown | kOptional)) != 0) return EOPNOTSUPP;
  // ibv_reg_mr(3): "If IBV_ACCESS_REMOTE_WRITE or IBV_ACCESS_REMOTE_ATOMIC is set, then
  // IBV_ACCESS_LOCAL_WRITE must be set too".
  const bool changes = (access & (abi::kAccessRemoteWrite | abi::kAccessRemoteAtomic)) != 0;
  return changes && (access & abi::kAccessLocalWrite) == 0 ? EINVAL : 0;
}

int check(CommandContext& context, ClientId client, const Registration& wanted) {
  if (const int error = check_access(wanted.access)) return error;
  if (wanted.address + wanted.length < wanted.address ||
      wanted.iova + wanted.length < wanted.iova) {
    return EINVAL;
  }
  if (wanted.implicit()) {
    // ibv_reg_mr(3): "IBV_ACCESS_HUGETLB [...] in explicit mode only". A region of the whole
    // address space uses the addresses of the program, so iova must be 0.
    return (wanted.access & abi::kAccessHugetlb) != 0 || wanted.iova != 0 ? EINVAL : 0;
  }
  if (wanted.on_demand() || wanted.length == 0) return 0;
  // A NIC notices missing pages when it pins the region. Here only the first and the last page are
  // checked; other pages are checked when they are used.
  const std::array<uint64_t, 2> ends{wanted.address, wanted.address + wanted.length - 1};
  return readable(context, client, ends) ? 0 : EFAULT;
}

void describe(const MemoryRegion& region, abi::Reply::Body& out) {
  out.reg_mr = {.handle = region.id.value,
                .lkey = region.lkey,
                .rkey = region.rkey,
                .reserved = 0,
                .address = region.address,
                .length = region.length};
}

void apply(const Registration& registration, MemoryRegion& region) {
  region.access = registration.access;
  region.address = registration.address;
  region.length = registration.length;
  region.iova = registration.iova;
  region.is_shared = registration.is_shared;
}

}  // namespace

int alloc_pd(CommandContext& context, ClientId client, uint32_t& handle) {
  const ProtectionDomain* pd = context.objects.pds.create(client);
  if (pd == nullptr) return ENOMEM;
  handle = pd->id.value;
  return 0;
}

int dealloc_pd(CommandContext& context, ClientId client, uint32_t handle) {
  const ProtectionDomain* pd = shared(context.objects.clients, context.objects.pds, handle, client);
  if (pd == nullptr) return ENOENT;
  if (pd->users != 0) return EBUSY;
  context.objects.pds.destroy(pd->id);
  return 0;
}

int query_pd(const CommandContext& context, ClientId client, uint32_t handle) {
  return shared(context.objects.clients, context.objects.pds, handle, client) != nullptr ? 0
                                                                                         : ENOENT;
}

int reg_mr(CommandContext& context, ClientId client, const abi::Request::Body& in,
           abi::Reply::Body& out) {
  const auto& arguments = in.reg_mr;
  ProtectionDomain* pd = shared(context.objects.clients, context.objects.pds, arguments.pd, client);
  if (pd == nullptr) return ENOENT;
  const bool zero_based = (arguments.access & abi::kAccessZeroBased) != 0;
  Registration wanted{.access = arguments.access,
                      .address = arguments.address,
                      .length = arguments.length,
                      .iova = zero_based ? 0 : arguments.iova,
                      .is_shared = arguments.is_shared != 0};
  switch (arguments.kind) {
    case abi::RegionKind::kMemory:
    case abi::RegionKind::kDevice:
      if (const int error = check(context, client, wanted)) return error;
      break;
    case abi::RegionKind::kNull:  // ibv_alloc_null_mr(3): "It has the maximum length"
      wanted = {.access = abi::kAccessLocalWrite,
                .address = 0,
                .length = kWholeAddressSpace,
                .iova = 0,
                .is_shared = false};
      break;
    default:
      return EINVAL;
  }
  MemoryRegion* region = context.objects.mrs.create(
      client, pd->id, arguments.kind, context.objects.device_of(client).config.profile->equal_keys);
  if (region == nullptr) return ENOMEM;
  apply(wanted, *region);
  ++pd->users;
  describe(*region, out);
  return 0;
}

int rereg_mr(CommandContext& context, ClientId client, const abi::Request::Body& in,
             abi::Reply::Body& out) {
  const auto& arguments = in.rereg_mr;
  const auto changes = [&](abi::ReregFlags what) { return (arguments.flags & what) != 0; };
  constexpr uint32_t kAll = abi::kReregTranslation | abi::kReregPd | abi::kReregAccess;
  if (arguments.flags == 0 || (arguments.flags & ~kAll) != 0) return EINVAL;
  MemoryRegion* region =
      shared(context.objects.clients, context.objects.mrs.regions(), arguments.handle, client);
  if (region == nullptr) return ENOENT;
  // ibv_alloc_null_mr(3): "The use of ibv_rereg_mr() [...] with this MR is invalid".
  if (region->kind == abi::RegionKind::kNull) return EINVAL;
  if (region->windows != 0) return EBUSY;
  ProtectionDomain* pd = changes(abi::kReregPd) ? shared(context.objects.clients,
                                                         context.objects.pds, arguments.pd, client)
                                                : context.objects.pds.find(region->pd);
  if (pd == nullptr) return ENOENT;

  Registration wanted{.access = region->access,
                      .address = region->address,
                      .length = region->length,
                      .iova = region->iova,
                      .is_shared = region->is_shared};
  if ((region->access & abi::kAccessZeroBased) != 0) wanted.iova = region->address;
  ClientId owner = region->client;
  if (changes(abi::kReregAccess)) wanted.access = arguments.access;
  if (changes(abi::kReregTranslation)) {
    wanted.address = arguments.address;
    wanted.length = arguments.length;
    wanted.iova = arguments.iova;
    wanted.is_shared = arguments.is_shared != 0;
    owner = client;
  }
  if ((wanted.access & abi::kAccessZeroBased) != 0) wanted.iova = 0;
  if (const int error = check(context, owner, wanted)) return error;

  --context.objects.pds.find(region->pd)->users;
  ++pd->users;
  region->pd = pd->id;
  context.objects.mrs.give(*region, owner);
  apply(wanted, *region);
  // If the translation changed, a peer with the old key must not reach the new memory with it. If
  // only the rights changed, the peer may continue to use the old key.
  if (changes(abi::kReregTranslation)) context.objects.mrs.renew_keys(*region);
  describe(*region, out);
  return 0;
}

int dereg_mr(CommandContext& context, ClientId client, uint32_t handle) {
  MemoryRegion* region =
      shared(context.objects.clients, context.objects.mrs.regions(), handle, client);
  if (region == nullptr) return ENOENT;
  // ibv_reg_mr(3): "ibv_dereg_mr() fails if any memory window is still bound to this MR."
  if (region->windows != 0) return EBUSY;
  context.objects.destroy(*region);
  return 0;
}

int query_mr(const CommandContext& context, ClientId client, uint32_t handle,
             abi::Reply::Body& out) {
  const MemoryRegion* region =
      shared(context.objects.clients, context.objects.mrs.regions(), handle, client);
  if (region == nullptr) return ENOENT;
  describe(*region, out);
  return 0;
}

int advise_mr(CommandContext& context, ClientId client, const abi::Request::Body& in) {
  const auto& arguments = in.advise_mr;
  enum Advice : uint32_t { kPrefetch, kPrefetchWrite, kPrefetchNoFault, kEnd };
  constexpr uint32_t kFlush = 1;
  if (arguments.advice >= kEnd) return ENOTSUP;
  const ProtectionDomain* pd =
      shared(context.objects.clients, context.objects.pds, arguments.pd, client);
  if (pd == nullptr) return ENOENT;
  if ((arguments.flags & ~kFlush) != 0 || arguments.num_sge == 0 ||
      arguments.num_sge > abi::kMaxAdviseSges) {
    return EINVAL;
  }
  if ((arguments.flags & kFlush) != 0) {
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < arguments.num_sge; ++i) bytes += arguments.sges[i].length;
    if (bytes > abi::kMaxFlushedBytes) return EINVAL;
  }
  // The errors are those of ibv_advise_mr(3). An unknown L_Key is ENOENT, as with mlx5.
  for (const abi::Sge& sge : std::span(arguments.sges).first(arguments.num_sge)) {
    const MemoryRegion* region = context.objects.mrs.find_by_lkey(sge.lkey);
    if (region == nullptr) return ENOENT;
    if (region->pd != pd->id) return EPERM;
    if ((region->access & abi::kAccessOnDemand) == 0) return EINVAL;
    if (arguments.advice == kPrefetchWrite && (region->access & abi::kAccessLocalWrite) == 0) {
      return EPERM;
    }
    const auto place =
        context.objects.mrs.resolve_local(pd->id, sge.lkey, sge.address, sge.length, 0);
    if (!place) return EFAULT;
    // Without the flag FLUSH, ibv_advise_mr(3) says: "Otherwise the driver can choose to postpone".
    // In that case, and for a prefetch that must not fault, rocemu does nothing more.
    if ((arguments.flags & kFlush) == 0 || arguments.advice == kPrefetchNoFault) continue;
    std::array<uint64_t, 256> pages;
    size_t count = 0;
    for (uint64_t offset = 0; offset < sge.length;
         offset += kPage - (place->address + offset) % kPage) {
      pages[count++] = place->address + offset;
      if (count < pages.size()) continue;
      if (!readable(context, place->client, pages)) return EFAULT;
      count = 0;
    }
    if (!readable(context, place->client, std::span(pages).first(count))) return EFAULT;
  }
  return 0;
}

int alloc_mw(CommandContext& context, ClientId client, const abi::Request::Body& in,
             abi::Reply::Body& out) {
  const auto& arguments = in.alloc_mw;
  ProtectionDomain* pd = shared(context.objects.clients, context.objects.pds, arguments.pd, client);
  if (pd == nullptr) return ENOENT;
  if (arguments.type != abi::MwType::k1 && arguments.type != abi::MwType::k2) return EINVAL;
  const MemoryWindow* window = context.objects.mrs.create_window(client, pd->id, arguments.type);
  if (window == nullptr) return ENOMEM;
  ++pd->users;
  out.alloc_mw = {.handle = window->id.value, .rkey = window->rkey};
  return 0;
}

int dealloc_mw(CommandContext& context, ClientId client, uint32_t handle) {
  MemoryWindow* window = owned(context.objects.mrs.windows(), handle, client);
  if (window == nullptr) return ENOENT;
  // ibv_alloc_mw(3): "Unbinds in case was previously bound and deallocates the MW".
  context.objects.destroy(*window);
  return 0;
}

int alloc_dm(CommandContext& context, ClientId client, const abi::Request::Body& in,
             uint32_t& handle) {
  const auto& arguments = in.alloc_dm;
  if (arguments.length == 0 || arguments.log_align > kMaxDeviceMemoryLogAlign) return EINVAL;
  Device& device = context.objects.device_of(client);
  if (arguments.length > kMaxDeviceMemory - device.device_memory_used) return ENOMEM;
  const DeviceMemory* dm = context.objects.dms.create(client, arguments.length);
  if (dm == nullptr) return ENOMEM;
  device.device_memory_used += dm->length;
  handle = dm->id.value;
  return 0;
}

int free_dm(CommandContext& context, ClientId client, uint32_t handle) {
  DeviceMemory* dm = shared(context.objects.clients, context.objects.dms, handle, client);
  if (dm == nullptr) return ENOENT;
  context.objects.destroy(*dm);
  return 0;
}

}  // namespace rocemu::engine
