#include <dlfcn.h>
#include <link.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <sstream>
#include <string_view>
#include <thread>
#include <utility>

#include "emulator/abi/sanitizer_log.h"
#include "testing/cpp/control_socket.h"
#include "testing/cpp/hang_watch.h"
#include "testing/cpp/nic_process.h"
#include "testing/cpp/reports.h"
#include "testing/cpp/rocemu/testing.h"
#include "testing/cpp/spawned_program.h"

namespace rocemu::testing {
namespace {

constexpr char kDirVariable[] = "ROCEMU_DIR";
constexpr char kTimeoutVariable[] = "ROCEMU_TIMEOUT";
constexpr std::string_view kSanitizerLibrary = "librocemu-sanitizer.so";
constexpr std::string_view kProvider = "/librocemu-rdmav";

/// Returns the option as an argument, without "=" if the value is empty.
std::string with_value(const std::string& option, const std::string& value) {
  return value.empty() ? option : option + "=" + value;
}

std::vector<std::string> options_of_run(const FabricOptions& options) {
  std::vector<std::string> words;
  for (const std::string& device : options.devices) words.insert(words.end(), {"--device", device});
  if (options.clock == ClockKind::kLockstep) words.emplace_back("--lockstep");
  if (!options.scenario.empty()) words.insert(words.end(), {"--scenario", options.scenario});
  if (!options.profile.empty()) words.insert(words.end(), {"--profile", options.profile});
  if (options.seed) words.insert(words.end(), {"--seed", std::to_string(*options.seed)});
  if (!options.record.empty()) words.insert(words.end(), {"--record", options.record});
  if (options.timeout) {
    words.insert(words.end(), {"--timeout", std::to_string(options.timeout->count()) + "ms"});
  } else if (const char* limit = std::getenv(kTimeoutVariable); limit != nullptr && *limit != 0) {
    words.insert(words.end(), {"--timeout", limit});
  }
  if (options.sanitize) words.push_back(with_value("--sanitize", *options.sanitize));
  if (options.adversarial) words.push_back(with_value("--adversarial", *options.adversarial));
  words.insert(words.end(), options.further.begin(), options.further.end());
  return words;
}

std::string text_of(const Json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

ClockReading reading_of(const Json& reply) {
  ClockReading reading;
  reading.is_virtual = reply.at("clock") == "virtual";
  reading.held = reply.at("held").get<bool>();
  reading.now = nanoseconds(reply.at("now_ns").get<int64_t>());
  const Json& next = reply.at("next_ns");
  if (!next.is_null()) reading.next = nanoseconds(next.get<int64_t>());
  return reading;
}

/// Returns the directory of the NIC of the `rocemu run` in which this process runs, if the process
/// takes turns there. Such a process cannot have a second virtual clock, and with an additional
/// real clock the runs would differ.
std::optional<std::string> nic_of_run() {
  const char* const dir = std::getenv(kDirVariable);
  if (dir == nullptr || dlsym(RTLD_DEFAULT, "rocemu_turns_on_crash") == nullptr)
    return std::nullopt;
  return dir;
}

/// Sets an environment variable of this process, and restores it later.
class Variable {
 public:
  Variable(const char* name, const std::string& value) : name_(name) {
    if (const char* present = std::getenv(name)) before_ = present;
    setenv(name, value.c_str(), 1);
  }
  ~Variable() { before_ ? setenv(name_, before_->c_str(), 1) : unsetenv(name_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
  std::optional<std::string> before_;
};

/// Loads the sanitizer's library, which the value of LD_PRELOAD names, into this process. The
/// provider uses the library if it is loaded before the provider.
void load_sanitizer(const std::string& preload) {
  std::istringstream libraries(preload);
  for (std::string library; std::getline(libraries, library, ':');) {
    if (!library.ends_with(kSanitizerLibrary)) continue;
    if (dlopen(library.c_str(), RTLD_NOW | RTLD_GLOBAL) == nullptr) throw Error(dlerror());
  }
}

/// Returns whether libibverbs has loaded the provider. libibverbs does so only once in a process.
bool has_provider() {
  const auto is_provider = [](dl_phdr_info* library, size_t, void*) {
    return static_cast<int>(std::string_view(library->dlpi_name).find(kProvider) !=
                            std::string_view::npos);
  };
  return dl_iterate_phdr(is_provider, nullptr) != 0;
}

/// Throws Error if the sanitizer could not see this process's own calls. The provider looks for the
/// sanitizer and its directory only when libibverbs is used for the first time.
void require_unused_verbs(const FabricOptions& options) {
  if (options.sanitize && has_provider())
    throw Error(
        "this process has already used libibverbs, so a Fabric with "
        "FabricOptions::sanitize would miss wrong uses of verbs by the process "
        "itself. Create that Fabric before the first call of libibverbs, once "
        "for all tests of the process, or run each test in a separate process");
}

std::string name_of(const std::string& device) {
  return device.substr(0, device.find('='));
}

/// Throws Error if the options require something that the NIC of the run does not have.
void require_same(const FabricOptions& options, const Json& shown) {
  std::string wanted, there;
  for (const std::string& device : options.devices) wanted += " " + name_of(device);
  for (const Json& device : shown.at("fabric").at("devices"))
    there += " " + device.at("name").get<std::string>();
  if (!options.devices.empty() && wanted != there)
    throw Error(
        "the test runs in a `rocemu run`, whose NIC this Fabric uses; that NIC has the "
        "devices" +
        there + ", not" + wanted + "; give --device NAME=ADDRESS to that `rocemu run`");
  const std::string lacking = options.seed               ? "--seed"
                              : options.adversarial      ? "--adversarial"
                              : !options.further.empty() ? options.further[0]
                                                         : "";
  if (!lacking.empty())
    throw Error("the test runs in a `rocemu run`, whose NIC this Fabric uses; give " + lacking +
                " to that `rocemu run`");
}

}  // namespace

/// The NIC, the connection to it, and the environment variable by which libibverbs finds it.
class Fabric::Nic {
 public:
  explicit Nic(const FabricOptions& options)
      : joined_(nic_of_run()),
        watch_(joined_ ? nullptr : std::make_unique<HangWatch>()),
        process_(joined_ ? nullptr : start_nic(options, *watch_)),
        control_(directory()) {
    if (joined_) {
      require_same(options, request("show"));
      begin_reports(options.sanitize.has_value());
      if (!options.scenario.empty()) inject(options.scenario);
      return;
    }
    variables_.push_back(std::make_unique<Variable>(kDirVariable, directory()));
    if (!options.sanitize) return;
    variables_.push_back(
        std::make_unique<Variable>(abi::kSanitizerVariable, process_->sanitizer()));
    load_sanitizer(process_->preload());
  }
  ~Nic() {
    for (const auto& program : programs_) program->end();
    if (joined_) {
      try {
        request("clear");
      } catch (const std::exception&) {  // the run has ended
      }
    }
  }
  Nic(const Nic&) = delete;
  Nic& operator=(const Nic&) = delete;

  Json request(const char* command, Json arguments = Json::object()) {
    arguments["command"] = command;
    return control_.request(arguments);
  }
  Json request(const Json& request) { return control_.request(request); }

  /// Returns the output of `rocemu timeline` with these options for the recording of this NIC.
  std::string of_recording(const std::vector<std::string>& options) {
    std::vector<std::string> argv = {find_command(), "timeline",
                                     request("sync").at("record").get<std::string>()};
    argv.insert(argv.end(), options.begin(), options.end());
    return output_of(argv);
  }

  std::shared_ptr<Program> start(const std::vector<std::string>& argv) {
    std::vector<std::string> variables;
    if (process_ != nullptr)
      variables = {"ROCEMU_DIR=" + directory(), "LD_PRELOAD=" + process_->preload()};
    if (process_ != nullptr && !process_->sanitizer().empty())
      variables.push_back(std::string(abi::kSanitizerVariable) + "=" + process_->sanitizer());
    programs_.push_back(std::shared_ptr<Program>(new Program(argv, variables, watch_.get())));
    return programs_.back();
  }
  /// Returns whether at least one program was started, and all of them have ended.
  bool all_have_ended() {
    return !programs_.empty() &&
           std::ranges::none_of(programs_, [](const auto& one) { return one->is_running(); });
  }
  /// Returns what all programs except `other` have printed so far, each under its name.
  std::string outputs(const Program* other = nullptr) const {
    std::string text;
    for (const auto& program : programs_) {
      if (program.get() == other) continue;
      text += "\n" + program->name_ + " (process " + std::to_string(program->pid()) +
              ") has printed:\n" + program->output();
    }
    return text;
  }
  const std::string& directory() const { return joined_ ? *joined_ : process_->directory(); }

  std::vector<Report> reports() { return reports_since(before_, all_reports()); }
  std::vector<Report> take_reports() {
    std::vector<Report> reports = all_reports();
    const ReportCounts taken = std::exchange(taken_, counts_of(reports));
    return reports_since(taken, std::move(reports));
  }

 private:
  static std::unique_ptr<NicProcess> start_nic(const FabricOptions& options,
                                               const HangWatch& watch) {
    require_unused_verbs(options);
    return std::make_unique<NicProcess>(options_of_run(options), watch);
  }

  /// Injects the scenario by `rocemu inject`, which finds installed scenarios by their names.
  void inject(const std::string& scenario) { output_of({find_command(), "inject", scenario}); }

  /// Returns the output of a command. Throws Error with its message if it fails.
  static std::string output_of(const std::vector<std::string>& argv) {
    const int printed = make_memory_file(), said = make_memory_file();
    const Spawned spawned = spawn(argv, {}, -1, printed, said);
    int status = 0;
    while (spawned.pid > 0 && waitpid(spawned.pid, &status, 0) < 0 && errno == EINTR) {
    }
    std::string text = contents_of(printed);
    const std::string message = contents_of(said);
    close(printed);
    close(said);
    if (spawned.error != 0) throw Error("cannot start " + argv[0]);
    if (status != 0) throw Error(message);
    return text;
  }

  /// Makes later reports omit the wrong uses that the surrounding run has found before. Throws
  /// Error if `are_needed` and that run does not use --sanitize.
  void begin_reports(bool are_needed) {
    try {
      request("sanitizer");
    } catch (const Error&) {
      if (!are_needed) return;
      throw Error(
          "the test runs in a `rocemu run`, whose NIC this Fabric uses; give --sanitize "
          "to that `rocemu run`");
    }
    taken_ = before_ = counts_of(all_reports());
  }
  std::vector<Report> all_reports() {
    request("sanitizer");  // throws if the NIC has no sanitizer
    return read_reports(
        output_of({find_command(), "show", "--misuses", "--json", "--dir", directory()}));
  }

  const std::optional<std::string> joined_;  // the directory of the NIC of the surrounding run
  std::vector<std::unique_ptr<Variable>> variables_;
  ReportCounts before_, taken_;  // the findings before this Fabric; those that were taken
  std::unique_ptr<HangWatch> watch_;
  std::unique_ptr<NicProcess> process_;  // null if joined
  ControlSocket control_;
  std::vector<std::shared_ptr<Program>> programs_;
};

Fabric::Fabric(const FabricOptions& options) : nic_(std::make_unique<Nic>(options)) {}
Fabric::~Fabric() = default;

std::vector<std::string> Fabric::load_scenario(const std::string& yaml) {
  return nic_->request("inject", {{"scenario", yaml}}).at("rules").get<std::vector<std::string>>();
}

std::string Fabric::add_rule(const std::string& yaml) {
  return nic_->request("inject", {{"rule", yaml}}).at("rules").at(0).get<std::string>();
}

void Fabric::clear_rules() {
  nic_->request("clear");
}

void Fabric::clear_rule(const std::string& name) {
  nic_->request("clear", {{"name", name}});
}

std::vector<RuleReport> Fabric::rules() {
  const Json reply = nic_->request("rules");
  std::vector<RuleReport> reports;
  for (const Json& rule : reply.at("rules")) {
    reports.push_back({rule.at("name").get<std::string>(), rule.at("on").get<std::string>(),
                       rule.at("matched").get<uint64_t>(), rule.at("fired").get<uint64_t>()});
  }
  return reports;
}

ClockReading Fabric::clock() {
  return reading_of(nic_->request("clock"));
}

void Fabric::hold_time(bool held) {
  nic_->request("clock", {{"held", held}});
}

void Fabric::advance(nanoseconds time) {
  nic_->request("advance", {{"ns", time.count()}});
}

void Fabric::wait_until_idle(std::chrono::milliseconds timeout) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  while (!nic_->request("idle").at("idle").get<bool>()) {
    if (std::chrono::steady_clock::now() > deadline) {
      throw Error("the NIC is not idle after " + std::to_string(timeout.count()) + " ms");
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

std::map<std::string, uint64_t> Fabric::counters(const std::string& device) {
  const Json reply = nic_->request("show");
  for (const Json& one : reply.at("fabric").at("devices")) {
    if (one.at("name") == device) {
      return one.at("counters").get<std::map<std::string, uint64_t>>();
    }
  }
  throw Error("there is no device '" + device + "'");
}

std::string Fabric::show() {
  return nic_->request("show").dump();
}

std::vector<Event> Fabric::events(const std::string& what) {
  std::istringstream lines(nic_->of_recording({"--events"}));
  std::vector<Event> events;
  for (std::string line; std::getline(lines, line);) {
    const Json json = Json::parse(line);
    Event event;
    event.what = json.at("what").get<std::string>();
    if (!what.empty() && event.what != what) continue;
    for (const auto& [key, value] : json.items()) event.fields.emplace(key, text_of(value));
    events.push_back(std::move(event));
  }
  return events;
}

void Fabric::capture(const std::string& file) {
  nic_->of_recording({"--pcap", file});
}

void Fabric::timeline(const std::string& file) {
  nic_->of_recording({"--html", file});
}

std::shared_ptr<Program> Fabric::start(const std::vector<std::string>& argv) {
  return nic_->start(argv);
}

int Fabric::run(const std::vector<std::string>& argv, std::chrono::milliseconds timeout) {
  const std::shared_ptr<Program> program = start(argv);
  try {
    return program->wait(timeout);
  } catch (const Error& error) {
    throw Error(error.what() + nic_->outputs(program.get()));
  }
}

void Fabric::wait_listening(uint16_t port, std::chrono::milliseconds timeout) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  const std::string whom = "at port " + std::to_string(port);
  while (nic_->request("listening", {{"port", port}}).at("listening") != true) {
    if (nic_->all_have_ended())
      throw Error("no program can listen " + whom + ": the programs ended" + nic_->outputs());
    if (std::chrono::steady_clock::now() > deadline)
      throw Error("no program listens " + whom + " after " + std::to_string(timeout.count()) +
                  " ms" + nic_->outputs());
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

void Fabric::set_port(const std::string& device, bool up) {
  nic_->request("set", {{"device", device}, {"port", up ? "up" : "down"}});
}

void Fabric::remove_device(const std::string& device) {
  nic_->request("set", {{"device", device}, {"removed", true}});
}

void Fabric::pause() {
  nic_->request("pause");
}

void Fabric::resume() {
  nic_->request("resume");
}

std::vector<SteppedFrame> Fabric::step(uint32_t frames) {
  std::vector<SteppedFrame> stepped;
  const Json reply = nic_->request("step", {{"frames", frames}});
  for (const Json& one : reply.at("frames")) {
    stepped.push_back(
        {one.at("frame").get<std::string>(), one.at("before").dump(), one.at("after").dump()});
  }
  return stepped;
}

std::vector<Report> Fabric::reports() {
  return nic_->reports();
}

std::vector<Report> Fabric::take_reports() {
  return nic_->take_reports();
}

std::string Fabric::request(const std::string& json) {
  const Json request = Json::parse(json, nullptr, /*allow_exceptions=*/false);
  if (!request.is_object()) throw Error("not a JSON object: " + json);
  return nic_->request(request).dump();
}

const std::string& Fabric::directory() const {
  return nic_->directory();
}

}  // namespace rocemu::testing
