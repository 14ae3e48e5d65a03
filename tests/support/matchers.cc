#include "tests/support/matchers.h"

#include <sstream>
#include <string_view>

#include "emulator/abi/ucma.h"

namespace rocemu::test {
namespace {

using engine::Output;

template <class Value>
void compare(std::string& out, std::string_view what, const Value& want, const Value& got) {
  if (want == got) return;
  std::ostringstream text;
  text << what << " is " << got << ", not " << want << "; ";
  out += text.str();
}

std::string mismatch_of(const PacketSpec& want, const Output& output) {
  const auto* transmitted = std::get_if<engine::TransmitFrame>(&output);
  const auto* trace = std::get_if<engine::FrameTrace>(&output);
  if (transmitted == nullptr && trace == nullptr) return "not a frame";
  const auto bytes = transmitted != nullptr ? transmitted->frame.bytes() : trace->frame.bytes();
  const auto got = wire::parse_frame(bytes);
  if (!got) return "frame does not parse: " + std::string(wire::name(got.error()));

  std::string out;
  const wire::Bth& bth = got->bth;
  const wire::Bth& spec = want.packet.bth;
  compare(out, "opcode", wire::name(spec.opcode), wire::name(bth.opcode));
  compare(out, "PSN", spec.psn.value(), bth.psn.value());
  compare(out, "AckReq", spec.ack_req, bth.ack_req);
  compare(out, "SE", spec.solicited, bth.solicited);
  compare(out, "P_Key", spec.pkey, bth.pkey);
  if (want.qpn) compare(out, "destination QP", *want.qpn, bth.dest_qpn);
  if (want.src_ip) compare(out, "source", to_string(*want.src_ip), to_string(got->src_ip));
  if (want.dst_ip) compare(out, "destination", to_string(*want.dst_ip), to_string(got->dst_ip));
  const wire::OpcodeInfo* info = wire::find_opcode(bth.opcode);
  if (info != nullptr && info->has(wire::ExtendedHeader::kAeth)) {
    compare<uint32_t>(out, "syndrome", want.packet.aeth.syndrome, got->aeth.syndrome);
    if (want.msn) compare(out, "MSN", *want.msn, got->aeth.msn);
  }
  if (info != nullptr && info->has(wire::ExtendedHeader::kImmDt)) {
    compare(out, "immediate", want.packet.imm.value, got->imm.value);
  }
  if (info != nullptr && info->has(wire::ExtendedHeader::kDeth)) {
    compare(out, "Q_Key", want.packet.deth.qkey, got->deth.qkey);
    compare(out, "source QP", want.packet.deth.src_qpn, got->deth.src_qpn);
  }
  if (info != nullptr && info->has(wire::ExtendedHeader::kXrceth)) {
    compare(out, "XRC SRQ", want.packet.xrceth.srqn, got->xrceth.srqn);
  }
  if (want.length) compare(out, "payload size", *want.length, got->payload.size());
  if (want.payload) {
    compare(out, "payload size", want.payload->size(), got->payload.size());
    if (!std::equal(want.payload->begin(), want.payload->end(), got->payload.begin(),
                    got->payload.end())) {
      out += "the payload's bytes differ; ";
    }
  }
  return out;
}

template <class Kind, class Check>
Expected expect_one(std::string text, Check check) {
  return {text, [text, check](const Output& output) -> std::string {
            const auto* one = std::get_if<Kind>(&output);
            return one != nullptr && check(*one) ? "" : "not " + text;
          }};
}

template <class Kind>
std::string print(const Kind& output) {
  std::ostringstream text;
  PrintTo(output, &text);
  return text.str();
}

}  // namespace

std::string to_string(abi::WcStatus status) {
  return std::string(abi::name_of(status));
}

std::string to_string(abi::EventType type) {
  return std::string(abi::name_of(type));
}

std::string to_string(abi::QpState state) {
  return std::string(abi::name_of(state));
}

std::string to_string(const abi::Cqe& cqe) {
  std::ostringstream text;
  text << (cqe.queue == abi::WorkQueue::kSend ? "send" : "recv") << " wr_id=" << cqe.wr_id << " "
       << to_string(static_cast<abi::WcStatus>(cqe.status)) << " opcode=" << cqe.opcode
       << " vendor_err=" << cqe.vendor_err << " byte_len=" << cqe.byte_len << " qp=" << cqe.qp_num
       << " wqe_count=" << cqe.wqe_count << " generation=" << cqe.qp_generation
       << " wc_flags=" << cqe.wc_flags << " imm=" << cqe.imm_data;
  return text.str();
}

std::string to_string(const Output& output) {
  return std::visit([](const auto& one) { return print(one); }, output);
}

Expected::Expected(const PacketSpec& spec)
    : text(wire::to_string(spec.packet)),
      mismatch([spec](const Output& output) { return mismatch_of(spec, output); }) {}

CompletionSpec::operator Expected() const {
  const CompletionSpec want = *this;
  std::string text = "completion wr_id=" + std::to_string(wr_id_) + " " + to_string(status_);
  return {text, [want](const Output& output) -> std::string {
            const auto* completion = std::get_if<engine::Completion>(&output);
            if (completion == nullptr) return "not a completion";
            const abi::Cqe& cqe = completion->cqe;
            std::string out;
            compare(out, "wr_id", want.wr_id_, cqe.wr_id);
            compare(out, "status", to_string(want.status_),
                    to_string(static_cast<abi::WcStatus>(cqe.status)));
            if (want.vendor_) {
              compare(out, "vendor_err", static_cast<uint32_t>(*want.vendor_), cqe.vendor_err);
            }
            if (want.byte_len_) compare(out, "byte_len", *want.byte_len_, cqe.byte_len);
            if (want.opcode_ && want.status_ == abi::WcStatus::kSuccess) {
              compare(out, "opcode", static_cast<uint32_t>(*want.opcode_), cqe.opcode);
            }
            if (want.wqe_count_) compare(out, "wqe_count", *want.wqe_count_, cqe.wqe_count);
            if (want.generation_) compare(out, "generation", *want.generation_, cqe.qp_generation);
            if (want.queue_) {
              compare<uint32_t>(out, "queue", static_cast<uint32_t>(*want.queue_),
                                static_cast<uint32_t>(cqe.queue));
            }
            if (want.src_qp_) compare(out, "src_qp", *want.src_qp_, cqe.src_qp);
            const uint32_t flags =
                (want.imm_ ? abi::kWcWithImm : 0u) | (want.grh_ ? abi::kWcGrh : 0u);
            compare(out, "wc_flags", flags, cqe.wc_flags);
            if (want.imm_) compare(out, "imm_data", *want.imm_, cqe.imm_data);
            return out;
          }};
}

Expected event(abi::EventType type, uint64_t element) {
  return expect_one<engine::AsyncEvent>(
      "async event " + to_string(type) + " of " + std::to_string(element),
      [=](const engine::AsyncEvent& got) { return got.type == type && got.element == element; });
}

Expected completion_event(uint64_t cq_user_handle) {
  return expect_one<engine::CompletionEvent>(
      "completion event of " + std::to_string(cq_user_handle),
      [=](const engine::CompletionEvent& got) { return got.user_handle == cq_user_handle; });
}

Expected cq_failed() {
  return expect_one<engine::CqFailed>("CQ failed", [](const engine::CqFailed&) { return true; });
}

Expected violation() {
  return expect_one<engine::ClientViolation>("violation",
                                             [](const engine::ClientViolation&) { return true; });
}

uint64_t counter(const engine::Engine& engine, engine::Counter which, size_t device) {
  return engine.snapshot().devices.at(device).counters.get(which);
}

}  // namespace rocemu::test

namespace rocemu::engine {
namespace {

std::string text_of(const Frame& frame) {
  const auto packet = wire::parse_frame(frame.bytes());
  if (!packet) return "frame of " + std::to_string(frame.bytes().size()) + " bytes";
  return wire::to_string(*packet);
}

}  // namespace

void PrintTo(const Completion& output, std::ostream* os) {
  *os << "completion (client " << output.client.value << ", CQ " << output.cq.value << ") "
      << test::to_string(output.cqe);
}
void PrintTo(const CqFailed& output, std::ostream* os) {
  *os << "CQ failed (client " << output.client.value << ", CQ " << output.cq.value << ")";
}
void PrintTo(const DeviceLost& output, std::ostream* os) {
  *os << "device lost (client " << output.client.value << ")";
}
void PrintTo(const CompletionEvent& output, std::ostream* os) {
  *os << "completion event (client " << output.client.value << ", CQ " << output.cq.value
      << ", channel " << output.channel.value << ") of " << output.user_handle;
}
void PrintTo(const AsyncEvent& output, std::ostream* os) {
  *os << "async event (client " << output.client.value << ") " << test::to_string(output.type)
      << " of " << output.element;
}
void PrintTo(const ClientViolation& output, std::ostream* os) {
  *os << "violation by client " << output.client.value << ": " << output.reason;
}
void PrintTo(const TransmitFrame& output, std::ostream* os) {
  *os << "frame from device " << output.device.value << ": " << text_of(output.frame);
}
void PrintTo(const FrameTrace& output, std::ostream* os) {
  *os << "trace: " << text_of(output.frame);
}
void PrintTo(const RuleFired& output, std::ostream* os) {
  *os << "rule '" << output.rule->name << "' acts on " << output.subject;
}
void PrintTo(const DeviceChanged& output, std::ostream* os) {
  *os << "device " << output.device.value << " changed";
}
void PrintTo(const GroupChange& output, std::ostream* os) {
  *os << (output.member ? "joins " : "leaves ") << wire::to_string(output.group) << " on device "
      << output.device.value;
}
void PrintTo(const CmEvent& output, std::ostream* os) {
  *os << "rdma_cm event " << static_cast<uint32_t>(output.event->event) << " (channel "
      << output.channel.value << ") of id " << output.event->id << ", status "
      << static_cast<int32_t>(output.event->status);
}
void PrintTo(const KillProcess& output, std::ostream* os) {
  const auto* client = std::get_if<ClientId>(&output.of);
  *os << "kills the process of " << (client != nullptr ? "client " : "channel ")
      << (client != nullptr ? client->value : std::get<CmChannelId>(output.of).value);
}

}  // namespace rocemu::engine
