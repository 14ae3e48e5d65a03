#include "verbs_provider/base/layout.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <elf.h>
#include <link.h>

namespace rocemu::provider {
namespace {

/// The bit of verbs_qp::comp_mask that says that the functions of ibv_qp_ex exist.
constexpr uint32_t kVerbsQpEx = 2;

/// A version of verbs_context. New members are added in front of the older ones.
struct ContextVersion {
  int private_abi;
  int newest_public;
  size_t context_head;
};

constexpr ContextVersion kContextVersions[] = {
    {34, 14, 320},  // rdma-core 36 to 56
    {57, 14, 320},  // 57, 58
    {59, 15, 344},  // 59 to 61: alloc_dmah, dealloc_dmah, reg_mr_ex
    {59, 16, 352},  // 62, 63: dm_export_dmabuf_fd
    {64, 17, 368},  // 64: alloc_buf, free_buf
    {65, 18, 368},  // 65: completion counters, none of them in verbs_context
};

/// The possible positions of comp_mask in verbs_qp: ibv_qp_ex, which precedes it, grew without a
/// new version.
constexpr size_t kQpMasks[] = {
    offsetof(QpEx, wr_atomic_write),  // up to rdma-core 43
    offsetof(QpEx, wr_flush),         // 44
    sizeof(QpEx),                     // since 45
};

constexpr bool is_one_of_these(size_t header_context_head) {
  for (const ContextVersion& version : kContextVersions)
    if (version.context_head == header_context_head) return true;
  return false;
}
// If this fails, the header of libibverbs is newer than the table. Check its new members, and add a
// row to the table, even if the provider uses none of them.
static_assert(is_one_of_these(offsetof(verbs_context, context)));

/// A loaded library, with the numbers of the newest symbol versions that it defines. A number is 0
/// if the library defines no such version.
struct Library {
  const void* address;  // in one of its segments
  const char* name = nullptr;
  int private_abi = 0;    // N of IBVERBS_PRIVATE_N
  int newest_public = 0;  // N of the newest IBVERBS_1.N
};

/// Returns an address from the dynamic section. On most machines glibc's dynamic linker relocates
/// these addresses; musl's does not.
const char* pointer(const dl_phdr_info& info, ElfW(Addr) value) {
  return reinterpret_cast<const char*>(value < info.dlpi_addr ? info.dlpi_addr + value : value);
}

/// Stores N in `*newest` if `name` is the prefix followed by N, and N is larger than `*newest`.
void read_number(const char* name, const char* prefix, int* newest) {
  if (strncmp(name, prefix, strlen(prefix)) != 0) return;
  const int number = atoi(name + strlen(prefix));
  if (number > *newest) *newest = number;
}

void read_versions(const dl_phdr_info& info, const ElfW(Dyn) * dynamic, Library* library) {
  const char* strings = nullptr;
  const char* entry = nullptr;
  ElfW(Xword) count = 0;
  for (; dynamic->d_tag != DT_NULL; ++dynamic) {
    if (dynamic->d_tag == DT_STRTAB) strings = pointer(info, dynamic->d_un.d_ptr);
    if (dynamic->d_tag == DT_VERDEF) entry = pointer(info, dynamic->d_un.d_ptr);
    if (dynamic->d_tag == DT_VERDEFNUM) count = dynamic->d_un.d_val;
  }
  if (strings == nullptr || entry == nullptr) return;
  for (; count > 0; --count) {
    ElfW(Verdef) version;
    memcpy(&version, entry, sizeof(version));
    ElfW(Verdaux) itself;  // the first name; the others are inherited
    memcpy(&itself, entry + version.vd_aux, sizeof(itself));
    const char* name = strings + itself.vda_name;
    read_number(name, "IBVERBS_1.", &library->newest_public);
    read_number(name, "IBVERBS_PRIVATE_", &library->private_abi);
    entry += version.vd_next;
  }
}

bool contains(const dl_phdr_info& info, const void* address) {
  const auto wanted = reinterpret_cast<ElfW(Addr)>(address);
  for (int i = 0; i < info.dlpi_phnum; ++i) {
    const ElfW(Phdr)& part = info.dlpi_phdr[i];
    const ElfW(Addr) begin = info.dlpi_addr + part.p_vaddr;
    if (part.p_type == PT_LOAD && wanted >= begin && wanted - begin < part.p_memsz) return true;
  }
  return false;
}

int look_at(dl_phdr_info* info, size_t, void* result) {
  auto* library = static_cast<Library*>(result);
  if (!contains(*info, library->address)) return 0;
  library->name = info->dlpi_name;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& part = info->dlpi_phdr[i];
    if (part.p_type != PT_DYNAMIC) continue;
    const auto* dynamic = reinterpret_cast<const ElfW(Dyn)*>(info->dlpi_addr + part.p_vaddr);
    read_versions(*info, dynamic, library);
  }
  return 1;
}

void set_mask(VerbsQp* qp, size_t mask_at) {
  memcpy(reinterpret_cast<char*>(qp) + mask_at, &kVerbsQpEx, sizeof(kVerbsQpEx));
}

/// Returns the position of comp_mask in verbs_qp. Finds it by trials with libibverbs' own
/// ibv_qp_to_qp_ex(), which reads this mask and nothing else. Returns 0 if the function reads an
/// unknown position.
size_t find_qp_mask() {
  for (const size_t mask_at : kQpMasks) {
    VerbsQp probe{};
    set_mask(&probe, mask_at);
    if (ibv_qp_to_qp_ex(&probe.qp) != nullptr) return mask_at;
  }
  return 0;
}

bool refuse(const Library& library) {
  const bool has_name = library.name != nullptr && *library.name != '\0';
  fprintf(stderr,
          "rocemu: %s is a libibverbs that rocemu " ROCEMU_VERSION
          " does not know (private ABI %d, IBVERBS_1.%d), so its devices are not available to it; "
          "rdma-core 36 to 65 are known, for another install another rocemu\n",
          has_name ? library.name : "this program", library.private_abi, library.newest_public);
  return false;
}

}  // namespace

constinit Layout layout;

bool recognize_libibverbs(const void* function) {
  Library library{function};
  dl_iterate_phdr(look_at, &library);
  for (const ContextVersion& version : kContextVersions) {
    if (version.private_abi != library.private_abi ||
        version.newest_public != library.newest_public) {
      continue;
    }
    layout = {version.newest_public, version.context_head, find_qp_mask()};
    if (layout.qp_mask_at != 0) return true;
  }
  return refuse(library);
}

ContextOps arranged(const ContextOps& all) {
  constexpr uint8_t kSince[] = {
#define ROCEMU_SINCE(since, result, name, arguments) since,
      ROCEMU_CONTEXT_OPS(ROCEMU_SINCE)
#undef ROCEMU_SINCE
  };
  constexpr size_t kSize = sizeof(void*);
  static_assert(sizeof(ContextOps) == sizeof(kSince) * kSize);
  ContextOps present{};
  const auto* from = reinterpret_cast<const char*>(&all);
  auto* to = reinterpret_cast<char*>(&present);
  for (const uint8_t since : kSince) {
    if (since <= layout.newest_public) {
      memcpy(to, from, kSize);
      to += kSize;
    }
    from += kSize;
  }
  return present;
}

void mark_as_extended(VerbsQp* qp) {
  set_mask(qp, layout.qp_mask_at);
}

}  // namespace rocemu::provider
