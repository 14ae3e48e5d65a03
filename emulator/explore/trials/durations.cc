#include "emulator/explore/trials/durations.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>

namespace rocemu::explore {
namespace {

/// The units of durations. "min" is missing, since it also occurs between a count and a minimum:
/// "1000 min 3 max 9".
constexpr std::array<std::string_view, 29> kUnits = {
    "s",           "ns",           "us",          "\u00b5s",      "\u03bcs",    "ms",
    "sec",         "secs",         "msec",        "msecs",        "usec",       "usecs",
    "nsec",        "nsecs",        "second",      "seconds",      "nanosecond", "nanoseconds",
    "microsecond", "microseconds", "millisecond", "milliseconds", "minute",     "minutes",
    "mins",        "hour",         "hours",       "hrs",          "hr"};
constexpr size_t kMaxAbbreviation = 2;  // abbreviations must be in lower case

bool is_digit(char c) {
  return std::isdigit(static_cast<unsigned char>(c)) != 0;
}

/// Returns whether the character is part of a word. This includes letters of other alphabets.
bool is_of_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || (c & 0x80) != 0;
}

class Scanner {
 public:
  explicit Scanner(const std::string& line) : line_(line) {}

  /// Returns the end of the duration that begins at `begin`, or `begin` if no duration begins
  /// there.
  size_t end_of_duration(size_t begin) const {
    if (!is_digit(at(begin)) || continues_another(begin)) return begin;
    if (const size_t end = end_of_time_of_day(begin); end != begin) return end;
    const size_t unit = end_of_number(begin);
    if (unit == begin) return begin;
    // The number may be the first part of a duration such as "1h2m3.5s". A single "m" or "h" is not
    // a unit, since it may mean meters, for example.
    const bool is_compound = (at(unit) == 'h' || at(unit) == 'm') && is_digit(at(unit + 1));
    if (!is_compound) return end_of_unit(unit, begin);
    const size_t end = end_of_compound(unit + 1);
    return end == unit + 1 ? begin : end;
  }

 private:
  char at(size_t i) const { return i < line_.size() ? line_[i] : '\0'; }
  bool is_of_word_or_digit(size_t i) const { return i < line_.size() && is_of_word(line_[i]); }

  /// Returns whether the text at `begin` continues a word or another number, such as 1.2.3.
  bool continues_another(size_t begin) const {
    if (begin == 0) return false;
    const char before = line_[begin - 1];
    return is_of_word(before) || before == '.' || before == ',' || before == ':';
  }

  size_t skip_digits(size_t i) const {
    while (is_digit(at(i))) ++i;
    return i;
  }

  /// Returns the end of a number such as "12", "0.66", "0,66" or "1e-05". "1.2.3" is not a number.
  size_t end_of_number(size_t begin) const {
    size_t end = skip_digits(begin);
    if (end == begin) return begin;
    if ((at(end) == '.' || at(end) == ',') && is_digit(at(end + 1))) end = skip_digits(end + 1);
    if (at(end) == 'e' && (at(end + 1) == '-' || at(end + 1) == '+') && is_digit(at(end + 2)))
      end = skip_digits(end + 2);
    if ((at(end) == '.' || at(end) == ',' || at(end) == ':') && is_digit(at(end + 1))) return begin;
    return end;
  }

  /// Returns the end of the later parts of a duration such as "1h2m3s", or `begin` if no unit
  /// follows.
  size_t end_of_compound(size_t begin) const {
    const size_t unit = end_of_number(begin);
    if (unit == begin) return begin;
    const char letter = at(unit);
    if ((letter == 'h' || letter == 'm') && !is_of_word_or_digit(unit + 1)) return unit + 1;
    if (letter == 'm' && is_digit(at(unit + 1))) {
      const size_t rest = end_of_compound(unit + 1);
      return rest == unit + 1 ? begin : rest;
    }
    return end_of_unit(unit, begin);
  }

  /// Returns the end of a unit that follows a number directly or after a blank. Returns `none` if
  /// there is no unit.
  size_t end_of_unit(size_t begin, size_t none) const {
    if (at(begin) == ' ') ++begin;
    size_t end = begin;
    while (is_of_word_or_digit(end)) ++end;
    std::string word = line_.substr(begin, end - begin);
    if (word.size() > kMaxAbbreviation)
      std::ranges::transform(word, word.begin(), [](unsigned char c) { return std::tolower(c); });
    return std::ranges::find(kUnits, word) != kUnits.end() ? end : none;
  }

  /// Returns the end of a time of day such as "12:34:56.789", or of a long duration such as
  /// "0:01:02". Part of an address is not a time.
  size_t end_of_time_of_day(size_t begin) const {
    size_t end = skip_digits(begin);
    if (end - begin > 2) return begin;
    for (int i = 0; i < 2; ++i) {
      if (at(end) != ':' || skip_digits(end + 1) != end + 3) return begin;
      end += 3;
    }
    if ((at(end) == '.' || at(end) == ',') && is_digit(at(end + 1))) end = skip_digits(end + 1);
    return at(end) == ':' || is_of_word_or_digit(end) ? begin : end;
  }

  const std::string& line_;
};

/// Replaces consecutive blanks by one blank. Replaces three or more of another character by one,
/// unless the character is part of a word.
std::string without_padding(const std::string& line) {
  std::string text;
  for (size_t i = 0; i < line.size();) {
    size_t end = i + 1;
    while (end < line.size() && line[end] == line[i]) ++end;
    const bool is_padding = line[i] == ' ' || (end - i > 2 && !is_of_word(line[i]));
    text.append(is_padding ? 1 : end - i, line[i]);
    i = end;
  }
  return text;
}

}  // namespace

std::string without_durations(const std::string& line) {
  const Scanner scanner(line);
  std::string text;
  bool is_found = false;
  for (size_t i = 0; i < line.size();) {
    const size_t end = scanner.end_of_duration(i);
    if (end == i) {
      text += line[i++];
      continue;
    }
    text += "<time>";
    is_found = true;
    i = end;
  }
  return is_found ? without_padding(text) : line;
}

}  // namespace rocemu::explore
