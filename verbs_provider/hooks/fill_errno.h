// The third function that the shim offers to the provider, for `--adversarial=undefined`.
#pragma once

/// From now on errno is `value` after each call of librdmacm that succeeds: errno(3) leaves it
/// undefined.
extern "C" void rocemu_fill_errno(int value);
