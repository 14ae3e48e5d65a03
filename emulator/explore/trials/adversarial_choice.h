// Reads and shrinks the choices that the adversary made in a run
// (emulator/engine/adversarial/choices.h).
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace rocemu::explore {

struct AdversarialChoice {
  uint64_t number = 0;
  std::string text;  // "a WRITE, message 3 to QP 18, has its last 8 bytes 10 us before the others"
  bool operator==(const AdversarialChoice&) const = default;
};
using AdversarialChoices = std::vector<AdversarialChoice>;

/// Reads the recorded choices of one class from lines such as "placement 17 TEXT". Lines of other
/// classes and damaged lines are skipped.
AdversarialChoices choices_of(const std::string& lines, const std::string& of_class);
AdversarialChoices read_choices(const std::filesystem::path& recording,
                                const std::string& of_class);

/// Returns the argument of `rocemu run --adversarial` that makes only these choices, such as
/// "placement:17:30".
std::string adversarial_with(const std::string& of_class, const AdversarialChoices& choices);

struct AdversarialRun {
  bool is_again = false;
  AdversarialChoices choices;
};

struct ShrunkChoices {
  std::string argument;  // empty: no such run led to the finding
  std::string text;
};

/// Searches for the fewest choices of the class that lead to the finding. Calls `run` for each
/// argument to try, at most `most_runs` times.
ShrunkChoices shrink_choices(const std::string& of_class,
                             const std::function<AdversarialRun(const std::string& argument)>& run,
                             size_t most_runs);

}  // namespace rocemu::explore
