#include "verbs_provider/context/memory_map.h"

#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>

#include <sys/ioctl.h>
#include <sys/sysmacros.h>

#include "verbs_provider/system/proc_file.h"
#include "verbs_provider/system/system_call.h"

namespace rocemu::provider {
namespace {

/// The files of "/proc/self" are empty once the main thread has ended (pthread_exit(3)).
constexpr char kMaps[] = "/proc/thread-self/maps";

/// struct procmap_query of linux/fs.h, which older headers lack
struct ProcmapQuery {
  uint64_t size, flags, address;  // input
  uint64_t vma_begin, vma_end, vma_flags, vma_page_size, vma_offset, inode;
  uint32_t device_major, device_minor;
  uint32_t name_size;  // input: size of the buffer; output: 0 if it has no name
  uint32_t build_id_size;
  uint64_t name_address, build_id_address;
};
static_assert(sizeof(ProcmapQuery) == 104);
constexpr unsigned long kProcmapQuery = _IOWR('f', 17, ProcmapQuery);
constexpr uint64_t kVmaReadable = 0x01, kVmaWritable = 0x02, kVmaShared = 0x08;
constexpr uint64_t kCoveringOrNextVma = 0x10;

/// Parses "begin-end rwxs offset major:minor inode   path".
bool parse(char* line, MappedRange* range) {
  char* at;
  range->begin = strtoull(line, &at, 16);
  if (*at != '-') return false;
  range->end = strtoull(at + 1, &at, 16);
  if (strnlen(at, 5) < 5) return false;
  range->readable = at[1] == 'r';
  range->writable = at[2] == 'w';
  range->shared = at[4] == 's';
  at += 5;
  strtoull(at, &at, 16);  // offset
  const auto device_major = static_cast<unsigned>(strtoul(at, &at, 16));
  if (*at != ':') return false;
  range->device = makedev(device_major, static_cast<unsigned>(strtoul(at + 1, &at, 16)));
  range->inode = strtoull(at, &at, 10);
  range->path = at + strspn(at, " ");
  return true;
}

void cut(MappedRange& range, uint64_t begin, uint64_t end) {
  if (range.begin < begin) range.begin = begin;
  if (range.end > end) range.end = end;
}

/// Visits the mappings from `*begin` on. Returns false if the kernel does not support this query;
/// `*begin` is then the first address that was not visited. This and for_each_mapped_by_text() are
/// separate functions because both need much of a small stack, but not at the same time.
[[gnu::noinline]] bool for_each_mapped_by_query(uint64_t* begin, uint64_t end, void* context,
                                                bool (*visit)(void* context,
                                                              const MappedRange& range)) {
  const ProcFile maps(kMaps);
  char name[PATH_MAX] = {};  // valgrind does not know that the kernel writes to it
  while (*begin < end) {
    ProcmapQuery query{};
    query.size = sizeof(query);
    query.flags = kCoveringOrNextVma;
    query.address = *begin;
    query.name_size = sizeof(name);
    query.name_address = reinterpret_cast<uint64_t>(name);
    // A direct system call is used, because the shim replaces ioctl().
    if (system_call(SYS_ioctl, maps.fd(), kProcmapQuery, &query) != 0) return errno == ENOENT;
    if (query.vma_begin >= end) return true;
    if (query.name_size == 0) name[0] = '\0';
    MappedRange range{.begin = query.vma_begin,
                      .end = query.vma_end,
                      .readable = (query.vma_flags & kVmaReadable) != 0,
                      .writable = (query.vma_flags & kVmaWritable) != 0,
                      .shared = (query.vma_flags & kVmaShared) != 0,
                      .inode = query.inode,
                      .device = makedev(query.device_major, query.device_minor),
                      .path = name};
    cut(range, *begin, end);
    *begin = range.end;
    if (!visit(context, range)) return true;
  }
  return true;
}

}  // namespace

[[gnu::noinline]] bool for_each_mapped_by_text(uint64_t begin, uint64_t end, void* context,
                                               bool (*visit)(void* context,
                                                             const MappedRange& range)) {
  ProcFile maps(kMaps);
  while (char* line = maps.next()) {
    MappedRange range;
    if (!parse(line, &range)) return false;
    if (range.begin >= end) return true;
    if (range.end <= begin) continue;
    cut(range, begin, end);
    if (!visit(context, range)) return true;
  }
  return !maps.failed();
}

bool for_each_mapped(uint64_t begin, uint64_t end, void* context,
                     bool (*visit)(void* context, const MappedRange& range)) {
  return for_each_mapped_by_query(&begin, end, context, visit) ||
         for_each_mapped_by_text(begin, end, context, visit);
}

}  // namespace rocemu::provider
