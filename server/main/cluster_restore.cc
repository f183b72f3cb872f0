#include "server/main/cluster_restore.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "nlohmann/json.hpp"
#include "server/api/proto_time.h"
#include "server/base/clock.h"
#include "server/durable/restored_records.h"
#include "server/engine/reaper.h"
#include "server/engine/registry.h"
#include "server/log/kafka/journal_reader.h"
#include "server/log/kafka/kafka_topics.h"
#include "server/log/local/file_system.h"
#include "server/log/local/journal_tools.h"
#include "server/main/cluster_init.h"
#include "server/main/cluster_term.h"
#include "server/main/recovery_metrics.h"
#include "server/main/service_manager.h"
#include "server/main/signals.h"
#include "server/ops/readiness.h"

namespace timecache::server {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kAloneInterval{50};
// For the control log to say which nodes live, beyond failure_timeout.
constexpr absl::Duration kControlLogPatience = absl::Seconds(10);
constexpr absl::Duration kReleasePatience = absl::Seconds(10);

absl::Status TopicsHaveRecords(const std::string& topic) {
  return absl::AlreadyExistsError(absl::StrCat(
      topic,
      " has records: a backup is restored into empty topics alone. Name "
      "another cluster, or, if what it holds is not needed, stop its "
      "nodes, delete its topics, and run timecached cluster init"));
}

absl::Status CheckBackup(const std::string& directory) {
  const auto report = CheckJournal(FileSystem::Posix(), directory);
  if (absl::IsNotFound(report.status())) {
    return absl::NotFoundError(absl::StrCat(
        directory,
        ": no whole backup, and no journal. An archive becomes one "
        "by timecachectl journal restore - DIRECTORY"));
  }
  if (!report.ok()) return report.status();
  return report->intact ? absl::OkStatus()
                        : absl::DataLossError(absl::StrCat(
                              directory, ": the backup is damaged:\n",
                              report->ToString()));
}

// Ends with the first record.
absl::Status CheckEmpty(const KafkaOptions& kafka, const std::string& topic) {
  const auto reader = JournalReader::Open(kafka, topic);
  if (absl::IsNotFound(reader.status())) {
    return absl::NotFoundError(absl::StrCat(
        reader.status().message(), ": make it by timecached cluster init"));
  }
  if (!reader.ok()) return reader.status();
  return (*reader)->Read(
      {}, [&topic](uint32_t, uint64_t, absl::string_view) -> absl::Status {
        return TopicsHaveRecords(topic);
      });
}

// Nodes that have ended count as running until the control log has not heard of them
// for their failure timeout.
absl::Status AwaitAlone(const ClusterTerm& term,
                        const config::v1::ClusterConfig& cluster,
                        const Signals& signals) {
  const auto deadline =
      SteadyClock::now() +
      absl::ToChronoMilliseconds(ToDuration(cluster.failure_timeout()) +
                                 kControlLogPatience);
  while (!signals.EndPending()) {
    const MemberStatus member = term.GetStatus().member;
    const bool known = member.since_heartbeat < absl::InfiniteDuration();
    std::vector<std::string> running;
    for (const ControlState::Node& node : member.view.nodes) {
      if (!node.gone) running.push_back(node.name);
    }
    // This one.
    if (known && running.size() <= 1) return absl::OkStatus();
    if (SteadyClock::now() > deadline) {
      if (!known) {
        return absl::UnavailableError("no heartbeat comes back from brokers");
      }
      return absl::FailedPreconditionError(absl::StrCat(
          "nodes of cluster ", cluster.name(), " run (",
          absl::StrJoin(running, ", "),
          ", with this one): stop them, and start them after the restore"));
    }
    std::this_thread::sleep_for(kAloneInterval);
  }
  return absl::CancelledError("it was interrupted");
}

// What a node has before it serves, without its ports.
class Restore {
 public:
  Restore(const config::v1::ServerConfig& config, const Signals& signals)
      : config_(config), signals_(signals) {
    // It owns all, whoever will own the slots.
    config_.mutable_cluster()->set_forward_calls(false);
  }
  ~Restore() {
    if (term_ != nullptr) term_->Leave();
    if (cluster_ != nullptr) cluster_->Leave();
  }

  absl::Status Begin() {
    auto cluster = Cluster::Begin(config_);
    if (!cluster.ok()) return cluster.status();
    cluster_ = *std::move(cluster);
    auto term = ClusterTerm::Begin(cluster_.get(), /*slot=*/0, [] {});
    if (!term.ok()) return term.status();
    term_ = *std::move(term);
    logs_ = term_->TakeLogs();
    cluster_->membership().Start();
    reaper_ = std::make_unique<Reaper>(&clock_);
    registry_ =
        std::make_unique<Registry>(&clock_, reaper_.get(), RegistryLimits());
    absl::Status status = AwaitAlone(*term_, config_.cluster(), signals_);
    if (!status.ok()) return status;
    return term_->Follow([this] { return signals_.EndPending(); },
                         {&metrics_, &readiness_, &manager_}, &clock_,
                         logs_.get(), registry_.get());
  }

  absl::StatusOr<RestoredRecords> Run(const std::string& directory) {
    Journal& journal = logs_->journal();
    // Of a node that has run meanwhile.
    for (uint32_t p = 0; p < journal.partitions(); ++p) {
      if (journal.End(p) > 0) {
        return TopicsHaveRecords(JournalTopic(config_.cluster().name()));
      }
    }
    auto restored = RestoreRecords(
        [&directory](Journal::Visitor visit) {
          return ReadClosedJournal(FileSystem::Posix(), directory, visit);
        },
        &journal, clock_,
        [this] { return signals_.EndPending() || term_->IsOver(); });
    if (restored.ok()) return restored;
    const std::string& name = config_.cluster().name();
    return absl::Status(
        restored.status().code(),
        absl::StrCat(restored.status().message(),
                     ". The topics may have a part of the backup, with which "
                     "no node starts: delete ",
                     JournalTopic(name), " and ", ControlTopic(name),
                     ", run timecached cluster init, and restore again"));
  }

  void Release() { term_->Release(*registry_, logs_.get(), kReleasePatience); }

 private:
  config::v1::ServerConfig config_;
  const Signals& signals_;
  SystemClock clock_;
  RecoveryMetrics metrics_;
  Readiness readiness_;
  const ServiceManager manager_{""};
  std::unique_ptr<Cluster> cluster_;
  std::unique_ptr<ClusterTerm> term_;
  std::unique_ptr<MapChangeLogs> logs_;
  std::unique_ptr<Reaper> reaper_;
  std::unique_ptr<Registry> registry_;
};

void WriteRestored(const ClusterRestoreFlags& flags, const std::string& cluster,
                   const RestoredRecords& restored, std::ostream& out) {
  if (flags.json) {
    out << nlohmann::ordered_json{{"cluster", cluster},
                                  {"from", flags.directory},
                                  {"records", restored.records},
                                  {"namespaces", restored.namespaces}}
               .dump()
        << '\n';
    return;
  }
  out << "restored " << flags.directory << " into cluster " << cluster << ": "
      << restored.records << " records, " << restored.namespaces
      << " namespaces. Start its nodes now\n";
}

}  // namespace

absl::Status RestoreCluster(const ClusterRestoreFlags& flags,
                            const config::v1::ServerConfig& config,
                            std::ostream& out) {
  const std::string& name = config.cluster().name();
  if (name.empty()) {
    return absl::InvalidArgumentError(
        "no cluster is named: --cluster NAME, or cluster.name in the "
        "configuration file");
  }
  const Signals signals;
  // No server may write it meanwhile.
  const auto lock = LockClosedJournal(FileSystem::Posix(), flags.directory);
  if (!lock.ok()) return lock.status();
  if (absl::Status status = CheckBackup(flags.directory); !status.ok()) {
    return status;
  }
  const auto kafka = ToKafkaOptions(config.cluster().kafka());
  if (!kafka.ok()) return kafka.status();
  if (absl::Status status = CheckEmpty(*kafka, JournalTopic(name));
      !status.ok()) {
    return status;
  }
  Restore restore(config, signals);
  if (absl::Status status = restore.Begin(); !status.ok()) return status;
  const auto restored = restore.Run(flags.directory);
  restore.Release();
  if (!restored.ok()) return restored.status();
  WriteRestored(flags, name, *restored, out);
  return absl::OkStatus();
}

}  // namespace timecache::server
