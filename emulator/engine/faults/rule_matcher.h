// The active rules, and the selection of those that act on an occurrence. Each pair of a rule and a
// flow has its own counts and its own stream of random numbers.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "emulator/engine/base/ids.h"
#include "emulator/engine/base/process_names.h"
#include "emulator/engine/base/random.h"
#include "emulator/engine/base/time.h"
#include "emulator/engine/faults/rule.h"

namespace rocemu::engine::faults {

/// The unit whose occurrences are counted together. It is the same in every run of a program,
/// because it contains no address, no time and no order among flows.
struct Flow {
  enum class Kind : uint8_t { kDevice, kQp, kFromOutside, kClient, kChannel };
  Kind kind = Kind::kDevice;
  uint32_t device = 0;
  uint32_t object = 0;  // a QP's order, a client's or channel's number, another device
  auto operator<=>(const Flow&) const = default;
};

/// An occurrence as a rule sees it. Properties that occurrences at a place do not have are 0.
struct Occurrence {
  Where where{};
  Flow flow;
  std::optional<DeviceIndex> device;  // nothing: outside the fabric
  std::optional<DeviceIndex> to;
  uint8_t kind = 0;
  Answer answer = Answer::kNone;
  bool mad = false;  // a frame to QP 1, the general services
  uint32_t qp = 0;   // 0: no QP, or one that programs cannot have
  uint32_t qp_num = 0;
  uint32_t dest_qp = 0;
  uint32_t psn = 0;
  uint32_t psn_num = 0;
  uint32_t message = 0;
  uint64_t size = 0;
  uint64_t wr_id = 0;
  Queue queue = Queue::kSend;
  uint32_t status = 0;
  std::optional<Owner> owner = {};       // without a QP empty; with one set only if a rule needs it
  const ProcessName* process = nullptr;  // set like `owner`
};

/// Returns whether the number is in one of the ranges, or there are no ranges.
bool contains(const Ranges& ranges, uint64_t number);

/// Returns true with that probability, and false otherwise.
bool happens(Random& random, double probability);
/// Returns a duration from 0 to `most`, uniformly distributed.
Duration chosen(Random& random, Duration most);

class RuleMatcher {
 public:
  /// Creates a matcher without rules. `device_names` is indexed by DeviceIndex.
  RuleMatcher(uint64_t seed, std::vector<std::string> device_names);

  /// Adds rules after the present ones. A rule replaces a rule of the same name, and its counts
  /// start at 0.
  void add(const RuleSet& set);
  /// Removes the rule of that name. Returns false if no rule has the name.
  bool remove(std::string_view name);
  void clear();

  /// Returns whether any rule has this place. Without rules, the engine calls only this function.
  bool watches(Where where) const { return watches_any(bit(where)); }
  bool watches_frames() const {
    return watches_any(bit(Where::kFrame) | bit(Where::kLink) | bit(Where::kCm));
  }

  /// Returns whether there is any rule.
  bool watches_anything() const { return watches_any(~uint32_t{0}); }

  /// Returns whether a rule selects or affects processes.
  bool concerns_processes() const { return concerns_processes_; }

  /// Returns the operations that a client normally performs without the daemon, and that a rule may
  /// make fail, as bits of abi::asked_for_bit().
  uint32_t asked_for() const { return asked_for_; }

  /// A rule that acts, with its random numbers and its counts
  struct Acting {
    std::shared_ptr<const Rule> rule;
    Random* random;                   // of rule and flow
    Instant* link_free_at;            // of rule and flow: when the link has sent everything
    std::optional<Owner> owner = {};  // of the occurrence, if it is known
  };
  /// Returns the rules that act on the occurrence, in order. The result is valid until the next
  /// call.
  const std::vector<Acting>& act(const Occurrence& occurrence, Instant now);

  /// Counts an action of that rule, which acts at certain times instead of on occurrences. A rule
  /// of that name must exist.
  Acting act_alone(std::string_view name, Instant now);

  std::vector<RuleReport> report() const;
  std::optional<DeviceIndex> device_named(std::string_view name) const;

 private:
  struct Account {
    uint64_t matched = 0;
    uint64_t fired = 0;
    uint64_t burst_left = 0;
    Random random;
    Instant link_free_at{};
  };
  struct Entry {
    std::shared_ptr<const Rule> rule;
    uint64_t matched = 0;
    uint64_t fired = 0;
    std::optional<Instant> first_fired;
    std::map<Flow, Account> accounts;
  };

  static constexpr uint32_t bit(Where where) { return 1u << static_cast<uint32_t>(where); }
  bool watches_any(uint32_t places) const {
#ifdef ROCEMU_WITHOUT_FAULTS  // never asked: the baseline of scripts/bench
    static_cast<void>(places);
    return false;
#else
    return (watched_ & places) != 0;
#endif
  }
  bool is_named(const std::optional<std::string>& name, std::optional<DeviceIndex> device) const;
  bool is_there(const Selection& which, const Occurrence& occurrence) const;
  bool agrees(const Rule& rule, const Occurrence& occurrence) const;
  bool is_due(Entry& entry, Account& account, Instant now) const;
  Account& account_of(Entry& entry, const Flow& flow) const;
  void rebuild();

  uint64_t seed_;
  std::vector<std::string> device_names_;
  std::vector<Entry> entries_;
  std::array<std::vector<size_t>, kPlaces> by_place_;  // positions in entries_
  uint32_t watched_ = 0;
  uint32_t asked_for_ = 0;
  bool concerns_processes_ = false;
  std::vector<Acting> acting_;
};

}  // namespace rocemu::engine::faults
