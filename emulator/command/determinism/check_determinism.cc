#include "emulator/command/determinism/check_determinism.h"

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <optional>
#include <string>

#include "emulator/command/base/error.h"
#include "emulator/command/base/number_option.h"
#include "emulator/command/determinism/explanation.h"
#include "emulator/command/determinism/recorded_run.h"
#include "emulator/command/recordings/recorded_capture.h"
#include "emulator/command/recordings/recording_files.h"
#include "emulator/os/temporary_directory.h"

namespace rocemu::command {
namespace fs = std::filesystem;
namespace po = boost::program_options;
namespace {

constexpr std::string_view kOption = "--check-determinism";
constexpr std::string_view kKeepOption = "--keep-on-failure";
constexpr size_t kMaxRuns = 1000;

size_t run_count(const std::string& text) {
  return read_number("run", kOption, text, {2, kMaxRuns, "number of runs"});
}

/// Rejects options that --check-determinism sets itself.
void refuse_other_recordings(const po::variables_map& values) {
  if (!values["lockstep"].as<bool>())
    throw UsageError("run: --check-determinism needs --lockstep; without it, every run differs");
  for (const char* option : {"expect", "record", "actual", "capture"}) {
    if (values.count(option) != 0)
      throw UsageError("run: --check-determinism makes several runs; leave out --" +
                       std::string(option) + " (--keep-on-failure DIR keeps two runs that differ)");
  }
}

/// Returns the options without the option `option` and its value.
Arguments without(std::string_view option, const Arguments& options) {
  Arguments rest;
  for (size_t i = 0; i < options.size(); ++i) {
    if (options[i] == option) {
      ++i;
    } else if (!options[i].starts_with(std::string(option) + "=")) {
      rest.push_back(options[i]);
    }
  }
  return rest;
}

/// Returns the conditions of the run with this number, counted from 1. They repeat after four runs:
/// undisturbed, with a load, on one processor, and on one processor with a load.
Circumstances circumstances_of(size_t number) {
  return {.beside_load = number % 2 == 0, .on_one_processor = (number - 1) % 4 >= 2};
}

/// Removes the recording of an earlier check from the directory `name` in `dir`. Returns the path
/// of that directory.
fs::path place_for(const std::string& dir, const char* name) {
  fs::path place = fs::absolute(dir) / name;
  remove_recording(place);
  return place;
}

void keep(const RecordedRun& first, const RecordedRun& other, const std::string& dir) {
  const fs::path places[] = {place_for(dir, "first"), place_for(dir, "other")};
  copy_recording(first.dir, places[0]);
  copy_recording(other.dir, places[1]);
  std::cerr << "rocemu: the two runs are in " + places[0].string() + " and " + places[1].string() +
                   "\n";
}

}  // namespace

int check_determinism(const po::variables_map& values, const Arguments& options,
                      const Arguments& command) {
  const size_t count = run_count(values["check-determinism"].as<std::string>());
  refuse_other_recordings(values);
  const Arguments each = without(kOption, without(kKeepOption, options));
  const TemporaryDirectory directory;
  std::optional<RecordedRun> first;
  for (size_t number = 1; number <= count; ++number) {
    RecordedRun run = record_run(number, circumstances_of(number), each, command, directory.path());
    if (!first) {
      first = std::move(run);
      std::cout << first->output << std::flush;
      std::cerr << first->errors;
      for (const std::string& note : first->notes) std::cerr << note + "\n";
      continue;
    }
    const std::string difference = explain_difference(*first, run, command);
    if (difference.empty()) {
      remove_recording(run.dir);
      continue;
    }
    std::cerr << "rocemu: of " + std::to_string(count) + " runs, " + run.name + " differs from " +
                     first->name + "\n" + difference;
    if (values.count("keep-on-failure") != 0)
      keep(*first, run, values["keep-on-failure"].as<std::string>());
    return kExitFailure;
  }
  std::cerr << "rocemu: " + std::to_string(count) + " runs, " + std::to_string(count / 2) +
                   " of them under load, were identical: " + std::to_string(count_events(*first)) +
                   " events and frames, and all output\n";
  return first->status;
}

}  // namespace rocemu::command
