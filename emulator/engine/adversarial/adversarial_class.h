// The classes of `--adversarial`. Each class is a behavior that the specification leaves open, and
// for which rocemu makes the least convenient choice if the class is enabled. The table has one row
// for each class; options, recordings and documents are derived from it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace rocemu::engine::adversarial {

enum class Class : uint8_t { kPlacement, kLateRead, kUndefined, kOrder, kAtomicity, kRelaxed };

struct ClassRow {
  Class value;
  std::string_view name;
  std::string_view permitted_by;  // the clause or man page
  std::string_view summary;
};

/// Returns all rows, in the order of `Class`.
std::span<const ClassRow> classes();

/// A set of classes. FabricConfig and the header of a journal contain its bits.
class Classes {
 public:
  constexpr Classes() = default;
  constexpr explicit Classes(uint32_t bits) : bits_(bits) {}

  static Classes all();
  constexpr void add(Class one) { bits_ |= bit(one); }
  constexpr bool has(Class one) const { return (bits_ & bit(one)) != 0; }
  constexpr bool empty() const { return bits_ == 0; }
  constexpr uint32_t bits() const { return bits_; }

 private:
  static constexpr uint32_t bit(Class one) { return 1u << static_cast<uint32_t>(one); }
  uint32_t bits_ = 0;
};

/// Adds the class of that name to the set. Returns false if no class has the name.
bool add_class(std::string_view name, Classes& to);
/// Returns the names of the set's classes, separated by ", ".
std::string names_of(Classes set);

}  // namespace rocemu::engine::adversarial
