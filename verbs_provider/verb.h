// How the application enters a verb: verb<post_send> is post_send with what all verbs have in
// common around it.
#pragma once

#include <cerrno>
#include <type_traits>

namespace rocemu::provider {

template <auto kVerb>
struct Verb;

template <class Result, class... Arguments, Result (*kVerb)(Arguments...)>
struct Verb<kVerb> {
  static Result call(Arguments... arguments) {
    if constexpr (std::is_same_v<Result, int>) {
      const int error = kVerb(arguments...);
      // The man pages have verbs return "the value of errno", which is also that of errno, as of a
      // kernel's provider, whose system call failed.
      if (error != 0) errno = error;
      return error;
    } else {
      return kVerb(arguments...);
    }
  }
};

/// A verb whose result is an error number sets errno to it. (One that returns a pointer does so by
/// itself.)
template <auto kVerb>
inline constexpr auto* verb = Verb<kVerb>::call;

}  // namespace rocemu::provider
