// How the application enters a verb: verb<post_send> is post_send with what all verbs have in
// common around it.
#pragma once

#include <infiniband/verbs.h>

#include <cerrno>
#include <type_traits>

#include "verbs_provider/base/context.h"
#include "verbs_provider/base/private_abi.h"
#include "verbs_provider/base/process.h"

namespace rocemu::provider {

/// In a child of fork(), of a context (or its object) that the child has from its parent. Works: a
/// question to the device, and what only concerns the child's own memory.
enum class InChild { kFails, kWorks };

inline ibv_context* context_of_object(ibv_context* context) {
  return context;
}
inline ibv_context* context_of_object(const VerbsMr* mr) {
  return mr->mr.context;
}
inline ibv_context* context_of_object(const ibv_qp_ex* qp) {
  return qp->qp_base.context;
}
template <class Object>
ibv_context* context_of_object(const Object* object) {
  return object->context;
}

template <auto kVerb, InChild kInChild>
struct Verb;

template <class Result, class Object, class... Rest, Result (*kVerb)(Object*, Rest...),
          InChild kInChild>
struct Verb<kVerb, kInChild> {
  static Result call(Object* object, Rest... rest) {
    if constexpr (kInChild == InChild::kFails) {
      if (!is_of_this_process(context_of_object(object))) [[unlikely]]
        return refuse();
    }
    if constexpr (std::is_same_v<Result, int>) {
      const int error = kVerb(object, rest...);
      // The man pages have verbs return "the value of errno", which is also that of errno, as of a
      // kernel's provider, whose system call failed.
      if (error != 0) errno = error;
      return error;
    } else {
      return kVerb(object, rest...);
    }
  }

 private:
  static Result refuse() {
    errno = EPERM;
    if constexpr (std::is_same_v<Result, int>) {
      return EPERM;
    } else if constexpr (!std::is_void_v<Result>) {
      return Result{};
    }
  }
};

/// A verb whose result is an error number sets errno to it. (One that returns a pointer does so by
/// itself.) In a child of fork() it fails with EPERM, before it touches anything.
template <auto kVerb, InChild kInChild = InChild::kFails>
inline constexpr auto* verb = Verb<kVerb, kInChild>::call;

}  // namespace rocemu::provider
