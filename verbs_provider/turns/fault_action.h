// The program's handler for SIGSEGV. The actual handler of the process is rocemu's, because the
// cycle counter shows virtual time (cycle_counter.h).
#pragma once

#include <csignal>

#include <ucontext.h>

namespace rocemu::turns {

/// Keeps the present action of SIGSEGV as the program's, installs ours, and unblocks the signal in
/// the calling thread: the kernel kills a process that faults while the signal is blocked.
void take_fault_action();

/// Undoes take_fault_action().
void give_back_fault_action();

/// Unblocks SIGSEGV in the calling thread, which has just started: pthread_attr_setsigmask_np(3)
/// may have blocked it.
void let_faults_come();

/// A signal mask of the program, without SIGSEGV if the cycle counter shows virtual time. A null
/// pointer remains null.
class MaskWithoutFaults {
 public:
  explicit MaskWithoutFaults(const sigset_t* mask);
  MaskWithoutFaults(const MaskWithoutFaults&) = delete;
  MaskWithoutFaults& operator=(const MaskWithoutFaults&) = delete;

  const sigset_t* get() const { return used_; }

 private:
  sigset_t changed_;
  const sigset_t* used_;
};

/// Handles a fault of an instruction that reads the cycle counter, and continues after the
/// instruction. Returns false if the fault is the program's own.
bool answer_fault(const siginfo_t& info, ucontext_t* context);

}  // namespace rocemu::turns
