#include "emulator/os/programs/source_lines.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <sstream>

#include "emulator/os/programs/tool_output.h"

namespace rocemu {
namespace {

constexpr size_t kMaxAddresses = 500;  // in one command line

/// Returns the name f from "f inlined at file.c:5:16 in main"; an empty string for "??", which
/// means unknown.
std::string function_of(std::string text) {
  text.resize(std::min(text.size(), text.find(" inlined at ")));
  return text == "??" ? "" : text;
}

/// Reads the file and the line from "/src/file.c:3:47" or "/src/file.c:3 (discriminator 2)".
void read_place(std::string text, SourceLine& to) {
  text.resize(std::min(text.size(), text.find(" (")));
  std::vector<uint32_t> numbers;  // the last one first
  while (numbers.size() < 2) {
    const size_t colon = text.rfind(':');
    uint32_t number = 0;
    if (colon == std::string::npos || colon + 1 == text.size()) break;
    const char* const end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data() + colon + 1, end, number);
    if (error != std::errc() || stop != end) break;
    numbers.push_back(number);
    text.resize(colon);
  }
  if (text.starts_with("??") || numbers.empty()) return;
  to.file = text;
  to.line = numbers.back();
}

}  // namespace

SourceLines parse_source_lines(std::string_view output) {
  SourceLines found;
  std::istringstream lines{std::string(output)};
  std::vector<SourceLine>* at = nullptr;
  std::string function;
  bool has_function = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("eu-addr2line:") || line.starts_with("addr2line:")) continue;
    if (line.starts_with("0x")) {
      at = &found[std::stoull(line, nullptr, 16)];
      has_function = false;
    } else if (!has_function) {
      function = function_of(line);
      has_function = true;
    } else if (at != nullptr) {
      SourceLine one{function, "", 0};
      read_place(line, one);
      if (one != SourceLine{}) at->push_back(std::move(one));
      has_function = false;
    }
  }
  std::erase_if(found, [](const auto& one) { return one.second.empty(); });
  return found;
}

SourceLines source_lines(const std::string& file, const std::vector<uint64_t>& addresses) {
  for (const char* const tool : {"eu-addr2line", "addr2line"}) {
    SourceLines found;
    for (size_t begin = 0; begin < addresses.size(); begin += kMaxAddresses) {
      std::vector<std::string> words = {tool, "-a", "-f", "-C", "-i", "-e", file};
      for (size_t i = begin; i < std::min(begin + kMaxAddresses, addresses.size()); ++i) {
        char text[20];
        std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(addresses[i]));
        words.emplace_back(text);
      }
      found.merge(parse_source_lines(output_of_tool(words)));
    }
    if (!found.empty()) return found;
  }
  return {};
}

}  // namespace rocemu
