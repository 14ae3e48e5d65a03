// Replays conversations of Linux rdma_rxe, with our engine in the place of each end in turn, and
// checks that the engine sends the packets that rxe sent.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <map>
#include <span>

#include "tests/conformance/conversation.h"
#include "tests/conformance/intended_differences.h"
#include "tests/conformance/player.h"

namespace rocemu::conformance {
namespace {

struct Case {
  const Conversation* conversation;
  int end;
};

void PrintTo(const Case& one, std::ostream* os) {
  *os << one.conversation->capture;
}

const std::vector<Conversation>& conversations() {
  static const std::vector<Conversation> all = read_conversations();
  return all;
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const Conversation& one : conversations()) {
    all.push_back({&one, 0});
    all.push_back({&one, 1});
  }
  return all;
}

std::string case_name(const testing::TestParamInfo<Case>& info) {
  const Conversation& talk = *info.param.conversation;
  return fmt::format("{}_qp{:x}_as_{}", talk.capture, std::max(talk.ends[0].qpn, talk.ends[1].qpn),
                     talk.ends[info.param.end].address.bytes[15]);
}

struct Comparison {
  size_t equal = 0;
  std::vector<std::string> missing;  // only rxe sent it
  std::vector<std::string> extra;    // only our engine sent it
};

/// Compares the lists along a longest common subsequence.
Comparison compare(std::span<const std::string> theirs, std::span<const std::string> ours) {
  std::vector<std::vector<size_t>> common(theirs.size() + 1,
                                          std::vector<size_t>(ours.size() + 1, 0));
  for (size_t i = theirs.size(); i-- > 0;) {
    for (size_t j = ours.size(); j-- > 0;) {
      common[i][j] = theirs[i] == ours[j] ? common[i + 1][j + 1] + 1
                                          : std::max(common[i + 1][j], common[i][j + 1]);
    }
  }
  Comparison result{.equal = common[0][0], .missing = {}, .extra = {}};
  size_t i = 0, j = 0;
  while (i < theirs.size() || j < ours.size()) {
    if (i < theirs.size() && j < ours.size() && theirs[i] == ours[j]) {
      ++i, ++j;
    } else if (j == ours.size() || (i < theirs.size() && common[i + 1][j] >= common[i][j + 1])) {
      result.missing.push_back(theirs[i++]);
    } else {
      result.extra.push_back(ours[j++]);
    }
  }
  return result;
}

class Conformance : public testing::TestWithParam<Case> {};

/// Removes the intended differences from `found`, and reports the remaining ones.
void check(const char* direction, const std::string& where, std::vector<std::string> found,
           std::span<const IntendedDifference> intended) {
  for (const IntendedDifference& difference : intended) {
    size_t times = 0;
    std::erase_if(found, [&](const std::string& line) {
      const bool hit = line.starts_with(difference.line);
      times += hit;
      return hit;
    });
    EXPECT_TRUE(difference.at_least <= times && times <= difference.at_most)
        << where << ": listed as " << direction << ", and seen " << times << " times: \""
        << difference.line << '"';
    std::cout << fmt::format("  {:>3} x {} \"{}\": {}\n", times, direction, difference.line,
                             difference.reason);
  }
  for (const std::string& line : found) {
    ADD_FAILURE() << where << ": " << direction << ": " << line;
  }
}

/// Without repetitions.
std::vector<std::string> distinct(std::vector<std::string> lines) {
  std::ranges::sort(lines);
  // std::ranges::unique() is not used, because clang 14 cannot compile its result with g++ 12's
  // library.
  lines.erase(std::unique(lines.begin(), lines.end()), lines.end());
  return lines;
}

TEST_P(Conformance, SaysWhatLinuxRxeSaid) {
  const Conversation& talk = *GetParam().conversation;
  const int end = GetParam().end;
  const Setting setting = setting_of(talk.capture);
  Said theirs = said_in_capture(talk, end, setting);
  Said ours = said_by_engine(talk, end, setting);
  if (setting.disturbed) {
    theirs.requests = distinct(theirs.requests);
    ours.requests = distinct(ours.requests);
  }
  const Comparison requests = compare(theirs.requests, ours.requests);
  Comparison responses = compare(theirs.responses, ours.responses);
  // rxe sent these responses too, but they were lost before they could be captured
  if (setting.disturbed) responses.extra.clear();
  std::cout << fmt::format(
      "{} as {}: {} requests and {} responses of the capture, {} and {} equal\n", talk.capture,
      to_string(talk.ends[end].address), theirs.requests.size(), theirs.responses.size(),
      requests.equal, responses.equal);
  const Intended intended = intended_differences(talk.capture, end);
  check("missing", "requests", requests.missing, intended.missing_requests);
  check("added", "requests", requests.extra, intended.added_requests);
  check("missing", "responses", responses.missing, intended.missing_responses);
  check("added", "responses", responses.extra, intended.added_responses);
}

INSTANTIATE_TEST_SUITE_P(Rxe, Conformance, testing::ValuesIn(cases()), case_name);

}  // namespace
}  // namespace rocemu::conformance
