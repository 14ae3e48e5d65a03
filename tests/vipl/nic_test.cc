// Tests VipOpenNic, VipCloseNic, VipQueryNic, VipQuerySystemManagementInfo, the name service, and
// the header.
#include "tests/vipl/vipl_fixture.h"

extern "C" int vipl_header_in_c(void);

namespace rocemu::vipl_test {
namespace {

TEST(Header, IsC99) {
  EXPECT_TRUE(vipl_header_in_c());
}

TEST(Nic, IsOpenedByItsVerbsNameOrByItsNumber) {
  for (const char* name : {"rocemu0", "", "0", "VINIC", "VINIC0", "nic0"}) {
    VIP_NIC_HANDLE nic = nullptr;
    ASSERT_EQ(VipOpenNic(name, &nic), VIP_SUCCESS) << name;
    VIP_NIC_ATTRIBUTES attributes{};
    EXPECT_EQ(VipQueryNic(nic, &attributes), VIP_SUCCESS);
    EXPECT_STREQ(attributes.Name, "rocemu0");
    EXPECT_EQ(VipCloseNic(nic), VIP_SUCCESS);
  }
  const Node second("nic1");
  EXPECT_EQ(second.host, std::string("\x7f\0\0\2", 4));
}

TEST(Nic, NamesThatNoDeviceHasAreInvalid) {
  VIP_NIC_HANDLE nic = nullptr;
  for (const char* name : {"rocemu7", "VINIC99", "nic-1", "VINIC0x", "99999999999999999999"}) {
    EXPECT_EQ(VipOpenNic(name, &nic), VIP_INVALID_PARAMETER) << name;
  }
  EXPECT_EQ(VipOpenNic(nullptr, &nic), VIP_INVALID_PARAMETER);
  EXPECT_EQ(VipOpenNic("rocemu0", nullptr), VIP_INVALID_PARAMETER);
}

TEST(Nic, ReportsItsAttributes) {
  const Node node;
  VIP_NIC_ATTRIBUTES attributes{};
  ASSERT_EQ(VipQueryNic(node.nic, &attributes), VIP_SUCCESS);
  EXPECT_EQ(attributes.NicAddressLen, 4);
  EXPECT_EQ(node.host, std::string("\x7f\0\0\1", 4));
  EXPECT_TRUE(attributes.ThreadSafe);
  EXPECT_GE(attributes.MaxDescriptorsPerQueue, 1024u);
  EXPECT_GE(attributes.MaxDiscriminatorLen, 16);
  EXPECT_GE(attributes.MaxTransferSize, 32768u);
  EXPECT_EQ(attributes.NativeMTU, 4096u);
  EXPECT_EQ(attributes.ReliabilityLevelSupport, 7);
  EXPECT_EQ(attributes.RDMAReadSupport, 6);
  EXPECT_EQ(VipQueryNic(node.nic, nullptr), VIP_INVALID_PARAMETER);
}

TEST(Nic, ClosingDestroysItsObjects) {
  VIP_VI_HANDLE vi = nullptr;
  VIP_CQ_HANDLE cq = nullptr;
  VIP_NIC_HANDLE nic = nullptr;
  VIP_DESCRIPTOR* done = nullptr;
  {
    Node node;
    nic = node.nic;
    cq = node.cq();
    vi = node.vi();
    EXPECT_EQ(VipPostRecv(vi, node.descriptor(0), node.memory), VIP_SUCCESS);
    EXPECT_EQ(VipCloseNic(nic), VIP_SUCCESS);
    VIP_PROTECTION_HANDLE ptag = nullptr;
    EXPECT_EQ(VipCreatePtag(nic, &ptag), VIP_INVALID_PARAMETER);
  }
  EXPECT_EQ(VipCloseNic(nic), VIP_INVALID_PARAMETER);
  EXPECT_EQ(VipRecvDone(vi, &done), VIP_INVALID_PARAMETER);
  EXPECT_EQ(VipDestroyVi(vi), VIP_INVALID_PARAMETER);
  EXPECT_EQ(VipDestroyCQ(cq), VIP_INVALID_PARAMETER);
  EXPECT_EQ(VipCloseNic(nullptr), VIP_INVALID_PARAMETER);
}

TEST(Nic, ClosingWakesThreadsThatWait) {
  Node node;
  VIP_VI_HANDLE vi = node.vi();
  VIP_CQ_HANDLE cq = node.cq();
  EXPECT_EQ(VipPostRecv(vi, node.descriptor(0), node.memory), VIP_SUCCESS);
  std::vector<std::thread> waiting;
  waiting.emplace_back([&] {
    VIP_DESCRIPTOR* done = nullptr;
    EXPECT_EQ(VipRecvWait(vi, VIP_INFINITE, &done), VIP_INVALID_PARAMETER);
  });
  waiting.emplace_back([&] {
    VIP_VI_HANDLE of = nullptr;
    VIP_BOOLEAN recv = 0;
    EXPECT_EQ(VipCQWait(cq, VIP_INFINITE, &of, &recv), VIP_INVALID_PARAMETER);
  });
  waiting.emplace_back([&] {
    Address local = node.address("nobody"), from;
    VIP_VI_ATTRIBUTES theirs{};
    VIP_CONN_HANDLE connection = nullptr;
    EXPECT_EQ(VipConnectWait(node.nic, local.get(), VIP_INFINITE, from.get(), &theirs, &connection),
              VIP_INVALID_PARAMETER);
  });
  // makes it likely that the threads sleep
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_EQ(VipCloseNic(node.nic), VIP_SUCCESS);
  for (auto& thread : waiting) thread.join();
}

TEST(Nic, AutodiscoveryListsTheNicsOfTheMachine) {
  const Node node;
  VIP_AUTODISCOVERY_LIST list{};
  EXPECT_EQ(VipQuerySystemManagementInfo(node.nic, VIP_SMI_AUTODISCOVERY, &list), VIP_SUCCESS);
  EXPECT_EQ(list.NumAdAddrs, 2u);
  Address first, second;
  VIP_NET_ADDRESS* addresses[] = {first.get(), second.get()};
  list.ADAddrArray = addresses;
  EXPECT_EQ(VipQuerySystemManagementInfo(node.nic, VIP_SMI_AUTODISCOVERY, &list), VIP_SUCCESS);
  EXPECT_EQ(first.host(), std::string("\x7f\0\0\1", 4));
  EXPECT_EQ(second.host(), std::string("\x7f\0\0\2", 4));
  EXPECT_EQ(VipQuerySystemManagementInfo(node.nic, 99, &list), VIP_INVALID_PARAMETER);
  EXPECT_EQ(VipQuerySystemManagementInfo(node.nic, 1, nullptr), VIP_INVALID_PARAMETER);
}

TEST(NameService, NamesBecomeAddressesAndBack) {
  const Node node;
  Address address;
  char name[] = "127.0.0.2";
  EXPECT_EQ(VipNSGetHostByName(node.nic, name, address.get(), 0), VIP_ERROR_NAMESERVICE);
  EXPECT_EQ(VipNSInit(node.nic, nullptr), VIP_SUCCESS);
  EXPECT_EQ(VipNSGetHostByName(node.nic, name, address.get(), 0), VIP_SUCCESS);
  EXPECT_EQ(address.host(), std::string("\x7f\0\0\2", 4));
  EXPECT_EQ(VipNSGetHostByName(node.nic, name, address.get(), 99), VIP_ERROR_NAMESERVICE);
  std::string unknown(300, 'x');  // longer than names can be, so no name server is queried
  EXPECT_EQ(VipNSGetHostByName(node.nic, unknown.data(), address.get(), 0), VIP_ERROR_NAMESERVICE);

  char localhost[] = "localhost";  // a name in /etc/hosts
  EXPECT_EQ(VipNSGetHostByName(node.nic, localhost, address.get(), 0), VIP_SUCCESS);
  EXPECT_EQ(address.host(), node.host);
  char found[256];
  VIP_ULONG length = 3;
  EXPECT_EQ(VipNSGetHostByAddr(node.nic, address.get(), found, &length), VIP_ERROR_RESOURCE);
  EXPECT_EQ(VipNSGetHostByAddr(node.nic, address.get(), found, &length), VIP_SUCCESS);
  EXPECT_EQ(length, std::strlen(found) + 1);

  EXPECT_EQ(VipNSShutdown(node.nic), VIP_SUCCESS);
  EXPECT_EQ(VipNSGetHostByAddr(node.nic, address.get(), found, &length), VIP_ERROR_NAMESERVICE);
  EXPECT_EQ(VipNSInit(nullptr, nullptr), VIP_INVALID_PARAMETER);
  EXPECT_EQ(VipNSShutdown(nullptr), VIP_INVALID_PARAMETER);
  EXPECT_EQ(VipNSGetHostByName(node.nic, nullptr, address.get(), 0), VIP_INVALID_PARAMETER);
  EXPECT_EQ(VipNSGetHostByAddr(node.nic, nullptr, found, &length), VIP_INVALID_PARAMETER);
}

}  // namespace
}  // namespace rocemu::vipl_test
