// Tests docs/faults.md, "Calls": every function of verbs.h and rdma_cma.h that can fail does so
// while the page's rule for it applies, with the rule's errno, and only then. The list of functions
// comes from the headers, so that none can be missing.
#include <map>
#include <regex>
#include <set>
#include <string>

#include "tests/system/call_faults.h"
#include "tests/system/rdmacm_fixture.h"

namespace rocemu::system_test {
namespace {

int errno_in(const std::string& rule) {
  static const std::map<std::string, int> kNames = {
      {"EACCES", EACCES}, {"EAGAIN", EAGAIN}, {"EBUSY", EBUSY},
      {"EFAULT", EFAULT}, {"EINVAL", EINVAL}, {"EIO", EIO},
      {"EMFILE", EMFILE}, {"ENODEV", ENODEV}, {"EADDRINUSE", EADDRINUSE},
      {"ENOMEM", ENOMEM}, {"ENOENT", ENOENT}, {"ENETUNREACH", ENETUNREACH}};
  std::smatch word;
  if (!std::regex_search(rule, word, std::regex("errno: ([A-Z]+)"))) return -1;
  const auto found = kNames.find(word[1]);
  return found == kNames.end() ? -1 : found->second;
}

void expect_failures(const std::map<std::string, Attempt>& attempts) {
  for (const auto& [name, attempt] : attempts) {
    SCOPED_TRACE(name);
    const std::string rule = rule_for(name);
    ASSERT_NE(rule, "none");
    EXPECT_EQ(attempt(Under(rule)), errno_in(rule)) << rule;
    EXPECT_EQ(attempt(Under("")), 0);
  }
}

TEST_F(Verbs, EachFailsWhenARuleSaysSo) {
  expect_failures(attempts());
}

TEST(RdmaCmCalls, EachFailsWhenARuleSaysSo) {
  EventChannel();  // makes librdmacm open its devices
  expect_failures(attempts_of_rdmacm());
}

/// Returns the names of all functions in a header, also of those in its macros and comments.
std::set<std::string> functions_of(const char* header, const std::string& prefix) {
  const std::string text = content_of(header);
  const std::regex call("\\b(" + prefix + "_[a-z0-9_]+)\\s*\\(");
  std::set<std::string> names;
  for (std::sregex_iterator it(text.begin(), text.end(), call), end; it != end; ++it) {
    names.insert((*it)[1]);
  }
  return names;
}

TEST_F(Verbs, AllOfTheHeadersHaveARowOnThePageAndARuleIfOneCanFail) {
  std::set<std::string> tried;
  for (const auto& [name, attempt] : attempts()) tried.insert(name);
  for (const auto& [name, attempt] : attempts_of_rdmacm()) tried.insert(name);
  std::set<std::string> names = functions_of(ROCEMU_VERBS_H, "ibv");
  names.merge(functions_of(ROCEMU_RDMA_CMA_H, "rdma"));
  ASSERT_GT(names.size(), 150u);
  for (const std::string& name : names) {
    const std::string rule = rule_for(name);
    EXPECT_EQ(rule != "none", tried.contains(name)) << name << ": " << rule;
  }
}

// A rule applies only to the verb that it names: opening a device makes no other request that a
// rule could match, and a rule for one kind of region does not apply to another kind.
TEST_F(Verbs, AreNotMadeToFailByARuleForAnother) {
  const auto attempt_of = attempts();
  const std::pair<const char*, const char*> kPairs[] = {
      {"query_device", "ibv_open_device"}, {"open_device", "ibv_query_device"},
      {"reg_mr", "ibv_alloc_null_mr"},     {"reg_mr", "ibv_reg_dm_mr"},
      {"alloc_null_mr", "ibv_reg_mr"},     {"import_device", "ibv_open_device"}};
  for (const auto& [verb, other] : kPairs) {
    SCOPED_TRACE(std::string(verb) + " and " + other);
    const std::string rule = std::string("{on: verb, verb: ") + verb + ", do: {errno: EIO}}";
    EXPECT_EQ(attempt_of.at(other)(Under(rule)), 0);
  }
}

// Verbs are counted for each context. While a device is being opened, its context does not exist
// yet, so ibv_open_device() is counted for each device.
TEST_F(Verbs, OpeningIsCountedByTheDevice) {
  inject("{on: verb, verb: open_device, nth: 2, do: {errno: EMFILE}}");
  EXPECT_NE(open_device(), nullptr);
  EXPECT_EQ(open_device(), nullptr);
  EXPECT_EQ(errno, EMFILE);
  EXPECT_NE(open_device(), nullptr);
}

}  // namespace
}  // namespace rocemu::system_test
