// A library that takes a long time while a program is loaded, like files on a network.
#include <sys/syscall.h>
#include <unistd.h>

#include <ctime>

__attribute__((constructor)) static void take_time() {
  const timespec time{0, 150'000'000};
  syscall(SYS_nanosleep, &time, nullptr);
}
