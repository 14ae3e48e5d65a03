#include "verbs_provider/sanitizer/log.h"

#include <algorithm>
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

/// Maps the file of counts under an unused name: each program that the process executes has
/// separate files.
void Log::map_counts() {
  constexpr int kPrograms = 1000;
  for (int i = 0; i < kPrograms; ++i) {
    name_ = own_pid() + "." + std::to_string(i);
    const std::string path = directory_ + "/" + abi::kSanitizerCounts + name_;
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

/// Appends or writes the line. The file is opened again each time, because a program may close
/// descriptors that it did not open.
void Log::write_line(const std::string& file, int flags, const std::string& line) {
  const std::string path = directory_ + "/" + file;
  const long fd =
      kernel(SYS_openat, AT_FDCWD, path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | flags, 0666);
  if (fd < 0) return;
  const std::string text = line + "\n";
  kernel(SYS_write, fd, text.data(), text.size());
  kernel(SYS_close, fd);
}

void Log::append(const std::string& line) {
  write_line(abi::kSanitizerLog, O_APPEND, line);
}

void Log::write_stack(uint32_t stack) {
  if (stack == 0 || !written_stacks_.insert(stack).second) return;
  std::string frames;
  for (const Frame& frame : stacks_.frames(stack))
    frames += (frames.empty() ? "[" : ",[") + quoted(*frame.file) + "," + number(frame.address) +
              "," + quoted(frame.symbol) + "," + number(frame.offset) + "]";
  append("{\"stack\":" + number(stack) + ",\"pid\":" + own_pid() + ",\"frames\":[" + frames + "]}");
}

std::string Log::json_of(const CallSite& site, std::string_view what) {
  write_stack(site.stack);
  return (what.empty() ? "{" : "{\"what\":" + quoted(what) + ",") +
         "\"call\":" + quoted(site.call) + ",\"stack\":" + number(site.stack) +
         ",\"time\":" + number(site.time_ns) + "}";
}

void Log::count(uint64_t index) {
  if (counts_ != nullptr && index <= abi::kMaxSanitizerReports) ++counts_[index - 1];
}

/// Returns the report as JSON. `more` has further members, each after a comma.
std::string Log::json_of(const Report& report, const std::string& more) {
  std::string places;
  for (const NamedCallSite& named : report.sites)
    places += (places.empty() ? "" : ",") + json_of(named.site, named.what);
  return "{\"report\":" + quoted(report.rule.id) + ",\"pid\":" + own_pid() +
         ",\"message\":" + quoted(report.message) + ",\"places\":[" + places + "]" + more + "}";
}

void Log::write(const Report& report) {
  std::string key(report.rule.id);
  for (const NamedCallSite& named : report.sites)
    key += " " + number(named.site.stack) + std::string(named.site.call);
  const auto [at, is_new] = indices_.try_emplace(key, indices_.size() + 1);
  const uint64_t index = at->second;
  if (index > abi::kMaxSanitizerReports) {
    indices_.erase(at);
    return;
  }
  count(index);
  if (is_new)
    append(json_of(report, ",\"index\":" + number(index) +
                               ",\"counts\":" + quoted(abi::kSanitizerCounts + name_)));
}

std::string Log::name_of_wait(uint64_t wait) const {
  return abi::kSanitizerWait + name_ + "." + number(wait);
}

uint64_t Log::write_wait(const Report& report) {
  const auto free = std::find(waits_.begin(), waits_.end(), false);
  const auto index = static_cast<uint64_t>(free - waits_.begin());
  if (index == abi::kMaxSanitizerWaits) return 0;
  if (free == waits_.end()) {
    waits_.push_back(true);
  } else {
    *free = true;
  }
  write_line(name_of_wait(index + 1), O_TRUNC, json_of(report, ""));
  return index + 1;
}

void Log::withdraw(uint64_t wait) {
  if (wait == 0) return;
  const std::string path = directory_ + "/" + name_of_wait(wait);
  kernel(SYS_unlinkat, AT_FDCWD, path.c_str(), 0);
  waits_[wait - 1] = false;
}

void Log::write_object(const Object& object, const char* device) {
  write_site_of(object.title(), device, object.created);
}

void Log::write_key(const Mr& region, const char* device, const CallSite& site) {
  write_site_of("R_Key " + in_hex(region.rkey), device, site);
}

void Log::write_site_of(const std::string& title, const char* device, const CallSite& site) {
  constexpr size_t kMaxObjects = 65536;
  if (objects_ == kMaxObjects) return;
  ++objects_;
  const std::string json = json_of(site, "");  // writes its stack first
  append("{\"object\":" + quoted(title) + ",\"device\":" + quoted(device) +
         ",\"pid\":" + own_pid() + ",\"place\":" + json + "}");
}

}  // namespace rocemu::sanitizer
