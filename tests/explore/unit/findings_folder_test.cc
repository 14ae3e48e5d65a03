// Tests which files of a folder of findings are kept, and which are removed.
#include "emulator/explore/findings/findings_folder.h"

#include <gtest/gtest.h>

#include "emulator/explore/files.h"
#include "emulator/os/temporary_directory.h"

namespace rocemu::explore {
namespace {

namespace fs = std::filesystem;

class FindingsFolder : public testing::Test {
 protected:
  void make_finding(int number, const std::string& scenario) {
    fs::create_directory(at(number));
    write_file(at(number) / "scenario.yaml", scenario);
    write_file(at(number) / "events.jsonl", "{}\n");
  }
  fs::path at(int number) const { return folder_.path() / std::to_string(number); }

  TemporaryDirectory folder_;
};

TEST_F(FindingsFolder, KeepsTheRecordingOfAFindingThatIsStillOne) {
  make_finding(1, "rules: [a]");
  make_finding(2, "rules: [b]");
  make_finding(3, "rules: [c]");
  remove_findings_but({"rules: [a]", "rules: [x]"}, folder_.path());
  EXPECT_TRUE(fs::exists(at(1) / "events.jsonl"));
  EXPECT_FALSE(fs::exists(at(2)));
  EXPECT_FALSE(fs::exists(at(3)));
}

TEST_F(FindingsFolder, LosesNothingThatIsNoFinding) {
  make_finding(1, "rules: [a]");
  fs::create_directory(folder_.path() / "baseline");
  fs::create_directory(at(7));  // a folder that no exploration made
  remove_findings_but({}, folder_.path());
  EXPECT_FALSE(fs::exists(at(1)));
  EXPECT_TRUE(fs::exists(folder_.path() / "baseline"));
  EXPECT_TRUE(fs::exists(at(7)));
}

TEST_F(FindingsFolder, OfAnEarlierExplorationIsKeptUnlessForced) {
  write_file(folder_.path() / kResultsFile, "{}\n");
  make_finding(1, "rules: [a]");
  Options options;
  options.folder = folder_.path();
  EXPECT_THROW(prepare_folder(options), ExploreError);
  options.resume = true;
  prepare_folder(options);
  EXPECT_TRUE(fs::exists(at(1)));
  options.resume = false;
  options.force = true;
  prepare_folder(options);
  EXPECT_FALSE(fs::exists(at(1)));
  EXPECT_FALSE(fs::exists(folder_.path() / kResultsFile));
}

}  // namespace
}  // namespace rocemu::explore
