// Builds a string in a buffer of fixed size, without allocating.
#pragma once

#include <cstddef>
#include <cstring>

namespace rocemu::shim {

class Text {
 public:
  /// Starts with an empty string in `out`. The string is always null-terminated, and truncated if
  /// it does not fit; see fits().
  Text(char* out, size_t size) : out_(out), size_(size) { out_[0] = '\0'; }

  void add(const char* text) { add(text, strlen(text)); }

  void add(const char* text, size_t length) {
    if (length >= size_ - used_) {
      fits_ = false;
      return;
    }
    memcpy(out_ + used_, text, length);
    used_ += length;
    out_[used_] = '\0';
  }

  void add_number(unsigned long number) {
    char digits[20];
    size_t first = sizeof(digits);
    do {
      digits[--first] = static_cast<char>('0' + number % 10);
      number /= 10;
    } while (number != 0);
    add(digits + first, sizeof(digits) - first);
  }

  /// Removes trailing slashes, but keeps the only slash of the root directory.
  void strip_trailing_slashes() {
    while (used_ > 1 && out_[used_ - 1] == '/') out_[--used_] = '\0';
  }

  bool fits() const { return fits_; }

 private:
  char* out_;
  size_t size_;
  size_t used_ = 0;
  bool fits_ = true;
};

}  // namespace rocemu::shim
