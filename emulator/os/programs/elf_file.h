// Reads the properties of an executable that decide whether our libraries can be loaded into it,
// and can observe it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rocemu {

struct ElfFile {
  /// Machine, word size and byte order: files with equal `architecture` are compatible.
  uint32_t architecture;
  /// The dynamic linker; empty for a static program (and for most libraries).
  std::string interpreter;
  /// If true, the file has the note by which the Go linker marks its output.
  bool is_go = false;
  /// The libraries in its dynamic section (DT_NEEDED).
  std::vector<std::string> needed;
};

/// Returns nothing if the file cannot be read or is not ELF. For another word size or byte order
/// than ours only `architecture` is set.
std::optional<ElfFile> read_elf(const std::string& path);

/// Returns why our libraries cannot be loaded into the program, which is called `name`, or cannot
/// observe it, for example "is statically linked"; empty if they can, or if it is not an ELF file.
std::string why_out_of_reach(const std::string& path, std::string_view name);

/// Returns its executable segments; none if it is not for this architecture's word size and byte
/// order.
std::vector<std::string> executable_code_of(const std::string& path);

/// Returns whether the file contains these bytes, such as the name of a symbol that it exports or
/// imports.
bool has_text(const std::string& path, std::string_view text);

/// Returns the NN of IBVERBS_PRIVATE_NN, the version of libibverbs' provider interface; 0 if the
/// file has no such symbol version.
int private_abi_of(const std::string& libibverbs_path);

}  // namespace rocemu
