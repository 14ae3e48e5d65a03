// A program's verbs calls in the form in which the sanitizer's checks get them. A test makes one
// call in a line.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "emulator/abi/send_opcodes.h"
#include "emulator/sanitizer/sanitizer.h"

namespace rocemu::sanitizer {

/// Two objects of each kind: QP 1 completes in CQ 1 and QP 2 in CQ 2. Each QP has room for four
/// requests.
class ScriptedProgram final : public Host {
 public:
  ScriptedProgram() {
    for (uint32_t number : {1u, 2u}) {
      auto cq = std::make_unique<Cq>();
      cq->kind = ObjectKind::kCq;
      cq->handle = &cqs_[number];
      cq->number = number;
      cq->capacity = 100;
      const Cq& added = sanitizer_.objects().cqs.add(std::move(cq));
      add_qp(number, added);
    }
  }

  struct Wr {
    uint64_t wr_id;
    bool is_signaled = true;
    uint32_t lkey = 7;
    uint64_t address = 0x1000;
    uint32_t length = 8;  // of the buffer at the address
    uint64_t second = 0;  // the address of 8 further bytes; 0: there are none
    abi::WrOpcode opcode = abi::WrOpcode::kRdmaWrite;
    bool is_fenced = false;
  };

  /// Posts as many requests of the list as fit. Returns whether it posted all.
  bool post(uint32_t qp_number, std::vector<Wr> list, const void* head = nullptr,
            Thread thread = 1) {
    return post_to(qp(qp_number).sends, std::move(list), head, thread);
  }
  bool post_receive(uint32_t qp_number, Wr wr, Thread thread = 1) {
    return post_to(qp(qp_number).receives, {wr}, nullptr, thread);
  }
  void poll(uint32_t number, Thread thread = 1) {
    Cq& one = cq(number);
    ++one.polls;
    if (one.polled_by != 0 && one.polled_by != thread) one.is_polled_by_several = true;
    one.polled_by = thread;
    sanitizer_.tell(Poll{one, thread});
  }
  /// Polls the completion of the send `request`.
  void complete(uint32_t qp_number, uint64_t request, uint32_t status = 0, Thread thread = 1) {
    poll(qp_number, thread);
    complete_queue(qp(qp_number).sends, request, status, thread);
  }
  /// Adds the completion of `request` to the latest poll.
  void complete_queue(Queue& queue, uint64_t request, uint32_t status, Thread thread = 1) {
    sanitizer_.tell(Completion{sanitizer_.objects(),
                               cq(queue.number),
                               queue,
                               thread,
                               {},
                               request,
                               status,
                               &queue.requests.at(request),
                               /*opcode=*/0,
                               /*length=*/0,
                               /*source_qp=*/0,
                               queue.qp});
    queue.requests.finish_up_to(request);
    if (status != 0) queue.qp->note_error(queue.kind, request);
  }
  /// Polls the completion of a receive. The completion is number `index` of its CQ, and `produced`
  /// completions were written to the CQ before the poll.
  void receive(uint32_t qp_number, uint64_t request, uint32_t index, uint32_t produced,
               uint32_t length = 8) {
    Queue& queue = qp(qp_number).receives;
    sanitizer_.tell(Completion{.objects = sanitizer_.objects(),
                               .cq = cq(1),
                               .queue = queue,
                               .thread = 1,
                               .site = {},
                               .last = request,
                               .status = 0,
                               .request = &queue.requests.at(request),
                               .opcode = 128,  // IBV_WC_RECV
                               .length = length,
                               .qp = queue.qp,
                               .index = index,
                               .produced = produced});
    queue.requests.finish_up_to(request);
  }
  /// Polls the failed completion of a receive that the QP took from an SRQ.
  void fail_receive_of_srq(uint32_t qp_number) {
    poll(1);
    constexpr uint32_t kLocalLengthError = 1;  // ibv_wc_status
    sanitizer_.tell(Completion{.objects = sanitizer_.objects(),
                               .cq = cq(1),
                               .queue = srq_.receives,
                               .thread = 1,
                               .site = {},
                               .last = 0,
                               .status = kLocalLengthError,
                               .qp = &qp(qp_number)});
  }
  void change(uint32_t qp_number, abi::QpState to) {
    Qp& one = qp(qp_number);
    sanitizer_.tell(StateChange{one, one.state, to, {}});
    one.enter(to);
  }
  void destroy_qp(uint32_t number) { destroy(qp(number)); }
  void add_region(uint32_t lkey, uint64_t address, uint64_t memory) {
    auto region = std::make_unique<Mr>();
    region->kind = ObjectKind::kMr;
    region->handle = &regions_[lkey];
    region->number = lkey;
    region->lkey = lkey;
    region->address = address;
    region->length = 0x1000;
    region->has_addresses = true;
    region->memory = memory;
    Objects& objects = sanitizer_.objects();
    objects.regions_by_lkey[lkey] = &objects.regions.add(std::move(region));
  }
  void deregister(uint32_t lkey) {
    Mr region;
    region.kind = ObjectKind::kMr;
    region.number = 3;
    region.lkey = lkey;
    destroy(region);
  }

  Qp& qp(uint32_t number) { return *sanitizer_.objects().qps.find(&qps_[number]); }
  Cq& cq(uint32_t number) { return *sanitizer_.objects().cqs.find(&cqs_[number]); }
  Sanitizer& sanitizer() { return sanitizer_; }

  /// Returns the reports since the last call, as "rule: message".
  std::vector<std::string> reports() { return std::exchange(reports_, {}); }

  bool has_other_threads = false;

  void report(const Report& report) override {
    reports_.push_back(std::string(report.rule.id) + ": " + report.message);
  }
  uint64_t report_unless_withdrawn(const Report& report) override {
    this->report(report);
    return ++pending_;
  }
  void withdraw(uint64_t) override { reports_.pop_back(); }
  bool is_single_threaded() override { return !has_other_threads; }
  std::optional<uint64_t> checksum(std::span<const abi::Sge>, ReadableBytes&) override {
    return bytes;
  }
  CallSite here(std::string_view call) override { return {call}; }

  /// The checksum that the buffer of every send has.
  uint64_t bytes = 0;

 private:
  void add_qp(uint32_t number, const Cq& cq) {
    auto qp = std::make_unique<Qp>();
    qp->kind = ObjectKind::kQp;
    qp->handle = &qps_[number];
    qp->number = number;
    qp->type = abi::QpType::kRc;
    qp->state = abi::QpState::kRts;
    qp->sends_to = qp->receives_from = &cq;
    for (Queue* queue : {&qp->sends, &qp->receives}) {
      queue->qp = qp.get();
      queue->number = number;
      queue->capacity = 4;
    }
    qp->receives.kind = QueueKind::kReceive;
    srq_.receives.kind = QueueKind::kShared;
    sanitizer_.objects().qps.add(std::move(qp));
  }

  bool post_to(Queue& queue, std::vector<Wr> list, const void* head, Thread thread) {
    const uint64_t begin = queue.requests.posted() + 1;
    bool is_full = false;
    for (const Wr& wr : list) {
      is_full = queue.requests.size() == queue.capacity;
      if (is_full) break;
      Request& request = queue.requests.push();
      request.wr_id = wr.wr_id;
      request.is_signaled = wr.is_signaled;
      request.opcode = static_cast<uint32_t>(wr.opcode);
      request.is_fenced = wr.is_fenced;
      request.sges = {{wr.address, wr.length, wr.lkey}};
      if (wr.second != 0) request.sges.push_back({wr.second, 8, wr.lkey});
    }
    sanitizer_.tell(Post{.objects = sanitizer_.objects(),
                         .queue = queue,
                         .thread = thread,
                         .site = {},
                         .begin = begin,
                         .end = queue.requests.posted() + 1,
                         .head = head,
                         .head_wr_id = list[0].wr_id,
                         .refusal = is_full ? Refusal::kFull : Refusal::kNone});
    return !is_full;
  }

  void destroy(Object& object) {
    sanitizer_.tell(Destruction{sanitizer_.objects(), object, 1, {}});
  }

  static Selection all_rules() { return select_rules("all").rules; }

  // the map's values only provide addresses, which serve as handles
  std::map<uint32_t, int> qps_, cqs_, regions_;
  Srq srq_;
  Sanitizer sanitizer_{all_rules(), *this};
  std::vector<std::string> reports_;
  uint64_t pending_ = 0;
};

}  // namespace rocemu::sanitizer
