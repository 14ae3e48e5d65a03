// A function that the shim offers to the provider, for `--adversarial=undefined`.
#pragma once

/// Sets errno to `value` after each successful call of librdmacm from now on, since errno(3) leaves
/// errno undefined then.
extern "C" void rocemu_fill_errno(int value);
