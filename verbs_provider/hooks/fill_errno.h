// The third function that the shim offers to the provider, for `--adversarial=undefined`.
#pragma once

/// Sets errno to `value` after each successful call of librdmacm from now on: errno(3) leaves it
/// undefined.
extern "C" void rocemu_fill_errno(int value);
