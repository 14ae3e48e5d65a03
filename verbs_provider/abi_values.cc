// The daemon's numbers for the enumerations of verbs are those of <infiniband/verbs.h>, so that the
// provider passes values on unchanged.
#include "emulator/abi/verbs_values.h"

#include <infiniband/verbs.h>

#include "emulator/abi/send_opcodes.h"

namespace rocemu::abi {
namespace {

template <class Ours, class Theirs>
constexpr bool same(Ours ours, Theirs theirs) {
  return static_cast<uint32_t>(ours) == static_cast<uint32_t>(theirs);
}

#define ROCEMU_SAME(prefix, name, number) static_assert(same(number, prefix##name))

#define ROCEMU_QP_TYPE(enumerator, name, number) ROCEMU_SAME(IBV_QPT_, name, number);
#define ROCEMU_QP_STATE(enumerator, name, number) ROCEMU_SAME(IBV_QPS_, name, number);
#define ROCEMU_WR_OPCODE(enumerator, name, number) ROCEMU_SAME(IBV_WR_, name, number);
#define ROCEMU_WC(enumerator, name, number) ROCEMU_SAME(IBV_WC_, name, number);
#define ROCEMU_EVENT_TYPE(enumerator, name, number) ROCEMU_SAME(IBV_EVENT_, name, number);
#define ROCEMU_PORT_STATE(enumerator, name, number) ROCEMU_SAME(IBV_PORT_, name, number);
#define ROCEMU_NOT_IN_HEADER(enumerator, name, number)

ROCEMU_QP_TYPES(ROCEMU_QP_TYPE)
ROCEMU_QP_STATES(ROCEMU_QP_STATE)
ROCEMU_WR_OPCODES_AND(ROCEMU_WR_OPCODE, ROCEMU_NOT_IN_HEADER)
ROCEMU_WC_OPCODES_AND(ROCEMU_WC, ROCEMU_NOT_IN_HEADER)
ROCEMU_WC_STATUSES(ROCEMU_WC)
ROCEMU_OLDER_EVENT_TYPES(ROCEMU_EVENT_TYPE)
ROCEMU_PORT_STATES(ROCEMU_PORT_STATE)

static_assert(same(kAttrState, IBV_QP_STATE));
static_assert(same(kAttrCurState, IBV_QP_CUR_STATE));
static_assert(same(kAttrEnSqdAsyncNotify, IBV_QP_EN_SQD_ASYNC_NOTIFY));
static_assert(same(kAttrAccessFlags, IBV_QP_ACCESS_FLAGS));
static_assert(same(kAttrPkeyIndex, IBV_QP_PKEY_INDEX));
static_assert(same(kAttrPort, IBV_QP_PORT));
static_assert(same(kAttrQkey, IBV_QP_QKEY));
static_assert(same(kAttrAv, IBV_QP_AV));
static_assert(same(kAttrPathMtu, IBV_QP_PATH_MTU));
static_assert(same(kAttrTimeout, IBV_QP_TIMEOUT));
static_assert(same(kAttrRetryCnt, IBV_QP_RETRY_CNT));
static_assert(same(kAttrRnrRetry, IBV_QP_RNR_RETRY));
static_assert(same(kAttrRqPsn, IBV_QP_RQ_PSN));
static_assert(same(kAttrMaxQpRdAtomic, IBV_QP_MAX_QP_RD_ATOMIC));
static_assert(same(kAttrAltPath, IBV_QP_ALT_PATH));
static_assert(same(kAttrMinRnrTimer, IBV_QP_MIN_RNR_TIMER));
static_assert(same(kAttrSqPsn, IBV_QP_SQ_PSN));
static_assert(same(kAttrMaxDestRdAtomic, IBV_QP_MAX_DEST_RD_ATOMIC));
static_assert(same(kAttrPathMigState, IBV_QP_PATH_MIG_STATE));
static_assert(same(kAttrCap, IBV_QP_CAP));
static_assert(same(kAttrDestQpn, IBV_QP_DEST_QPN));
static_assert(same(kAttrRateLimit, IBV_QP_RATE_LIMIT));

static_assert(same(kAccessLocalWrite, IBV_ACCESS_LOCAL_WRITE));
static_assert(same(kAccessRemoteWrite, IBV_ACCESS_REMOTE_WRITE));
static_assert(same(kAccessRemoteRead, IBV_ACCESS_REMOTE_READ));
static_assert(same(kAccessRemoteAtomic, IBV_ACCESS_REMOTE_ATOMIC));
static_assert(same(kAccessMwBind, IBV_ACCESS_MW_BIND));
static_assert(same(kAccessZeroBased, IBV_ACCESS_ZERO_BASED));
static_assert(same(kAccessOnDemand, IBV_ACCESS_ON_DEMAND));
static_assert(same(kAccessHugetlb, IBV_ACCESS_HUGETLB));
static_assert(same(kAccessRelaxedOrdering, IBV_ACCESS_RELAXED_ORDERING));
// kAccessFlushGlobal and kAccessFlushPersistent are not compared, because the header of rdma-core
// 44 does not define them.

static_assert(same(kSendFence, IBV_SEND_FENCE));
static_assert(same(kSendSignaled, IBV_SEND_SIGNALED));
static_assert(same(kSendSolicited, IBV_SEND_SOLICITED));
static_assert(same(kSendInline, IBV_SEND_INLINE));
static_assert(same(kSendIpCsum, IBV_SEND_IP_CSUM));

static_assert(same(kWcGrh, IBV_WC_GRH));
static_assert(same(kWcWithImm, IBV_WC_WITH_IMM));
static_assert(same(kWcWithInv, IBV_WC_WITH_INV));

static_assert(same(Mtu::k256, IBV_MTU_256));
static_assert(same(Mtu::k512, IBV_MTU_512));
static_assert(same(Mtu::k1024, IBV_MTU_1024));
static_assert(same(Mtu::k2048, IBV_MTU_2048));
static_assert(same(Mtu::k4096, IBV_MTU_4096));

}  // namespace
}  // namespace rocemu::abi
