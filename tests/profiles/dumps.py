"""The published output of `ibv_devinfo -v` on machines with real NICs, as facts by the names of their lines. GUIDs
and addresses are left out. `profile` is the profile that was made from the output. `differs` has the lines for which
the profile follows another source, with that source's value and name."""

COMPLETE_RXE = {
    "transport": "InfiniBand (0)", "fw_ver": "0.0.0", "vendor_id": "0xffffff", "vendor_part_id": "0", "hw_ver": "0x0",
    "phys_port_cnt": "1", "max_mr_size": "0xffffffffffffffff", "page_size_cap": "0xfffff000", "max_qp": "1048560",
    "max_qp_wr": "1048576", "device_cap_flags": "0x01223c76", "max_sge": "32", "max_sge_rd": "32", "max_cq": "1048576",
    "max_cqe": "32767", "max_mr": "524287", "max_pd": "1048576", "max_qp_rd_atom": "128", "max_ee_rd_atom": "0",
    "max_res_rd_atom": "258048", "max_qp_init_rd_atom": "128", "max_ee_init_rd_atom": "0",
    "atomic_cap": "ATOMIC_HCA (1)", "max_ee": "0", "max_rdd": "0", "max_mw": "524287", "max_raw_ipv6_qp": "0",
    "max_raw_ethy_qp": "0", "max_mcast_grp": "8192", "max_mcast_qp_attach": "56",
    "max_total_mcast_qp_attach": "458752", "max_ah": "32767", "max_fmr": "0", "max_srq": "917503",
    "max_srq_wr": "1048576", "max_srq_sge": "27", "max_pkeys": "64", "local_ca_ack_delay": "15",
    "general_odp_caps": ["ODP_SUPPORT"],
    "rc_odp_caps": ["SUPPORT_SEND", "SUPPORT_RECV", "SUPPORT_WRITE", "SUPPORT_READ", "SUPPORT_ATOMIC", "SUPPORT_SRQ",
                    "Unknown flags: 0xC0"],
    "uc_odp_caps": ["NO SUPPORT"], "ud_odp_caps": ["SUPPORT_SEND", "SUPPORT_RECV", "SUPPORT_SRQ"],
    "xrc_odp_caps": ["NO SUPPORT"], "completion_timestamp_mask not supported": "", "core clock not supported": "",
    "device_cap_flags_ex": "0x1C001223C76", "state": "PORT_ACTIVE (4)", "max_mtu": "4096 (5)",
    "active_mtu": "1024 (3)", "sm_lid": "0", "port_lid": "0", "port_lmc": "0x00", "link_layer": "Ethernet",
    "max_msg_sz": "0x80000000", "port_cap_flags": "0x00010000", "max_vl_num": "1 (1)", "bad_pkey_cntr": "0x0",
    "qkey_viol_cntr": "0x0", "sm_sl": "0", "pkey_tbl_len": "1", "gid_tbl_len": "1024", "subnet_timeout": "0",
    "init_type_reply": "0", "active_width": "1X (1)", "active_speed": "2.5 Gbps (1)", "phys_state": "LINK_UP (5)",
    "GID types": ["RoCE v2", "RoCE v2"],
}

COMPLETE_CX6DX = {
    "transport": "InfiniBand (0)", "fw_ver": "22.36.1010", "vendor_id": "0x02c9", "vendor_part_id": "4125",
    "hw_ver": "0x0", "board_id": "MT_0000000359", "phys_port_cnt": "1", "max_mr_size": "0xffffffffffffffff",
    "page_size_cap": "0xfffffffffffff000", "max_qp": "131072", "max_qp_wr": "32768", "device_cap_flags": "0xed721c36",
    "max_sge": "30", "max_sge_rd": "30", "max_cq": "16777216", "max_cqe": "4194303", "max_mr": "16777216",
    "max_pd": "8388608", "max_qp_rd_atom": "16", "max_ee_rd_atom": "0", "max_res_rd_atom": "2097152",
    "max_qp_init_rd_atom": "16", "max_ee_init_rd_atom": "0", "atomic_cap": "ATOMIC_HCA (1)", "max_ee": "0",
    "max_rdd": "0", "max_mw": "16777216", "max_raw_ipv6_qp": "0", "max_raw_ethy_qp": "0", "max_mcast_grp": "2097152",
    "max_mcast_qp_attach": "240", "max_total_mcast_qp_attach": "503316480", "max_ah": "2147483647", "max_fmr": "0",
    "max_srq": "8388608", "max_srq_wr": "32767", "max_srq_sge": "31", "max_pkeys": "128", "local_ca_ack_delay": "16",
    "general_odp_caps": ["ODP_SUPPORT", "ODP_SUPPORT_IMPLICIT"],
    "rc_odp_caps": ["SUPPORT_SEND", "SUPPORT_RECV", "SUPPORT_WRITE", "SUPPORT_READ", "SUPPORT_SRQ"],
    "uc_odp_caps": ["NO SUPPORT"], "ud_odp_caps": ["SUPPORT_SEND"],
    "xrc_odp_caps": ["SUPPORT_SEND", "SUPPORT_WRITE", "SUPPORT_READ", "SUPPORT_SRQ"],
    "completion timestamp_mask": "0x7fffffffffffffff", "hca_core_clock": "1000000kHZ",
    "device_cap_flags_ex": "0x15ED721C36", "max_cq_count": "65535", "max_cq_period": "4095 us",
    "maximum available device memory": "131072Bytes", "state": "PORT_ACTIVE (4)", "max_mtu": "4096 (5)",
    "active_mtu": "1024 (3)", "sm_lid": "0", "port_lid": "0", "port_lmc": "0x00", "link_layer": "Ethernet",
    "max_msg_sz": "0x40000000", "port_cap_flags": "0x04010000", "max_vl_num": "invalid value (0)",
    "bad_pkey_cntr": "0x0", "qkey_viol_cntr": "0x0", "sm_sl": "0", "pkey_tbl_len": "1", "gid_tbl_len": "255",
    "subnet_timeout": "0", "init_type_reply": "0", "active_width": "4X (2)", "active_speed": "25.0 Gbps (32)",
    "phys_state": "LINK_UP (5)", "GID types": ["RoCE v1", "RoCE v2", "RoCE v1", "RoCE v2"],
}

MLX4 = {
    "transport": "InfiniBand (0)", "fw_ver": "2.33.5100", "vendor_id": "0x02c9", "vendor_part_id": "4099",
    "hw_ver": "0x0", "board_id": "MT_1080120023", "phys_port_cnt": "2", "max_mr_size": "0xffffffffffffffff",
    "page_size_cap": "0xfffffe00", "max_qp": "131000", "max_qp_wr": "16351", "device_cap_flags": "0x057e9c66",
    "max_sge": "32", "max_sge_rd": "30", "max_cq": "65408", "max_cqe": "4194303", "max_mr": "524032",
    "max_pd": "32764", "max_qp_rd_atom": "16", "max_ee_rd_atom": "0", "max_res_rd_atom": "2096000",
    "max_qp_init_rd_atom": "128", "max_ee_init_rd_atom": "0", "atomic_cap": "ATOMIC_HCA (1)", "max_ee": "0",
    "max_rdd": "0", "max_mw": "0", "max_raw_ipv6_qp": "0", "max_raw_ethy_qp": "0", "max_mcast_grp": "8192",
    "max_mcast_qp_attach": "248", "max_total_mcast_qp_attach": "2031616", "max_ah": "2147483647", "max_fmr": "0",
    "max_srq": "65472", "max_srq_wr": "16383", "max_srq_sge": "31", "max_pkeys": "128", "local_ca_ack_delay": "15",
    "rc_odp_caps": ["NO SUPPORT"], "uc_odp_caps": ["NO SUPPORT"], "ud_odp_caps": ["NO SUPPORT"],
}

MLX5_CX5 = {
    "transport": "InfiniBand (0)", "fw_ver": "16.23.1020", "vendor_id": "0x02c9", "vendor_part_id": "4119",
    "hw_ver": "0x0", "board_id": "MT_0000000008", "phys_port_cnt": "1", "max_mr_size": "0xffffffffffffffff",
    "page_size_cap": "0xfffffffffffff000", "max_qp": "262144", "max_qp_wr": "32768", "device_cap_flags": "0xe5721c36",
    "max_sge": "30", "max_sge_rd": "30", "max_cq": "16777216", "max_cqe": "4194303", "max_mr": "16777216",
    "max_pd": "16777216", "max_qp_rd_atom": "16", "max_ee_rd_atom": "0", "max_res_rd_atom": "4194304",
    "max_qp_init_rd_atom": "16", "max_ee_init_rd_atom": "0", "atomic_cap": "ATOMIC_HCA (1)",
}

IRDMA = {
    "transport": "InfiniBand (0)", "fw_ver": "1.74", "vendor_id": "0x8086", "vendor_part_id": "5522", "hw_ver": "0x2",
    "phys_port_cnt": "1", "max_mr_size": "0x200000000000", "page_size_cap": "0x40201000", "max_qp": "4092",
    "max_qp_wr": "8127", "device_cap_flags": "0x01221000", "max_sge": "6", "max_sge_rd": "6", "max_cq": "8189",
    "max_cqe": "1048574", "max_mr": "4194301", "max_pd": "262141", "max_qp_rd_atom": "8", "max_ee_rd_atom": "0",
    "max_res_rd_atom": "0", "max_qp_init_rd_atom": "8", "max_ee_init_rd_atom": "0", "atomic_cap": "ATOMIC_NONE (0)",
    "max_ee": "0", "max_rdd": "0", "max_mw": "0", "max_raw_ipv6_qp": "0", "max_raw_ethy_qp": "0",
    "max_mcast_grp": "4096", "max_mcast_qp_attach": "8", "max_total_mcast_qp_attach": "32768", "max_ah": "131072",
    "max_fmr": "0", "max_srq": "0", "max_pkeys": "1", "local_ca_ack_delay": "0", "rc_odp_caps": ["NO SUPPORT"],
    "uc_odp_caps": ["NO SUPPORT"], "ud_odp_caps": ["NO SUPPORT"], "xrc_odp_caps": ["NO SUPPORT"],
    "completion_timestamp_mask not supported": "", "core clock not supported": "", "device_cap_flags_ex": "0x1221000",
}

QEDR = {
    "transport": "InfiniBand (0)", "fw_ver": "8.37.7.0", "vendor_id": "0x1077", "vendor_part_id": "32880",
    "hw_ver": "0x0", "phys_port_cnt": "1", "max_mr_size": "0x10000000000", "page_size_cap": "0xfffff000",
    "max_qp": "8568", "max_qp_wr": "32767", "device_cap_flags": "0x00209080", "max_sge": "4", "max_sge_rd": "4",
    "max_cq": "17136", "max_cqe": "8388480", "max_mr": "131070", "max_pd": "65536", "max_qp_rd_atom": "32",
    "max_ee_rd_atom": "0", "max_res_rd_atom": "0", "max_qp_init_rd_atom": "32",
}

HNS = {
    "transport": "InfiniBand (0)", "fw_ver": "0.778.2068", "vendor_id": "0x19e5", "vendor_part_id": "41512",
    "hw_ver": "0x130", "phys_port_cnt": "1", "state": "PORT_ACTIVE (4)", "max_mtu": "4096 (5)",
    "active_mtu": "1024 (3)", "sm_lid": "0", "port_lid": "0", "port_lmc": "0x00", "link_layer": "Ethernet",
}

EFA = {
    "transport": "unspecified (4)", "fw_ver": "0.0.0.0", "vendor_id": "0x1d0f", "vendor_part_id": "61344",
    "hw_ver": "0xEFA0", "phys_port_cnt": "1",
}

ERDMA = {"fw_ver": "0.2.0", "state": "PORT_ACTIVE (4)", "link_layer": "Ethernet"}

THUNDERBOLT = {
    "vendor_id": "0x0000", "vendor_part_id": "0", "hw_ver": "0x0", "phys_port_cnt": "1", "max_mr_size": "0xfa0000",
    "max_mr": "100", "atomic_cap": "ATOMIC_NONE (0)", "max_mtu": "4096 (5)", "active_mtu": "4096 (5)", "sm_lid": "1",
    "port_lid": "1", "port_lmc": "0x00", "active_width": "8X (4)", "active_speed": "10.0 Gbps (4)",
}

# From the ibstat output in openucx/ucx#11048, only the values for which ibv_devinfo has a line.
BNXT_RE = {"transport": "InfiniBand (0)", "fw_ver": "231.0.154.0", "port_cap_flags": "0x001d0000", "sm_lid": "0",
           "port_lid": "0", "port_lmc": "0x00"}

DRIVER = "Linux 6.12.117, drivers/infiniband/hw/irdma"
DUMPS = [
    {"profile": "rxe", "source": "course notes R7, Capture the Device Attributes", "lines": COMPLETE_RXE,
     "complete": True, "differs": {}},
    {"profile": "mlx5-cx6dx", "source": "README of RDMA notes, ConnectX-6 Dx, host kernel of 2025-03",
     "lines": COMPLETE_CX6DX, "complete": True, "differs": {}},
    {"profile": "mlx5-cx5", "source": "https://github.com/open-mpi/ompi/issues/6137", "lines": MLX5_CX5,
     "differs": {"device_cap_flags": ("0xed721c36", "https://github.com/openucx/ucx/issues/9830, the same in RoCE")}},
    {"profile": "mlx4-cx3pro", "source": "https://github.com/claudebarthels/infinity/issues/5", "lines": MLX4,
     "differs": {"fw_ver": ("2.38.5000", "ibstat of a ConnectX-3 Pro"),
                 "vendor_part_id": ("4103", "the PCI device of the Pro"),
                 "board_id": (None, "not published for the Pro")}},
    {"profile": "irdma-e810", "source": "https://github.com/deepseek-ai/3FS/issues/192", "lines": IRDMA,
     "differs": {"max_qp_wr": ("4063", DRIVER), "max_sge": ("13", DRIVER), "max_sge_rd": ("13", DRIVER),
                 "max_qp_rd_atom": ("127", DRIVER), "max_qp_init_rd_atom": ("255", DRIVER),
                 "max_mw": ("4194301", DRIVER)}},
    {"profile": "qedr", "source": "https://github.com/openucx/ucx/issues/5148", "lines": QEDR, "differs": {}},
    {"profile": "hns-hip09", "source": "openeuler-mirror/WayCa, Kunpeng RoCE user guide", "lines": HNS, "differs": {}},
    {"profile": "efa", "source": "notes on UCX with EFA", "lines": EFA, "differs": {}},
    {"profile": "erdma", "source": "example of Ray on eRDMA", "lines": ERDMA, "differs": {}},
    {"profile": "thunderbolt", "source": "Apple TN3205 and fixtures of cluster tools", "lines": THUNDERBOLT,
     "differs": {}},
    {"profile": "bnxt-re", "source": "https://github.com/openucx/ucx/issues/11048", "lines": BNXT_RE, "differs": {}},
]

# Lines that some dumps lack, or that are about properties that rocemu does not emulate.
NOT_EMULATED = {
    "node_guid", "sys_image_guid", "hca_id", "raw packet caps", "tso_caps", "max_tso", "rss_caps",
    "max_rwq_indirection_tables", "max_rwq_indirection_table_size", "rx_hash_function", "rx_hash_fields_mask",
    "supported_qp", "max_wq_type_rq", "packet_pacing_caps", "qp_rate_limit_min", "qp_rate_limit_max",
    "tag matching not supported", "num_comp_vectors", "cq moderation caps", "port_cap_flags2", "port",
}

# The output of the ibv_devinfo of CentOS 7 for an older rxe: it has no second tab after max_tso, and no types of GIDs.
OLD_RXE = """hca_id:	rxe0
	transport:			InfiniBand (0)
	fw_ver:				0.0.0
	vendor_id:			0x0000
	vendor_part_id:			0
	hw_ver:				0x0
	phys_port_cnt:			1
	max_mr_size:			0xffffffffffffffff
	page_size_cap:			0xfffff000
	max_qp:				65536
	max_qp_wr:			16384
	device_cap_flags:		0x00203c76
					BAD_PKEY_CNTR
					SRQ_RESIZE
	max_sge:			32
	max_cq:				16384
	max_mr:				2048
	general_odp_caps:
	rc_odp_caps:
					NO SUPPORT
	completion_timestamp_mask not supported
	core clock not supported
	tso_caps:
	max_tso:			0
		port:	1
			state:			PORT_ACTIVE (4)
			max_mtu:		4096 (5)
			active_mtu:		1024 (3)
			max_msg_sz:		0x800000
			port_cap_flags:		0x00890000
			max_vl_num:		1 (1)
			pkey_tbl_len:		64
			gid_tbl_len:		1024
			active_width:		1X (1)
			active_speed:		2.5 Gbps (1)
			GID[  0]:		fe80:0000:0000:0000:0000:0000:0000:0001
"""


def as_dump(name, lines):
    """Returns these lines as ibv_devinfo would print them."""
    text = f"hca_id:\t{name}\n"
    for key, value in lines.items():
        if key == "GID types":
            text += "".join(f"\t\t\tGID[{i:3}]:\t\t::, {kind}\n" for i, kind in enumerate(value))
        elif isinstance(value, list):
            text += f"\t{key}:\n" + "".join(f"\t\t\t\t\t{one}\n" for one in value)
        elif value == "":
            text += f"\t{key}\n"
        else:
            text += f"\t{key}:\t\t{value}\n"
    return text


def parse_dump(text):
    """Returns the first device and port in the output of `ibv_devinfo -v`, in the form of `lines`."""
    lines, last, gids = {}, None, []
    for line in text.splitlines():
        stripped = line.strip()
        if stripped.startswith("hca_id:") and "hca_id" in lines:
            break
        if stripped.startswith("GID["):
            gids.append(stripped.rpartition(", ")[2])
        elif ":" not in stripped or stripped.startswith("Unknown flags"):
            if line.startswith("\t\t") and last is not None:
                if isinstance(lines[last], list):
                    lines[last].append(stripped)
            elif stripped:
                lines[stripped] = ""
        else:
            key, _, value = stripped.partition(":")
            if key == "port" and "port" in lines:
                break
            last = key
            value = value.strip()
            lines[key] = value if value else []
    if gids:
        lines["GID types"] = gids
    return lines
