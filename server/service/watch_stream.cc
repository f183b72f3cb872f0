#include "server/service/watch_stream.h"

#include <grpcpp/impl/codegen/proto_utils.h>

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/engine/error.h"
#include "server/service/convert.h"
#include "server/service/event_codec.h"
#include "server/service/status.h"
#include "server/service/watch_message.h"

namespace timecache {
namespace {

// The engine knows one namespace; a watch has several.
std::string FieldPath(const std::string& field) {
  return field == "namespace" ? "namespaces" : field;
}

}  // namespace

WatchStream* WatchStream::Start(WatchHub* hub, const Registry& registry,
                                const grpc::ByteBuffer& request) {
  std::shared_ptr<WatchStream> stream(new WatchStream(hub));
  stream->self_ = stream;
  const absl::Status status = stream->Open(registry, request);
  absl::MutexLock lock(&stream->mu_);
  if (status.ok()) {
    stream->Pump();
  } else {
    stream->End(status);
  }
  return stream.get();
}

absl::Status WatchStream::Open(const Registry& registry,
                               grpc::ByteBuffer request) {
  using Traits = grpc::SerializationTraits<v1::WatchExpiredRequest>;
  if (!Traits::Deserialize(&request, &request_).ok()) {
    return absl::InvalidArgumentError(
        "the request is not a timecache.v1.WatchExpiredRequest: send one that "
        "was made from the service's proto");
  }
  const int count = request_.namespaces_size();
  if (count == 0 || count > kMaxNamespaces) {
    return InvalidField(
        "namespaces",
        absl::StrCat("must be 1 to ", kMaxNamespaces, " names, not ", count));
  }
  if (std::set<std::string>(request_.namespaces().begin(),
                            request_.namespaces().end())
          .size() != static_cast<size_t>(count)) {
    return InvalidField("namespaces", "must name each namespace once");
  }
  if (request_.key_prefix().size() > kMaxKeyBytes) {
    return InvalidField(
        "key_prefix",
        absl::StrCat("must be at most ", kMaxKeyBytes, " bytes, not ",
                     request_.key_prefix().size()));
  }
  if (request_.has_heartbeat_interval()) {
    const auto interval_us =
        ToMicros(request_.heartbeat_interval(), "heartbeat_interval");
    if (!interval_us.ok()) return interval_us.status();
    if (*interval_us < kMinHeartbeatUs || *interval_us > kMaxHeartbeatUs) {
      return InvalidField("heartbeat_interval", "must be between 10ms and 1h");
    }
    interval_us_ = *interval_us;
  }
  if (!v1::WatchStart_IsValid(request_.start())) {
    return InvalidField("start",
                        absl::StrCat("has no value ", request_.start()));
  }
  std::vector<std::shared_ptr<TimeCacheMap>> maps;
  for (const std::string& name : request_.namespaces()) {
    auto map = registry.Find(name);
    if (!map.ok()) return map.status();
    maps.push_back(*std::move(map));
  }
  if (absl::Status status = hub_->Add(self_); !status.ok()) return status;
  const ExpiryLog::Start start = request_.start() == v1::WATCH_START_EARLIEST
                                     ? ExpiryLog::Start::kEarliest
                                     : ExpiryLog::Start::kNow;
  absl::MutexLock lock(&mu_);
  for (auto& map : maps) {
    Source& source = sources_.emplace_back();
    source.map = std::move(map);
    source.cursor = source.map->Subscribe(
        start, hub_->clock()->NowUs(),
        [hub = hub_, weak = std::weak_ptr<WatchStream>(self_)] {
          if (auto stream = weak.lock()) hub->Notify(stream);
        });
    // The first message is due now: it says that the watch stands.
    source.heartbeat_us = INT64_MIN;
  }
  return absl::OkStatus();
}

void WatchStream::OnWake(Wake why) {
  absl::MutexLock lock(&mu_);
  if (ended_) return;
  if (why == Wake::kDrain) draining_ = true;
  if (why != Wake::kReady) {
    for (Source& source : sources_) source.heartbeat_us = INT64_MIN;
  }
  Pump();
}

void WatchStream::OnWriteDone(bool ok) {
  absl::MutexLock lock(&mu_);
  writing_ = false;
  if (ended_) return;
  if (!ok || cancelled_) {
    End(absl::CancelledError("the watcher is gone"));
    return;
  }
  Pump();
}

void WatchStream::OnCancel() {
  absl::MutexLock lock(&mu_);
  cancelled_ = true;
  // A write that is in flight fails now, and ends the stream.
  if (!ended_ && !writing_) End(absl::CancelledError("the watcher is gone"));
}

void WatchStream::OnDone() {
  hub_->Remove(self_);
  std::vector<Source> sources;
  {
    absl::MutexLock lock(&mu_);
    sources.swap(sources_);
  }
  sources.clear();
  self_.reset();
}

// Writes the next message, if there is one and none is in flight: sources take
// turns.
void WatchStream::Pump() {
  if (writing_ || ended_) return;
  const int64_t now_us = hub_->clock()->NowUs();
  for (size_t i = 0; i < sources_.size() && !ended_; ++i) {
    Source& source = sources_[turn_];
    turn_ = (turn_ + 1) % sources_.size();
    if (Compose(&source, now_us)) {
      writing_ = true;
      StartWrite(&message_);
      return;
    }
  }
  if (ended_) return;
  if (draining_) {
    End(absl::OkStatus());
  } else {
    SetTimer();
  }
}

// Fills message_ with what the source has; false if there is nothing to say.
bool WatchStream::Compose(Source* source, int64_t now_us) {
  const bool heartbeat = source->heartbeat_us <= now_us;
  if (heartbeat) source->map->RefreshWatermark(now_us);
  WatchMessage message;
  for (int reads = 0; reads < kMaxEmptyReads; ++reads) {
    const ExpiryLog::Chunk chunk = source->cursor->Read(kMaxMessageBytes);
    for (const auto& batch : chunk.batches) {
      message.Add(Filter(batch, source->map->name(), request_.key_prefix(),
                         request_.keys_only()));
    }
    message.lost += chunk.lost;
    message.watermark_us = chunk.watermark_us;
    const bool told = !message.empty() || message.lost > 0;
    if (chunk.closed && !told) {
      End(ErrorWithReason(
          absl::StatusCode::kNotFound, "NAMESPACE_NOT_FOUND",
          absl::StrCat("namespace ", source->map->name(), " was deleted")));
      return false;
    }
    if (!chunk.more) {
      if (!told && !heartbeat) return false;
      // Only now: a heartbeat is due until the watermark behind all events is
      // told, also where the last of them are filtered out.
      source->heartbeat_us = draining_ ? kNeverUs : now_us + interval_us_;
      break;
    }
    if (told) break;
  }
  // A filter that lets nothing pass still tells how far it has come.
  message_ = message.Take(source->map->name());
  return true;
}

void WatchStream::SetTimer() {
  int64_t due_us = kNeverUs;
  for (const Source& source : sources_)
    due_us = std::min(due_us, source.heartbeat_us);
  hub_->SetTimer(self_, due_us);
}

void WatchStream::End(const absl::Status& status) {
  ended_ = true;
  Finish(ToGrpcStatus(status, FieldPath));
}

}  // namespace timecache
