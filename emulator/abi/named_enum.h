// Enumerations whose values have names. One list contains each value once. The enumeration, the
// names in events and scenarios, and the provider's check that the numbers are those of libibverbs
// are all generated from this list:
//
//   #define ROCEMU_QP_TYPES(V) V(kRc, RC, 2) V(kUc, UC, 3)
//   ROCEMU_NAMED_ENUM(QpType, ROCEMU_QP_TYPES);
//
// defines `enum class QpType { kRc = 2, kUc = 3 }` and kQpTypeNames, {"RC", QpType::kRc} and so on.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

namespace rocemu::abi {

template <class Value>
struct Named {
  std::string_view name;
  Value value;
};

/// Returns the name of the value, or "unknown" if the value has no name.
template <class Value>
constexpr std::string_view name_of(Value value) {
  for (const auto& one : names_of(value)) {
    if (one.value == value) return one.name;
  }
  return "unknown";
}

}  // namespace rocemu::abi

#define ROCEMU_ENUMERATOR(enumerator, name, number) enumerator = (number),
#define ROCEMU_NAMED_VALUE(enumerator, name, number) {#name, enumerator},

#define ROCEMU_NAMED_ENUM(Enum, VALUES)                                             \
  enum class Enum : uint32_t { VALUES(ROCEMU_ENUMERATOR) };                         \
  inline constexpr auto k##Enum##Names = [] {                                       \
    using enum Enum;                                                                \
    return std::to_array<::rocemu::abi::Named<Enum>>({VALUES(ROCEMU_NAMED_VALUE)}); \
  }();                                                                              \
  constexpr std::span<const ::rocemu::abi::Named<Enum>> names_of(Enum) {            \
    return k##Enum##Names;                                                          \
  }                                                                                 \
  static_assert(true)  // requires the semicolon
