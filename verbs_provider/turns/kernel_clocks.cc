#include "verbs_provider/turns/kernel_clocks.h"

#if defined(__x86_64__)

#include <cstddef>
#include <cstdint>
#include <cstring>

#include <elf.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "verbs_provider/system/kernel.h"

namespace rocemu::turns {
namespace {

struct ClockFunction {
  const char* name;
  long call;
};
constexpr ClockFunction kClockFunctions[] = {
    {"__vdso_clock_gettime", SYS_clock_gettime},
    {"__vdso_gettimeofday", SYS_gettimeofday},
    {"__vdso_time", SYS_time},
};

/// The shared object that the kernel maps into the process, and its symbols.
struct KernelObject {
  uintptr_t base = 0;
  uintptr_t load = 0;  // must be added to its addresses
  size_t size = 0;     // of its code and data
  const Elf64_Sym* symbols = nullptr;
  size_t symbol_count = 0;
  const char* names = nullptr;
};

const Elf64_Dyn* read_headers(KernelObject* object) {
  const auto* header = reinterpret_cast<const Elf64_Ehdr*>(object->base);
  if (memcmp(header->e_ident, ELFMAG, SELFMAG) != 0) return nullptr;
  const auto* parts = reinterpret_cast<const Elf64_Phdr*>(object->base + header->e_phoff);
  const Elf64_Dyn* dynamic = nullptr;
  for (size_t i = 0; i < header->e_phnum; ++i) {
    if (parts[i].p_type == PT_LOAD) {
      object->load = object->base + parts[i].p_offset - parts[i].p_vaddr;
      object->size = parts[i].p_memsz;
    }
    if (parts[i].p_type == PT_DYNAMIC)
      dynamic = reinterpret_cast<const Elf64_Dyn*>(object->base + parts[i].p_offset);
  }
  return dynamic;
}

bool read_object(KernelObject* object) {
  const Elf64_Dyn* dynamic = read_headers(object);
  if (dynamic == nullptr) return false;
  for (; dynamic->d_tag != DT_NULL; ++dynamic) {
    const uintptr_t address = object->load + dynamic->d_un.d_ptr;
    if (dynamic->d_tag == DT_SYMTAB) object->symbols = reinterpret_cast<const Elf64_Sym*>(address);
    if (dynamic->d_tag == DT_STRTAB) object->names = reinterpret_cast<const char*>(address);
  }
  if (object->symbols == nullptr || object->names == nullptr) return false;
  // The names directly follow the symbols, so the distance between the two tables gives the number
  // of symbols.
  object->symbol_count =
      (reinterpret_cast<uintptr_t>(object->names) - reinterpret_cast<uintptr_t>(object->symbols)) /
      sizeof(Elf64_Sym);
  return true;
}

/// Writes a function that makes system call `call`: "mov $call, %eax; syscall; ret".
void write_call(void* place, long call) {
  uint8_t code[] = {0xb8, 0, 0, 0, 0, 0x0f, 0x05, 0xc3};
  const auto number = static_cast<uint32_t>(call);
  memcpy(code + 1, &number, sizeof number);
  memcpy(place, code, sizeof code);
}

}  // namespace

bool make_clocks_call_kernel() {
  KernelObject object{.base = getauxval(AT_SYSINFO_EHDR)};
  if (object.base == 0) return true;  // The kernel maps no shared object.
  if (!read_object(&object)) return false;
  constexpr uintptr_t kPage = 4096;
  const uintptr_t begin = object.base & ~(kPage - 1);
  const size_t size = (object.base + object.size - begin + kPage - 1) & ~(kPage - 1);
  if (kernel(SYS_mprotect, begin, size, PROT_READ | PROT_WRITE | PROT_EXEC) != 0) return false;
  for (size_t i = 0; i < object.symbol_count; ++i) {
    const Elf64_Sym& symbol = object.symbols[i];
    if (symbol.st_value == 0) continue;
    for (const ClockFunction& function : kClockFunctions) {
      if (strcmp(object.names + symbol.st_name, function.name) == 0)
        write_call(reinterpret_cast<void*>(object.load + symbol.st_value), function.call);
    }
  }
  kernel(SYS_mprotect, begin, size, PROT_READ | PROT_EXEC);
  return true;
}

}  // namespace rocemu::turns

#endif
