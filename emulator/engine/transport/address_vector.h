// Address vectors: conversion of the application's vector to the header fields of frames
#pragma once

#include "emulator/engine/objects/objects.h"

namespace rocemu::engine {

/// Returns 0, EINVAL for a vector that no RoCE port can use, or ETIMEDOUT for an address on the
/// link that no device has (DevicePolicy::resolve_neighbors).
int check_address_vector(const Devices& devices, DeviceIndex device, const abi::AhAttr& attr);

/// The vector must have been checked. Without a GRH (see DevicePolicy::require_grh) the device that
/// owns the peer is the destination.
Path resolve_path(const Objects& objects, DeviceIndex device, const abi::AhAttr& attr, QpNumber own,
                  QpNumber peer);

/// All datagrams of a QP have one UDP source port (Linux's rule, so that captures can be compared).
uint16_t datagram_source_port(const DeviceConfig& config, QpNumber own);

}  // namespace rocemu::engine
