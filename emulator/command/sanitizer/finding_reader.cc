#include "emulator/command/sanitizer/finding_reader.h"

#include <signal.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "emulator/abi/sanitizer_log.h"
#include "emulator/command/base/print_json.h"
#include "emulator/os/programs/source_lines.h"
#include "emulator/sanitizer/rules.h"

namespace rocemu::command {

struct RawFrame {
  std::string module;
  uint64_t address;
  std::string symbol;
  uint64_t offset;
};
using RawStack = std::vector<RawFrame>;

struct RawCallSite {
  std::string what, call;
  uint64_t time_ns = 0;
  const RawStack* stack = nullptr;
};

struct RawMisuse {
  Misuse finding;
  std::vector<RawCallSite> sites;
  std::pair<std::string, uint64_t> counter;  // file and index
};

namespace {

uint64_t read_count(const std::string& directory, const std::pair<std::string, uint64_t>& counter) {
  if (counter.first.empty() || counter.second == 0) return 1;
  std::ifstream file(directory + "/" + counter.first, std::ios::binary);
  file.seekg(static_cast<std::streamoff>((counter.second - 1) * sizeof(uint64_t)));
  uint64_t count = 0;
  if (!file.read(reinterpret_cast<char*>(&count), sizeof count)) return 1;
  return std::max<uint64_t>(count, 1);
}

std::string_view name_of_library(std::string_view path) {
  return path.substr(path.rfind('/') + 1);
}

/// Returns whether a frame of the module is inside the program's call of an RDMA function: the
/// module is an RDMA library, or the C library (for fork).
bool is_of_rdma(const std::string& module) {
  const std::string_view name = name_of_library(module);
  return name.starts_with("librocemu") || name.starts_with("libibverbs.so") ||
         name.starts_with("librdmacm.so") || name.starts_with("libc.so");
}

/// Returns whether the file is an RDMA header. Frames of its inline functions are left out, since
/// the program's calls are in its own files.
bool is_header_of_rdma(std::string_view file) {
  return file.ends_with("infiniband/verbs.h") || file.ends_with("rdma/rdma_verbs.h");
}

/// Returns whether the frame belongs to the code with which the C library starts a program or a
/// thread.
bool is_start(const StackFrame& frame) {
  return frame.function == "_start" || name_of_library(frame.module).starts_with("libc.so");
}

/// Returns the function's name without its arguments: "S::f" for "S::f(int) const".
std::string without_arguments(std::string name) {
  constexpr std::string_view kUnnamed = "(anonymous namespace)";
  size_t end = name.find('(');
  while (end != std::string::npos && name.compare(end, kUnnamed.size(), kUnnamed) == 0)
    end = name.find('(', end + kUnnamed.size());
  if (end != std::string::npos && end > 0 && !name.starts_with("operator()")) name.resize(end);
  return name;
}

bool has_ended(int pid) {
  return kill(pid, 0) != 0 && errno == ESRCH;
}

/// Returns the line of each wait that the directory contains and `waits` selects.
std::vector<std::string> read_waits(const std::string& directory, Waits waits) {
  constexpr std::string_view kPrefix = abi::kSanitizerWait;
  std::vector<std::string> lines;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(directory, error)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(kPrefix)) continue;
    const int pid = std::atoi(name.c_str() + kPrefix.size());
    // While the process runs, its wait may still end, and the process then removes the report.
    if (waits == Waits::kOfEnded && !has_ended(pid)) continue;
    std::ifstream file(entry.path());
    std::getline(file, lines.emplace_back());
  }
  return lines;
}

}  // namespace

/// Reads the log of a run.
class FindingReader::Log {
 public:
  explicit Log(std::string file) : file_(std::move(file)) {}

  /// Reads the lines that were written to the log since the last call.
  void read_more() {
    std::ifstream log(file_);
    log.seekg(read_to_);
    for (std::string line; std::getline(log, line);) {
      if (log.eof()) return;  // this line is incomplete
      read_to_ = log.tellg();
      with_record(line, [&](const Json& record) { read(record); });
    }
  }

  const std::vector<RawMisuse>& findings() const { return found_; }

  /// Returns the findings about waits, one for each line, in the order in which the waits began.
  std::vector<RawMisuse> findings_of(const std::vector<std::string>& waits) const {
    std::vector<RawMisuse> found;
    for (const std::string& line : waits)
      with_record(line, [&](const Json& record) {
        if (auto report = report_of(record)) found.push_back(std::move(*report));
      });
    const auto key = [](const RawMisuse& one) {
      return std::pair(one.sites.empty() ? 0 : one.sites.back().time_ns, one.finding.message);
    };
    std::ranges::sort(found, {}, key);
    return found;
  }

 private:
  /// Calls `read` with the JSON record in the line. Skips an incomplete line: a program leaves one
  /// behind if it is killed during a write.
  template <class Read>
  static void with_record(const std::string& line, Read read) {
    const Json record = Json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!record.is_object()) return;
    try {
      read(record);
    } catch (const Json::exception&) {
      return;
    }
  }

  void read(const Json& record) {
    if (record.contains("process")) {
      process_of_[record.at("process").get<int>()] =
          record.at("program").get<std::string>() + "#" +
          std::to_string(record.at("number").get<uint32_t>());
    } else if (record.contains("frames")) {
      read_stack(record);
    } else if (record.contains("object")) {
      objects_[{record.at("device").get<std::string>(), record.at("object").get<std::string>()}] =
          site_of(record.at("place"), record.at("pid").get<int>());
    } else if (record.contains("report")) {
      if (auto report = report_of(record)) found_.push_back(std::move(*report));
    }
  }

  void read_stack(const Json& record) {
    RawStack& stack = stacks_.emplace_back();
    for (const Json& frame : record.at("frames"))
      stack.push_back({frame.at(0).get<std::string>(), frame.at(1).get<uint64_t>(),
                       frame.at(2).get<std::string>(), frame.at(3).get<uint64_t>()});
    stack_of_[{record.at("pid").get<int>(), record.at("stack").get<uint32_t>()}] = &stack;
  }

  RawCallSite site_of(const Json& site, int pid) const {
    const auto stack = stack_of_.find({pid, site.at("stack").get<uint32_t>()});
    return {site.value("what", ""), site.at("call").get<std::string>(),
            site.at("time").get<uint64_t>(), stack == stack_of_.end() ? nullptr : stack->second};
  }

  std::optional<RawMisuse> report_of(const Json& record) const {
    RawMisuse raw;
    raw.finding.rule = sanitizer::find_rule(record.at("report").get<std::string>());
    if (raw.finding.rule == nullptr) return std::nullopt;
    const int pid = record.at("pid").get<int>();
    const auto process = process_of_.find(pid);
    raw.finding.process = process != process_of_.end() ? process->second : "a program";
    raw.finding.message = raw.finding.process + " " + record.at("message").get<std::string>();
    for (const Json& site : record.value("places", Json::array()))
      raw.sites.push_back(site_of(site, pid));
    // The NIC's finding only names objects. The call sites where the program created them are in
    // the program's notes.
    for (const Json& object : record.value("objects", Json::array())) {
      const auto found = objects_.find(
          {record.at("device").get<std::string>(), object.at("object").get<std::string>()});
      if (found == objects_.end()) continue;
      raw.sites.push_back(found->second);
      raw.sites.back().what = object.at("what").get<std::string>();
    }
    raw.counter = {record.value("counts", ""), record.value("index", uint64_t{0})};
    return raw;
  }

  std::string file_;
  std::streamoff read_to_ = 0;
  std::map<int, std::string> process_of_;
  std::deque<RawStack> stacks_;
  std::map<std::pair<int, uint32_t>, const RawStack*> stack_of_;
  std::map<std::pair<std::string, std::string>, RawCallSite> objects_;
  std::vector<RawMisuse> found_;
};

/// Looks up the source lines of all stacks, each address only once.
class FindingReader::Symbols {
 public:
  void look_up(const std::vector<RawMisuse>& findings) {
    std::map<std::string, std::set<uint64_t>> wanted;
    for (const RawMisuse& one : findings)
      for (const RawCallSite& site : one.sites)
        if (site.stack != nullptr)
          for (const RawFrame& frame : *site.stack)
            if (!is_of_rdma(frame.module) && asked_[frame.module].insert(call_of(frame)).second)
              wanted[frame.module].insert(call_of(frame));
    for (const auto& [module, addresses] : wanted)
      lines_[module].merge(
          source_lines(module, std::vector<uint64_t>(addresses.begin(), addresses.end())));
  }

  std::vector<StackFrame> resolve(const RawStack& raw) const {
    std::vector<StackFrame> stack;
    for (const RawFrame& frame : raw) {
      if (stack.empty() && is_of_rdma(frame.module)) continue;
      for (StackFrame& one : frames_of(frame)) {
        if (stack.empty() && is_header_of_rdma(one.file)) continue;
        stack.push_back(std::move(one));
      }
    }
    while (stack.size() > 1 && is_start(stack.back())) stack.pop_back();
    return stack;
  }

 private:
  /// Returns an address in the call instruction, which is before the return address.
  static uint64_t call_of(const RawFrame& frame) { return frame.address - 1; }

  std::vector<StackFrame> frames_of(const RawFrame& raw) const {
    std::vector<StackFrame> frames;
    if (const auto module = lines_.find(raw.module); module != lines_.end())
      if (const auto lines = module->second.find(call_of(raw)); lines != module->second.end())
        for (const SourceLine& line : lines->second)
          frames.push_back({without_arguments(line.function), line.file, line.line, raw.module, 0});
    if (frames.empty())
      frames.push_back(
          {raw.symbol, "", 0, raw.module, raw.symbol.empty() ? raw.address : raw.offset});
    return frames;
  }

  std::map<std::string, std::set<uint64_t>> asked_;
  std::map<std::string, SourceLines> lines_;
};

FindingReader::FindingReader(std::string directory)
    : directory_(std::move(directory)),
      log_(std::make_unique<Log>(directory_ + "/" + abi::kSanitizerLog)),
      symbols_(std::make_unique<Symbols>()) {}

FindingReader::~FindingReader() = default;

std::vector<Misuse> FindingReader::read(Waits waits) {
  // A program writes a stack to the log before the wait that refers to it. So the log must be read
  // after the waits.
  const std::vector<std::string> lines = read_waits(directory_, waits);
  log_->read_more();
  const std::vector<RawMisuse> pending = log_->findings_of(lines);
  symbols_->look_up(log_->findings());
  symbols_->look_up(pending);
  std::vector<Misuse> findings;
  std::map<std::string, size_t> known;
  const auto add = [&](const RawMisuse& one) {
    Misuse finding = one.finding;
    constexpr double kBillion = 1e9;
    for (const RawCallSite& site : one.sites)
      finding.sites.push_back(
          {site.what, site.call, static_cast<double>(site.time_ns) / kBillion,
           site.stack != nullptr ? symbols_->resolve(*site.stack) : std::vector<StackFrame>()});
    finding.count = read_count(directory_, one.counter);
    const auto [at, is_new] = known.try_emplace(identity_of(finding), findings.size());
    if (is_new) {
      findings.push_back(std::move(finding));
    } else {
      findings[at->second].count += finding.count;
    }
  };
  std::ranges::for_each(log_->findings(), add);
  std::ranges::for_each(pending, add);
  return findings;
}

std::string identity_of(const Misuse& finding) {
  std::string text(finding.rule->id);
  text += " " + finding.process.substr(0, finding.process.rfind('#'));
  for (const FoundCallSite& site : finding.sites) {
    text += "\n" + site.what + " " + site.call;
    for (const StackFrame& frame : site.stack)
      text += " " + frame.module + ":" + frame.function + ":" + frame.file + ":" +
              std::to_string(frame.line) + ":" + std::to_string(frame.offset);
  }
  return text;
}

}  // namespace rocemu::command
