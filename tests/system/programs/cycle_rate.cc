// Prints the rate of the cycle counter that a library measured when it was loaded (early_clock.cc).
#include <cstdio>

extern "C" unsigned long long cycles_of_millisecond;

int main() {
  std::printf("rate %llu\n", cycles_of_millisecond);
}
