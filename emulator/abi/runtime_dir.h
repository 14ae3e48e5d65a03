// The names in the file system by which a daemon and the programs that use it find each other.
//
// Every daemon owns one runtime directory DIR (mode 0700, owned by its user):
//   DIR/dev/infiniband/uverbsN   listening SOCK_SEQPACKET socket of device N (see control.h)
//   DIR/dev/infiniband/rdma_cm   listening SOCK_SEQPACKET socket of the connection manager (ucma.h)
//   DIR/sys/...                  the sysfs tree that libibverbs, libibumad and tools read
//   DIR/sysfs                    listening SOCK_SEQPACKET socket: a program that connects reads an
//                                end of file as soon as the counters in the tree are up to date
//   DIR/control                  listening SOCK_STREAM socket: JSON lines for `rocemu`
//   DIR/netlink                  listening SOCK_SEQPACKET socket: the netlink messages that an RDMA
//                                netlink socket of the kernel receives and sends
//   DIR/turns                    listening SOCK_SEQPACKET socket, only on a virtual clock: see
//                                turn_table.h
//   DIR/plugins                  a link to the directory of the shim and the provider. `rocemu run`
//                                makes it if that directory has a space or a colon in its name,
//                                because LD_PRELOAD cannot contain these.
//
// DIR is $ROCEMU_DIR if that is set; otherwise it is BASE/shared, the directory of the shared
// daemon. BASE is $XDG_RUNTIME_DIR/rocemu if that variable names a directory owned by the user;
// otherwise it is /tmp/rocemu-UID. Private daemons of `rocemu run` have the directory
// BASE/run-PID-RANDOM. If BASE would be in /tmp, they use a directory below /dev/shm/rocemu-UID
// instead, if that is possible. The last daemon that ends removes BASE.
#pragma once

namespace rocemu::abi {

inline constexpr char kDirVariable[] = "ROCEMU_DIR";
/// The environment variables of `rocemu run --host`. They contain the only device that programs
/// see, and the IPv4 address from which programs connect unless they choose another one.
inline constexpr char kHostDeviceVariable[] = "ROCEMU_HOST_DEVICE";
inline constexpr char kHostAddressVariable[] = "ROCEMU_HOST_ADDRESS";
/// The environment variable of `rocemu run --stacks`. It contains the ID of the process that prints
/// the stacks. Before a program on a virtual clock dies of a crash, it sends SIGURG with the number
/// of the crashed thread to that process, and waits for SIGCONT.
inline constexpr char kStacksVariable[] = "ROCEMU_STACKS";
/// The environment variable of `rocemu run --keep-on-failure`. It contains the directory for the
/// recordings of runs inside this one, for example by tests that start their own NIC, or for links
/// to these recordings.
inline constexpr char kKeepVariable[] = "ROCEMU_KEEP";
inline constexpr char kBaseInRuntimeDir[] = "rocemu";  // below $XDG_RUNTIME_DIR
inline constexpr char kBaseInTmp[] = "/tmp/rocemu-";   // followed by the uid
inline constexpr char kSharedMemoryDir[] = "/dev/shm";
inline constexpr char kBaseInSharedMemory[] = "/dev/shm/rocemu-";  // followed by the uid
inline constexpr char kSharedName[] = "shared";                    // below BASE
inline constexpr char kDeviceDir[] = "dev/infiniband";             // below DIR
/// The file that contains the profile's name, in the sysfs directory of a device whose profile is
/// not `generic`.
inline constexpr char kProfileFile[] = "rocemu_profile";
inline constexpr char kDevicePrefix[] = "uverbs";    // followed by the device's number
inline constexpr char kCmDevice[] = "rdma_cm";       // in kDeviceDir
inline constexpr char kSysDir[] = "sys";             // below DIR
inline constexpr char kControlSocket[] = "control";  // below DIR
inline constexpr char kNetlinkSocket[] = "netlink";  // below DIR
inline constexpr char kTurnsSocket[] = "turns";      // below DIR
inline constexpr char kSysfsSocket[] = "sysfs";      // below DIR
inline constexpr char kPluginLink[] = "plugins";     // below DIR

/// The PCI domain of the emulated PCI functions. No machine has this domain: firmware numbers
/// domains from 0, and those of Intel VMD begin at 0x10000.
inline constexpr char kPciDomain[] = "ace0";

/// The prefix of the names, in the abstract namespace, of the daemon's ends of event sockets
/// (completion channels and async event files). The number of the socket's inode follows. A client
/// recognizes an event socket by the name of the peer.
inline constexpr char kEventSocketPrefix[] = "rocemu/events/";

/// The device numbers that fstat() on uverbsN must report: a character device of the kernel's
/// InfiniBand major.
inline constexpr unsigned kDeviceMajor = 231;
inline constexpr unsigned kDeviceMinorBase = 192;  // plus N
/// The device numbers of /dev/infiniband/rdma_cm: the major of misc devices, and one of its dynamic
/// minors.
inline constexpr unsigned kCmMajor = 10;
inline constexpr unsigned kCmMinor = 122;

}  // namespace rocemu::abi
