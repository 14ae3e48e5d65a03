// Tests the facts that are read from the files of a run.
#include "emulator/explore/trials/run_facts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "emulator/os/temporary_directory.h"

namespace rocemu::explore {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

/// Returns the facts about a run whose only process that uses RDMA is server#1, with the PID 12.
RunFacts facts_of(const std::string& errors) {
  const TemporaryDirectory dir;
  std::ofstream(dir.path() / "events.jsonl")
      << R"({"t":0,"what":"client","client":1,"pid":12})"
         "\n"
      << R"({"t":0,"what":"process","client":1,"process":"server#1"})"
         "\n";
  std::ofstream(dir.path() / "stdout");
  std::ofstream(dir.path() / "stderr") << errors;
  return read_facts(dir.path(), 0, "");
}

TEST(RunFacts, HaveTheStatusOfAProgramByItsName) {
  const RunFacts facts = facts_of("rocemud: warning: server (pid 12) ended with status 17\n");
  EXPECT_THAT(facts.statuses, ElementsAre(Pair("server#1", ElementsAre(17))));
  EXPECT_THAT(facts.failed, ElementsAre("server#1"));
}

TEST(RunFacts, HaveTheStatusOfAProgramWithoutRdmaByItsCommand) {
  const RunFacts facts = facts_of(
      "rocemud: warning: grep (pid 20) ended with status 1\n"
      "rocemud: warning: grep (pid 21) ended with status 2\n");
  EXPECT_THAT(facts.statuses, ElementsAre(Pair("grep", ElementsAre(1, 2))));
}

TEST(RunFacts, HaveTheStatusOfAnOrphan) {
  const RunFacts facts = facts_of("rocemu: server (pid 12) ended with status 9\n");
  EXPECT_THAT(facts.statuses, ElementsAre(Pair("server#1", ElementsAre(9))));
}

TEST(RunFacts, HaveTheStatusBehindALineThatAProgramHasNotEnded) {
  const RunFacts facts = facts_of("...rocemud: warning: server (pid 12) ended with status 3\n");
  EXPECT_THAT(facts.statuses, ElementsAre(Pair("server#1", ElementsAre(3))));
  EXPECT_EQ(facts.errors, "...\n");
}

TEST(RunFacts, HaveNoStatusOfASignal) {
  const RunFacts facts = facts_of("rocemud: warning: server (pid 12) received SIGTERM\n");
  EXPECT_THAT(facts.statuses, IsEmpty());
  EXPECT_THAT(facts.crashes, IsEmpty());
  EXPECT_THAT(facts.failed, ElementsAre("server#1"));
}

TEST(RunFacts, HaveTheCrashOfASignalThatIsOne) {
  const RunFacts facts = facts_of("rocemud: warning: server (pid 12) received SIGSEGV\n");
  EXPECT_THAT(facts.crashes, ElementsAre("server#1 received SIGSEGV"));
}

TEST(RunFacts, HaveTheReportsOfTheVerbsSanitizer) {
  const TemporaryDirectory dir;
  std::ofstream(dir.path() / kMisuseFile) << R"({"reports": [
    {"rule": "destroy-failed", "severity": "warning", "message": "server#1 could not destroy CQ 1",
     "process": "server#1", "count": 1, "places": [
      {"what": "created", "call": "ibv_create_cq", "time": 0.0, "stack": []},
      {"what": "failed", "call": "ibv_destroy_cq", "time": 0.1, "stack": [
       {"function": "end", "file": "/src/a.c", "line": 9, "module": "/bin/server"},
       {"function": "", "file": "", "line": 0, "module": "/lib/libx.so"}]}]}]})";
  const RunFacts facts = read_facts(dir.path(), 0, "");
  ASSERT_EQ(facts.misuses.size(), 1u);
  const Misuse& misuse = facts.misuses[0];
  EXPECT_EQ(misuse.rule, "destroy-failed");
  EXPECT_FALSE(misuse.is_error);
  EXPECT_EQ(misuse.program, "server");
  EXPECT_THAT(misuse.places, ElementsAre("created by ibv_create_cq",
                                         "failed by ibv_destroy_cq: end() a.c:9 < libx.so"));
  EXPECT_EQ(misuse.where, "end() at a.c:9");
  EXPECT_EQ(misuse.refused, "destroy_cq");
  EXPECT_EQ(RunFacts::from_json(facts.to_json()).to_json(), facts.to_json());
}

TEST(RunFacts, HaveNoReportsOfARunThatWasKilledBeforeItWroteThem) {
  const TemporaryDirectory dir;
  std::ofstream(dir.path() / kMisuseFile) << R"({"reports": [)";
  EXPECT_THAT(read_facts(dir.path(), 0, "").misuses, IsEmpty());
}

TEST(RunFacts, AreTheSameAfterAStore) {
  RunFacts facts = facts_of("rocemud: warning: server (pid 12) ended with status 17\n");
  facts.output = "sum 15\n";
  EXPECT_EQ(RunFacts::from_json(facts.to_json()).to_json(), facts.to_json());
  EXPECT_EQ(RunFacts::from_json(facts.to_json()).statuses, facts.statuses);
}

}  // namespace
}  // namespace rocemu::explore
