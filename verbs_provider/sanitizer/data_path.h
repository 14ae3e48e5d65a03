// Receives the reports of the provider's data path (context/sanitizer_hooks.h)
#pragma once

#include "verbs_provider/context/sanitizer_hooks.h"

namespace rocemu::sanitizer {

void on_post(const provider::PostedRequests& posted, const provider::RefusedRequest* refused);
void on_taken_back(const provider::PostedRequests& posted);
void on_poll(ibv_cq* cq);
void on_completion(ibv_cq* cq, const abi::Cqe& cqe, uint32_t produced);
void on_dropped(ibv_cq* cq, const abi::Cqe& cqe);
void on_acknowledgement_wait(const void* object, int32_t completion, int32_t async);
void on_acknowledgements(const void* object);

}  // namespace rocemu::sanitizer
