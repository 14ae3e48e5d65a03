// rocemu for GoogleTest. For each test that fails it keeps the recording as a page, and a capture.
// It can also make tests fail that use verbs wrongly.
//
//   int main(int argc, char** argv) {
//     testing::InitGoogleTest(&argc, argv);
//     rocemu::testing::Fabric fabric({.record = "recording"});
//     rocemu::testing::keep_artifacts(fabric, "rocemu-failed");
//     return RUN_ALL_TESTS();
//   }
//
// A failed test writes the folder rocemu-failed/SUITE.TEST/ with timeline.html, which any browser
// opens, and trace.pcap. They show the NIC from its start to the end of the test.
#pragma once

#include <gtest/gtest.h>
#include <rocemu/testing.h>

#include <filesystem>
#include <iostream>
#include <string>
#include <utility>

namespace rocemu::testing {

class ArtifactKeeper : public ::testing::EmptyTestEventListener {
 public:
  ArtifactKeeper(Fabric& fabric, std::filesystem::path folder)
      : fabric_(fabric), folder_(std::move(folder)) {}

  void OnTestStart(const ::testing::TestInfo& test) override {
    std::error_code ignored;
    std::filesystem::remove_all(folder_of(test), ignored);  // of an earlier run
  }

  void OnTestEnd(const ::testing::TestInfo& test) override {
    if (!test.result()->Failed()) return;
    const std::filesystem::path folder = folder_of(test);
    try {
      std::filesystem::create_directories(folder);
      fabric_.timeline(folder / "timeline.html");
      fabric_.capture(folder / "trace.pcap");
      std::cerr << "rocemu: the timeline and the frames of the test are in " << folder << "\n";
    } catch (const std::exception& error) {
      std::cerr << "rocemu: cannot write the timeline and the frames to " << folder << ": "
                << error.what() << "\n";
    }
  }

 private:
  std::filesystem::path folder_of(const ::testing::TestInfo& test) const {
    std::string name = std::string(test.test_suite_name()) + "." + test.name();
    for (char& c : name) {
      if (c == '/') c = '_';  // in the name of a test with parameters
    }
    return folder_ / name;
  }

  Fabric& fabric_;
  std::filesystem::path folder_;
};

class MisuseWatch : public ::testing::EmptyTestEventListener {
 public:
  explicit MisuseWatch(Fabric& fabric) : fabric_(fabric) {}

  void OnTestEnd(const ::testing::TestInfo&) override {
    for (const Report& report : fabric_.take_reports()) {
      if (report.severity == "error") {
        ADD_FAILURE() << report;
      } else {
        std::cerr << report;
      }
    }
  }

 private:
  Fabric& fabric_;
};

/// Makes each later test fail that uses verbs wrongly (FabricOptions::sanitize). A test that
/// expects reports can remove them with Fabric::take_reports(). The Fabric must exist until all
/// tests have run. If keep_artifacts() is called before this function, it also keeps the files of
/// these failed tests.
inline void fail_on_misuse(Fabric& fabric) {
  ::testing::UnitTest::GetInstance()->listeners().Append(new MisuseWatch(fabric));
}

/// Keeps the files of each test that fails from now on. The Fabric must record, and must exist
/// until all tests have run.
inline void keep_artifacts(Fabric& fabric, const std::filesystem::path& folder) {
  ::testing::UnitTest::GetInstance()->listeners().Append(new ArtifactKeeper(fabric, folder));
}

}  // namespace rocemu::testing
