#include "tests/client/fake_script.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "client/cpp/src/data/convert.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "gtest/gtest.h"

namespace timecache {

grpc::Status MakeError(grpc::StatusCode code, const std::string& message,
                       v1::ErrorReason reason,
                       const std::map<std::string, std::string>& metadata) {
  return MakeLaterError(code, message, Name(reason), metadata);
}

grpc::Status MakeLaterError(
    grpc::StatusCode code, const std::string& message,
    const std::string& reason,
    const std::map<std::string, std::string>& metadata) {
  google::rpc::ErrorInfo info;
  info.set_reason(reason);
  info.set_domain("timecached");
  info.mutable_metadata()->insert(metadata.begin(), metadata.end());
  google::rpc::Status details;
  details.set_code(code);
  details.set_message(message);
  details.add_details()->PackFrom(info);
  return grpc::Status(code, message, details.SerializeAsString());
}

v1::WatchExpiredResponse MakeBatch(const std::string& ns,
                                   const std::string& key, int death_unix_s,
                                   int watermark_unix_s) {
  const absl::Time death = absl::FromUnixSeconds(death_unix_s);
  v1::WatchExpiredResponse batch;
  batch.set_namespace_(ns);
  *batch.mutable_watermark() = ToProto(absl::FromUnixSeconds(watermark_unix_s));
  batch.set_resume_token(absl::StrCat(ns, "@", watermark_unix_s));
  if (key.empty()) return batch;
  v1::ExpiredEvent& event = *batch.add_events();
  event.set_namespace_(ns);
  event.set_key(key);
  event.set_value("value of " + key);
  event.set_version(death_unix_s);
  event.set_cause(v1::EXPIRY_CAUSE_EXPIRED);
  *event.mutable_put_time() = ToProto(death - kFakeTtl);
  *event.mutable_deadline() = ToProto(death);
  *event.mutable_death_time() = ToProto(death);
  *event.mutable_delivered_at() =
      ToProto(absl::FromUnixSeconds(watermark_unix_s));
  return batch;
}

std::string TokenOf(uint64_t event_id, uint32_t attempt, uint32_t returns) {
  return absl::StrCat(event_id, " ", attempt, " ", returns);
}

uint64_t EventIdOf(const v1::Settlement& settlement) {
  uint64_t event_id = 0;
  const std::string& token = settlement.delivery_token();
  EXPECT_TRUE(absl::SimpleAtoi(token.substr(0, token.find(' ')), &event_id));
  return event_id;
}

v1::WatchExpiredResponse MakeDelivery(const std::string& ns,
                                      const std::string& key, uint64_t event_id,
                                      uint32_t attempt) {
  v1::WatchExpiredResponse batch = MakeBatch(ns, key, 40, 41);
  batch.clear_resume_token();
  batch.mutable_events(0)->set_event_id(event_id);
  batch.mutable_events(0)->set_attempt(attempt);
  batch.mutable_events(0)->set_delivery_token(TokenOf(event_id, attempt));
  return batch;
}

grpc::Status NamespaceNotFound(const std::string& name) {
  return MakeError(grpc::StatusCode::NOT_FOUND,
                   absl::StrCat("namespace \"", name, "\" does not exist"),
                   v1::NAMESPACE_NOT_FOUND);
}

}  // namespace timecache
