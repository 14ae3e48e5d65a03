// A library that takes its time while a program is loaded, as files on a network do.
#include <sys/syscall.h>
#include <unistd.h>

#include <ctime>

__attribute__((constructor)) static void take_time() {
  const timespec time{0, 150'000'000};
  syscall(SYS_nanosleep, &time, nullptr);
}
