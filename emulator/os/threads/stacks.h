// The stacks of all threads of a process, as printed by another program: eu-stack of elfutils,
// which takes milliseconds for the names of functions and a few more for lines; or gdb, which takes
// a quarter of a second, prints arguments too, and can write a core.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rocemu {

enum class StackTool : uint8_t { kEuStackNames, kEuStack, kGdb };

/// Returns the names of `rocemu run --stacks-by`: "eu-stack-names", "eu-stack", "gdb".
std::string_view word_for(StackTool tool);
std::optional<StackTool> stack_tool_called(std::string_view word);

/// The package to install if there is neither.
inline constexpr std::string_view kNoStackTool =
    "neither eu-stack (Debian's package elfutils) nor gdb is installed";

/// Returns whether the program is in $PATH.
bool is_installed(StackTool tool);
/// Returns the preferred program, or else the other one; nothing if there is neither.
std::optional<StackTool> find_stack_tool(StackTool preferred);

/// Returns, for each thread, a line with its number, and one or two lines for each frame. Frames of
/// ours above a crash are omitted. If the tool can print no thread, for example because the process
/// is already traced, returns its message. `core`: gdb writes the process's core into that file,
/// unless it is empty.
std::string stacks_of(StackTool tool, pid_t process, const std::string& core = "");

/// Returns the names of the functions of each thread in such a text, innermost first: "f < main".
/// Omits our functions, and those by which the C library calls main(). In a fixed order.
std::vector<std::string> functions_in(std::string_view stacks);

}  // namespace rocemu
