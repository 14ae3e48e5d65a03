// Where a daemon and the programs that use it meet: names in the file system.
//
// Every daemon owns one runtime directory DIR (mode 0700, owned by its user):
//   DIR/dev/infiniband/uverbsN   listening SOCK_SEQPACKET socket of device N (see control.h)
//   DIR/dev/infiniband/rdma_cm   listening SOCK_SEQPACKET socket of the connection manager (ucma.h)
//   DIR/sys/...                  the sysfs tree that libibverbs, libibumad and tools read
//   DIR/sysfs                    listening SOCK_SEQPACKET socket: who connects gets an end of file
//                                when the counters in the tree are those of now
//   DIR/control                  listening SOCK_STREAM socket: JSON lines for `rocemu`
//   DIR/netlink                  listening SOCK_SEQPACKET socket: netlink messages as an RDMA
//                                netlink socket of the kernel takes and gives them
//   DIR/turns                    listening SOCK_SEQPACKET socket, on a virtual clock: turns.h
//   DIR/plugins                  a link to the directory of shim and provider, made by `rocemu run`
//   where
//                                that has a space or a colon in its name, which LD_PRELOAD cannot
//                                hold
// DIR is $ROCEMU_DIR if that is set; otherwise the shared daemon's BASE/shared. BASE is
// $XDG_RUNTIME_DIR/rocemu if that variable names a directory owned by the user, else
// /tmp/rocemu-UID. Private daemons of `rocemu run` live in BASE/run-PID-RANDOM, or, where BASE
// would be in /tmp, below /dev/shm/rocemu-UID if that can be used. BASE goes when the last daemon
// goes.
#pragma once

namespace rocemu::abi {

inline constexpr char kDirVariable[] = "ROCEMU_DIR";
/// Set by `rocemu run --host`: the only device that programs see, and the IPv4 address that they
/// connect from unless they choose one.
inline constexpr char kHostDeviceVariable[] = "ROCEMU_HOST_DEVICE";
inline constexpr char kHostAddressVariable[] = "ROCEMU_HOST_ADDRESS";
/// Set by `rocemu run --stacks`: the process that a program on a virtual clock tells of its crash,
/// by SIGURG with the thread's number, before it dies. The answer is a SIGCONT.
inline constexpr char kStacksVariable[] = "ROCEMU_STACKS";
/// Set by `rocemu run --keep-on-failure`: the directory that gets the recordings, or links to the
/// recordings, of runs inside this one, such as those of tests that have a NIC of their own.
inline constexpr char kKeepVariable[] = "ROCEMU_KEEP";
inline constexpr char kBaseInRuntimeDir[] = "rocemu";  // below $XDG_RUNTIME_DIR
inline constexpr char kBaseInTmp[] = "/tmp/rocemu-";   // followed by the uid
inline constexpr char kSharedMemoryDir[] = "/dev/shm";
inline constexpr char kBaseInSharedMemory[] = "/dev/shm/rocemu-";  // followed by the uid
inline constexpr char kSharedName[] = "shared";                    // below BASE
inline constexpr char kDeviceDir[] = "dev/infiniband";             // below DIR
/// In the directory of a device in sysfs that has another profile than `generic`: the profile's
/// name.
inline constexpr char kProfileFile[] = "rocemu_profile";
inline constexpr char kDevicePrefix[] = "uverbs";    // followed by the device's number
inline constexpr char kCmDevice[] = "rdma_cm";       // in kDeviceDir
inline constexpr char kSysDir[] = "sys";             // below DIR
inline constexpr char kControlSocket[] = "control";  // below DIR
inline constexpr char kNetlinkSocket[] = "netlink";  // below DIR
inline constexpr char kTurnsSocket[] = "turns";      // below DIR
inline constexpr char kSysfsSocket[] = "sysfs";      // below DIR
inline constexpr char kPluginLink[] = "plugins";     // below DIR

/// The PCI domain of our functions, which no machine has: firmware numbers domains from 0, and
/// VMD's begin at 0x10000.
inline constexpr char kPciDomain[] = "ace0";

/// How the daemon's end of each event socket (completion channels and async event files) is called
/// in the abstract namespace; its inode follows. By that a client knows its own end.
inline constexpr char kEventSocketPrefix[] = "rocemu/events/";

/// What fstat() on uverbsN must report: a character device of the kernel's InfiniBand major.
inline constexpr unsigned kDeviceMajor = 231;
inline constexpr unsigned kDeviceMinorBase = 192;  // plus N
/// And on rdma_cm: one of the misc major's dynamic minors.
inline constexpr unsigned kCmMajor = 10;
inline constexpr unsigned kCmMinor = 122;

}  // namespace rocemu::abi
