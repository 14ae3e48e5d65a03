#include "verbs_provider/sanitizer/log.h"

#include <cstdio>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "emulator/abi/sanitizer_log.h"
#include "emulator/sanitizer/words.h"
#include "verbs_provider/system/kernel.h"

namespace rocemu::sanitizer {
namespace {

using turns::kernel;

std::string quoted(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    const auto code = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      result += '\\';
      result += c;
    } else if (code < 0x20) {
      char escape[8];
      std::snprintf(escape, sizeof escape, "\\u%04x", code);
      result += escape;
    } else {
      result += c;
    }
  }
  return result + '"';
}

std::string number(uint64_t value) {
  return std::to_string(value);
}

std::string own_pid() {
  return number(static_cast<uint64_t>(kernel(SYS_getpid)));
}

}  // namespace

Log::Log(std::string directory, Stacks& stacks)
    : directory_(std::move(directory)), stacks_(stacks) {
  map_counts();
}

/// Each program that the process executes has a file of its own.
void Log::map_counts() {
  constexpr int kPrograms = 1000;
  for (int i = 0; i < kPrograms; ++i) {
    counts_name_ = abi::kSanitizerCounts + own_pid() + "." + std::to_string(i);
    const std::string path = directory_ + "/" + counts_name_;
    const long fd =
        kernel(SYS_openat, AT_FDCWD, path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0) continue;
    constexpr size_t kSize = abi::kMaxSanitizerReports * sizeof(uint64_t);
    void* memory = MAP_FAILED;
    if (kernel(SYS_ftruncate, fd, kSize) == 0)
      memory = mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_SHARED, static_cast<int>(fd), 0);
    kernel(SYS_close, fd);
    if (memory != MAP_FAILED) counts_ = static_cast<uint64_t*>(memory);
    return;
  }
}

/// The file is opened anew each time: a program may close what it did not open.
void Log::append(const std::string& line) {
  const std::string path = directory_ + "/" + abi::kSanitizerLog;
  const long fd =
      kernel(SYS_openat, AT_FDCWD, path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (fd < 0) return;
  const std::string text = line + "\n";
  kernel(SYS_write, fd, text.data(), text.size());
  kernel(SYS_close, fd);
}

void Log::write_stack(uint32_t stack) {
  if (stack == 0 || !written_stacks_.insert(stack).second) return;
  std::string frames;
  for (const Frame& frame : stacks_.frames(stack))
    frames += (frames.empty() ? "[" : ",[") + quoted(*frame.file) + "," + number(frame.address) +
              "," + quoted(frame.symbol) + "," + number(frame.offset) + "]";
  append("{\"stack\":" + number(stack) + ",\"pid\":" + own_pid() + ",\"frames\":[" + frames + "]}");
}

std::string Log::json_of(const Place& place, std::string_view what) {
  write_stack(place.stack);
  return (what.empty() ? "{" : "{\"what\":" + quoted(what) + ",") +
         "\"call\":" + quoted(place.call) + ",\"stack\":" + number(place.stack) +
         ",\"time\":" + number(place.time_ns) + "}";
}

void Log::count(uint64_t index) {
  if (counts_ != nullptr && index <= abi::kMaxSanitizerReports) ++counts_[index - 1];
}

uint64_t Log::write(const Report& report, bool unless_withdrawn) {
  std::string key(report.rule.id);
  for (const NamedPlace& named : report.places)
    key += " " + number(named.place.stack) + std::string(named.place.call);
  // A report that may be withdrawn is one of its own.
  if (unless_withdrawn) key += " " + number(indices_.size());
  const auto [at, is_new] = indices_.try_emplace(key, indices_.size() + 1);
  const uint64_t index = at->second;
  if (index > abi::kMaxSanitizerReports) {
    indices_.erase(at);
    return 0;
  }
  count(index);
  if (!is_new) return index;
  std::string places;
  for (const NamedPlace& named : report.places)
    places += (places.empty() ? "" : ",") + json_of(named.place, named.what);
  append("{\"report\":" + quoted(report.rule.id) + ",\"pid\":" + own_pid() +
         ",\"index\":" + number(index) + ",\"counts\":" + quoted(counts_name_) +
         ",\"message\":" + quoted(report.message) + ",\"places\":[" + places + "]" +
         (unless_withdrawn ? ",\"unless_withdrawn\":true" : "") + "}");
  return index;
}

void Log::withdraw(uint64_t index) {
  if (index == 0) return;
  append("{\"withdrawn\":" + number(index) + ",\"pid\":" + own_pid() + "}");
}

void Log::write_object(const Object& object, const char* device) {
  write_place_of(object.title(), device, object.created);
}

void Log::write_key(const Mr& region, const char* device, const Place& place) {
  constexpr size_t kMaxKeys = 65536;
  if (keys_ == kMaxKeys) return;
  ++keys_;
  write_place_of("R_Key " + in_hex(region.rkey), device, place);
}

void Log::write_place_of(const std::string& title, const char* device, const Place& place) {
  const std::string json = json_of(place, "");  // writes its stack before
  append("{\"object\":" + quoted(title) + ",\"device\":" + quoted(device) +
         ",\"pid\":" + own_pid() + ",\"place\":" + json + "}");
}

}  // namespace rocemu::sanitizer
