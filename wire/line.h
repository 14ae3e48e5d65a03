// Builds a line of text: words, and numbers with their names.
#pragma once

#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <utility>

namespace rocemu::wire {

class Line {
 public:
  explicit Line(std::string start) : text_(std::move(start)) {}

  Line& word(std::string_view word) {
    if (!text_.empty()) text_ += ' ';
    text_ += word;
    return *this;
  }
  Line& flag(bool set, std::string_view name) { return set ? word(name) : *this; }
  Line& decimal(std::string_view name, uint64_t value) { return number(name, "%" PRIu64, value); }
  Line& hex(std::string_view name, uint64_t value) { return number(name, "0x%" PRIx64, value); }

  std::string take() { return std::move(text_); }

 private:
  __attribute__((format(printf, 3, 0))) Line& number(std::string_view name, const char* format,
                                                     uint64_t value) {
    char digits[32];
    std::snprintf(digits, sizeof digits, format, value);
    word(name);
    text_ += '=';
    text_ += digits;
    return *this;
  }

  std::string text_;
};

}  // namespace rocemu::wire
