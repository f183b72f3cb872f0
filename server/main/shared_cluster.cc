#include "server/main/shared_cluster.h"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/time/time.h"
#include "server/base/clock.h"
#include "server/base/error.h"
#include "server/engine/store/partitions.h"
#include "server/log/kafka/kafka_topics.h"
#include "server/main/cluster_backup.h"
#include "server/main/config/configured_namespaces.h"
#include "server/main/journal_metrics.h"
#include "server/main/peer_credentials.h"
#include "timecache/v1/server.pb.h"

namespace timecache::server {

SharedCluster::SharedCluster(const config::v1::ServerConfig& config,
                             Cluster* cluster,
                             std::shared_ptr<ServerAccount> account,
                             Registries* registries)
    : config_(config),
      cluster_(*cluster),
      registries_(*registries),
      peers_(ToPeerOptions(config)),
      slots_(cluster, [this] { return this->config(); }, std::move(account),
             {.open =
                  [this](int slot, SlotMaps* maps) {
                    maps->letters =
                        std::make_shared<StoredLetters>([this, slot] {
                          return cluster_.membership().MaySettle(slot);
                        });
                    maps->registry.LeaveRoutesToCaller();
                    maps->registry.SetDeadLetterStore(
                        store(), [letters = maps->letters](
                                     absl::AnyInvocable<void()> settle) {
                          letters->Add(std::move(settle));
                        });
                    maps->registry.SetDeadLetterRight(
                        [this](absl::string_view principal,
                               absl::string_view name) {
                          return CheckDeadLetter(principal, name);
                        });
                  },
              .prepare = [this](int slot,
                                SlotMaps* maps) { return Prepare(slot, maps); },
              .look =
                  [](int /*slot*/, SlotMaps* maps) {
                    maps->keeper->Look();
                    maps->letters->Look();
                  },
              .retire =
                  [this](int /*slot*/, SlotMaps* maps) {
                    maps->keeper = nullptr;
                    maps->letters->Drop();
                    journals_.Remove(maps->logs.get());
                    registries_.Remove(&maps->registry);
                  }}),
      stores_(&slots_, &peers_,
              {.set_right =
                   [this](Store::DeadLetterRight right) {
                     SetDeadLetterRight(std::move(right));
                   },
               .last_member =
                   static_cast<uint64_t>(MachineTime::System().WallUs())}) {}

SharedCluster::~SharedCluster() {
  Leave();
  slots_.End(absl::ZeroDuration());
  // Their dead letters use the stores.
  slots_.AwaitUnused();
}

void SharedCluster::Leave() {
  leaving_ = true;
  peers_.Stop();
}

void SharedCluster::AddTo(ServerOptions* options) {
  options->cluster = {
      .check_service =
          [this] {
            return !leaving_
                       ? absl::OkStatus()
                       : ErrorWithReason(
                             absl::StatusCode::kUnavailable, Reason::kNotOwner,
                             "this node ends, and serves no slot any "
                             "more: call another one");
          },
      .describe =
          [this](v1::GetClusterResponse* cluster) { slots_.Describe(cluster); },
      .hand_over =
          [this](const std::string& to, ClusterSource::HandedOver done) {
            slots_.HandOver(to, std::move(done));
          },
      .owners_of =
          [this](absl::string_view namespace_name, int partitions) {
            return OwnersOf(namespace_name, partitions);
          }};
  options->describe_journal = [this](v1::JournalStatus* status) {
    DescribeJournal(JournalTopic(cluster_.config().name()), journals_.Sum(),
                    status);
  };
  options->backup_source =
      BackupsOf({.kafka = cluster_.kafka(),
                 .topic = JournalTopic(cluster_.config().name()),
                 .membership = &cluster_.membership(),
                 .estimate = [this] { return BackupBytesAbout(); }});
  options->peer_store = stores_.hosted_maps();
  options->peer_whole_store = stores_.hosted_homes();
  options->peer_principal = cluster_.config().peer_principal();
}

// As if all slots were like those that this node owns.
uint64_t SharedCluster::BackupBytesAbout() const {
  uint64_t owned = 0;
  slots_.VisitServed([&](int, const std::shared_ptr<SlotMaps>&) { ++owned; });
  return owned == 0
             ? 0
             : journals_.Sum().journal.disk_bytes / owned * slots_.slots();
}

std::vector<std::string> SharedCluster::OwnersOf(
    absl::string_view namespace_name, int partitions) const {
  std::vector<std::string> addresses;
  for (int i = 0; i < partitions; ++i) {
    const uint32_t slot = SlotOfMap(PartitionName(namespace_name, i),
                                    static_cast<uint32_t>(cluster_.slots()));
    addresses.push_back(slots_.Local(slot) == nullptr
                            ? slots_.OwnerAddress(slot)
                            : cluster_.config().advertise());
  }
  return addresses;
}

OwnMaps SharedCluster::OwnMapsOf(int slot) const {
  return {static_cast<uint32_t>(slot), static_cast<uint32_t>(cluster_.slots())};
}

absl::Status SharedCluster::Prepare(int slot, SlotMaps* maps) {
  const config::v1::ServerConfig in_force = config();
  const OwnMaps own = OwnMapsOf(slot);
  absl::Status status = CreateNamespaces(in_force, &maps->registry, own);
  if (!status.ok()) return status;
  LogNamespaces(in_force, maps->registry, own);
  maps->keeper = std::make_unique<PartitionKeeper>(
      own.slot, own.slots, &maps->registry, store(), &maps->clock);
  registries_.Add({&maps->registry, &maps->reaper, &maps->clock});
  journals_.Add(maps->logs.get(), maps->checkpointer.get());
  return absl::OkStatus();
}

void SharedCluster::SetDeadLetterRight(Store::DeadLetterRight right) {
  absl::MutexLock lock(&right_mu_);
  right_ = std::move(right);
}

absl::Status SharedCluster::CheckDeadLetter(absl::string_view principal,
                                            absl::string_view name) {
  absl::ReaderMutexLock lock(&right_mu_);
  return right_ ? right_(principal, name) : absl::OkStatus();
}

config::v1::ServerConfig SharedCluster::config() const {
  absl::MutexLock lock(&config_mu_);
  return config_;
}

absl::Status SharedCluster::Reload(const config::v1::ServerConfig& before,
                                   const config::v1::ServerConfig& now) {
  {
    absl::MutexLock lock(&config_mu_);
    config_ = now;
  }
  absl::Status first;
  slots_.VisitServed([&](int slot, const std::shared_ptr<SlotMaps>& maps) {
    first.Update(
        ReloadNamespaces(before, now, &maps->registry, OwnMapsOf(slot)));
  });
  return first;
}

}  // namespace timecache::server
