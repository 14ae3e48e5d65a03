#include "emulator/timeline/arrange.h"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "emulator/timeline/beside.h"

namespace rocemu::timeline {
namespace {

constexpr size_t kNone = SIZE_MAX;

/// A row in the list of one run: a happening, or only arrivals of frames. If two runs are shown,
/// the mark of their first difference is in both lists.
struct Item {
  size_t happening = kNone;
  std::vector<size_t> arrivals;  // happenings whose arrows end here
};
using Items = std::vector<Item>;

/// Beginnings of the names of those librdmacm calls that exchange no message and wait for nothing.
constexpr std::string_view kSetUpOfRdmaCm[] = {
    "rdma_create_id",  "rdma_destroy_id", "rdma_bind",        "rdma_query",
    "rdma_set_option", "rdma_migrate_id", "rdma_init_qp_attr"};

std::string_view first_word(std::string_view text) {
  return text.substr(0, text.find(' '));
}

/// Returns the kind of set-up to which a happening belongs; empty if it is not part of a set-up.
/// Consecutive rows of the same kind fold together.
std::string_view set_up_kind(const Happening& one) {
  const std::string_view verb = first_word(one.text);
  if (one.tone != Tone::kPlain || one.state == "ERR") return "";
  if (one.kind == Kind::kPost) return verb == "post_send" ? "" : verb;
  if (one.kind != Kind::kVerb || verb.starts_with("post_")) return "";
  const bool is_set_up = !verb.starts_with("rdma_") ||
                         std::ranges::find(kSetUpOfRdmaCm, verb) != std::end(kSetUpOfRdmaCm);
  return is_set_up ? "verbs" : "";
}

/// Lists the items of a run from top to bottom.
Items items_of(const Timeline& timeline, uint8_t run) {
  Items items;
  std::multimap<engine::Instant, size_t> in_flight;  // arrows, by arrival
  const auto land_before = [&](engine::Instant time) {
    while (!in_flight.empty() && in_flight.begin()->first < time) {
      const auto [first, last] = in_flight.equal_range(in_flight.begin()->first);
      Item& item = items.emplace_back();
      for (auto it = first; it != last; ++it) item.arrivals.push_back(it->second);
      in_flight.erase(first, last);
    }
  };
  for (size_t i = 0; i < timeline.happenings.size(); ++i) {
    const Happening& one = timeline.happenings[i];
    const bool is_mark = is_first_difference(one);
    if (!is_mark && timeline.lanes[one.lane].run != run) continue;
    if (is_mark) {
      items.push_back({i, {}});
      continue;
    }
    land_before(one.at);
    Item& item = items.emplace_back();
    item.happening = i;
    const auto [first, last] = in_flight.equal_range(one.at);
    for (auto it = first; it != last; ++it) item.arrivals.push_back(it->second);
    in_flight.erase(first, last);
    if (!is_arrow(one) || one.lost) continue;
    if (one.flight.count() > 0) {
      in_flight.emplace(arrival_of(one), i);
    } else {
      item.arrivals.push_back(i);
    }
  }
  land_before(engine::Instant::max());
  return items;
}

/// Assigns rows to the items of all runs, and notes which rows may be folded.
class Rows {
 public:
  explicit Rows(const Timeline& timeline) : timeline_(timeline) {
    result_.spans.resize(timeline.happenings.size());
  }

  Arrangement take(const std::vector<Items>& runs) {
    if (runs.size() == 1) {
      for (const Item& item : runs[0]) begin_row(), put(item);
    } else {
      interleave(runs[0], runs[1]);
    }
    end_fold();
    return std::move(result_);
  }

 private:
  void interleave(const Items& first, const Items& second) {
    const auto is_mark = [&](const Items& items, size_t at) {
      return at < items.size() && items[at].happening != kNone &&
             is_first_difference(timeline_.happenings[items[at].happening]);
    };
    const auto only_arrives = [](const Items& items, size_t at) {
      return at < items.size() && items[at].happening == kNone;
    };
    bool is_same = true;
    for (size_t a = 0, b = 0; a < first.size() || b < second.size();) {
      bool take_a = a < first.size(), take_b = b < second.size();
      if (is_mark(first, a) && is_mark(second, b)) is_same = false;
      if (is_mark(first, a) != is_mark(second, b)) {
        take_a = take_a && !is_mark(first, a);
        take_b = take_b && !is_mark(second, b);
      } else if (is_same && take_a && take_b && only_arrives(first, a) != only_arrives(second, b)) {
        take_a = only_arrives(first, a);
        take_b = !take_a;
      }
      begin_row();
      if (take_a) put(first[a++]);
      if (take_b) put(second[b++]);
    }
  }

  void begin_row() {
    note_fold();
    row_ = result_.rows++;
    row_kind_ = "";
    may_fold_ = true;
  }

  void put(const Item& item) {
    if (!item.arrivals.empty()) may_fold_ = false;
    if (item.happening != kNone) {
      result_.spans[item.happening] = {row_, row_};
      const std::string_view kind = set_up_kind(timeline_.happenings[item.happening]);
      if (kind.empty() || (!row_kind_.empty() && kind != row_kind_)) may_fold_ = false;
      row_kind_ = kind;
    }
    for (const size_t arrow : item.arrivals) result_.spans[arrow].end = row_;
  }

  /// Notes whether the current row can be folded. Must be called when the row is complete.
  void note_fold() {
    if (result_.rows == 0) return;
    const bool folds = may_fold_ && !row_kind_.empty();
    if (!folds || row_kind_ != fold_kind_) end_fold_before(row_);
    if (!folds) return;
    if (fold_kind_.empty()) fold_first_ = row_;
    fold_kind_ = row_kind_;
  }
  void end_fold_before(uint32_t row) {
    if (!fold_kind_.empty() && row - fold_first_ >= kLeastFold)
      result_.folds.push_back({fold_first_, row - 1});
    fold_kind_ = "";
  }
  void end_fold() {
    note_fold();
    end_fold_before(result_.rows);
  }

  const Timeline& timeline_;
  Arrangement result_;
  uint32_t row_ = 0;
  std::string_view row_kind_, fold_kind_;
  bool may_fold_ = false;
  uint32_t fold_first_ = 0;
};

}  // namespace

bool is_arrow(const Happening& one) {
  return one.to != kNoLane && one.to != one.lane;
}

engine::Instant arrival_of(const Happening& one) {
  return one.at + one.flight;
}

Arrangement arrange(const Timeline& timeline) {
  const bool are_two =
      std::ranges::any_of(timeline.lanes, [](const Lane& lane) { return lane.run != 0; });
  std::vector<Items> runs;
  if (are_two) {
    for (const uint8_t run : {uint8_t{1}, uint8_t{2}}) runs.push_back(items_of(timeline, run));
  } else {
    runs.push_back(items_of(timeline, 0));
  }
  return Rows(timeline).take(runs);
}

}  // namespace rocemu::timeline
