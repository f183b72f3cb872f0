#include "server/main/cluster.h"

#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/api/proto_time.h"
#include "server/base/version.h"
#include "server/cluster/boot_clock.h"
#include "server/cluster/kafka_control_log.h"
#include "server/main/cluster_events.h"
#include "server/main/cluster_init.h"
#include "server/ops/log.h"

namespace timecache::server {
namespace {

uint64_t RandomIncarnation() {
  std::random_device random;
  return std::uniform_int_distribution<uint64_t>(1)(random);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Cluster>> Cluster::Begin(
    const config::v1::ServerConfig& config) {
  absl::StatusOr<KafkaOptions> kafka = ToKafkaOptions(config.cluster().kafka());
  if (!kafka.ok()) return kafka.status();
  auto cluster = std::unique_ptr<Cluster>(
      new Cluster(config.cluster(), *std::move(kafka)));
  if (absl::Status status = cluster->Open(); !status.ok()) return status;
  return cluster;
}

Cluster::Cluster(config::v1::ClusterConfig config, KafkaOptions kafka)
    : config_(std::move(config)),
      incarnation_(RandomIncarnation()),
      kafka_(std::move(kafka)) {}

absl::Status Cluster::Open() {
  absl::StatusOr<std::vector<TopicFault>> faults =
      timecache::server::CheckTopics(kafka_, config_.name());
  if (!faults.ok()) return faults.status();
  if (!faults->empty() && !config_.allow_unsafe()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the cluster's topics can lose acknowledged writes: ",
        faults->front().ToString(),
        faults->size() > 1 ? absl::StrCat(", and ", faults->size() - 1, " more")
                           : "",
        ". Correct the setting, or set cluster.allow_unsafe on a machine "
        "where that does not matter"));
  }
  NoteFaults(*std::move(faults));
  int slots = 1;
  if (has_slots()) {
    const absl::StatusOr<std::vector<TopicShape>> topics =
        DescribeTopics(kafka_, config_.name());
    if (!topics.ok()) return topics.status();
    slots = static_cast<int>(topics->front().partitions);
  }
  absl::StatusOr<std::unique_ptr<KafkaControlLog>> control =
      KafkaControlLog::Open(kafka_, ControlTopic(config_.name()),
                            ToDuration(config_.lease()));
  if (!control.ok()) return control.status();
  control_log_ = *std::move(control);
  {
    absl::MutexLock lock(&observers_mu_);
    observers_.resize(static_cast<size_t>(slots));
  }
  membership_ = std::make_unique<ClusterMembership>(
      MakeMemberOptions(), has_slots() ? Sharing::kSlots : Sharing::kOneOwner,
      slots, control_log_.get(), &BootClock::System(),
      [this](int slot, MemberRole role) { OnRole(slot, role); },
      [this](int slot, const MemberEvent& event) {
        LogMemberEvent(has_slots() ? slot : kWholeNode, event);
      });
  return absl::OkStatus();
}

MemberOptions Cluster::MakeMemberOptions() const {
  MemberOptions options;
  options.node = config_.node();
  options.incarnation = incarnation_;
  options.address = config_.advertise();
  options.version = Version();
  options.lease = ToDuration(config_.lease());
  options.failure_timeout = ToDuration(config_.failure_timeout());
  options.max_clock_skew = ToDuration(config_.max_clock_skew());
  return options;
}

void Cluster::Observe(int slot, RoleObserver observer) {
  absl::MutexLock lock(&observers_mu_);
  observers_[static_cast<size_t>(slot)] = std::move(observer);
}

void Cluster::OnRole(int slot, MemberRole role) {
  absl::MutexLock lock(&observers_mu_);
  const RoleObserver& observer = observers_[static_cast<size_t>(slot)];
  if (observer) observer(role);
}

absl::StatusOr<std::unique_ptr<KafkaJournal>> Cluster::OpenJournal(
    int slot, std::function<void(const absl::Status& why)> on_lost) {
  KafkaJournalOptions options;
  options.kafka = kafka_;
  options.topic = JournalTopic(config_.name());
  if (has_slots()) options.partition = static_cast<uint32_t>(slot);
  options.node = config_.node();
  options.incarnation = incarnation_;
  options.on_lost = std::move(on_lost);
  options.holds_lease = [member = membership_->At(slot)] {
    return member->HoldsLease();
  };
  if (has_slots()) {
    options.may_delete = [this, slot] { return membership_->MayTrim(slot); };
  }
  return KafkaJournal::Open(std::move(options));
}

std::vector<TopicFault> Cluster::faults() const {
  absl::MutexLock lock(&mu_);
  return faults_;
}

void Cluster::CheckTopics() {
  absl::StatusOr<std::vector<TopicFault>> faults =
      timecache::server::CheckTopics(kafka_, config_.name());
  if (faults.ok()) return NoteFaults(*std::move(faults));
  Log(LogLevel::kWarning, "topics_unchecked",
      {{"why", faults.status().message()}});
}

void Cluster::NoteFaults(std::vector<TopicFault> faults) {
  for (const TopicFault& fault : faults) {
    Log(LogLevel::kWarning, "topic_unsafe", {{"what", fault.ToString()}});
  }
  absl::MutexLock lock(&mu_);
  faults_ = std::move(faults);
}

void Cluster::Describe(v1::GetClusterResponse* cluster) const {
  cluster->set_name(config_.name());
  cluster->set_node(config_.node());
  for (const std::string& broker : kafka_.brokers) cluster->add_brokers(broker);
  for (const TopicFault& fault : faults()) {
    v1::TopicSetting* const to = cluster->add_wrong_settings();
    to->set_topic(fault.topic);
    to->set_setting(fault.setting);
    to->set_value(fault.value);
    to->set_wanted(fault.wanted);
  }
}

void Cluster::Leave() {
  if (membership_ != nullptr) membership_->Stop();
}

}  // namespace timecache::server
