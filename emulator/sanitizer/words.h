// The words for queues and requests in reports
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

#include "emulator/sanitizer/program_objects.h"

namespace rocemu::sanitizer {

inline std::string in_hex(uint64_t value) {
  char text[20];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(value));
  return text;
}

/// Returns the number with its noun, such as "1 event" or "3 events".
inline std::string count_of(uint64_t count, std::string_view what) {
  return std::to_string(count) + " " + std::string(what) + (count == 1 ? "" : "s");
}

/// Returns the name of a request, such as "send 4 on QP 5" or "receive 17 on SRQ 2".
inline std::string title_of(QueueKind kind, uint32_t queue, uint64_t number) {
  return (kind == QueueKind::kSend ? "send " : "receive ") + std::to_string(number) +
         (kind == QueueKind::kShared ? " on SRQ " : " on QP ") + std::to_string(queue);
}
inline std::string title_of(const Queue& queue, uint64_t number) {
  return title_of(queue.kind, queue.number, number);
}

}  // namespace rocemu::sanitizer
