#include "emulator/command/sanitizer/sanitized_run.h"

#include "emulator/command/sanitizer/sanitizer_options.h"
#include "emulator/command/sanitizer/sanitizer_reports.h"

namespace rocemu::command {
namespace {

bool is_quiet = false;  // keep_findings_quiet()

}  // namespace

std::unique_ptr<SanitizedRun> SanitizedRun::make(
    const boost::program_options::variables_map& values) {
  const std::optional<SanitizerOptions> options = read_sanitizer_options("run", values);
  if (!options) return nullptr;
  std::unique_ptr<SanitizedRun> run(new SanitizedRun());
  options->write(run->directory());
  if (!values["lockstep"].as<bool>() && !is_quiet) run->printer_.emplace(run->directory());
  return run;
}

bool SanitizedRun::finish() {
  if (printer_) return printer_->finish();
  SanitizerReports reports(directory());
  return is_quiet ? !reports.write_file() : reports.finish();
}

void keep_findings_quiet() {
  is_quiet = true;
}

}  // namespace rocemu::command
