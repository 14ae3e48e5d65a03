#include "verbs_provider/sanitizer/stacks.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <unistd.h>
#include <unwind.h>

namespace rocemu::sanitizer {
namespace {

constexpr size_t kMaxFrames = RawStack::kMaxFrames;
constexpr size_t kMaxStacks = 65536;

/// An earlier stack of a thread, and the addresses of its return addresses.
struct KnownStack {
  uintptr_t frame = 0;  // where it started
  uint32_t number = 0;
  uint32_t count = 0;
  const uintptr_t* slots[kMaxFrames];
  uintptr_t addresses[kMaxFrames];

  /// Returns whether the stack is unchanged. Compares from the innermost frame outwards: an outer
  /// slot is only read if all inner ones are unchanged and so belong to the same stack.
  bool is_current(uintptr_t frame_now) const {
    if (frame != frame_now || number == 0) return false;
    for (uint32_t i = 0; i < count; ++i)
      if (*slots[i] != addresses[i]) return false;
    return true;
  }
};

constexpr size_t kKnownStacks = 32;

pthread_key_t key;
pthread_once_t once = PTHREAD_ONCE_INIT;

void make_key() {
  pthread_key_create(&key, free);
}

/// Returns the known stacks of this thread, or null if memory is exhausted.
KnownStack* known_stacks() {
  pthread_once(&once, make_key);
  auto* known = static_cast<KnownStack*>(pthread_getspecific(key));
  if (known != nullptr) return known;
  known = static_cast<KnownStack*>(calloc(kKnownStacks, sizeof(KnownStack)));
  if (known != nullptr) pthread_setspecific(key, known);
  return known;
}

struct Walk {
  KnownStack stack;
  bool has_slots = true;  // each return address was found in memory
  bool is_first = true;
};

_Unwind_Reason_Code add_frame(_Unwind_Context* context, void* argument) {
  auto& walk = *static_cast<Walk*>(argument);
  const uintptr_t address = _Unwind_GetIP(context);
  if (address == 0 || walk.stack.count == kMaxFrames) return _URC_END_OF_STACK;
  if (walk.is_first) {  // current() itself
    walk.is_first = false;
    return _URC_NO_REASON;
  }
#if defined(__x86_64__)
  // _Unwind_GetCFA() returns the CFA of the frame inside this one: the value of the stack pointer
  // before the call, so the return address is in the word below.
  const auto* slot = reinterpret_cast<const uintptr_t*>(_Unwind_GetCFA(context)) - 1;
  walk.has_slots &= *slot == address;
#else
  const uintptr_t* const slot = nullptr;
  walk.has_slots = false;
#endif
  walk.stack.slots[walk.stack.count] = slot;
  walk.stack.addresses[walk.stack.count++] = address;
  return _URC_NO_REASON;
}

uint64_t hash_of(const uintptr_t* addresses, size_t count) {
  uint64_t hash = 0xcbf29ce484222325;  // FNV-1a, by words
  for (size_t i = 0; i < count; ++i) hash = (hash ^ addresses[i]) * 0x100000001b3;
  return hash;
}

/// A program or library; the name of the program is empty.
struct Module {
  uintptr_t address;  // within the module
  std::string name = {};
  uintptr_t load_address = 0;  // added to addresses in the file
};

int find_module(dl_phdr_info* info, size_t, void* argument) {
  auto& wanted = *static_cast<Module*>(argument);
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& segment = info->dlpi_phdr[i];
    const uintptr_t begin = info->dlpi_addr + segment.p_vaddr;
    if (segment.p_type != PT_LOAD || wanted.address < begin ||
        wanted.address - begin >= segment.p_memsz)
      continue;
    wanted.name = info->dlpi_name;
    wanted.load_address = info->dlpi_addr;
    return 1;
  }
  return 0;
}

std::string path_of_program() {
  char path[4096];
  const ssize_t size = readlink("/proc/thread-self/exe", path, sizeof path);
  return size > 0 ? std::string(path, static_cast<size_t>(size)) : "";
}

}  // namespace

void RawStack::take() {
  Walk walk;
  _Unwind_Backtrace(add_frame, &walk);
  count = walk.stack.count;
  std::copy_n(walk.stack.addresses, count, addresses);
}

__attribute__((noinline)) uint32_t Stacks::current() {
  const auto frame = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
  KnownStack* const known = known_stacks();
  KnownStack* const entry =
      known != nullptr ? &known[(frame ^ frame >> 9) / sizeof(void*) % kKnownStacks] : nullptr;
  if (entry != nullptr && entry->is_current(frame)) return entry->number;
  Walk walk;
  _Unwind_Backtrace(add_frame, &walk);
  walk.stack.frame = frame;
  walk.stack.number = number_of(walk.stack.addresses, walk.stack.count);
  if (entry != nullptr && walk.has_slots) *entry = walk.stack;
  return walk.stack.number;
}

uint32_t Stacks::number_of(const uintptr_t* addresses, size_t count) {
  const uint64_t hash = hash_of(addresses, count);
  const auto [begin, end] = by_hash_.equal_range(hash);
  for (auto at = begin; at != end; ++at) {
    const std::vector<uintptr_t>& one = addresses_[at->second - 1];
    if (one.size() == count && std::equal(one.begin(), one.end(), addresses)) return at->second;
  }
  if (stacks_.size() == kMaxStacks) return 0;
  addresses_.emplace_back(addresses, addresses + count);
  std::vector<Frame>& frames = stacks_.emplace_back();
  for (size_t i = 0; i < count; ++i) frames.push_back(describe(addresses[i]));
  const auto number = static_cast<uint32_t>(stacks_.size());
  by_hash_.emplace(hash, number);
  return number;
}

Frame Stacks::describe(uintptr_t address) {
  // After a call that does not return, the next address may belong to another function.
  Module module{address - 1};
  if (dl_iterate_phdr(find_module, &module) == 0) return {&files_["?"], address, "", 0};
  const auto [file, is_new] = files_.try_emplace(module.name, module.name);
  if (is_new && module.name.empty()) file->second = path_of_program();
  Frame frame{&file->second, address - module.load_address, "", 0};
  Dl_info info{};
  if (dladdr(reinterpret_cast<void*>(address - 1), &info) != 0 && info.dli_sname != nullptr) {
    frame.symbol = info.dli_sname;
    frame.offset = address - reinterpret_cast<uintptr_t>(info.dli_saddr);
  }
  return frame;
}

}  // namespace rocemu::sanitizer
