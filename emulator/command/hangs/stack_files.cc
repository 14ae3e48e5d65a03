#include "emulator/command/hangs/stack_files.h"

#include <filesystem>

#include "emulator/command/base/error.h"

namespace rocemu::command {
namespace po = boost::program_options;

std::optional<StackFiles> make_stack_files(const po::variables_map& values) {
  const bool cores = values["cores"].as<bool>(), chooses = values.count("stacks-by") != 0;
  if (values.count("stacks") == 0) {
    if (cores || chooses) throw UsageError("run: --cores and --stacks-by need --stacks FILE");
    return std::nullopt;
  }
  const std::string wanted = chooses ? values["stacks-by"].as<std::string>() : "";
  if (chooses && !stack_tool_called(wanted))
    throw UsageError("run: --stacks-by '" + wanted + "' is not gdb, eu-stack or eu-stack-names");
  const auto tool = chooses ? stack_tool_called(wanted)
                    : cores ? std::optional(StackTool::kGdb)
                            : find_stack_tool(StackTool::kGdb);
  if (!tool) throw Failure("run: --stacks: " + std::string(kNoStackTool));
  if (cores && *tool != StackTool::kGdb) throw UsageError("run: --cores needs gdb");
  if (!is_installed(*tool))
    throw Failure(std::string("run: --stacks: ") +
                  (*tool == StackTool::kGdb ? "gdb is not installed"
                                            : "eu-stack is not installed (Debian: elfutils)"));
  StackFiles files{.tool = *tool,
                   .file = std::filesystem::absolute(values["stacks"].as<std::string>()).string(),
                   .cores = cores};
  std::error_code ignored;
  std::filesystem::remove(files.file, ignored);  // stacks are appended, and must be of this run
  return files;
}

}  // namespace rocemu::command
