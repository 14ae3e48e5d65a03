/* Checks vipl.h in C99 without extensions, as a program of 1999 uses it: sizes and offsets on
 * which such programs and their peers rely. A wrong value is an array of negative size, which
 * the compiler refuses. */
#include <stddef.h>

#include "vipl/vipl.h"

#define ASSERT_THAT(name, condition) typedef char name[(condition) ? 1 : -1]

ASSERT_THAT(ulong_is_64_bits, sizeof(VIP_ULONG) == 8);
ASSERT_THAT(fixed_types, sizeof(VIP_UINT64) == 8 && sizeof(VIP_UINT32) == 4 &&
                             sizeof(VIP_UINT16) == 2 && sizeof(VIP_UINT8) == 1);
ASSERT_THAT(memory_handles_fit_into_segments, sizeof(VIP_MEM_HANDLE) == 4);
ASSERT_THAT(control_segment_size, sizeof(VIP_CONTROL_SEGMENT) == 32);
ASSERT_THAT(next_handle_offset, offsetof(VIP_CONTROL_SEGMENT, NextHandle) == 8);
ASSERT_THAT(seg_count_offset, offsetof(VIP_CONTROL_SEGMENT, SegCount) == 12);
ASSERT_THAT(control_offset, offsetof(VIP_CONTROL_SEGMENT, Control) == 14);
ASSERT_THAT(reserved_offset, offsetof(VIP_CONTROL_SEGMENT, Reserved) == 16);
ASSERT_THAT(immediate_offset, offsetof(VIP_CONTROL_SEGMENT, ImmediateData) == 20);
ASSERT_THAT(length_offset, offsetof(VIP_CONTROL_SEGMENT, Length) == 24);
ASSERT_THAT(status_offset, offsetof(VIP_CONTROL_SEGMENT, Status) == 28);
ASSERT_THAT(segments_are_16_bytes, sizeof(VIP_ADDRESS_SEGMENT) == 16 &&
                                       sizeof(VIP_DATA_SEGMENT) == 16 &&
                                       sizeof(VIP_DESCRIPTOR_SEGMENT) == 16);
ASSERT_THAT(segment_offsets, offsetof(VIP_DATA_SEGMENT, Handle) == 8 &&
                                 offsetof(VIP_DATA_SEGMENT, Length) == 12 &&
                                 offsetof(VIP_ADDRESS_SEGMENT, Handle) == 8);
ASSERT_THAT(a_descriptor_with_two_segments_fills_its_alignment,
            sizeof(VIP_DESCRIPTOR) == VIP_DESCRIPTOR_ALIGNMENT &&
                offsetof(VIP_DESCRIPTOR, DS) == 32);
ASSERT_THAT(host_address_offset, offsetof(VIP_NET_ADDRESS, HostAddress) == 4);
ASSERT_THAT(error_bits_are_the_mask,
            (VIP_STATUS_FORMAT_ERROR | VIP_STATUS_PROTECTION_ERROR | VIP_STATUS_LENGTH_ERROR |
             VIP_STATUS_PARTIAL_ERROR | VIP_STATUS_DESC_FLUSHED_ERROR |
             VIP_STATUS_TRANSPORT_ERROR | VIP_STATUS_RDMA_PROT_ERROR |
             VIP_STATUS_REMOTE_DESC_ERROR) == VIP_STATUS_ERROR_MASK);
ASSERT_THAT(return_codes, VIP_SUCCESS == 0 && VIP_INVALID_PARAMETER == 2 && VIP_TIMEOUT == 4 &&
                              VIP_DESCRIPTOR_ERROR == 11 && VIP_NO_MATCH == 14);
ASSERT_THAT(states, VIP_STATE_IDLE == 0 && VIP_STATE_CONNECTED == 1 &&
                        VIP_STATE_CONNECT_PENDING == 2 && VIP_STATE_ERROR == 3);
ASSERT_THAT(error_codes, VIP_ERROR_POST_DESC == 0 && VIP_ERROR_CATASTROPHIC == 10);

/* Uses a handler as programs declare it, and each function once, so that a missing declaration
 * is an error. */
static void handler(IN VIP_PVOID Context, IN VIP_NIC_HANDLE NicHandle, IN VIP_VI_HANDLE ViHandle,
                    IN VIP_BOOLEAN RecvQueue) {
  (void)Context, (void)NicHandle, (void)ViHandle, (void)RecvQueue;
}

typedef void (*any_function)(void);
const any_function vipl_functions[] = {
    (any_function)VipOpenNic,
    (any_function)VipCloseNic,
    (any_function)VipQueryNic,
    (any_function)VipQuerySystemManagementInfo,
    (any_function)VipErrorCallback,
    (any_function)VipCreatePtag,
    (any_function)VipDestroyPtag,
    (any_function)VipRegisterMem,
    (any_function)VipDeregisterMem,
    (any_function)VipQueryMem,
    (any_function)VipSetMemAttributes,
    (any_function)VipCreateVi,
    (any_function)VipDestroyVi,
    (any_function)VipQueryVi,
    (any_function)VipSetViAttributes,
    (any_function)VipPostSend,
    (any_function)VipSendDone,
    (any_function)VipSendWait,
    (any_function)VipSendNotify,
    (any_function)VipPostRecv,
    (any_function)VipRecvDone,
    (any_function)VipRecvWait,
    (any_function)VipRecvNotify,
    (any_function)VipCreateCQ,
    (any_function)VipDestroyCQ,
    (any_function)VipResizeCQ,
    (any_function)VipCQDone,
    (any_function)VipCQWait,
    (any_function)VipCQNotify,
    (any_function)VipConnectWait,
    (any_function)VipConnectAccept,
    (any_function)VipConnectReject,
    (any_function)VipConnectRequest,
    (any_function)VipDisconnect,
    (any_function)VipConnectPeerRequest,
    (any_function)VipConnectPeerDone,
    (any_function)VipConnectPeerWait,
    (any_function)VipNSInit,
    (any_function)VipNSGetHostByName,
    (any_function)VipNSGetHostByAddr,
    (any_function)VipNSShutdown,
};

int vipl_header_in_c(void) { return VipCQNotify(NULL, NULL, handler) == VIP_INVALID_PARAMETER; }
