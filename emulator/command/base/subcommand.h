// The subcommands and their common parts: names, help, parsing of options.
#pragma once

#include <boost/program_options.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rocemu::command {

using Arguments = std::vector<std::string>;

struct Subcommand {
  std::string_view name;
  std::string_view summary;
  /// Runs the subcommand with the arguments after its name. Returns the exit status or throws
  /// Error.
  int (*run)(const Arguments&);
  std::string (*help)();
  /// Returns the help that has all options. Null if --help already shows all options.
  std::string (*help_all)() = nullptr;
};

int run(const Arguments& arguments);
std::string run_help();
std::string run_help_all();
int explore(const Arguments& arguments);
std::string explore_help();
std::string explore_help_all();
int up(const Arguments& arguments);
std::string up_help();
std::string up_help_all();
int down(const Arguments& arguments);
std::string down_help();
int show(const Arguments& arguments);
std::string show_help();
int set(const Arguments& arguments);
std::string set_help();
int wait(const Arguments& arguments);
std::string wait_help();
int replay(const Arguments& arguments);
std::string replay_help();
int check(const Arguments& arguments);
std::string check_help();
int profile(const Arguments& arguments);
std::string profile_help();
int scenarios(const Arguments& arguments);
std::string scenarios_help();
int inject(const Arguments& arguments);
std::string inject_help();
int pause(const Arguments& arguments);
std::string pause_help();
int resume(const Arguments& arguments);
std::string resume_help();
int step(const Arguments& arguments);
std::string step_help();
int diff(const Arguments& arguments);
std::string diff_help();
int timeline(const Arguments& arguments);
std::string timeline_help();
int fabric(const Arguments& arguments);
std::string fabric_help();
int explain(const Arguments& arguments);
std::string explain_help();
int doctor(const Arguments& arguments);
std::string doctor_help();

std::span<const Subcommand> subcommands();

/// Runs `rocemu` with these arguments: finds the subcommand, prints help, and turns an Error into
/// its line and exit status.
int dispatch(const Arguments& arguments);

/// Parses `arguments`. All must be options of `description`, except for the positional arguments
/// that `positional` defines. Throws UsageError, which suggests the nearest option if one was
/// mistyped.
boost::program_options::variables_map parse_options(
    std::string_view subcommand, const Arguments& arguments,
    const boost::program_options::options_description& description,
    const boost::program_options::positional_options_description& positional = {});

/// Returns the positional argument with this number, counted from 0: an argument that is neither an
/// option of `description` nor the value of such an option. Stops at an unknown option. Returns an
/// empty string if there are too few positional arguments.
std::string word_of(const Arguments& arguments,
                    const boost::program_options::options_description& description,
                    unsigned number = 0);

/// Returns `description` as text for help.
std::string to_text(const boost::program_options::options_description& description);

/// Returns the candidate that is most similar to `word`, or nothing if none is similar.
std::string_view nearest(std::string_view word, std::span<const std::string_view> candidates);

}  // namespace rocemu::command
