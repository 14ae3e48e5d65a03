// Tests Fabric::reports() for programs that the test starts, and for the test's own calls.
// test_reports.py runs this by itself and in `rocemu run --lockstep --sanitize`.
#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <thread>

#include "testing/cpp/rocemu/gtest.h"
#include "tests/testing/connection.h"

namespace rocemu::testing {

Fabric* fabric = nullptr;
bool is_in_run = false;  // whether each Fabric uses the NIC of a `rocemu run` around this test

namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string program(const std::string& name) {
  return std::filesystem::read_symlink("/proc/self/exe").parent_path() / "sanitizer" / name;
}

auto is_of_rule(const std::string& rule) {
  return Field("rule", &Report::rule, rule);
}

using Reports = Connection;

TEST_F(Reports, AreNoneOfATestThatIsRight) {
  EXPECT_THAT(fabric->take_reports(), IsEmpty());
}

TEST_F(Reports, OfAProgramHaveWhatTheJsonHas) {
  EXPECT_EQ(fabric->run({program("mr_deregistered_in_use")}), 0);
  const std::vector<Report> reports = fabric->take_reports();
  ASSERT_THAT(reports, ElementsAre(is_of_rule("mr-deregistered-in-use")));
  const Report& report = reports[0];
  EXPECT_EQ(report.severity, "error");
  EXPECT_EQ(report.process, "mr_deregistered#1");
  EXPECT_THAT(report.message, HasSubstr("while receive 1 on QP"));
  EXPECT_EQ(report.count, 1u);
  ASSERT_THAT(report.places,
              ElementsAre(Field(&Place::what, "posted"), Field(&Place::call, "ibv_dereg_mr")));
  ASSERT_FALSE(report.places[1].stack.empty());
  EXPECT_EQ(report.places[1].stack[0].function, "main");
  EXPECT_THAT(report.places[1].stack[0].file, EndsWith("mr_deregistered_in_use.c"));
  EXPECT_GE(report.places[1].time, report.places[0].time);
  EXPECT_THAT(report.text(), HasSubstr("error [mr-deregistered-in-use]: mr_deregistered#1"));
}

TEST_F(Reports, OfTheTestItselfAreThereAfterTheCall) {
  ibv_recv_wr receive{}, *bad = nullptr;
  ibv_sge sge{reinterpret_cast<uintptr_t>(sides[0].buffer), sizeof sides[0].buffer,
              sides[0].mr->lkey};
  receive.sg_list = &sge;
  receive.num_sge = 1;
  ASSERT_EQ(ibv_post_recv(sides[0].qp, &receive, &bad), 0);
  EXPECT_THAT(fabric->take_reports(), IsEmpty());
  ASSERT_EQ(ibv_dereg_mr(sides[0].mr), 0);
  EXPECT_THAT(fabric->take_reports(), ElementsAre(is_of_rule("mr-deregistered-in-use")));
  EXPECT_THAT(fabric->take_reports(), IsEmpty());
  EXPECT_THAT(fabric->reports(), Contains(is_of_rule("mr-deregistered-in-use")));
  sides[0].mr = ibv_reg_mr(sides[0].pd, sides[0].buffer, sizeof sides[0].buffer, 0);
}

TEST_F(Reports, AreCountedSinceTheyWereTaken) {
  ibv_send_wr send{}, *bad = nullptr;
  std::array<ibv_sge, 2> sges{};  // one is allowed
  send.sg_list = sges.data();
  send.num_sge = sges.size();
  const auto post = [&](int times) {
    for (int i = 0; i < times; ++i) EXPECT_EQ(ibv_post_send(sides[0].qp, &send, &bad), EINVAL);
  };
  for (const int times : {3, 2}) {
    post(times);
    const std::vector<Report> reports = fabric->take_reports();
    ASSERT_THAT(reports, ElementsAre(is_of_rule("refused-limit")));
    EXPECT_EQ(reports[0].count, static_cast<uint64_t>(times));
  }
}

/// Requests a larger CQ than is possible, which is a misuse. Returns whether it was refused.
bool ask_for_too_much(ibv_context* context) {
  return ibv_create_cq(context, 1 << 30, nullptr, nullptr, 0) == nullptr;
}

TEST_F(Reports, OfThreadsOfTheTestAreOneForEachPlace) {
  constexpr size_t kThreads = 4;
  std::vector<std::thread> threads;
  for (size_t i = 0; i < kThreads; ++i)
    threads.emplace_back([this] { EXPECT_TRUE(ask_for_too_much(sides[0].context)); });
  for (std::thread& thread : threads) thread.join();
  const std::vector<Report> reports = fabric->take_reports();
  ASSERT_THAT(reports, ElementsAre(is_of_rule("refused-limit")));
  EXPECT_EQ(reports[0].count, kThreads);
}

/// The child must not use its parent's objects, so it opens the device again.
TEST_F(Reports, OfAForkedChildOfTheTestNameTheChild) {
  const pid_t child = fork();
  if (child == 0) {
    ibv_device** devices = ibv_get_device_list(nullptr);
    ibv_context* context = devices != nullptr ? ibv_open_device(devices[0]) : nullptr;
    _exit(context != nullptr && ask_for_too_much(context) ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  std::vector<Report> reports = fabric->take_reports();
  // Under `rocemu run --sanitize`, there is also a report that the parent forked.
  std::erase_if(reports, [](const Report& one) { return one.rule == "fork-unprotected"; });
  ASSERT_THAT(reports, ElementsAre(is_of_rule("refused-limit")));
  EXPECT_THAT(reports[0].process, EndsWith("#2"));
}

TEST_F(Reports, OfTheTestItselfNeedTheFirstFabricOfTheProcess) {
  try {
    Fabric second({.sanitize = kDefaultMisuseRules});
    EXPECT_TRUE(is_in_run) << "its reports would lack the test's own calls";
    EXPECT_TRUE(ask_for_too_much(sides[0].context));
    EXPECT_THAT(second.take_reports(), ElementsAre(is_of_rule("refused-limit")));
    fabric->take_reports();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("Create that Fabric before the first call of libibverbs"));
  }
  const Fabric unjudged;  // a Fabric from which the test requests no reports
}

TEST_F(Reports, MakeATestFailThatDoesNotTakeThem) {
  if (getenv("ROCEMU_TEST_MISUSE") == nullptr) GTEST_SKIP() << "test_reports.py runs it";
  EXPECT_EQ(fabric->run({program("mr_deregistered_in_use")}), 0);
}

}  // namespace
}  // namespace rocemu::testing

int main(int argc, char** argv) {
  using namespace rocemu::testing;
  ::testing::InitGoogleTest(&argc, argv);
  if (::testing::GTEST_FLAG(list_tests)) return RUN_ALL_TESTS();
  is_in_run = getenv("ROCEMU_DIR") != nullptr;
  Fabric nic({.sanitize = kDefaultMisuseRules});
  fabric = &nic;
  fail_on_misuse(nic);
  return RUN_ALL_TESTS();
}
