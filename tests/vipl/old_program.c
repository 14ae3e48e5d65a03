/* A program as in 1999: C and vipl.h, and nothing else. Two VIs of one NIC connect as peers, and
 * one sends a greeting to the other. The exit status is 0 if the greeting arrives. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vipl/vipl.h"

#define BUFFER_BYTES 4096
#define MESSAGE_BYTES 64

static VIP_NIC_HANDLE nic;
static VIP_MEM_HANDLE memory;

static void check(VIP_RETURN status, const char *what) {
  if (status == VIP_SUCCESS) return;
  fprintf(stderr, "%s: VIP_RETURN %d\n", what, (int)status);
  exit(1);
}

static VIP_NET_ADDRESS *make_address(const VIP_NIC_ATTRIBUTES *attributes, char discriminator) {
  VIP_NET_ADDRESS *address = malloc(sizeof(VIP_NET_ADDRESS) + attributes->NicAddressLen + 1);
  if (address == NULL) exit(1);
  address->HostAddressLen = attributes->NicAddressLen;
  address->DiscriminatorLen = 1;
  memcpy(address->HostAddress, attributes->LocalNicAddress, attributes->NicAddressLen);
  address->HostAddress[attributes->NicAddressLen] = (VIP_UINT8)discriminator;
  return address;
}

static VIP_DESCRIPTOR *make_descriptor(char *block, char *data) {
  VIP_DESCRIPTOR *descriptor = (VIP_DESCRIPTOR *)block;
  memset(descriptor, 0, sizeof *descriptor);
  descriptor->CS.Length = MESSAGE_BYTES;
  descriptor->CS.SegCount = 1;
  descriptor->CS.Control = VIP_CONTROL_OP_SENDRECV;
  descriptor->DS[0].Local.Data.Address = data;
  descriptor->DS[0].Local.Handle = memory;
  descriptor->DS[0].Local.Length = MESSAGE_BYTES;
  return descriptor;
}

int main(void) {
  VIP_NIC_ATTRIBUTES nic_attributes;
  VIP_PROTECTION_HANDLE ptag;
  VIP_MEM_ATTRIBUTES mem_attributes;
  VIP_VI_ATTRIBUTES vi_attributes, remote;
  VIP_VI_HANDLE left, right;
  VIP_NET_ADDRESS *left_address, *right_address;
  VIP_DESCRIPTOR *send, *receive, *done;
  char *raw, *block;

  check(VipOpenNic("VINIC0", &nic), "VipOpenNic");
  check(VipQueryNic(nic, &nic_attributes), "VipQueryNic");
  check(VipCreatePtag(nic, &ptag), "VipCreatePtag");
  raw = malloc(BUFFER_BYTES + VIP_DESCRIPTOR_ALIGNMENT);
  if (raw == NULL) return 1;
  block = (char *)(((VIP_ULONG)raw + VIP_DESCRIPTOR_ALIGNMENT - 1) &
                   ~(VIP_ULONG)(VIP_DESCRIPTOR_ALIGNMENT - 1));
  mem_attributes.Ptag = ptag;
  mem_attributes.EnableRdmaWrite = mem_attributes.EnableRdmaRead = VIP_FALSE;
  check(VipRegisterMem(nic, block, BUFFER_BYTES, &mem_attributes, &memory), "VipRegisterMem");

  memset(&vi_attributes, 0, sizeof vi_attributes);
  vi_attributes.ReliabilityLevel = VIP_SERVICE_RELIABLE_DELIVERY;
  vi_attributes.MaxTransferSize = MESSAGE_BYTES;
  vi_attributes.Ptag = ptag;
  check(VipCreateVi(nic, &vi_attributes, NULL, NULL, &left), "VipCreateVi");
  check(VipCreateVi(nic, &vi_attributes, NULL, NULL, &right), "VipCreateVi");
  left_address = make_address(&nic_attributes, 'l');
  right_address = make_address(&nic_attributes, 'r');

  receive = make_descriptor(block, block + 1024);
  send = make_descriptor(block + VIP_DESCRIPTOR_ALIGNMENT, block + 2048);
  strcpy(block + 2048, "hello from 1999");
  check(VipPostRecv(right, receive, memory), "VipPostRecv");
  check(VipConnectPeerRequest(left, left_address, right_address, VIP_INFINITE), "left");
  check(VipConnectPeerRequest(right, right_address, left_address, VIP_INFINITE), "right");
  check(VipConnectPeerWait(left, &remote), "VipConnectPeerWait");
  check(VipConnectPeerWait(right, &remote), "VipConnectPeerWait");

  check(VipPostSend(left, send, memory), "VipPostSend");
  check(VipSendWait(left, VIP_INFINITE, &done), "VipSendWait");
  check(VipRecvWait(right, VIP_INFINITE, &done), "VipRecvWait");
  if (done != receive || done->CS.Length != MESSAGE_BYTES || strcmp(block + 1024, block + 2048) != 0) {
    return 1;
  }
  puts(block + 1024);

  check(VipDisconnect(left), "VipDisconnect");
  check(VipDisconnect(right), "VipDisconnect");
  check(VipDestroyVi(left), "VipDestroyVi");
  check(VipDestroyVi(right), "VipDestroyVi");
  check(VipDeregisterMem(nic, block, memory), "VipDeregisterMem");
  check(VipDestroyPtag(nic, ptag), "VipDestroyPtag");
  check(VipCloseNic(nic), "VipCloseNic");
  free(left_address);
  free(right_address);
  free(raw);
  return 0;
}
