// Reads the properties of an executable that decide whether our libraries can be loaded into it and
// can observe it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rocemu {

struct ElfFile {
  /// The machine, the word size and the byte order. Files are compatible if these are equal.
  uint32_t architecture;
  /// The dynamic linker; empty for a static program (and for most libraries).
  std::string interpreter;
  /// If true, the file has the note by which the Go linker marks its output.
  bool is_go = false;
  /// The libraries that the dynamic section lists (DT_NEEDED).
  std::vector<std::string> needed;
};

/// Returns the properties of a file; nothing if it cannot be read or is not ELF. Only
/// `architecture` is set if the word size or the byte order differs from ours.
std::optional<ElfFile> read_elf(const std::string& path);

/// Returns the reason why our libraries cannot be loaded into the program, or cannot observe it,
/// such as "is statically linked". Returns an empty string if they can, or if the file is not ELF.
/// `name` is the name of the program.
std::string why_out_of_reach(const std::string& path, std::string_view name);

/// Returns the contents of the file's executable segments; nothing if its word size or byte order
/// differs from ours.
std::vector<std::string> executable_code_of(const std::string& path);

/// Returns whether the file contains the bytes of `text`, such as the name of a symbol that it
/// exports or imports.
bool has_text(const std::string& path, std::string_view text);

/// Returns the NN of the symbol version IBVERBS_PRIVATE_NN, which is the version of the provider
/// interface of libibverbs; 0 if the file has no such symbol version.
int private_abi_of(const std::string& libibverbs_path);

}  // namespace rocemu
