// The entry of the application into a verb: verb<post_send> is post_send with the steps that all
// verbs have in common.
#pragma once

#include <infiniband/verbs.h>

#include <cerrno>
#include <type_traits>

#include "verbs_provider/base/private_abi.h"
#include "verbs_provider/base/process.h"
#include "verbs_provider/base/recorded_verbs.h"
#include "verbs_provider/base/undefined_values.h"
#include "verbs_provider/context/context.h"
#include "verbs_provider/context/sanitizer_hooks.h"
#include "verbs_provider/hooks/provider_calls.h"

namespace rocemu::provider {

/// The behavior of a verb in a child of fork(), with a context of the parent or an object in it. A
/// verb works there if it only queries the device, or concerns only the child's own memory.
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

/// Returns the handle that requests about the object contain, or 0 if the object has none.
template <class Object>
uint32_t handle_of_object(const Object* object) {
  if constexpr (std::is_same_v<Object, VerbsMr>) {
    return object->mr.handle;
  } else if constexpr (requires { object->handle; }) {
    return object->handle;
  } else {
    return 0;
  }
}

template <auto kVerb, InChild kInChild, VerbName kName>
struct Verb;

template <class Result, class Object, class... Rest, Result (*kVerb)(Object*, Rest...),
          InChild kInChild, VerbName kName>
struct Verb<kVerb, kInChild, kName> {
  static constexpr auto kPublicName = public_name(kName);

  static Result call(Object* object, Rest... rest) {
    if constexpr (kInChild == InChild::kFails) {
      if (!is_of_this_process(context_of_object(object))) [[unlikely]]
        return refuse_in_child();
    }
    if constexpr (kName.text[0] != 0) turns::before_call(kPublicName.text);
    if constexpr (std::is_void_v<Result>) {
      kVerb(object, rest...);
      if constexpr (kName.text[0] != 0) turns::after_call(kPublicName.text);
    } else {
      if constexpr (is_recorded(kName.text)) forget_answer();
      const Result result = with_errno(kVerb(object, rest...), object);
      if constexpr (kName.text[0] != 0) turns::after_call(kPublicName.text);
      return result;
    }
  }

 private:
  /// Sets errno to the result of a failed verb, as with a kernel's provider after a failed system
  /// call: the man pages say that verbs return "the value of errno". After success, errno(3) leaves
  /// errno undefined.
  template <class Any>
  static Any with_errno(Any result, Object* object) {
    if constexpr (std::is_same_v<Any, int>) {
      if (result != 0) {
        result = recorded(result, object);
        const bool is_usable = sanitizer() == nullptr && !fills_undefined();
        errno = is_usable ? result : kUnusableErrno;
        return result;
      }
    } else if (result == Any{}) {
      errno = recorded(errno, object);
      return result;
    }
    // Posts and requests for notification do not change errno: rsockets post between a failure and
    // the return of its errno.
    if constexpr (is_recorded(kName.text)) {
      if (fills_undefined()) [[unlikely]]
        errno = kUnusableErrno;
    }
    return result;
  }

  /// Records the refusal of a verb that has failed with `error`, and returns the error that the
  /// program gets. `object` must still exist.
  static int recorded(int error, Object* object) {
    if constexpr (is_recorded(kName.text)) {
      const abi::Op op = recorded_operation(kName.text);
      const uint32_t handle = abi::begins_with_object(op) ? handle_of_object(object) : 0;
      return recorded_refusal(context_of_object(object), op, error, handle);
    } else {
      return error;
    }
  }

  static Result refuse_in_child() {
    errno = EPERM;
    if constexpr (std::is_same_v<Result, int>) {
      return EPERM;
    } else if constexpr (!std::is_void_v<Result>) {
      return Result{};
    }
  }
};

/// The function that libibverbs calls for the verb. If the verb returns an error number, the
/// function sets errno to it. (A verb that returns a pointer does so by itself.) In a child of
/// fork() the function fails with EPERM, before it accesses anything. Refusals are recorded under
/// the verb's name, if it has one.
template <auto kVerb, InChild kInChild = InChild::kFails, VerbName kName = "">
inline constexpr auto* verb = Verb<kVerb, kInChild, kName>::call;

}  // namespace rocemu::provider
