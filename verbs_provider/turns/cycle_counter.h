// The processor's cycle counter, which programs read without a system call. In lockstep it shows
// virtual time, one cycle for each nanosecond.
#pragma once

namespace rocemu::turns {

/// Gives the calling thread, and all threads and processes that it starts, virtual time in the
/// counter. Does nothing if the processor or the program does not allow this: cycle_counter.cc
/// lists the cases.
void make_cycles_virtual();

/// Returns whether the cycle counter shows virtual time in this process.
bool has_virtual_cycles();

/// While an object of this class exists, the calling thread and programs that it executes read the
/// real counter. Every call that executes a program needs this: the dynamic loader reads the
/// counter before a handler exists, and the setting survives execve(2).
class RealCycles {
 public:
  RealCycles();
  ~RealCycles();
  RealCycles(const RealCycles&) = delete;
  RealCycles& operator=(const RealCycles&) = delete;

 private:
  bool were_virtual_ = false;
};

}  // namespace rocemu::turns
