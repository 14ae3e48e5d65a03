// Tests protection tags and registered memory.
#include "tests/vipl/vipl_fixture.h"

namespace rocemu::vipl_test {
namespace {

using Memory = PairTest;

TEST_F(Memory, ATagInUseCannotBeDestroyed) {
  VIP_PROTECTION_HANDLE tag = nullptr;
  ASSERT_EQ(VipCreatePtag(node.nic, &tag), VIP_SUCCESS);
  VIP_MEM_ATTRIBUTES rights{tag, VIP_FALSE, VIP_FALSE};
  VIP_MEM_HANDLE handle = 0;
  ASSERT_EQ(VipRegisterMem(node.nic, node.data(0), 100, &rights, &handle), VIP_SUCCESS);
  EXPECT_EQ(VipDestroyPtag(node.nic, tag), VIP_ERROR_RESOURCE);
  EXPECT_EQ(VipDeregisterMem(node.nic, node.data(0), handle), VIP_SUCCESS);
  VIP_VI_ATTRIBUTES attributes = node.attributes();
  attributes.Ptag = tag;
  ASSERT_EQ(VipCreateVi(node.nic, &attributes, nullptr, nullptr, &a), VIP_SUCCESS);
  EXPECT_EQ(VipDestroyPtag(node.nic, tag), VIP_ERROR_RESOURCE);
  EXPECT_EQ(VipDestroyVi(a), VIP_SUCCESS);
  EXPECT_EQ(VipDestroyPtag(node.nic, tag), VIP_SUCCESS);
  EXPECT_EQ(VipDestroyPtag(node.nic, tag), VIP_INVALID_PARAMETER);
  EXPECT_EQ(VipRegisterMem(node.nic, node.data(0), 100, &rights, &handle), VIP_INVALID_PTAG);
}

TEST_F(Memory, ATagOfAnotherNicIsInvalid) {
  const Node other("rocemu1");
  VIP_MEM_ATTRIBUTES rights{other.ptag, VIP_FALSE, VIP_FALSE};
  VIP_MEM_HANDLE handle = 0;
  EXPECT_EQ(VipRegisterMem(node.nic, node.data(0), 100, &rights, &handle), VIP_INVALID_PTAG);
  EXPECT_EQ(VipDestroyPtag(node.nic, other.ptag), VIP_INVALID_PARAMETER);
}

TEST_F(Memory, AttributesAreThoseOfTheRegistrationUntilTheyAreSet) {
  VIP_MEM_ATTRIBUTES rights{node.ptag, VIP_TRUE, VIP_FALSE};
  VIP_MEM_HANDLE handle = 0;
  ASSERT_EQ(VipRegisterMem(node.nic, node.data(0), 100, &rights, &handle), VIP_SUCCESS);
  VIP_MEM_ATTRIBUTES found{};
  EXPECT_EQ(VipQueryMem(node.nic, node.data(0), handle, &found), VIP_SUCCESS);
  EXPECT_EQ(found.Ptag, node.ptag);
  EXPECT_TRUE(found.EnableRdmaWrite);
  EXPECT_FALSE(found.EnableRdmaRead);
  VIP_PROTECTION_HANDLE tag = nullptr;
  ASSERT_EQ(VipCreatePtag(node.nic, &tag), VIP_SUCCESS);
  rights = {tag, VIP_FALSE, VIP_TRUE};
  EXPECT_EQ(VipSetMemAttributes(node.nic, node.data(0), handle, &rights), VIP_SUCCESS);
  EXPECT_EQ(VipQueryMem(node.nic, node.data(0), handle, &found), VIP_SUCCESS);
  EXPECT_EQ(found.Ptag, tag);
  EXPECT_TRUE(found.EnableRdmaRead);
  EXPECT_EQ(VipDestroyPtag(node.nic, tag), VIP_ERROR_RESOURCE);
  EXPECT_EQ(VipDeregisterMem(node.nic, node.data(0), handle), VIP_SUCCESS);
  EXPECT_EQ(VipDestroyPtag(node.nic, tag), VIP_SUCCESS);
}

TEST_F(Memory, RightsThatAreSetTakeEffectForThePeer) {
  connect_pair();
  VIP_MEM_ATTRIBUTES rights{node.ptag, VIP_FALSE, VIP_FALSE};
  VIP_MEM_HANDLE handle = 0;
  ASSERT_EQ(VipRegisterMem(node.nic, node.data(5), 64, &rights, &handle), VIP_SUCCESS);
  rights.EnableRdmaWrite = VIP_TRUE;
  ASSERT_EQ(VipSetMemAttributes(node.nic, node.data(5), handle, &rights), VIP_SUCCESS);
  VIP_DESCRIPTOR* write = node.rdma(VIP_CONTROL_OP_RDMAWRITE, 1, node, 5);
  write->DS[0].Remote.Handle = handle;
  post_send(a, write);
  EXPECT_EQ(sent(a, write), success(VIP_STATUS_OP_RDMA_WRITE));
  rights.EnableRdmaWrite = VIP_FALSE;
  ASSERT_EQ(VipSetMemAttributes(node.nic, node.data(5), handle, &rights), VIP_SUCCESS);
  post_send(a, node.rdma(VIP_CONTROL_OP_RDMAWRITE, 1, node, 5));
  write->DS[0].Remote.Handle = handle;
  VIP_DESCRIPTOR* done = nullptr;
  // the write uses the handle of the whole block
  EXPECT_EQ(VipSendWait(a, kPatienceMs, &done), VIP_SUCCESS);
  write = node.rdma(VIP_CONTROL_OP_RDMAWRITE, 1, node, 5);
  write->DS[0].Remote.Handle = handle;
  post_send(a, write);
  EXPECT_EQ(sent(a, write), failure(VIP_STATUS_OP_RDMA_WRITE | VIP_STATUS_RDMA_PROT_ERROR));
}

TEST_F(Memory, WrongArgumentsAreRefused) {
  VIP_MEM_ATTRIBUTES rights{node.ptag, VIP_FALSE, VIP_FALSE};
  VIP_MEM_HANDLE handle = 0;
  char* where = node.data(0);
  EXPECT_EQ(VipCreatePtag(nullptr, &rights.Ptag), VIP_INVALID_PARAMETER);
  EXPECT_EQ(VipCreatePtag(node.nic, nullptr), VIP_INVALID_PARAMETER);
  EXPECT_EQ(VipDestroyPtag(node.nic, nullptr), VIP_INVALID_PARAMETER);
  EXPECT_EQ(VipRegisterMem(nullptr, where, 1, &rights, &handle), VIP_INVALID_PARAMETER);
  EXPECT_EQ(VipRegisterMem(node.nic, nullptr, 1, &rights, &handle), VIP_INVALID_PARAMETER);
  EXPECT_EQ(VipRegisterMem(node.nic, where, 0, &rights, &handle), VIP_INVALID_PARAMETER);
  EXPECT_EQ(VipRegisterMem(node.nic, where, 1, nullptr, &handle), VIP_INVALID_PARAMETER);
  EXPECT_EQ(VipRegisterMem(node.nic, where, 1, &rights, nullptr), VIP_INVALID_PARAMETER);
  EXPECT_EQ(VipDeregisterMem(node.nic, where, 12345), VIP_INVALID_PARAMETER);
  EXPECT_EQ(VipDeregisterMem(node.nic, where, node.memory),
            VIP_INVALID_PARAMETER);  // not the region's start
  EXPECT_EQ(VipQueryMem(node.nic, where, 12345, &rights), VIP_INVALID_PARAMETER);
  EXPECT_EQ(VipSetMemAttributes(node.nic, where, 12345, &rights), VIP_INVALID_PARAMETER);
  rights.Ptag = nullptr;
  EXPECT_EQ(VipRegisterMem(node.nic, where, 1, &rights, &handle), VIP_INVALID_PTAG);
  EXPECT_EQ(VipSetMemAttributes(node.nic, node.descriptor(0), node.memory, &rights),
            VIP_INVALID_PTAG);
}

}  // namespace
}  // namespace rocemu::vipl_test
