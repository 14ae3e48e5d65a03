// Reads of an executable what decides whether our libraries can be loaded into it, and see what it
// does.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rocemu {

struct ElfFile {
  /// Machine, word size and byte order: files of equal `architecture` fit together.
  uint32_t architecture;
  /// The dynamic linker; empty for a static program (and for most libraries).
  std::string interpreter;
  /// It has the note by which the Go linker names what it built.
  bool is_go = false;
  /// Libraries that it names itself (DT_NEEDED).
  std::vector<std::string> needed;
};

/// Nothing if the file cannot be read or is not ELF. Of a file of another word size or byte order
/// than ours only `architecture` is filled in.
std::optional<ElfFile> read_elf(const std::string& path);

/// Why our libraries cannot be loaded into a program that is called `name`, or do not see what it
/// does, as "is statically linked"; empty if they can, or it is no ELF file.
std::string why_out_of_reach(const std::string& path, std::string_view name);

/// Its segments that can be executed; none if it is not for this architecture's word size and byte
/// order.
std::vector<std::string> executable_code_of(const std::string& path);

/// Whether the file has these bytes anywhere, as it has the name of a symbol that it exports or
/// wants.
bool has_text(const std::string& path, std::string_view text);

/// The NN of IBVERBS_PRIVATE_NN, which names the provider interface of this libibverbs; 0 if the
/// file has no such symbol version.
int private_abi_of(const std::string& libibverbs_path);

}  // namespace rocemu
