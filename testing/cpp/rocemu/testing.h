// rocemu for C++ test suites: a NIC that a test program starts for itself.
//
//   find_package(rocemu REQUIRED)
//   target_link_libraries(my_test PRIVATE rocemu::testing ibverbs GTest::gtest)
//
//   int main(int argc, char** argv) {
//     testing::InitGoogleTest(&argc, argv);
//     rocemu::testing::Fabric fabric({.clock = rocemu::testing::ClockKind::kVirtual});
//     ...
//     return RUN_ALL_TESTS();
//   }
//
// Linking rocemu::testing is enough for libibverbs and librdmacm in this process to reach the NIC;
// no variable has to be set before. Make the Fabric before the first call of either library, and
// one for the whole program: librdmacm keeps its list of devices for good. Between tests,
// clear_rules().
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
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
  kVirtual,   // stands still while anybody works and then jumps
  kLockstep,  // virtual, and the same run each time
};

struct FabricOptions {
  /// "mlx5_0", "mlx5_1=10.0.0.2,fd00::2"; empty: rocemu0 and rocemu1.
  std::vector<std::string> devices = {};
  ClockKind clock = ClockKind::kReal;
  /// A file, or the name of a scenario that comes with rocemu. Others beside it: `further` takes
  /// {"--scenario", FILE}.
  std::string scenario = {};
  std::optional<uint64_t> seed = {};
  /// The directory of a recording; needed for events().
  std::string record = {};
  /// Further options of `rocemu run`.
  std::vector<std::string> further = {};
};

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

/// A line of a recording's events.jsonl.
struct Event {
  std::string what;  // "frame", "completion", "fault" ...
  /// All other fields; what is no string is as in the JSON.
  std::map<std::string, std::string> fields;
};

/// A private NIC, which this process sees from now on. It is gone with all that it had when this is
/// destroyed, or when the process ends, however that may be. Not to be used by two threads at once.
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
  /// Moves virtual time on; all that is due by then happens.
  void advance(nanoseconds time);
  /// Until nothing is under way and nobody waits for an answer. Throws Error after `timeout`.
  void wait_until_idle(std::chrono::milliseconds timeout = std::chrono::seconds(30));

  // ---- What there is and was ----
  std::map<std::string, uint64_t> counters(const std::string& device);
  /// All objects as JSON text, as `rocemu show --json` has them.
  std::string show();
  /// All events of the recording so far, or those of one kind.
  std::vector<Event> events(const std::string& what = "");

  /// Any request of docs/control.md: {"command":...} as text; its answer as text.
  std::string request(const std::string& json);
  /// ROCEMU_DIR, for programs that this one starts.
  const std::string& directory() const;

 private:
  class Nic;
  std::unique_ptr<Nic> nic_;
};

}  // namespace rocemu::testing
