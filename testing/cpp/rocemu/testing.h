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
// A program that links rocemu::testing needs no environment variable: libibverbs and librdmacm in
// this process find the NIC. Create one Fabric for the whole program, before the first call of
// either library, because librdmacm reads its list of devices only once. Call clear_rules() between
// tests.
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

/// Thrown if the NIC refuses a request, does not answer or cannot be started. what() has the
/// reason.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

enum class ClockKind {
  kReal,
  kLockstep,  // virtual: advances only while all threads wait; programs take turns
};

struct FabricOptions {
  /// The devices, such as "mlx5_0" or "mlx5_1=10.0.0.2,fd00::2". If the list is empty, the devices
  /// are rocemu0 and rocemu1.
  std::vector<std::string> devices = {};
  ClockKind clock = ClockKind::kReal;
  /// The file of a scenario, or the name of a scenario that is installed with rocemu. For several
  /// scenarios, put {"--scenario", FILE} into `further`.
  std::string scenario = {};
  std::optional<uint64_t> seed = {};
  /// The directory of a recording; needed for events(), capture() and timeline().
  std::string record = {};
  /// Further options of `rocemu run`.
  std::vector<std::string> further = {};
  /// The maximum life of the Fabric in real time; a longer one counts as a hang. Without a value,
  /// the environment variable ROCEMU_TIMEOUT ("90", "2m") sets the limit; if it is not set either,
  /// there is no limit.
  std::optional<std::chrono::milliseconds> timeout = {};
  /// Rules of the verbs sanitizer, as for `rocemu run --sanitize=RULES`, or kDefaultMisuseRules;
  /// needed for reports(). The test's own calls are checked, too. So the Fabric must be created
  /// before the process uses libibverbs; otherwise its constructor throws Error.
  std::optional<std::string> sanitize = {};
  /// Classes of behavior that the specification allows but NICs seldom show, as for `rocemu run
  /// --adversarial=CLASSES`, or kAllClasses. `seed` chooses among the possibilities.
  std::optional<std::string> adversarial = {};
  /// The NIC that the devices imitate: the name of a profile (see `rocemu profile list`) or a file.
  std::string profile = {};
};

inline constexpr char kDefaultMisuseRules[] = "";
inline constexpr char kAllClasses[] = "";

struct RuleReport {
  std::string name;
  std::string on;        // where it looks: "frame", "completion" ...
  uint64_t matched = 0;  // the number of cases to which it applied
  uint64_t fired = 0;    // the number of times that it acted
};

struct ClockReading {
  bool is_virtual = false;
  bool held = false;
  nanoseconds now{};                // since the NIC's start
  std::optional<nanoseconds> next;  // the time of the next event
};

/// An event of the recording (docs/control.md)
struct Event {
  std::string what;  // "frame", "completion", "fault" ...
  /// All other fields of the event. Values that are not strings are in JSON format.
  std::map<std::string, std::string> fields;
};

/// A function in a call stack. Strings that are unknown are empty, and an unknown line is 0.
struct Frame {
  std::string function;
  std::string file;
  uint32_t line = 0;
  std::string module;  // the program or library

  bool operator==(const Frame&) const = default;
};

/// A call of a program that explains a mistake, and the place of the call in the program
struct Place {
  std::string what;          // "posted"
  std::string call;          // "ibv_post_recv"
  double time = 0;           // on the NIC's clock, in seconds
  std::vector<Frame> stack;  // the innermost first
};

/// A wrong use of verbs; docs/sanitizer.md describes the rules.
struct Report {
  std::string rule;
  std::string severity;  // "error" or "warning"
  std::string message;
  std::string process;        // "server#1"
  std::vector<Place> places;  // the last one is the mistake
  uint64_t count = 0;         // the number of times that it was found

  /// Returns the report as text: a line with the message, and one for each place.
  std::string text() const;
};

std::ostream& operator<<(std::ostream& out, const Report& report);

/// Returns an unused TCP port, for a server that a test starts. Throws Error.
uint16_t free_port();

class HangWatch;

/// A program that sees the devices. It ends at the latest when the Fabric does. Its output is kept.
class Program {
 public:
  ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  /// Waits until the program has ended. Returns its exit status, or 128 plus the number of the
  /// signal that killed it. Throws Error with the program's output when the time has passed. If no
  /// program can continue, throws Error also with a report of what each thread waits for. If the
  /// Fabric is the NIC of a `rocemu run`, that run has the time limit and makes the report.
  int wait(std::chrono::milliseconds timeout = std::chrono::seconds(60));
  bool is_running();
  void signal(int number);
  /// Ends the program now: by SIGTERM, and if that does not help by SIGKILL.
  void end();
  /// Returns all that the program has printed so far on standard output and standard error.
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
  HangWatch* watch_;  // null in a `rocemu run` that detects hangs itself
};

/// A frame, as Fabric::step() returns it.
struct SteppedFrame {
  std::string frame;   // in words
  std::string before;  // the QP that receives it, and its peer: JSON as in docs/control.md
  std::string after;
};

/// A private NIC, which this process sees from now on. The NIC and all its objects disappear when
/// this object is destroyed, or when the process ends in any way. Only one thread at a time may use
/// this object.
///
/// If the programs deadlock in lockstep, or `timeout` passes, rocemu reports what each thread waits
/// for. Program::wait() and run() throw the report as an Error. Without such a call, the process
/// prints the report and ends by SIGABRT.
///
/// Under `rocemu run --lockstep` this is the NIC of that run, with its clock, its recording and its
/// detection of hangs. Options that differ from the run's cause an Error.
class Fabric {
 public:
  /// Starts the NIC. Throws Error if that fails.
  explicit Fabric(const FabricOptions& options = {});
  ~Fabric();
  Fabric(const Fabric&) = delete;
  Fabric& operator=(const Fabric&) = delete;

  // ---- Faults: all throw Error, with the line and column of the mistake in the YAML ----
  /// Adds all rules of a scenario, in YAML, to the present rules, and returns their names.
  std::vector<std::string> load_scenario(const std::string& yaml);
  /// Adds one rule, such as "{on: frame, opcode: ACK, do: drop}", and returns its name.
  std::string add_rule(const std::string& yaml);
  void clear_rules();
  void clear_rule(const std::string& name);
  std::vector<RuleReport> rules();

  // ---- Time ----
  ClockReading clock();
  /// Stops virtual time until advance(), or hold_time(false).
  void hold_time(bool held = true);
  /// Advances virtual time, and executes everything that is due until then.
  void advance(nanoseconds time);
  /// Waits until nothing is in flight and no program waits for a reply. Throws Error after
  /// `timeout`.
  void wait_until_idle(std::chrono::milliseconds timeout = std::chrono::seconds(30));

  // ---- Programs ----
  /// Starts a program, found in PATH, that sees the devices. Throws Error if there is none.
  std::shared_ptr<Program> start(const std::vector<std::string>& argv);
  /// Calls start() and wait(), and returns the exit status.
  int run(const std::vector<std::string>& argv,
          std::chrono::milliseconds timeout = std::chrono::seconds(60));
  /// Waits until a program listens at the port, by rdma_listen(3) or TCP. Throws Error after
  /// `timeout`, or when all programs of start() have ended.
  void wait_listening(uint16_t port, std::chrono::milliseconds timeout = std::chrono::seconds(30));

  // ---- The NIC as a whole ----
  /// Plugs the cable of the device in, or pulls it out.
  void set_port(const std::string& device, bool up);
  /// Removes the device permanently.
  void remove_device(const std::string& device);
  /// Stops the NIC until resume(): no frame arrives, and no timeout passes. step() lets single
  /// frames arrive.
  void pause();
  std::vector<SteppedFrame> step(uint32_t frames = 1);
  void resume();

  // ---- State and history ----
  std::map<std::string, uint64_t> counters(const std::string& device);
  /// Returns all objects as JSON text, like `rocemu show --json`.
  std::string show();
  /// Returns all events and frames of the recording so far, or only those of one kind: "frame",
  /// "completion" ...
  std::vector<Event> events(const std::string& what = "");
  /// Writes the recorded frames so far to a pcap file.
  void capture(const std::string& file);
  /// Writes the recording so far as a page that any browser opens.
  void timeline(const std::string& file);

  // ---- Wrong uses of verbs ----
  /// Returns the reports since the Fabric was created. The reports of a thread that waits forever
  /// are included when its process has ended. Throws Error without FabricOptions::sanitize.
  std::vector<Report> reports();
  /// Returns the reports since the last call, or since the Fabric was created.
  std::vector<Report> take_reports();

  /// Sends any request of docs/control.md, {"command":...} as text. Returns the answer as text.
  std::string request(const std::string& json);
  /// Returns the value of ROCEMU_DIR for programs that this process starts.
  const std::string& directory() const;

 private:
  class Nic;
  std::unique_ptr<Nic> nic_;
};

}  // namespace rocemu::testing
