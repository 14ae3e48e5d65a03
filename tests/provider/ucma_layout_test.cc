// Tests that the layouts in abi/ucma.h are those of the kernel.
#include <gtest/gtest.h>
#include <rdma/rdma_user_cm.h>

#include "emulator/abi/ucma.h"

namespace rocemu::abi::ucma {
namespace {

#define SAME_SIZE(ours, theirs) static_assert(sizeof(ours) == sizeof(theirs))
#define SAME_FIELD(ours, our_field, theirs, their_field)                      \
  static_assert(offsetof(ours, our_field) == offsetof(theirs, their_field) && \
                sizeof(ours::our_field) == sizeof(theirs::their_field))

SAME_SIZE(CreateId, rdma_ucm_create_id);
SAME_FIELD(CreateId, uid, rdma_ucm_create_id, uid);
SAME_FIELD(CreateId, response, rdma_ucm_create_id, response);
SAME_FIELD(CreateId, port_space, rdma_ucm_create_id, ps);
SAME_FIELD(CreateId, qp_type, rdma_ucm_create_id, qp_type);
SAME_SIZE(CreateIdResponse, rdma_ucm_create_id_resp);
SAME_SIZE(DestroyId, rdma_ucm_destroy_id);
SAME_FIELD(DestroyId, response, rdma_ucm_destroy_id, response);
SAME_FIELD(DestroyId, id, rdma_ucm_destroy_id, id);
SAME_SIZE(EventsReported, rdma_ucm_destroy_id_resp);
SAME_SIZE(EventsReported, rdma_ucm_migrate_resp);
SAME_SIZE(BindIp, rdma_ucm_bind_ip);
SAME_FIELD(BindIp, address, rdma_ucm_bind_ip, addr);
SAME_FIELD(BindIp, id, rdma_ucm_bind_ip, id);
SAME_SIZE(Bind, rdma_ucm_bind);
SAME_FIELD(Bind, id, rdma_ucm_bind, id);
SAME_FIELD(Bind, address_size, rdma_ucm_bind, addr_size);
SAME_FIELD(Bind, address, rdma_ucm_bind, addr);
SAME_SIZE(ResolveIp, rdma_ucm_resolve_ip);
SAME_FIELD(ResolveIp, source, rdma_ucm_resolve_ip, src_addr);
SAME_FIELD(ResolveIp, destination, rdma_ucm_resolve_ip, dst_addr);
SAME_FIELD(ResolveIp, id, rdma_ucm_resolve_ip, id);
SAME_FIELD(ResolveIp, timeout_ms, rdma_ucm_resolve_ip, timeout_ms);
SAME_SIZE(ResolveAddr, rdma_ucm_resolve_addr);
SAME_FIELD(ResolveAddr, id, rdma_ucm_resolve_addr, id);
SAME_FIELD(ResolveAddr, timeout_ms, rdma_ucm_resolve_addr, timeout_ms);
SAME_FIELD(ResolveAddr, source_size, rdma_ucm_resolve_addr, src_size);
SAME_FIELD(ResolveAddr, destination_size, rdma_ucm_resolve_addr, dst_size);
SAME_FIELD(ResolveAddr, source, rdma_ucm_resolve_addr, src_addr);
SAME_FIELD(ResolveAddr, destination, rdma_ucm_resolve_addr, dst_addr);
SAME_SIZE(ResolveRoute, rdma_ucm_resolve_route);
SAME_FIELD(ResolveRoute, timeout_ms, rdma_ucm_resolve_route, timeout_ms);
SAME_SIZE(Query, rdma_ucm_query);
SAME_FIELD(Query, id, rdma_ucm_query, id);
SAME_FIELD(Query, kind, rdma_ucm_query, option);
SAME_SIZE(UserPathRecord, ib_user_path_rec);
SAME_FIELD(UserPathRecord, sgid, ib_user_path_rec, sgid);
SAME_FIELD(UserPathRecord, flow_label, ib_user_path_rec, flow_label);
SAME_FIELD(UserPathRecord, reversible, ib_user_path_rec, reversible);
SAME_FIELD(UserPathRecord, mtu, ib_user_path_rec, mtu);
SAME_FIELD(UserPathRecord, pkey, ib_user_path_rec, pkey);
SAME_FIELD(UserPathRecord, hop_limit, ib_user_path_rec, hop_limit);
SAME_FIELD(UserPathRecord, rate, ib_user_path_rec, rate);
SAME_FIELD(UserPathRecord, packet_life_time, ib_user_path_rec, packet_life_time);
SAME_SIZE(QueryRouteResponse, rdma_ucm_query_route_resp);
SAME_FIELD(QueryRouteResponse, paths, rdma_ucm_query_route_resp, ib_route);
SAME_FIELD(QueryRouteResponse, source, rdma_ucm_query_route_resp, src_addr);
SAME_FIELD(QueryRouteResponse, destination, rdma_ucm_query_route_resp, dst_addr);
SAME_FIELD(QueryRouteResponse, num_paths, rdma_ucm_query_route_resp, num_paths);
SAME_FIELD(QueryRouteResponse, port, rdma_ucm_query_route_resp, port_num);
SAME_FIELD(QueryRouteResponse, ibdev_index, rdma_ucm_query_route_resp, ibdev_index);
SAME_SIZE(QueryAddrResponse, rdma_ucm_query_addr_resp);
SAME_FIELD(QueryAddrResponse, port, rdma_ucm_query_addr_resp, port_num);
SAME_FIELD(QueryAddrResponse, pkey, rdma_ucm_query_addr_resp, pkey);
SAME_FIELD(QueryAddrResponse, source_size, rdma_ucm_query_addr_resp, src_size);
SAME_FIELD(QueryAddrResponse, destination_size, rdma_ucm_query_addr_resp, dst_size);
SAME_FIELD(QueryAddrResponse, source, rdma_ucm_query_addr_resp, src_addr);
SAME_FIELD(QueryAddrResponse, destination, rdma_ucm_query_addr_resp, dst_addr);
SAME_FIELD(QueryAddrResponse, ibdev_index, rdma_ucm_query_addr_resp, ibdev_index);
SAME_SIZE(PathData, ib_path_rec_data);
SAME_FIELD(PathData, flags, ib_path_rec_data, flags);
SAME_FIELD(PathData, record, ib_path_rec_data, path_rec);
SAME_FIELD(QueryPathResponse, num_paths, rdma_ucm_query_path_resp, num_paths);
static_assert(offsetof(QueryPathResponse, paths) == offsetof(rdma_ucm_query_path_resp, path_data));
SAME_SIZE(ConnParam, rdma_ucm_conn_param);
SAME_FIELD(ConnParam, qkey, rdma_ucm_conn_param, qkey);
SAME_FIELD(ConnParam, private_data, rdma_ucm_conn_param, private_data);
SAME_FIELD(ConnParam, private_data_len, rdma_ucm_conn_param, private_data_len);
SAME_FIELD(ConnParam, srq, rdma_ucm_conn_param, srq);
SAME_FIELD(ConnParam, responder_resources, rdma_ucm_conn_param, responder_resources);
SAME_FIELD(ConnParam, initiator_depth, rdma_ucm_conn_param, initiator_depth);
SAME_FIELD(ConnParam, flow_control, rdma_ucm_conn_param, flow_control);
SAME_FIELD(ConnParam, retry_count, rdma_ucm_conn_param, retry_count);
SAME_FIELD(ConnParam, rnr_retry_count, rdma_ucm_conn_param, rnr_retry_count);
SAME_FIELD(ConnParam, valid, rdma_ucm_conn_param, valid);
SAME_SIZE(AhAttr, ib_uverbs_ah_attr);
SAME_FIELD(AhAttr, dlid, ib_uverbs_ah_attr, dlid);
SAME_FIELD(AhAttr, is_global, ib_uverbs_ah_attr, is_global);
SAME_FIELD(AhAttr, port_num, ib_uverbs_ah_attr, port_num);
static_assert(offsetof(AhAttr, sgid_index) == offsetof(ib_uverbs_global_route, sgid_index));
static_assert(offsetof(AhAttr, traffic_class) == offsetof(ib_uverbs_global_route, traffic_class));
SAME_SIZE(UdParam, rdma_ucm_ud_param);
SAME_FIELD(UdParam, ah_attr, rdma_ucm_ud_param, ah_attr);
SAME_FIELD(UdParam, private_data, rdma_ucm_ud_param, private_data);
SAME_FIELD(UdParam, private_data_len, rdma_ucm_ud_param, private_data_len);
SAME_SIZE(Connect, rdma_ucm_connect);
SAME_FIELD(Connect, id, rdma_ucm_connect, id);
SAME_FIELD(Connect, ece, rdma_ucm_connect, ece);
SAME_SIZE(Listen, rdma_ucm_listen);
SAME_FIELD(Listen, backlog, rdma_ucm_listen, backlog);
SAME_SIZE(Accept, rdma_ucm_accept);
SAME_FIELD(Accept, param, rdma_ucm_accept, conn_param);
SAME_FIELD(Accept, id, rdma_ucm_accept, id);
SAME_FIELD(Accept, ece, rdma_ucm_accept, ece);
SAME_SIZE(Reject, rdma_ucm_reject);
SAME_FIELD(Reject, private_data_len, rdma_ucm_reject, private_data_len);
SAME_FIELD(Reject, reason, rdma_ucm_reject, reason);
SAME_FIELD(Reject, private_data, rdma_ucm_reject, private_data);
SAME_SIZE(Disconnect, rdma_ucm_disconnect);
SAME_SIZE(InitQpAttr, rdma_ucm_init_qp_attr);
SAME_FIELD(InitQpAttr, qp_state, rdma_ucm_init_qp_attr, qp_state);
SAME_SIZE(QpAttrResponse, ib_uverbs_qp_attr);
SAME_FIELD(QpAttrResponse, qp_access_flags, ib_uverbs_qp_attr, qp_access_flags);
SAME_FIELD(QpAttrResponse, ah_attr, ib_uverbs_qp_attr, ah_attr);
SAME_FIELD(QpAttrResponse, max_inline_data, ib_uverbs_qp_attr, max_inline_data);
SAME_FIELD(QpAttrResponse, pkey_index, ib_uverbs_qp_attr, pkey_index);
SAME_FIELD(QpAttrResponse, max_rd_atomic, ib_uverbs_qp_attr, max_rd_atomic);
SAME_FIELD(QpAttrResponse, min_rnr_timer, ib_uverbs_qp_attr, min_rnr_timer);
SAME_FIELD(QpAttrResponse, port_num, ib_uverbs_qp_attr, port_num);
SAME_FIELD(QpAttrResponse, timeout, ib_uverbs_qp_attr, timeout);
SAME_FIELD(QpAttrResponse, rnr_retry, ib_uverbs_qp_attr, rnr_retry);
SAME_SIZE(Notify, rdma_ucm_notify);
SAME_SIZE(JoinIpMcast, rdma_ucm_join_ip_mcast);
SAME_FIELD(JoinIpMcast, uid, rdma_ucm_join_ip_mcast, uid);
SAME_FIELD(JoinIpMcast, address, rdma_ucm_join_ip_mcast, addr);
SAME_FIELD(JoinIpMcast, id, rdma_ucm_join_ip_mcast, id);
SAME_SIZE(JoinMcast, rdma_ucm_join_mcast);
SAME_FIELD(JoinMcast, id, rdma_ucm_join_mcast, id);
SAME_FIELD(JoinMcast, address_size, rdma_ucm_join_mcast, addr_size);
SAME_FIELD(JoinMcast, flags, rdma_ucm_join_mcast, join_flags);
SAME_FIELD(JoinMcast, address, rdma_ucm_join_mcast, addr);
SAME_SIZE(GetEvent, rdma_ucm_get_event);
SAME_SIZE(EventResponse, rdma_ucm_event_resp);
SAME_FIELD(EventResponse, id, rdma_ucm_event_resp, id);
SAME_FIELD(EventResponse, event, rdma_ucm_event_resp, event);
SAME_FIELD(EventResponse, status, rdma_ucm_event_resp, status);
SAME_FIELD(EventResponse, param, rdma_ucm_event_resp, param);
SAME_FIELD(EventResponse, reserved, rdma_ucm_event_resp, reserved);
SAME_FIELD(EventResponse, ece, rdma_ucm_event_resp, ece);
SAME_SIZE(SetOption, rdma_ucm_set_option);
SAME_FIELD(SetOption, id, rdma_ucm_set_option, id);
SAME_FIELD(SetOption, level, rdma_ucm_set_option, level);
SAME_FIELD(SetOption, name, rdma_ucm_set_option, optname);
SAME_FIELD(SetOption, length, rdma_ucm_set_option, optlen);
SAME_SIZE(MigrateId, rdma_ucm_migrate_id);
SAME_FIELD(MigrateId, id, rdma_ucm_migrate_id, id);
SAME_FIELD(MigrateId, fd, rdma_ucm_migrate_id, fd);

TEST(UcmaLayout, CommandsHaveTheKernelsNumbers) {
  EXPECT_EQ(static_cast<uint32_t>(Command::kCreateId), uint32_t{RDMA_USER_CM_CMD_CREATE_ID});
  EXPECT_EQ(static_cast<uint32_t>(Command::kQueryRoute), uint32_t{RDMA_USER_CM_CMD_QUERY_ROUTE});
  EXPECT_EQ(static_cast<uint32_t>(Command::kInitQpAttr), uint32_t{RDMA_USER_CM_CMD_INIT_QP_ATTR});
  EXPECT_EQ(static_cast<uint32_t>(Command::kSetOption), uint32_t{RDMA_USER_CM_CMD_SET_OPTION});
  EXPECT_EQ(static_cast<uint32_t>(Command::kMigrateId), uint32_t{RDMA_USER_CM_CMD_MIGRATE_ID});
  EXPECT_EQ(static_cast<uint32_t>(Command::kJoinMcast), uint32_t{RDMA_USER_CM_CMD_JOIN_MCAST});
  // Some headers end with this command and lack two later ones: RDMA_USER_CM_CMD_RESOLVE_IB_SERVICE
  // and RDMA_USER_CM_CMD_WRITE_CM_EVENT.
  EXPECT_EQ(kKernelCommands, uint32_t{RDMA_USER_CM_CMD_JOIN_MCAST} + 3);
}

TEST(UcmaLayout, ValuesAreTheKernels) {
  EXPECT_EQ(static_cast<uint32_t>(PortSpace::kTcp), uint32_t{RDMA_PS_TCP});
  EXPECT_EQ(static_cast<uint32_t>(PortSpace::kUdp), uint32_t{RDMA_PS_UDP});
  EXPECT_EQ(static_cast<uint32_t>(PortSpace::kIpoib), uint32_t{RDMA_PS_IPOIB});
  EXPECT_EQ(static_cast<uint32_t>(PortSpace::kIb), uint32_t{RDMA_PS_IB});
  EXPECT_EQ(static_cast<uint32_t>(QueryKind::kGid), uint32_t{RDMA_USER_CM_QUERY_GID});
  EXPECT_EQ(static_cast<uint32_t>(JoinFlags::kSendOnlyFullMember),
            uint32_t{RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER});
  EXPECT_EQ(static_cast<uint32_t>(IdOption::kAckTimeout), uint32_t{RDMA_OPTION_ID_ACK_TIMEOUT});
  EXPECT_EQ(static_cast<uint32_t>(IbOption::kPath), uint32_t{RDMA_OPTION_IB_PATH});
  EXPECT_EQ(kPathBidirectional, uint32_t{IB_PATH_BIDIRECTIONAL});
}

}  // namespace
}  // namespace rocemu::abi::ucma
