#include "emulator/command/determinism/recorded_run.h"

#include <sched.h>

#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>
#include <string_view>

#include "emulator/command/base/child_run.h"
#include "emulator/command/base/error.h"
#include "emulator/command/determinism/load.h"
#include "emulator/command/recordings/recording_files.h"

namespace rocemu::command {
namespace fs = std::filesystem;
namespace {

constexpr char kOutputFile[] = "stdout";
constexpr char kErrorFile[] = "stderr";

std::string name_of(size_t number, Circumstances circumstances) {
  std::string beside;
  if (circumstances.beside_load) beside += ", under load";
  if (circumstances.on_one_processor) beside += ", on one processor";
  return "run " + std::to_string(number) + (beside.empty() ? "" : " (" + beside.substr(2) + ")");
}

std::string contents_of(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

/// Restricts this process to the first of the processors that it may use.
void use_one_processor() {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
  for (size_t i = 0; i < CPU_SETSIZE; ++i) {
    if (!CPU_ISSET(i, &allowed)) continue;
    CPU_ZERO(&allowed);
    CPU_SET(i, &allowed);
    sched_setaffinity(0, sizeof allowed, &allowed);
    return;
  }
}

/// Separates rocemu's messages from the command's output. If the run hung, all lines from rocemu's
/// first message on belong to the report of the hang.
void split_errors(const std::string& text, RecordedRun& run) {
  const bool hung = run.status == kExitHang || run.status == kExitTimeout;
  bool is_report = false;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const bool is_ours = line.starts_with("rocemu: ") || line.starts_with("rocemud: ");
    is_report = is_report || (hung && is_ours);
    if (is_ours || is_report) {
      run.notes.push_back(line);
    } else {
      run.errors += line + "\n";
    }
  }
}

}  // namespace

RecordedRun record_run(size_t number, Circumstances circumstances, const Arguments& options,
                       const Arguments& command, const fs::path& parent) {
  RecordedRun run{.name = name_of(number, circumstances),
                  .dir = parent / std::to_string(number),
                  .output = {},
                  .errors = {},
                  .notes = {}};
  make_directory(run.dir);
  Arguments arguments{"rocemu", "run"};
  arguments.insert(arguments.end(), options.begin(), options.end());
  arguments.insert(arguments.end(), {"--record", run.dir.string(), "--"});
  arguments.insert(arguments.end(), command.begin(), command.end());
  {
    std::optional<Load> load;
    if (circumstances.beside_load) load.emplace();
    run.status = run_child(arguments, {run.dir / kOutputFile, run.dir / kErrorFile}, [&] {
      if (circumstances.on_one_processor) use_one_processor();
    });
  }
  run.output = contents_of(run.dir / kOutputFile);
  split_errors(contents_of(run.dir / kErrorFile), run);
  fs::remove(run.dir / kOutputFile);
  fs::remove(run.dir / kErrorFile);
  return run;
}

}  // namespace rocemu::command
