// rocemu for GoogleTest: of a test that fails, its recording as a page and a capture; and a test
// fails that uses verbs wrongly.
//
//   int main(int argc, char** argv) {
//     testing::InitGoogleTest(&argc, argv);
//     rocemu::testing::Fabric fabric({.record = "recording"});
//     rocemu::testing::keep_artefacts(fabric, "rocemu-failed");
//     return RUN_ALL_TESTS();
//   }
//
// A test that fails leaves rocemu-failed/SUITE.TEST/ with timeline.html, which any browser opens,
// and trace.pcap. They show the NIC from its start up to the end of the test.
#pragma once

#include <gtest/gtest.h>
#include <rocemu/testing.h>

#include <filesystem>
#include <iostream>
#include <string>
#include <utility>

namespace rocemu::testing {

class ArtefactKeeper : public ::testing::EmptyTestEventListener {
 public:
  ArtefactKeeper(Fabric& fabric, std::filesystem::path folder)
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
      std::cerr << "rocemu: what happened is in " << folder << "\n";
    } catch (const std::exception& error) {
      std::cerr << "rocemu: nothing is kept in " << folder << ": " << error.what() << "\n";
    }
  }

 private:
  std::filesystem::path folder_of(const ::testing::TestInfo& test) const {
    std::string name = std::string(test.test_suite_name()) + "." + test.name();
    for (char& c : name) {
      if (c == '/') c = '_';  // of a test with parameters
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
/// expects reports takes them by Fabric::take_reports(). The Fabric lives until all tests have run.
/// Call it after keep_artefacts(), which then keeps what such a test leaves.
inline void fail_on_misuse(Fabric& fabric) {
  ::testing::UnitTest::GetInstance()->listeners().Append(new MisuseWatch(fabric));
}

/// From now on, of each test that fails. The Fabric records, and lives until all tests have run.
inline void keep_artefacts(Fabric& fabric, const std::filesystem::path& folder) {
  ::testing::UnitTest::GetInstance()->listeners().Append(new ArtefactKeeper(fabric, folder));
}

}  // namespace rocemu::testing
