// PR_SET_TSC of prctl(2) turns each read of the counter into a fault (SIGSEGV), which is handled
// here. Three kinds of code need special care:
// - The kernel's clock functions in the program (vdso(7)) read the counter. They are changed so
//   that they call the kernel (kernel_clocks.h).
// - Programs have their own handlers for SIGSEGV, and block it (fault_action.h).
// - The setting survives execve(2), and the dynamic loader reads the counter (RealCycles).
// Go's runtime installs its handlers by direct system calls and reads the counter: a program that
// contains Go code keeps the real counter. So does a program under Valgrind, which reads the
// counter for the program, and a program with a compiler's sanitizer: these handle signals, block
// them, and start a symbolizer by direct system calls. A program that a debugger has started also
// keeps it, because the debugger would stop at each fault.
#include "verbs_provider/turns/cycle_counter.h"

#include "verbs_provider/turns/fault_action.h"

#if defined(__x86_64__)

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <elf.h>
#include <link.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>

#include "emulator/abi/turn_table.h"
#include "verbs_provider/system/kernel.h"
#include "verbs_provider/system/proc_file.h"
#include "verbs_provider/turns/kernel_clocks.h"
#include "verbs_provider/turns/turn.h"

/// Functions of tools, which only the tools' libraries define: Valgrind preloads the first into
/// every program, and the runtimes of all sanitizers have the second
/// (sanitizer/common_interface_defs.h). dlsym(3) cannot be used to look for them: it would allocate
/// memory, and an allocator that reads the clock while it is initialized cannot serve that yet.
extern "C" {
__attribute__((weak)) void _vgnU_freeres();
__attribute__((weak)) void __sanitizer_set_report_path();
}

namespace rocemu::turns {
namespace {

bool is_on = false;
volatile sig_atomic_t was_answered = 0;  // a read

void set_virtual(bool is_virtual) {
  kernel(SYS_prctl, PR_SET_TSC, is_virtual ? PR_TSC_SIGSEGV : PR_TSC_ENABLE);
}

/// Returns the setting of the calling thread, or 0 if the kernel has no such setting.
int setting() {
  int value = 0;
  return kernel(SYS_prctl, PR_GET_TSC, &value) == 0 ? value : 0;
}

uint64_t cycles() {
  if (joined()) read_clock();
  if (joined()) return static_cast<uint64_t>(abi::kMonotonicStartNs + now_ns());
  const RealCycles real;  // the daemon has ended
  return __builtin_ia32_rdtsc();
}

/// Returns the size of the instruction at `code` if it reads the counter, and otherwise 0.
size_t size_of_read(const uint8_t* code, bool* reads_processor) {
  *reads_processor = code[0] == 0x0f && code[1] == 0x01 && code[2] == 0xf9;  // rdtscp
  if (*reads_processor) return 3;
  return code[0] == 0x0f && code[1] == 0x31 ? 2 : 0;  // rdtsc
}

/// Go's linker puts this text at the beginning of a program's data, where Go's own tools look for
/// it.
constexpr char kGoMark[] = "\xff Go buildinf:";
constexpr size_t kLongestGoSearch = 65536;

int find_go(dl_phdr_info* info, size_t, void*) {
  for (size_t i = 0; i < info->dlpi_phnum; ++i) {
    const Elf64_Phdr& part = info->dlpi_phdr[i];
    if (part.p_type != PT_LOAD || (part.p_flags & PF_W) == 0) continue;
    const size_t size = part.p_filesz < kLongestGoSearch ? part.p_filesz : kLongestGoSearch;
    const auto* data = reinterpret_cast<const char*>(info->dlpi_addr + part.p_vaddr);
    if (memmem(data, size, kGoMark, sizeof kGoMark - 1) != nullptr) return 1;
  }
  return 0;
}

bool runs_under_a_tool() {
  return _vgnU_freeres != nullptr || __sanitizer_set_report_path != nullptr;
}

bool begins_with(const char* text, const char* beginning) {
  return strncmp(text, beginning, strlen(beginning)) == 0;
}

/// Returns whether gdb, lldb or one of their servers traces the process. Other tracers, such as
/// strace(1), let a program have its signals.
bool runs_under_a_debugger() {
  constexpr char kTracer[] = "TracerPid:";
  long tracer = 0;
  {
    provider::ProcFile status("/proc/self/status");
    for (const char* line = status.next(); line != nullptr; line = status.next()) {
      if (begins_with(line, kTracer)) tracer = strtol(line + strlen(kTracer), nullptr, 10);
    }
  }
  if (tracer == 0) return false;
  char path[32];
  snprintf(path, sizeof path, "/proc/%ld/comm", tracer);
  provider::ProcFile comm(path);
  const char* const name = comm.next();
  return name != nullptr && (begins_with(name, "gdb") || begins_with(name, "lldb"));
}

/// Returns whether reading the cycle counter faults. On some virtual machines, prctl(PR_SET_TSC)
/// succeeds but has no effect.
bool reads_fault() {
  was_answered = 0;
  __builtin_ia32_rdtsc();
  return was_answered != 0;
}

}  // namespace

bool answer_fault(const siginfo_t& info, ucontext_t* context) {
  // The kernel reports SI_KERNEL for an instruction that is not allowed, so the instruction at that
  // address exists.
  if (info.si_code != SI_KERNEL) return false;
  greg_t* const registers = context->uc_mcontext.gregs;
  bool reads_processor = false;
  const size_t size =
      size_of_read(reinterpret_cast<const uint8_t*>(registers[REG_RIP]), &reads_processor);
  if (size == 0) return false;
  was_answered = 1;
  const int saved = errno;
  const uint64_t now = cycles();
  registers[REG_RAX] = static_cast<greg_t>(now & 0xffffffff);
  registers[REG_RDX] = static_cast<greg_t>(now >> 32);
  if (reads_processor) registers[REG_RCX] = 0;  // processor 0, as sched_getcpu(3) in lockstep
  registers[REG_RIP] += static_cast<greg_t>(size);
  errno = saved;
  return true;
}

void make_cycles_virtual() {
  if (is_on || setting() != PR_TSC_ENABLE || runs_under_a_tool() || runs_under_a_debugger() ||
      dl_iterate_phdr(find_go, nullptr) != 0)
    return;
  take_fault_action();
  is_on = true;
  set_virtual(true);
  if (reads_fault() && make_clocks_call_kernel()) return;
  set_virtual(false);
  is_on = false;
  give_back_fault_action();
}

bool has_virtual_cycles() {
  return is_on;
}

RealCycles::RealCycles() : were_virtual_(is_on && setting() == PR_TSC_SIGSEGV) {
  if (were_virtual_) set_virtual(false);
}

RealCycles::~RealCycles() {
  if (were_virtual_) set_virtual(true);
}

}  // namespace rocemu::turns

#else  // Reads of other processors' counters do not fault.

namespace rocemu::turns {

bool answer_fault(const siginfo_t&, ucontext_t*) {
  return false;
}
void make_cycles_virtual() {}
bool has_virtual_cycles() {
  return false;
}
RealCycles::RealCycles() = default;
RealCycles::~RealCycles() = default;

}  // namespace rocemu::turns

#endif
