#include "emulator/os/processors.h"

#include <sched.h>

namespace rocemu {

std::vector<int> allowed_processors() {
  cpu_set_t set;
  std::vector<int> processors;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return processors;
  for (int number = 0; number < CPU_SETSIZE; ++number)
    if (CPU_ISSET(static_cast<size_t>(number), &set)) processors.push_back(number);
  return processors;
}

std::string processor_list(const std::vector<int>& processors) {
  std::string list;
  for (size_t i = 0; i < processors.size();) {
    size_t end = i + 1;
    while (end < processors.size() && processors[end] == processors[end - 1] + 1) ++end;
    if (!list.empty()) list += ',';
    list += std::to_string(processors[i]);
    if (end - i > 1) list += "-" + std::to_string(processors[end - 1]);
    i = end;
  }
  return list;
}

bool stay_on(int processor) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<size_t>(processor), &set);
  return sched_setaffinity(0, sizeof set, &set) == 0;
}

}  // namespace rocemu
