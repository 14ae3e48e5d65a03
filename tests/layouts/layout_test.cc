// Tests the plugin for one private ABI with a libibverbs of one version, which the test imitates.
// Run this under `rocemu run`, whose NIC the plugin opens.
//
// usage: layout_test LIBIBVERBS PLUGIN [GoogleTest's arguments]
#include <dlfcn.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <infiniband/verbs.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "tests/layouts/operations.h"
#include "tests/layouts/played_libibverbs.h"
#include "verbs_provider/base/private_abi.h"
#include "verbs_provider/base/verbs.h"

namespace rocemu::layouts {
namespace {

PlayedLibibverbs* played = nullptr;
decltype(&ibv_qp_to_qp_ex) qp_to_qp_ex = nullptr;
std::string plugin_path;
std::string said_when_loaded;

constexpr uint64_t kWithFlush = 1u << 11;
constexpr uint64_t kWithAtomicWrite = 1u << 12;

class Layout : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_NE(played->driver, nullptr) << said_when_loaded;
    driver_ = static_cast<const provider::DeviceOps*>(played->driver);
    device_ = driver_->alloc_device(nullptr);
    ASSERT_NE(device_, nullptr);
    strcpy(device_->device.dev_name, "uverbs0");
    const int fd = open("/dev/infiniband/uverbs0", O_RDWR | O_CLOEXEC);
    ASSERT_GE(fd, 0) << "is this run under `rocemu run`?";
    verbs_ =
        reinterpret_cast<unsigned char*>(driver_->alloc_context(&device_->device, fd, nullptr));
    ASSERT_NE(verbs_, nullptr) << strerror(errno);
    context_ = reinterpret_cast<ibv_context*>(verbs_ + head());
  }

  void TearDown() override {
    if (context_ != nullptr) {
      expect_own_members_as_they_were();
      const int fd = context_->cmd_fd;
      op(&provider::ContextOps::free_context, "free_context")(context_);
      close(fd);
    }
    if (device_ != nullptr) driver_->uninit_device(device_);
  }

  static size_t head() { return played->context_head; }

  void expect_own_members_as_they_were() const {
    for (size_t i = 0; i < head() - sizeof(size_t); ++i) ASSERT_EQ(verbs_[i], kOwnBytes) << i;
  }

  /// Returns the function that libibverbs finds for its operation `name`.
  template <class Function>
  static Function op(Function provider::ContextOps::*, const std::string& name) {
    const std::vector<std::string> names = operations_of(played->newest_public);
    for (size_t i = 0; i < names.size(); ++i)
      if (names[i] == name) {
        EXPECT_NE(played->ops[i], nullptr) << name;
        return reinterpret_cast<Function>(const_cast<void*>(played->ops[i]));
      }
    ADD_FAILURE() << "no operation " << name;
    return nullptr;
  }

  const provider::DeviceOps* driver_ = nullptr;
  provider::VerbsDevice* device_ = nullptr;
  unsigned char* verbs_ = nullptr;
  ibv_context* context_ = nullptr;
};

#define OP(name) op(&provider::ContextOps::name, #name)

TEST_F(Layout, ItsContextEndsWithTheApplications) {
  EXPECT_TRUE(played->context_fits);
  EXPECT_EQ(context_->device, &device_->device);
  EXPECT_GT(context_->num_comp_vectors, 0);
  EXPECT_GE(context_->async_fd, 0);
}

TEST_F(Layout, ItsOperationsAreThoseOfTheProviderAndNoOthers) {
  std::set<std::string> provided{"poll_cq"};
#define NAME_OF_VERB(name, in_child) provided.insert(#name);
  ROCEMU_VERBS(NAME_OF_VERB)
#undef NAME_OF_VERB
  const std::vector<std::string> names = operations_of(played->newest_public);
  ASSERT_EQ(names.size(), played->operations);
  for (size_t i = 0; i < names.size(); ++i) {
    EXPECT_EQ(played->ops[i] != nullptr, provided.contains(names[i])) << names[i];
  }
}

TEST_F(Layout, QueryPortStaysInsideTheStruct) {
  std::array<unsigned char, 96> memory;
  memory.fill(0xa5);
  memset(memory.data(), 0, played->port_attr_size);  // as libibverbs does
  auto* attr = reinterpret_cast<ibv_port_attr*>(memory.data());
  ASSERT_EQ(OP(query_port)(context_, 1, attr), 0);
  EXPECT_EQ(attr->state, IBV_PORT_ACTIVE);
  EXPECT_EQ(attr->link_layer, IBV_LINK_LAYER_ETHERNET);
  for (size_t i = 52; i < played->port_attr_size; ++i) EXPECT_EQ(memory[i], 0) << i;
  for (size_t i = played->port_attr_size; i < memory.size(); ++i) EXPECT_EQ(memory[i], 0xa5) << i;
}

TEST_F(Layout, QueryDeviceFillsAsMuchAsTheCallerHas) {
  for (const size_t size : {sizeof(ibv_device_attr), size_t{304}, size_t{400}, size_t{512}}) {
    std::array<unsigned char, 600> memory;
    memory.fill(0xa5);
    auto* attr = reinterpret_cast<ibv_device_attr_ex*>(memory.data());
    ASSERT_EQ(OP(query_device_ex)(context_, nullptr, attr, size), 0);
    EXPECT_GT(attr->orig_attr.max_qp, 0);
    for (size_t i = size; i < memory.size(); ++i) EXPECT_EQ(memory[i], 0xa5) << size << ' ' << i;
  }
}

class LayoutQp : public Layout {
 protected:
  void SetUp() override {
    Layout::SetUp();
    if (HasFatalFailure()) return;
    pd_ = OP(alloc_pd)(context_);
    ASSERT_NE(pd_, nullptr);
    pd_->context = context_;  // libibverbs itself sets these members, and so does the test
    mr_ = OP(reg_mr)(pd_, memory_.data(), memory_.size(),
                     reinterpret_cast<uint64_t>(memory_.data()), IBV_ACCESS_LOCAL_WRITE);
    ASSERT_NE(mr_, nullptr);
    mr_->context = context_;
    mr_->pd = pd_;
    ibv_cq_init_attr_ex wanted{};
    wanted.cqe = 16;
    wanted.wc_flags = uint64_t{IBV_WC_STANDARD_FLAGS} | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |
                      IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK;
    cq_ = OP(create_cq_ex)(context_, &wanted);
    ASSERT_NE(cq_, nullptr);
    cq_->context = context_;
    cq_->channel = nullptr;
    pthread_mutex_init(&cq_->mutex, nullptr);
    pthread_cond_init(&cq_->cond, nullptr);
  }

  void TearDown() override {
    if (qp_ != nullptr) {
      EXPECT_EQ(OP(destroy_qp)(qp_), 0);
    }
    if (cq_ != nullptr) {
      EXPECT_EQ(OP(destroy_cq)(cq()), 0);
    }
    if (mr_ != nullptr) {
      EXPECT_EQ(OP(dereg_mr)(reinterpret_cast<provider::VerbsMr*>(mr_)), 0);
    }
    if (pd_ != nullptr) {
      EXPECT_EQ(OP(dealloc_pd)(pd_), 0);
    }
    Layout::TearDown();
  }

  ibv_cq* cq() const { return reinterpret_cast<ibv_cq*>(cq_); }

  ibv_qp* create(uint64_t operations) {
    ibv_qp_init_attr_ex wanted{};
    wanted.qp_type = IBV_QPT_RC;
    wanted.send_cq = wanted.recv_cq = cq();
    wanted.pd = pd_;
    wanted.cap = {8, 8, 1, 1, 0};
    wanted.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    wanted.send_ops_flags = operations;
    return OP(create_qp_ex)(context_, &wanted);
  }

  /// Connects the QP to itself.
  void connect() {
    ibv_qp_attr attr{};
    attr.qp_state = IBV_QPS_INIT;
    attr.port_num = 1;
    ASSERT_EQ(OP(modify_qp)(qp_, &attr,
                            IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
              0);
    attr.qp_state = IBV_QPS_RTR;
    attr.path_mtu = IBV_MTU_1024;
    attr.dest_qp_num = qp_->qp_num;
    attr.min_rnr_timer = 12;
    attr.max_dest_rd_atomic = 1;
    attr.ah_attr.is_global = 1;
    attr.ah_attr.port_num = 1;
    const std::array<uint8_t, 16> self{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 127, 0, 0, 1};
    memcpy(attr.ah_attr.grh.dgid.raw, self.data(), self.size());
    ASSERT_EQ(OP(modify_qp)(qp_, &attr,
                            IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                                IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
              0);
    attr.qp_state = IBV_QPS_RTS;
    attr.timeout = 14;
    attr.retry_cnt = attr.rnr_retry = 7;
    attr.max_rd_atomic = 1;
    ASSERT_EQ(OP(modify_qp)(qp_, &attr,
                            IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                                IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC),
              0);
  }

  std::array<char, 64> memory_{};
  ibv_pd* pd_ = nullptr;
  ibv_mr* mr_ = nullptr;
  ibv_cq_ex* cq_ = nullptr;
  ibv_qp* qp_ = nullptr;
};

TEST_F(LayoutQp, OffersTheOperationsThatItsIbvQpExHas) {
  for (const auto& [operation, functions] :
       {std::pair{kWithAtomicWrite, size_t{21}}, std::pair{kWithFlush, size_t{22}}}) {
    ibv_qp* qp = create(IBV_QP_EX_WITH_SEND | operation);
    EXPECT_EQ(qp != nullptr, played->qp_ex_functions >= functions) << functions;
    if (qp != nullptr) {
      EXPECT_EQ(OP(destroy_qp)(qp), 0);
    }
  }
}

TEST_F(LayoutQp, APlainQpIsNotExtended) {
  ibv_qp_init_attr wanted{};
  wanted.qp_type = IBV_QPT_RC;
  wanted.send_cq = wanted.recv_cq = cq();
  wanted.cap = {8, 8, 1, 1, 0};
  qp_ = OP(create_qp)(pd_, &wanted);
  ASSERT_NE(qp_, nullptr);
  EXPECT_EQ(qp_to_qp_ex(qp_), nullptr);
}

TEST_F(LayoutQp, SendsWithTheBuilderAndPollsEachField) {
  qp_ = create(IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM);
  ASSERT_NE(qp_, nullptr);
  connect();
  strcpy(memory_.data(), "sent");
  ibv_sge to{reinterpret_cast<uint64_t>(memory_.data() + 32), 8, mr_->lkey};
  ibv_recv_wr receive{};
  receive.wr_id = 1;
  receive.sg_list = &to;
  receive.num_sge = 1;
  ibv_recv_wr* bad = nullptr;
  ASSERT_EQ(OP(post_recv)(qp_, &receive, &bad), 0);

  ibv_qp_ex* builder = qp_to_qp_ex(qp_);
  ASSERT_NE(builder, nullptr);
  ibv_wr_start(builder);
  builder->wr_id = 2;
  builder->wr_flags = IBV_SEND_SIGNALED;
  ibv_wr_send_imm(builder, htobe32(7));
  ibv_wr_set_sge(builder, mr_->lkey, reinterpret_cast<uint64_t>(memory_.data()), 8);
  ASSERT_EQ(ibv_wr_complete(builder), 0);

  std::set<uint64_t> completed;
  ibv_poll_cq_attr attr{};
  while (completed.size() < 2) {
    const int found = ibv_start_poll(cq_, &attr);
    if (found == ENOENT) continue;
    ASSERT_EQ(found, 0);
    do {
      completed.insert(cq_->wr_id);
      EXPECT_EQ(cq_->status, IBV_WC_SUCCESS);
      EXPECT_EQ(ibv_wc_read_qp_num(cq_), qp_->qp_num);
      EXPECT_EQ(ibv_wc_read_vendor_err(cq_), 0u);
      EXPECT_NE(ibv_wc_read_completion_ts(cq_), 0u);
      EXPECT_NE(ibv_wc_read_completion_wallclock_ns(cq_), 0u);
      EXPECT_EQ(ibv_wc_read_slid(cq_), 0u);
      EXPECT_EQ(ibv_wc_read_sl(cq_), 0);
      EXPECT_EQ(ibv_wc_read_dlid_path_bits(cq_), 0);
      ibv_wc_read_src_qp(cq_);
      if (cq_->wr_id == 1) {
        EXPECT_EQ(ibv_wc_read_opcode(cq_), IBV_WC_RECV);
        EXPECT_EQ(ibv_wc_read_wc_flags(cq_) & IBV_WC_WITH_IMM, IBV_WC_WITH_IMM);
        EXPECT_EQ(ibv_wc_read_imm_data(cq_), htobe32(7));
        EXPECT_EQ(ibv_wc_read_byte_len(cq_), 8u);
      }
    } while (ibv_next_poll(cq_) == 0);
    ibv_end_poll(cq_);
  }
  EXPECT_EQ(completed, (std::set<uint64_t>{1, 2}));
  EXPECT_STREQ(memory_.data() + 32, "sent");
}

/// A libibverbs that is newer than this rocemu.
TEST(UnknownLayout, IsRefusedWithOneLine) {
  EXPECT_EQ(played->driver, nullptr);
  EXPECT_TRUE(said_when_loaded.starts_with("rocemu: /")) << said_when_loaded;
  EXPECT_NE(said_when_loaded.find("does not know (private ABI 65, IBVERBS_1.19)"),
            std::string::npos)
      << said_when_loaded;
  EXPECT_EQ(said_when_loaded.find('\n'), said_when_loaded.size() - 1) << said_when_loaded;
}

void* load(const std::string& path) {
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (library == nullptr) {
    fprintf(stderr, "%s\n", dlerror());
    exit(1);
  }
  return library;
}

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  if (argc != 3) {
    fprintf(stderr, "usage: layout_test LIBIBVERBS PLUGIN\n");
    return 2;
  }
  void* const libibverbs = load(argv[1]);
  played = reinterpret_cast<decltype(&played_libibverbs)>(dlsym(libibverbs, "played_libibverbs"))();
  qp_to_qp_ex = reinterpret_cast<decltype(qp_to_qp_ex)>(dlsym(libibverbs, "ibv_qp_to_qp_ex"));
  testing::internal::CaptureStderr();
  load(argv[2]);
  said_when_loaded = testing::internal::GetCapturedStderr();
  return RUN_ALL_TESTS();
}

}  // namespace
}  // namespace rocemu::layouts

int main(int argc, char** argv) {
  return rocemu::layouts::main(argc, argv);
}
