#include "server/main/reload.h"

#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "google/protobuf/util/message_differencer.h"
#include "server/ops/log.h"

namespace timecache::server {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::util::MessageDifferencer;

// Messages with fields of the configuration, which are not values.
bool IsSection(const FieldDescriptor* field) {
  return field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE &&
         !field->is_repeated() &&
         field->message_type()->full_name() != "google.protobuf.Duration";
}

void CopyField(const Message& from, const FieldDescriptor* field, Message* to) {
  const std::unique_ptr<Message> copy(from.New());
  copy->CopyFrom(from);
  to->GetReflection()->SwapFields(copy.get(), to, {field});
}

std::string ListOf(const std::vector<std::string>& fields) {
  return fields.empty() ? "none" : absl::StrJoin(fields, ",");
}

}  // namespace

Reload::Reload(config::v1::ServerConfig config, Load load)
    : load_(std::move(load)), config_(std::move(config)) {
  state_.loaded_at_us = absl::ToUnixMicros(absl::Now());
}

void Reload::Apply(const std::string& field, Applier applier) {
  appliers_[field] = std::move(applier);
}

void Reload::Apply(
    const std::string& field,
    std::function<void(const config::v1::ServerConfig& now)> applier) {
  Apply(field, Applier([applier = std::move(applier)](
                           const config::v1::ServerConfig&,
                           const config::v1::ServerConfig& now) {
          applier(now);
          return absl::OkStatus();
        }));
}

void Reload::Also(std::function<void()> check) {
  checks_.push_back(std::move(check));
}

bool Reload::Run() {
  absl::StatusOr<config::v1::ServerConfig> loaded = load_();
  Outcome outcome;
  if (loaded.ok()) {
    loaded_ = *std::move(loaded);
    config::v1::ServerConfig in_force = config_;
    Compare(config_, loaded_, "", &in_force, &outcome);
    config_ = std::move(in_force);
    const bool clean = outcome.needs_restart.empty() && outcome.failed.empty();
    Log(clean ? LogLevel::kInfo : LogLevel::kWarning, "config_reloaded",
        {{"applied", ListOf(outcome.applied)},
         {"needs_restart", ListOf(outcome.needs_restart)},
         {"failed", ListOf(outcome.failed)}});
  } else {
    Log(LogLevel::kError, "config_refused",
        {{"error", loaded.status().message()},
         {"about", "the configuration before stays in force"}});
  }
  for (const auto& check : checks_) check();
  const bool ok = loaded.ok() && outcome.failed.empty();
  absl::MutexLock lock(&mu_);
  state_.ok = ok;
  ++(ok ? state_.succeeded : state_.failed);
  if (loaded.ok()) state_.loaded_at_us = absl::ToUnixMicros(absl::Now());
  return ok;
}

ReloadState Reload::state() const {
  absl::MutexLock lock(&mu_);
  return state_;
}

void Reload::Compare(const Message& before, const Message& now,
                     const std::string& prefix, Message* in_force,
                     Outcome* outcome) {
  const auto* descriptor = before.GetDescriptor();
  const auto* reflection = before.GetReflection();
  for (int i = 0; i < descriptor->field_count(); ++i) {
    const FieldDescriptor* field = descriptor->field(i);
    MessageDifferencer differencer;
    if (differencer.CompareWithFields(before, now, {field}, {field})) continue;
    const std::string path = absl::StrCat(prefix, field->name());
    // An applier of a whole section covers all its fields.
    if (IsSection(field) && !appliers_.contains(path)) {
      Compare(reflection->GetMessage(before, field),
              reflection->GetMessage(now, field), absl::StrCat(path, "."),
              reflection->MutableMessage(in_force, field), outcome);
    } else if (ApplyField(path, outcome)) {
      CopyField(now, field, in_force);
    }
  }
}

// Returns whether the loaded field is in force now.
bool Reload::ApplyField(const std::string& path, Outcome* outcome) {
  const auto applier = appliers_.find(path);
  if (applier == appliers_.end()) {
    outcome->needs_restart.push_back(path);
    return false;
  }
  const absl::Status status = applier->second(config_, loaded_);
  if (status.ok()) {
    outcome->applied.push_back(path);
    return true;
  }
  outcome->failed.push_back(absl::StrCat(path, " (", status.message(), ")"));
  return false;
}

}  // namespace timecache::server
