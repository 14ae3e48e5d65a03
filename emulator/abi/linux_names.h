// Names of Linux's errno values and signals. glibc has functions for them (strerrorname_np(),
// sigabbrev_np()), but musl does not.
#pragma once

#include <cerrno>
#include <csignal>

// clang-format off
#define ROCEMU_ERRNO_VALUES(V) \
  V(EPERM) V(ENOENT) V(ESRCH) V(EINTR) V(EIO) V(ENXIO) V(E2BIG) V(ENOEXEC) V(EBADF) V(ECHILD) \
  V(EAGAIN) V(ENOMEM) V(EACCES) V(EFAULT) V(ENOTBLK) V(EBUSY) V(EEXIST) V(EXDEV) V(ENODEV) \
  V(ENOTDIR) V(EISDIR) V(EINVAL) V(ENFILE) V(EMFILE) V(ENOTTY) V(ETXTBSY) V(EFBIG) V(ENOSPC) \
  V(ESPIPE) V(EROFS) V(EMLINK) V(EPIPE) V(EDOM) V(ERANGE) V(EDEADLK) V(ENAMETOOLONG) V(ENOLCK) \
  V(ENOSYS) V(ENOTEMPTY) V(ELOOP) V(ENOMSG) V(EIDRM) V(ECHRNG) V(EL2NSYNC) V(EL3HLT) V(EL3RST) \
  V(ELNRNG) V(EUNATCH) V(ENOCSI) V(EL2HLT) V(EBADE) V(EBADR) V(EXFULL) V(ENOANO) V(EBADRQC) \
  V(EBADSLT) V(EBFONT) V(ENOSTR) V(ENODATA) V(ETIME) V(ENOSR) V(ENONET) V(ENOPKG) V(EREMOTE) \
  V(ENOLINK) V(EADV) V(ESRMNT) V(ECOMM) V(EPROTO) V(EMULTIHOP) V(EDOTDOT) V(EBADMSG) \
  V(EOVERFLOW) V(ENOTUNIQ) V(EBADFD) V(EREMCHG) V(ELIBACC) V(ELIBBAD) V(ELIBSCN) V(ELIBMAX) \
  V(ELIBEXEC) V(EILSEQ) V(ERESTART) V(ESTRPIPE) V(EUSERS) V(ENOTSOCK) V(EDESTADDRREQ) \
  V(EMSGSIZE) V(EPROTOTYPE) V(ENOPROTOOPT) V(EPROTONOSUPPORT) V(ESOCKTNOSUPPORT) V(EOPNOTSUPP) \
  V(EPFNOSUPPORT) V(EAFNOSUPPORT) V(EADDRINUSE) V(EADDRNOTAVAIL) V(ENETDOWN) V(ENETUNREACH) \
  V(ENETRESET) V(ECONNABORTED) V(ECONNRESET) V(ENOBUFS) V(EISCONN) V(ENOTCONN) V(ESHUTDOWN) \
  V(ETOOMANYREFS) V(ETIMEDOUT) V(ECONNREFUSED) V(EHOSTDOWN) V(EHOSTUNREACH) V(EALREADY) \
  V(EINPROGRESS) V(ESTALE) V(EUCLEAN) V(ENOTNAM) V(ENAVAIL) V(EISNAM) V(EREMOTEIO) V(EDQUOT) \
  V(ENOMEDIUM) V(EMEDIUMTYPE) V(ECANCELED) V(ENOKEY) V(EKEYEXPIRED) V(EKEYREVOKED) \
  V(EKEYREJECTED) V(EOWNERDEAD) V(ENOTRECOVERABLE) V(ERFKILL) V(EHWPOISON)
#define ROCEMU_SIGNALS(V) \
  V(HUP) V(INT) V(QUIT) V(ILL) V(TRAP) V(ABRT) V(BUS) V(FPE) V(KILL) V(USR1) V(SEGV) V(USR2) \
  V(PIPE) V(ALRM) V(TERM) V(STKFLT) V(CHLD) V(CONT) V(STOP) V(TSTP) V(TTIN) V(TTOU) V(URG) \
  V(XCPU) V(XFSZ) V(VTALRM) V(PROF) V(WINCH) V(POLL) V(PWR) V(SYS)
// clang-format on

namespace rocemu::abi {

/// Returns the name of an errno value, such as "EPERM". Returns "0" for 0, and nullptr if no errno
/// value has this number.
constexpr const char* errno_name(int number) {
#define ROCEMU_CASE(name) \
  case name:              \
    return #name;
  switch (number) {
    ROCEMU_ERRNO_VALUES(ROCEMU_CASE)
    case 0:
      return "0";
    default:
      return nullptr;
  }
#undef ROCEMU_CASE
}

/// Returns the name of a signal without "SIG", such as "HUP". Returns nullptr if no signal or only
/// a real-time signal has this number.
constexpr const char* signal_name(int number) {
#define ROCEMU_CASE(name) \
  case SIG##name:         \
    return #name;
  switch (number) {
    ROCEMU_SIGNALS(ROCEMU_CASE)
    default:
      return nullptr;
  }
#undef ROCEMU_CASE
}

}  // namespace rocemu::abi
