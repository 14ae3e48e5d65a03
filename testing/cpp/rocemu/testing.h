// rocemu for C++ test suites: a NIC that a test program starts for itself.
//
//   find_package(rocemu REQUIRED)
//   target_link_libraries(my_test PRIVATE rocemu::testing ibverbs GTest::gtest)
//
//   int main(int argc, char** argv) {
//     testing::InitGoogleTest(&argc, argv);
//     rocemu::testing::Fabric fabric({.clock = rocemu::testing::ClockKind::kLockstep});
//     ...
//     return RUN_ALL_TESTS();
//   }
//
// Linking rocemu::testing is enough for libibverbs and librdmacm in this process to reach the NIC;
// no variable has to be set before. Make the Fabric before the first call of either library, and
// one for the whole program: librdmacm keeps its list of devices for good. Between tests,
// clear_rules().
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <ostream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace rocemu::testing {

using std::chrono::nanoseconds;

/// The NIC refuses, does not answer or could not be started; what() says why.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

enum class ClockKind {
  kReal,
  kLockstep,  // virtual: advances only while every thread waits; programs take turns
};

struct FabricOptions {
  /// "mlx5_0", "mlx5_1=10.0.0.2,fd00::2"; empty: rocemu0 and rocemu1.
  std::vector<std::string> devices = {};
  ClockKind clock = ClockKind::kReal;
  /// A file, or the name of a scenario that comes with rocemu. Others beside it: `further` takes
  /// {"--scenario", FILE}.
  std::string scenario = {};
  std::optional<uint64_t> seed = {};
  /// The directory of a recording; needed for events(), capture() and timeline().
  std::string record = {};
  /// Further options of `rocemu run`.
  std::vector<std::string> further = {};
  /// How long the Fabric may live, in real time, before that counts as a hang; without a value the
  /// environment variable ROCEMU_TIMEOUT ("90", "2m") sets the limit, or there is none.
  std::optional<std::chrono::milliseconds> timeout = {};
  /// Rules of the verbs sanitizer, as `rocemu run --sanitize=RULES` takes them, or
  /// kDefaultMisuseRules; needed for reports(). The test's own calls are judged, too; so the Fabric
  /// must be made before the process uses libibverbs, else its constructor throws Error.
  std::optional<std::string> sanitize = {};
  /// Classes of what the specification allows and NICs seldom do, as `rocemu run
  /// --adversarial=CLASSES` takes them, or kAllClasses; `seed` chooses among the possibilities.
  std::optional<std::string> adversarial = {};
  /// The NIC that the devices show: the name of a profile (rocemu profile list) or a file.
  std::string profile = {};
};

inline constexpr char kDefaultMisuseRules[] = "";
inline constexpr char kAllClasses[] = "";

struct RuleReport {
  std::string name;
  std::string on;        // where it looks: "frame", "completion" ...
  uint64_t matched = 0;  // how often it was asked and all agreed
  uint64_t fired = 0;    // how often it has acted
};

struct ClockReading {
  bool is_virtual = false;
  bool held = false;
  nanoseconds now{};                // since the NIC's start
  std::optional<nanoseconds> next;  // when something is due
};

/// Something that was recorded (docs/control.md).
struct Event {
  std::string what;  // "frame", "completion", "fault" ...
  /// All other fields; what is no string is as in the JSON.
  std::map<std::string, std::string> fields;
};

/// A function of a stack. What is unknown is empty, and the line 0.
struct Frame {
  std::string function;
  std::string file;
  uint32_t line = 0;
  std::string module;  // the program or library

  bool operator==(const Frame&) const = default;
};

/// One call of a program that explains a mistake, and where the program made it.
struct Place {
  std::string what;          // "posted"
  std::string call;          // "ibv_post_recv"
  double time = 0;           // on the NIC's clock, in seconds
  std::vector<Frame> stack;  // the innermost first
};

/// A wrong use of verbs; the rules are docs/sanitizer.md.
struct Report {
  std::string rule;
  std::string severity;  // "error" or "warning"
  std::string message;
  std::string process;        // "server#1"
  std::vector<Place> places;  // the last is the mistake
  uint64_t count = 0;         // how often it was found

  /// A line with the message, and one for each place.
  std::string text() const;
};

std::ostream& operator<<(std::ostream& out, const Report& report);

/// Returns an unused TCP port, for a server that a test starts. Throws Error.
uint16_t free_port();

class HangWatch;

/// A program that sees the devices. It ends with the Fabric at the latest, and what it prints is
/// kept.
class Program {
 public:
  ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  /// Waits until the program has ended. Returns its exit status, or 128 plus the number of the
  /// signal that killed it. Throws Error with its output when the time is over, and also with a
  /// report of what each thread waits for if no program can continue. Where the Fabric is the NIC
  /// of a `rocemu run`, that run has the time limit and the report.
  int wait(std::chrono::milliseconds timeout = std::chrono::seconds(60));
  bool is_running();
  void signal(int number);
  /// Ends it now: by SIGTERM, and if that does not help by SIGKILL.
  void end();
  /// All that it has printed so far, on standard output and standard error.
  std::string output() const;
  pid_t pid() const { return pid_; }

 private:
  friend class Fabric;
  Program(const std::vector<std::string>& argv, const std::vector<std::string>& variables,
          HangWatch* watch);

  std::string name_;
  pid_t pid_ = -1;
  int output_fd_ = -1;
  std::optional<int> status_;
  HangWatch* watch_;  // null in a `rocemu run` that watches itself
};

/// The result of Fabric::step().
struct SteppedFrame {
  std::string frame;   // in words
  std::string before;  // the QP that it is for, and its peer: JSON as in docs/control.md
  std::string after;
};

/// A private NIC, which this process sees from now on. It is gone with all that it had when this is
/// destroyed, or when the process ends, however that may be. Not to be used by two threads at once.
///
/// A deadlock in lockstep, or the end of `timeout`, is reported with what each thread waits for:
/// Program::wait() and run() throw it as an Error, and without one of these the process prints it
/// and ends by SIGABRT.
///
/// Under `rocemu run --lockstep` this is the NIC of that run, with its clock, its recording and its
/// watch for hangs; options that differ from the run's are an Error.
class Fabric {
 public:
  /// Throws Error.
  explicit Fabric(const FabricOptions& options = {});
  ~Fabric();
  Fabric(const Fabric&) = delete;
  Fabric& operator=(const Fabric&) = delete;

  // ---- Faults: all throw Error, with line and column of what is wrong in the YAML ----
  /// All rules of a scenario, in YAML, beside those in force; returns their names.
  std::vector<std::string> load_scenario(const std::string& yaml);
  /// One rule, such as "{on: frame, opcode: ACK, do: drop}"; returns its name.
  std::string add_rule(const std::string& yaml);
  void clear_rules();
  void clear_rule(const std::string& name);
  std::vector<RuleReport> rules();

  // ---- Time ----
  ClockReading clock();
  /// Virtual time stands still until advance(), or hold_time(false).
  void hold_time(bool held = true);
  /// Advances virtual time, and executes everything that is due until then.
  void advance(nanoseconds time);
  /// Waits until nothing is under way and no program waits for a reply. Throws Error after
  /// `timeout`.
  void wait_until_idle(std::chrono::milliseconds timeout = std::chrono::seconds(30));

  // ---- Programs ----
  /// Starts a program, found in PATH, that sees the devices. Throws Error if there is none.
  std::shared_ptr<Program> start(const std::vector<std::string>& argv);
  /// start() and wait(): its exit status.
  int run(const std::vector<std::string>& argv,
          std::chrono::milliseconds timeout = std::chrono::seconds(60));
  /// Waits until a program listens at the port, by rdma_listen(3) or TCP. Throws Error after the
  /// time, or when all that start() started have ended.
  void wait_listening(uint16_t port, std::chrono::milliseconds timeout = std::chrono::seconds(30));

  // ---- The NIC as a whole ----
  /// Plugs the cable of the device in, or out.
  void set_port(const std::string& device, bool up);
  /// Pulls the device out, for good.
  void remove_device(const std::string& device);
  /// No frame arrives and no timeout passes until resume(); step() lets single frames arrive.
  void pause();
  std::vector<SteppedFrame> step(uint32_t frames = 1);
  void resume();

  // ---- What there is and was ----
  std::map<std::string, uint64_t> counters(const std::string& device);
  /// All objects as JSON text, as `rocemu show --json` has them.
  std::string show();
  /// All events and frames of the recording so far, or those of one kind: "frame", "completion" ...
  std::vector<Event> events(const std::string& what = "");
  /// Writes the recorded frames so far to a pcap file.
  void capture(const std::string& file);
  /// Writes the recording so far as a page that any browser opens.
  void timeline(const std::string& file);

  // ---- Wrong uses of verbs ----
  /// The reports so far, since the Fabric was made. Those of a thread that waits for ever are among
  /// them when its process has ended. Throws Error without FabricOptions::sanitize.
  std::vector<Report> reports();
  /// The reports since the last call, or since the Fabric was made.
  std::vector<Report> take_reports();

  /// Any request of docs/control.md: {"command":...} as text; its answer as text.
  std::string request(const std::string& json);
  /// ROCEMU_DIR, for programs that this one starts.
  const std::string& directory() const;

 private:
  class Nic;
  std::unique_ptr<Nic> nic_;
};

}  // namespace rocemu::testing
