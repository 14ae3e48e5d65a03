#include "emulator/command/sanitizer/sanitizer_reports.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "emulator/abi/sanitizer_log.h"
#include "emulator/command/sanitizer/finding_files.h"
#include "emulator/command/sanitizer/finding_text.h"

namespace rocemu::command {
namespace {

Suppressions suppressions_in(const std::string& directory) {
  const std::string file = directory + "/" + abi::kSanitizerSuppressions;
  return access(file.c_str(), F_OK) == 0 ? Suppressions::read(file) : Suppressions();
}

std::string report_in(const std::string& directory) {
  std::ifstream file(directory + "/" + abi::kSanitizerReport);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Writes the text in one piece, because programs print at the same time.
void write_whole(std::string_view text) {
  while (!text.empty()) {
    const ssize_t size = ::write(STDERR_FILENO, text.data(), text.size());
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) return;
    text.remove_prefix(static_cast<size_t>(size));
  }
}

void print_summary_of(const std::vector<Misuse>& findings) {
  if (!findings.empty()) write_whole(summary_of(findings) + "\n");
}

bool has_error_among(const std::vector<Misuse>& findings) {
  return std::ranges::any_of(findings, [](const Misuse& one) {
    return one.rule->severity == sanitizer::Severity::kError;
  });
}

bool write_report(const std::vector<Misuse>& findings, const std::string& path) {
  if (path.empty()) return true;
  std::ofstream file(path);
  file << to_text(findings, report_format(path), std::filesystem::current_path().string());
  if (file.flush()) return true;
  write_whole("rocemu: cannot write " + path + ": " + std::strerror(errno) + "\n");
  return false;
}

}  // namespace

bool write_all(const std::vector<Misuse>& findings, const std::string& file) {
  return !write_report(findings, file) || has_error_among(findings);
}

bool report_all(const std::vector<Misuse>& findings, const std::string& file) {
  for (const Misuse& one : findings) write_whole("rocemu: " + in_words(one));
  print_summary_of(findings);
  return write_all(findings, file);
}

SanitizerReports::SanitizerReports(const std::string& directory)
    : reader_(directory),
      suppressions_(suppressions_in(directory)),
      report_(report_in(directory)) {}

std::vector<Misuse> SanitizerReports::read(Waits waits) {
  std::vector<Misuse> findings = reader_.read(waits);
  std::erase_if(findings, [&](const Misuse& one) { return suppressions_.suppress(one); });
  return findings;
}

void SanitizerReports::print(const std::vector<Misuse>& findings) {
  for (const Misuse& one : findings)
    if (printed_.insert(identity_of(one)).second) write_whole("rocemu: " + in_words(one));
}

void SanitizerReports::print_new() {
  std::vector<Misuse> findings = read(Waits::kOfEnded);
  // A finding may be repeated later, so a count would be incomplete now; finish() prints the
  // counts.
  for (Misuse& one : findings) one.count = 1;
  print(findings);
}

bool SanitizerReports::finish() {
  const std::vector<Misuse> findings = read(Waits::kAll);
  const std::set<std::string> printed_before = printed_;
  print(findings);
  for (const Misuse& one : findings)
    if (one.count > 1 && printed_before.contains(identity_of(one)))
      write_whole("rocemu: " + repetitions_of(one));
  print_summary_of(findings);
  return write_all(findings, report_);
}

bool SanitizerReports::write_file() {
  return write_report(read(Waits::kAll), report_);
}

}  // namespace rocemu::command
