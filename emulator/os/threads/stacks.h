// The stacks of all threads of a process, as another program tells them: eu-stack of elfutils,
// which takes milliseconds for the names of functions, a few more for lines; or gdb, which takes a
// quarter of a second and tells arguments too, and can write a core.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rocemu {

enum class StackTool : uint8_t { kEuStackNames, kEuStack, kGdb };

/// As `rocemu run --stacks-by` has them: "eu-stack-names", "eu-stack", "gdb".
std::string_view word_for(StackTool tool);
std::optional<StackTool> stack_tool_called(std::string_view word);

/// What to install if there is neither.
inline constexpr std::string_view kNoStackTool =
    "neither eu-stack (Debian's package elfutils) nor gdb is installed";

/// True if it is in $PATH.
bool is_installed(StackTool tool);
/// The one that is preferred, or else the other program; nothing if there is neither.
std::optional<StackTool> find_stack_tool(StackTool preferred);

/// For each thread a line with its number, and one or two for each frame. Without frames of ours
/// above a crash. What the tool says if it can tell of no thread: it may be traced already, for
/// example. `core`: gdb writes the process's core into that file, unless it is empty.
std::string stacks_of(StackTool tool, pid_t process, const std::string& core = "");

/// The names of the functions of each thread in such a text, innermost first: "f < main". Without
/// ours, and without what the C library calls main() by. In a fixed order.
std::vector<std::string> functions_in(std::string_view stacks);

}  // namespace rocemu
