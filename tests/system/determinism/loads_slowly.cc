// A library whose constructor takes a long time, as if it were loaded from a slow network file
// system.
#include <sys/syscall.h>
#include <unistd.h>

#include <ctime>

__attribute__((constructor)) static void take_time() {
  const timespec time{0, 150'000'000};
  syscall(SYS_nanosleep, &time, nullptr);
}
