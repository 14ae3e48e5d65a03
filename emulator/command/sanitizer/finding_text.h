// Converts findings to text for users.
#pragma once

#include <string>
#include <vector>

#include "emulator/command/sanitizer/finding_reader.h"

namespace rocemu::command {

std::string in_words(const Misuse& finding);
/// Returns the line for a finding that was already printed and was then found again: "error [RULE]
/// was found 7 times: MESSAGE".
std::string repetitions_of(const Misuse& finding);
/// Returns how many findings there are, such as "2 errors, 1 warning in 3 rules; rocemu explain
/// RULE".
std::string summary_of(const std::vector<Misuse>& findings);

}  // namespace rocemu::command
