// A library that measures the cycle counter when it is loaded, as UCX does. That happens before the
// constructors of preloaded libraries have run.
#include <sys/time.h>
#include <x86intrin.h>

extern "C" {
__attribute__((visibility("default"))) unsigned long long cycles_of_millisecond = 0;
}

namespace {

long long now_us() {
  timeval now{};
  gettimeofday(&now, nullptr);
  return now.tv_sec * 1'000'000LL + now.tv_usec;
}

__attribute__((constructor)) void measure() {
  const long long begin_us = now_us();
  const unsigned long long begin = __rdtsc();
  long long us = 0;
  while ((us = now_us() - begin_us) < 10'000) {
  }
  cycles_of_millisecond = (__rdtsc() - begin) * 1000 / static_cast<unsigned long long>(us);
}

}  // namespace
