#include "emulator/os/programs/elf_file.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <fstream>
#include <iterator>

#include "emulator/os/unique_fd.h"

namespace rocemu {
namespace {

constexpr unsigned char kOwnClass = sizeof(void*) == 8 ? ELFCLASS64 : ELFCLASS32;
constexpr unsigned char kOwnData =
    std::endian::native == std::endian::little ? ELFDATA2LSB : ELFDATA2MSB;

// Limits that protect against invalid values in a damaged file.
constexpr uint64_t kMaxString = 4096;
constexpr uint64_t kMaxDynamicEntries = 4096;

template <typename T>
bool read_at(int fd, uint64_t offset, T& value) {
  return pread(fd, &value, sizeof value, static_cast<off_t>(offset)) ==
         static_cast<ssize_t>(sizeof value);
}

std::string read_string_at(int fd, uint64_t offset) {
  char buffer[kMaxString];
  const ssize_t count = pread(fd, buffer, sizeof buffer, static_cast<off_t>(offset));
  if (count <= 0) return "";
  return std::string(buffer, strnlen(buffer, static_cast<size_t>(count)));
}

/// Returns the file offset of the byte that is loaded at `address`; 0 if no segment contains the
/// address.
uint64_t file_offset(const std::vector<ElfW(Phdr)>& segments, uint64_t address) {
  for (const ElfW(Phdr) & segment : segments)
    if (segment.p_type == PT_LOAD && address >= segment.p_vaddr &&
        address - segment.p_vaddr < segment.p_filesz)
      return segment.p_offset + (address - segment.p_vaddr);
  return 0;
}

std::vector<std::string> read_needed(int fd, const std::vector<ElfW(Phdr)>& segments,
                                     const ElfW(Phdr) & dynamic) {
  std::vector<uint64_t> name_offsets;
  uint64_t string_table = 0;
  const uint64_t count =
      std::min<uint64_t>(dynamic.p_filesz / sizeof(ElfW(Dyn)), kMaxDynamicEntries);
  for (uint64_t i = 0; i < count; ++i) {
    ElfW(Dyn) entry;
    if (!read_at(fd, dynamic.p_offset + i * sizeof entry, entry) || entry.d_tag == DT_NULL) break;
    if (entry.d_tag == DT_NEEDED) name_offsets.push_back(entry.d_un.d_val);
    if (entry.d_tag == DT_STRTAB) string_table = file_offset(segments, entry.d_un.d_ptr);
  }
  std::vector<std::string> needed;
  if (string_table != 0)
    for (const uint64_t offset : name_offsets)
      needed.push_back(read_string_at(fd, string_table + offset));
  return needed;
}

/// Returns whether the first note of the segment is the one of the Go linker (elf(5), "Notes").
bool has_go_note(int fd, const ElfW(Phdr) & segment) {
  struct {
    ElfW(Nhdr) header;
    char name[4];
  } note{};
  return segment.p_filesz >= sizeof note && read_at(fd, segment.p_offset, note) &&
         note.header.n_namesz == sizeof note.name && std::memcmp(note.name, "Go\0", 4) == 0;
}

std::vector<ElfW(Phdr)> read_segments(int fd, const ElfW(Ehdr) & header) {
  std::vector<ElfW(Phdr)> segments;
  for (uint64_t i = 0; i < header.e_phnum; ++i) {
    ElfW(Phdr) segment;
    if (!read_at(fd, header.e_phoff + i * sizeof segment, segment)) break;
    segments.push_back(segment);
  }
  return segments;
}

std::string bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

std::optional<ElfFile> read_elf(const std::string& path) {
  const UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  ElfW(Ehdr) header;
  // The header fields that are used have the same offsets in 32-bit and 64-bit files.
  if (!file || !read_at(file.get(), 0, header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0)
    return std::nullopt;
  ElfFile elf;
  elf.architecture = static_cast<uint32_t>(header.e_machine) << 16 |
                     static_cast<uint32_t>(header.e_ident[EI_CLASS]) << 8 | header.e_ident[EI_DATA];
  if (header.e_ident[EI_CLASS] != kOwnClass || header.e_ident[EI_DATA] != kOwnData) return elf;

  const std::vector<ElfW(Phdr)> segments = read_segments(file.get(), header);
  for (const ElfW(Phdr) & segment : segments) {
    if (segment.p_type == PT_INTERP) elf.interpreter = read_string_at(file.get(), segment.p_offset);
    if (segment.p_type == PT_NOTE) elf.is_go = elf.is_go || has_go_note(file.get(), segment);
    if (segment.p_type == PT_DYNAMIC) elf.needed = read_needed(file.get(), segments, segment);
  }
  return elf;
}

std::string why_out_of_reach(const std::string& path, std::string_view name) {
  const std::optional<ElfFile> program = read_elf(path);
  if (!program) return "";
  if (program->is_go) return "is written in Go, and calls the kernel by itself";
  // The dynamic linker can be started as a program, and then loads another program.
  if (program->interpreter.empty() && !name.starts_with("ld-")) return "is statically linked";
  return "";
}

std::vector<std::string> executable_code_of(const std::string& path) {
  const std::string bytes = bytes_of(path);
  ElfW(Ehdr) header;
  if (!read_elf(path) || bytes.size() < sizeof header) return {};
  std::memcpy(&header, bytes.data(), sizeof header);
  if (header.e_ident[EI_CLASS] != kOwnClass || header.e_ident[EI_DATA] != kOwnData) return {};
  const UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::vector<std::string> code;
  for (const ElfW(Phdr) & segment : read_segments(file.get(), header)) {
    if (segment.p_type == PT_LOAD && (segment.p_flags & PF_X) != 0 &&
        segment.p_offset < bytes.size())
      code.push_back(bytes.substr(segment.p_offset, segment.p_filesz));
  }
  return code;
}

bool has_text(const std::string& path, std::string_view text) {
  return bytes_of(path).find(text) != std::string::npos;
}

int private_abi_of(const std::string& libibverbs_path) {
  constexpr std::string_view kPrefix = "IBVERBS_PRIVATE_";
  const std::string bytes = bytes_of(libibverbs_path);
  const size_t at = bytes.find(kPrefix);
  return at == std::string::npos ? 0 : std::atoi(bytes.c_str() + at + kPrefix.size());
}

}  // namespace rocemu
