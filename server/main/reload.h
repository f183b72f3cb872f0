// Reloads the configuration on SIGHUP, field by field.

#ifndef TIMECACHED_SERVER_MAIN_RELOAD_H_
#define TIMECACHED_SERVER_MAIN_RELOAD_H_

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/btree_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "google/protobuf/message.h"
#include "timecache/config/v1/config.pb.h"

namespace timecache::server {

// The outcome of reloads so far.
struct ReloadState {
  // Of the last reload; true before the first.
  bool ok = true;
  // When the configuration in force was read, in microseconds since 1970.
  int64_t loaded_at_us = 0;
  uint64_t succeeded = 0;
  uint64_t failed = 0;
};

// Compares a newly read configuration with the one in force. A field that
// differs is passed to its applier; a field without an applier needs a restart,
// which each reload logs until the file agrees with the configuration in force.
//
//   Reload reload(config, [&] { return ConfigFromFlags(flags); });
//   reload.Apply("grace_period", [&](const auto& now) { ... });
//   reload.Also([&] { watch.Check(); });
//   reload.Run();
//
// Run, Apply and Also belong to one thread; state() is thread-safe. Costs what
// reading the file costs.
class Reload {
 public:
  using Load = std::function<absl::StatusOr<config::v1::ServerConfig>()>;
  using Applier =
      std::function<absl::Status(const config::v1::ServerConfig& before,
                                 const config::v1::ServerConfig& now)>;

  // `config` is in force, `load` reads it again and checks it whole.
  Reload(config::v1::ServerConfig config, Load load);

  // `field` is a path, "grace_period" or "limits.max_entries"; all fields below
  // it are its own. An error is logged, and the field stays as it was.
  void Apply(const std::string& field, Applier applier);
  // The same for one that cannot fail and needs no comparison.
  void Apply(const std::string& field,
             std::function<void(const config::v1::ServerConfig& now)> applier);
  // Runs at every reload, whatever the configuration: to check files that it
  // names.
  void Also(std::function<void()> check);

  // Logs config_reloaded (applied, needs_restart, failed: the fields' paths) or
  // config_refused (error), which changes nothing. Returns whether the whole
  // new configuration is in force or waits for a restart.
  bool Run();

  // In force: as loaded, but for what needs a restart.
  const config::v1::ServerConfig& config() const { return config_; }
  ReloadState state() const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  // The outcomes of the fields that differ.
  struct Outcome {
    std::vector<std::string> applied;
    std::vector<std::string> needs_restart;
    std::vector<std::string> failed;
  };

  void Compare(const google::protobuf::Message& before,
               const google::protobuf::Message& now, const std::string& prefix,
               google::protobuf::Message* in_force, Outcome* outcome);
  bool ApplyField(const std::string& path, Outcome* outcome);

  const Load load_;
  config::v1::ServerConfig config_;
  // What was read, during Run.
  config::v1::ServerConfig loaded_;
  absl::btree_map<std::string, Applier> appliers_;
  std::vector<std::function<void()>> checks_;

  mutable absl::Mutex mu_;
  ReloadState state_ ABSL_GUARDED_BY(mu_);
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_MAIN_RELOAD_H_
