#include "emulator/engine/adversarial/adversarial_class.h"

#include <algorithm>

namespace rocemu::engine::adversarial {
namespace {

constexpr ClassRow kClasses[] = {
    {Class::kPlacement, "placement", "IBTA vol 1, 9.5, o9-20; ibv_query_qp_data_in_order(3)",
     "the bytes of a message reach memory in any order, and late"},
    {Class::kLateRead, "late-read", "ibv_post_send(3)",
     "a message is read as late as its completion allows"},
    {Class::kUndefined, "undefined", "ibv_poll_cq(3), ibv_query_qp(3), errno(3); IBTA vol 1, 9.5",
     "undefined values are filled with a pattern"},
    {Class::kOrder, "order", "IBTA vol 1, 9.7.5.1.2, 10.8.5; ibv_get_cq_event(3)",
     "completions of different queues come in any order, and events come late"},
    {Class::kAtomicity, "atomicity", "ibv_query_device(3), IBV_ATOMIC_HCA; IBTA vol 1, 9.4.5",
     "remote atomics are not atomic toward the processor"},
    {Class::kRelaxed, "relaxed", "ibv_reg_mr(3), IBV_ACCESS_RELAXED_ORDERING",
     "WRITEs to regions with relaxed ordering overtake each other"},
};

constexpr bool is_in_order() {
  uint32_t next = 0;
  for (const ClassRow& row : kClasses) {
    if (static_cast<uint32_t>(row.value) != next++) return false;
  }
  return true;
}
static_assert(is_in_order());

}  // namespace

std::span<const ClassRow> classes() {
  return kClasses;
}

Classes Classes::all() {
  Classes set;
  for (const ClassRow& row : kClasses) set.add(row.value);
  return set;
}

bool add_class(std::string_view name, Classes& to) {
  const auto row = std::ranges::find(kClasses, name, &ClassRow::name);
  if (row == std::end(kClasses)) return false;
  to.add(row->value);
  return true;
}

std::string names_of(Classes set) {
  std::string names;
  for (const ClassRow& row : kClasses) {
    if (!set.has(row.value)) continue;
    if (!names.empty()) names += ", ";
    names += row.name;
  }
  return names;
}

}  // namespace rocemu::engine::adversarial
