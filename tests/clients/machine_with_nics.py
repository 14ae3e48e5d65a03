"""Imitates a machine whose own RDMA devices do not work: `python3 machine_with_nics.py COMMAND...` runs COMMAND on
it. Like machines of CI services, it has a device mlx5_0 with an active port that cannot be opened, and a device
mana_0 without a usable port. /sys and /dev are those of this machine with these devices added, in a separate mount
namespace of the command.
"""
import ctypes
import os
import pathlib
import stat
import sys

MS_BIND, MS_REC = 4096, 16384
DEVICES = [
    # columns: name, PCI address, vendor, device, driver, state of the port
    ("mlx5_0", "0000:e1:00.0", "0x15b3", "0x101e", "mlx5_core", "4: ACTIVE"),
    ("mana_0", "7870:00:00.0", "0x1414", "0x00ba", "mana", "1: DOWN"),
]


def mount(source, target, kind=None, flags=0, data=None):
    words = [word if word is None else word.encode() for word in (source, target, kind)]
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(*words, ctypes.c_ulong(flags), data) != 0:
        raise OSError(ctypes.get_errno(), f"cannot mount {target}")


def bind(source, target):
    mount(source, target, flags=MS_BIND | MS_REC)


def cover(directory):
    """Mounts an empty file system over the directory. Returns a path by which the covered files can still be
    accessed."""
    kept = os.open(directory, os.O_PATH)
    mount("none", directory, "tmpfs", data=b"mode=755")
    return f"/proc/self/fd/{kept}"


def show(machine, target, into=()):
    """Fills the directory `target` with the contents of `machine`. The directories of `into` are copied, so that
    files can be added to them."""
    for entry in sorted(os.scandir(machine), key=lambda one: one.name):
        place = os.path.join(target, entry.name)
        if entry.is_symlink():
            os.symlink(os.readlink(entry.path), place)
        elif entry.is_dir():
            os.mkdir(place)
            deeper = [path[1:] for path in into if path[0] == entry.name]
            if deeper:
                show(entry.path, place, [path for path in deeper if path])
            else:
                bind(entry.path, place)
        else:
            pathlib.Path(place).touch()
            bind(entry.path, place)


def write(path, text):
    path = pathlib.Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text + "\n")


def link(path, target):
    path = pathlib.Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(os.path.relpath(target, path.parent))


def add_device(index, name, address, vendor, device, driver, state):
    function = f"/sys/devices/pci{address[:7]}/{address}"
    for attribute, value in {"vendor": vendor, "device": device, "class": "0x020000",
                             "modalias": f"pci:v0000{vendor[2:].upper()}d0000{device[2:].upper()}sv0sd0bc02sc00i00",
                             "uevent": f"DRIVER={driver}\nPCI_SLOT_NAME={address}"}.items():
        write(f"{function}/{attribute}", value)
    link(f"/sys/bus/pci/devices/{address}", function)
    rdma = f"{function}/infiniband/{name}"
    for attribute, value in {"node_type": "1: CA", "node_guid": "b8ce:f603:00aa:bb0" + str(index),
                             "sys_image_guid": "b8ce:f603:00aa:bb0" + str(index), "fw_ver": "22.31.1014",
                             "node_desc": name, "ports/1/state": state, "ports/1/link_layer": "Ethernet",
                             "ports/1/gids/0": "fe80:0000:0000:0000:bace:f6ff:fe00:000" + str(index),
                             "ports/1/gid_attrs/types/0": "RoCE v2"}.items():
        write(f"{rdma}/{attribute}", value)
    link(f"{rdma}/device", function)
    link(f"/sys/class/infiniband/{name}", rdma)
    verbs = f"{function}/infiniband_verbs/uverbs{index}"
    for attribute, value in {"ibdev": name, "dev": f"231:{192 + index}", "abi_version": "1"}.items():
        write(f"{verbs}/{attribute}", value)
    link(f"{verbs}/device", function)
    link(f"/sys/class/infiniband_verbs/uverbs{index}", verbs)
    interface = f"{function}/net/eth9{index}"
    write(f"{interface}/address", f"b8:ce:f6:00:00:0{index}")
    link(f"{interface}/device", function)
    link(f"/sys/class/net/eth9{index}", interface)


def add_node(path, major, minor):
    """Creates a device node. If this user may not create one, creates a file on which all verbs calls fail."""
    try:
        os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(major, minor))
    except PermissionError:
        pathlib.Path(path).touch()


def build():
    show(cover("/sys"), "/sys", [("devices",), ("class", "net"), ("bus", "pci", "devices")])
    machine = cover("/dev")
    for name in ("null", "zero", "full", "random", "urandom", "tty"):
        pathlib.Path("/dev", name).touch()
        bind(f"{machine}/{name}", f"/dev/{name}")
    for name in ("shm", "pts"):
        os.mkdir(f"/dev/{name}")
        bind(f"{machine}/{name}", f"/dev/{name}")
    os.symlink("/proc/self/fd", "/dev/fd")
    write("/sys/class/infiniband_verbs/abi_version", "6")
    os.makedirs("/dev/infiniband")
    os.mkdir("/dev/char")
    for index, (name, *identity) in enumerate(DEVICES):
        add_device(index, name, *identity)
        add_node(f"/dev/infiniband/uverbs{index}", 231, 192 + index)
        os.symlink(f"../infiniband/uverbs{index}", f"/dev/char/231:{192 + index}")
    add_node("/dev/infiniband/rdma_cm", 10, 58)


def main():
    if os.environ.get("MACHINE_WITH_NICS") is None:
        os.environ["MACHINE_WITH_NICS"] = "1"
        namespaces = ["--mount", *([] if os.geteuid() == 0 else ["--map-root-user"])]
        os.execvp("unshare", ["unshare", *namespaces, sys.executable, *sys.argv])
    build()
    os.execvp(sys.argv[1], sys.argv[1:])


if __name__ == "__main__":
    main()
