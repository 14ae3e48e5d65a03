// Prints the stacks of all threads of a process by running another program. eu-stack of elfutils
// takes milliseconds for the names of functions, and a few more for lines. gdb takes a quarter of a
// second, also prints arguments, and can write a core.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rocemu {

enum class StackTool : uint8_t { kEuStackNames, kEuStack, kGdb };

/// Returns the name of the tool in `rocemu run --stacks-by`: "eu-stack-names", "eu-stack" or "gdb".
std::string_view word_for(StackTool tool);
std::optional<StackTool> stack_tool_called(std::string_view word);

/// The error message if neither eu-stack nor gdb is installed.
inline constexpr std::string_view kNoStackTool =
    "neither eu-stack (Debian's package elfutils) nor gdb is installed";

/// Returns whether the program of the tool is in $PATH.
bool is_installed(StackTool tool);
/// Returns the preferred tool if its program is installed, else a tool of the other program;
/// nothing if neither eu-stack nor gdb is installed.
std::optional<StackTool> find_stack_tool(StackTool preferred);

/// Returns the stacks as text: for each thread, a line with its number, and one or two lines for
/// each frame. Omits our frames above a crash. If the tool cannot print any thread, for example
/// because the process is already traced, returns the tool's message. If `core` is not empty, gdb
/// also writes a core of the process into that file.
std::string stacks_of(StackTool tool, pid_t process, const std::string& core = "");

/// Returns the names of the functions of each thread in a text of stacks_of(), innermost first: "f
/// < main". Omits our functions, and those with which the C library calls main(). The threads are
/// sorted by this text.
std::vector<std::string> functions_in(std::string_view stacks);

}  // namespace rocemu
