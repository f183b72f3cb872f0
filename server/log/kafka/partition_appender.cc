#include "server/log/kafka/partition_appender.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/base/coding.h"
#include "server/base/safety_rule.h"

namespace timecache::server {
namespace {

bool IsStored(const SendReport& report) { return report.status.ok(); }

}  // namespace

PartitionAppender::PartitionAppender(
    uint32_t partition, LogFilter filter, uint64_t claim_offset, AppenderIo* io,
    std::function<void(const absl::Status&)> on_lost,
    std::function<bool()> may_delete, uint32_t first_partition)
    : partition_(partition),
      in_topic_(first_partition + partition),
      claim_(filter.claim()),
      io_(*io),
      on_lost_(std::move(on_lost)),
      may_delete_(std::move(may_delete)),
      claim_offset_(claim_offset),
      filter_(std::move(filter)),
      known_offset_(claim_offset),
      end_(claim_offset + 1) {}

void PartitionAppender::Append(std::vector<std::string> records,
                               Journal::AppendDone done) {
  size_t bytes = 0;
  for (const std::string& record : records) {
    bytes += kRecordHeaderBytes + record.size();
  }
  if (records.empty() || bytes > kAppendBytesMax) {
    done(
        absl::InvalidArgumentError(absl::StrCat(
            "an append of ", records.size(), " records and ", bytes, " bytes")),
        std::move(records));
    return;
  }
  absl::Status ended;
  bool is_first = false;
  {
    absl::MutexLock lock(&mu_);
    ended = ended_;
    if (ended.ok()) {
      waiting_.push_back({std::move(records), std::move(done), bytes});
      is_first = !std::exchange(busy_, true);
    }
  }
  if (!ended.ok()) {
    done(std::move(ended), std::move(records));
  } else if (is_first) {
    SendNext();
  }
}

void PartitionAppender::SendNext() {
  {
    absl::MutexLock lock(&mu_);
    if (!TakeGroup()) {
      busy_ = false;
      return;
    }
  }
  group_.began = std::chrono::steady_clock::now();
  SendGroup();
}

bool PartitionAppender::TakeGroup() {
  if (!ended_.ok()) return false;
  const size_t bytes_max = message_bytes_max_ - kRecordsHeaderBytes;
  while (!waiting_.empty() &&
         (group_.appends.empty() ||
          group_.bytes + waiting_.front().bytes <= bytes_max)) {
    group_.bytes += waiting_.front().bytes;
    group_.header.count +=
        static_cast<uint32_t>(waiting_.front().records.size());
    group_.appends.push_back(std::move(waiting_.front()));
    waiting_.pop_front();
  }
  if (group_.appends.empty() && !MayTrim()) return false;
  group_.header.log_id = filter_.log_id();
  group_.header.claim = claim_;
  group_.header.first = filter_.next();
  group_.header.trimmed = MayTrim() ? to_trim_ : filter_.trimmed();
  return true;
}

void PartitionAppender::SendGroup() {
  group_.header.attempt = ++attempt_;
  group_.header.claim_offset = claim_offset_;
  group_.header.end = end_;
  std::vector<std::string> pieces = EncodeGroup();
  reports_.assign(pieces.size(), {});
  reported_ = 0;
  // With the last one the group is another thread's.
  for (size_t i = 0; i < pieces.size(); ++i) {
    io_.Send(partition_, std::move(pieces[i]),
             [this, i](const SendReport& report, std::string value) {
               OnReport(i, report, std::move(value));
             });
  }
}

std::vector<std::string> PartitionAppender::EncodeGroup() {
  const size_t room = message_bytes_max_ - kRecordsHeaderBytes;
  const size_t count = std::max<size_t>(1, (group_.bytes + room - 1) / room);
  std::vector<std::string> pieces;
  size_t left = group_.bytes;
  const auto begin_piece = [&] {
    std::string piece = std::move(spare_);
    spare_ = std::string();
    piece.clear();
    piece.reserve(kRecordsHeaderBytes + std::min(left, room));
    group_.header.piece = static_cast<uint32_t>(pieces.size());
    group_.header.is_last = pieces.size() + 1 == count;
    PutRecordsHeader(&piece, group_.header);
    pieces.push_back(std::move(piece));
  };
  begin_piece();
  const auto put = [&](absl::string_view bytes) {
    while (!bytes.empty()) {
      const size_t used = pieces.back().size() - kRecordsHeaderBytes;
      if (used == room) {
        begin_piece();
        continue;
      }
      const absl::string_view part = bytes.substr(0, room - used);
      pieces.back().append(part.data(), part.size());
      bytes.remove_prefix(part.size());
      left -= part.size();
    }
  };
  for (const PendingAppend& append : group_.appends) {
    for (const std::string& record : append.records) {
      const auto size = static_cast<uint32_t>(record.size());
      put({reinterpret_cast<const char*>(&size), sizeof size});
      put(record);
    }
  }
  return pieces;
}

void PartitionAppender::OnReport(size_t piece, const SendReport& report,
                                 std::string value) {
  spare_ = std::move(value);
  reports_[piece] = report;
  if (++reported_ == reports_.size()) OnAllReported();
}

void PartitionAppender::OnAllReported() {
  absl::Status ended;
  {
    absl::MutexLock lock(&mu_);
    ended = ended_;
  }
  if (IsDense()) {
    known_offset_ = end_ + reports_.size() - 1;
    known_attempt_ = attempt_;
    known_piece_ = static_cast<uint32_t>(reports_.size() - 1);
    {
      absl::MutexLock lock(&mu_);
      filter_.AddOwn(end_, group_.header.count,
                     group_.bytes + reports_.size() * kRecordsHeaderBytes,
                     group_.header.trimmed);
    }
    end_ = known_offset_ + 1;
    return Complete();
  }
  if (!ended.ok()) return Fail(ended);
  int64_t last = -1;
  absl::Status error;
  for (const SendReport& report : reports_) {
    if (IsStored(report)) {
      last = std::max(last, report.offset);
    } else {
      error = report.status;
      if (absl::IsResourceExhausted(error)) {
        message_bytes_max_ = std::max(kMessageBytesMin, message_bytes_max_ / 2);
      }
    }
  }
  if (last >= static_cast<int64_t>(end_)) {
    ReadBack(static_cast<uint64_t>(last), /*acknowledged=*/true);
  } else if (std::any_of(reports_.begin(), reports_.end(), IsStored)) {
    ReadBack(known_offset_, /*acknowledged=*/false);
  } else {
    SendAgain(std::string(error.message()));
  }
}

bool PartitionAppender::IsDense() const {
  for (size_t i = 0; i < reports_.size(); ++i) {
    if (!IsStored(reports_[i]) ||
        (reports_[i].offset != static_cast<int64_t>(end_ + i) &&
         IsKept(SafetyRule::kClaims))) {
      return false;
    }
  }
  return true;
}

void PartitionAppender::ReadBack(uint64_t to, bool acknowledged) {
  found_known_ = false;
  found_acknowledged_ = false;
  look_status_ = absl::OkStatus();
  // Which piece it is that has the offset `to`.
  uint32_t piece = 0;
  while (acknowledged && (!IsStored(reports_[piece]) ||
                          reports_[piece].offset != static_cast<int64_t>(to))) {
    ++piece;
  }
  io_.ReadBack(
      partition_, known_offset_, to,
      [this, to, acknowledged, piece](uint64_t offset,
                                      absl::string_view value) {
        if (offset == known_offset_) {
          found_known_ = IsSent(value, known_attempt_, known_piece_);
        }
        if (acknowledged && offset == to) {
          found_acknowledged_ = IsSent(value, attempt_, piece);
        }
        if (offset < end_ || !found_known_ || !look_status_.ok()) return;
        absl::MutexLock lock(&mu_);
        look_status_ = filter_.Add(
            offset, value, [](uint64_t, absl::string_view) -> absl::Status {
              return absl::OkStatus();
            });
        end_ = offset + 1;
      },
      [this, to, acknowledged, piece](const absl::Status& status) {
        if (status.ok() && found_acknowledged_ && found_known_) {
          known_offset_ = to;
          known_attempt_ = attempt_;
          known_piece_ = piece;
        }
        OnReadBack(to, acknowledged, status);
      });
}

bool PartitionAppender::IsSent(absl::string_view value, uint32_t attempt,
                               uint32_t piece) const {
  const LogMessage message = DecodeLogMessage(value);
  if (const auto* claim = std::get_if<ClaimMessage>(&message)) {
    return claim->claim == claim_ && attempt == 0;
  }
  const auto* records = std::get_if<RecordsMessage>(&message);
  return records != nullptr && records->claim == claim_ &&
         records->attempt == attempt && records->piece == piece;
}

void PartitionAppender::OnReadBack(uint64_t to, bool acknowledged,
                                   const absl::Status& status) {
  bool is_claimed;
  uint64_t next;
  absl::Status ended;
  {
    absl::MutexLock lock(&mu_);
    is_claimed =
        filter_.claim() != claim_ || filter_.claim_offset() != claim_offset_;
    next = filter_.next();
    ended = ended_;
  }
  if (!ended.ok()) return Fail(ended);
  if (!look_status_.ok()) return Lose(look_status_);
  if (is_claimed || absl::IsFailedPrecondition(status)) {
    return Lose(absl::FailedPreconditionError(
        absl::StrCat("another node has claimed partition ", in_topic_)));
  }
  if (absl::IsOutOfRange(status) ||
      (status.ok() &&
       (!found_known_ || (acknowledged && !found_acknowledged_)))) {
    return Lose(absl::DataLossError(absl::StrCat(
        "partition ", in_topic_,
        " lacks what this node has appended at offset ",
        found_known_ ? to : known_offset_,
        ": the topic was made anew, or its brokers have lost messages")));
  }
  if (!status.ok()) {
    io_.After(pause_, [this, to, acknowledged] { ReadBack(to, acknowledged); });
    pause_ = std::min(2 * pause_, kPauseMax);
    return;
  }
  if (acknowledged && next == group_.header.first + group_.header.count) {
    io_.Log(absl::StrCat("partition ", in_topic_,
                         ": other messages before offset ", to,
                         "; the records up to position ", next, " count"));
    return Complete();
  }
  SendAgain(acknowledged ? "void" : "an offset that cannot be");
}

void PartitionAppender::SendAgain(const std::string& why) {
  io_.Log(absl::StrCat("partition ", in_topic_, ": records from position ",
                       group_.header.first, " are sent again: ", why));
  io_.After(pause_, [this] {
    absl::Status ended;
    {
      absl::MutexLock lock(&mu_);
      ended = ended_;
    }
    if (!ended.ok()) return Fail(ended);
    SendGroup();
  });
  pause_ = std::min(2 * pause_, kPauseMax);
}

void PartitionAppender::Complete() {
  Group group = std::exchange(group_, {});
  pause_ = kPauseMin;
  {
    absl::MutexLock lock(&mu_);
    ++statistics_.commits;
    statistics_.commit_latency.Add(MicrosSince(group.began));
    statistics_.appends += group.appends.size();
    statistics_.records += group.header.count;
    statistics_.appended_bytes +=
        group.bytes - group.header.count * kRecordHeaderBytes;
    statistics_.written_bytes +=
        group.bytes + reports_.size() * kRecordsHeaderBytes;
  }
  // Also what was decided before the journal was held, or by an owner before.
  if (group.header.trimmed > deleted_ && MayDelete()) {
    deleted_ = group.header.trimmed;
    io_.DeleteBefore(partition_, deleted_);
  }
  SendNext();
  uint64_t position = group.header.first;
  for (PendingAppend& append : group.appends) {
    const uint64_t first = position;
    position += append.records.size();
    append.done(first, std::move(append.records));
  }
}

void PartitionAppender::Lose(const absl::Status& why) {
  io_.Log(std::string(why.message()));
  // First: when appends fail, the journal is no longer an owner's.
  on_lost_(why);
  End(absl::FailedPreconditionError(why.message()));
  Fail(absl::FailedPreconditionError(why.message()));
}

void PartitionAppender::Fail(const absl::Status& why) {
  Group group = std::exchange(group_, {});
  {
    absl::MutexLock lock(&mu_);
    busy_ = false;
  }
  for (PendingAppend& append : group.appends) {
    append.done(why, std::move(append.records));
  }
}

void PartitionAppender::End(const absl::Status& why) {
  std::deque<PendingAppend> waiting;
  {
    absl::MutexLock lock(&mu_);
    if (!ended_.ok()) return;
    ended_ = why;
    waiting.swap(waiting_);
  }
  for (PendingAppend& append : waiting) {
    append.done(why, std::move(append.records));
  }
}

bool PartitionAppender::idle() const {
  absl::MutexLock lock(&mu_);
  return !busy_;
}

absl::Status PartitionAppender::TrimBefore(uint64_t position) {
  {
    absl::MutexLock lock(&mu_);
    if (position > filter_.next()) {
      return absl::OutOfRangeError("a trim beyond the end");
    }
    filter_.TrimBefore(position);
    to_trim_ = std::max(to_trim_, filter_.BaseOffset(position));
  }
  SendTrim();
  return absl::OkStatus();
}

void PartitionAppender::SendTrim() {
  {
    absl::MutexLock lock(&mu_);
    if (!ended_.ok() || !MayTrim() || std::exchange(busy_, true)) return;
  }
  SendNext();
}

PartitionAppender::Extent PartitionAppender::Pin() {
  absl::MutexLock lock(&mu_);
  ++pins_;
  return {filter_.first(), filter_.next(), filter_.BaseOffset(filter_.first())};
}

void PartitionAppender::Unpin() {
  {
    absl::MutexLock lock(&mu_);
    --pins_;
  }
  SendTrim();
}

uint64_t PartitionAppender::First() const {
  absl::MutexLock lock(&mu_);
  return filter_.first();
}

uint64_t PartitionAppender::End() const {
  absl::MutexLock lock(&mu_);
  return filter_.next();
}

void PartitionAppender::AddTo(JournalStatistics* statistics) const {
  absl::MutexLock lock(&mu_);
  statistics->disk_bytes += filter_.bytes();
  statistics->needed_bytes += filter_.bytes();
  statistics->closed_bytes += filter_.BytesBefore(filter_.next());
  statistics->appended_bytes += statistics_.appended_bytes;
  statistics->written_bytes += statistics_.written_bytes;
  statistics->appends += statistics_.appends;
  statistics->records += statistics_.records;
  statistics->commits += statistics_.commits;
  statistics->commit_latency.Merge(statistics_.commit_latency);
}

}  // namespace timecache::server
