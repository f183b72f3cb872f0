#include "server/main/config/configured_namespaces.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "google/protobuf/util/message_differencer.h"
#include "server/api/proto_namespace.h"
#include "server/api/proto_to_text.h"
#include "server/base/error.h"
#include "server/engine/partitioned_maps.h"
#include "server/engine/store/dead_letter_route.h"
#include "server/ops/log.h"

namespace timecache::server {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::util::MessageDifferencer;

// The options that a namespace of this configuration is created with.
absl::StatusOr<NamespaceOptions> OptionsIn(
    const config::v1::ServerConfig& config,
    const config::v1::NamespaceConfig& from) {
  return NewOptions(from.options(),
                    static_cast<int>(config.default_partitions()));
}

// The same that are known to be valid.
v1::NamespaceOptions FullOptions(const config::v1::ServerConfig& config,
                                 const config::v1::NamespaceConfig& from) {
  v1::NamespaceOptions options;
  SetOptions(*OptionsIn(config, from), &options);
  return options;
}

void LogCreated(const config::v1::ServerConfig& config,
                const config::v1::NamespaceConfig& from,
                const Registry& registry) {
  const v1::NamespaceOptions options = FullOptions(config, from);
  const std::vector<std::string> warnings = registry.Warnings(from.name());
  LogNamespace({.event = "namespace_created",
                .name = from.name(),
                .options = &options,
                .warnings = warnings});
}

// The options that differ, with the values of the second.
v1::NamespaceOptions ChangedOptions(const config::v1::ServerConfig& config,
                                    const config::v1::NamespaceConfig& before,
                                    const config::v1::NamespaceConfig& now) {
  const v1::NamespaceOptions old_options = FullOptions(config, before);
  v1::NamespaceOptions changed = FullOptions(config, now);
  const auto* reflection = v1::NamespaceOptions::GetReflection();
  for (int i = 0; i < v1::NamespaceOptions::descriptor()->field_count(); ++i) {
    const FieldDescriptor* field = v1::NamespaceOptions::descriptor()->field(i);
    MessageDifferencer differencer;
    if (differencer.CompareWithFields(old_options, changed, {field}, {field})) {
      reflection->ClearField(&changed, field);
    }
  }
  return changed;
}

// Those of the configuration, by name, as they will be.
using Configured =
    absl::flat_hash_map<std::string, const config::v1::NamespaceConfig*>;

absl::Status CheckRoute(const config::v1::NamespaceConfig& from,
                        const NamespaceOptions& options,
                        const Configured& all) {
  return CheckDeadLetterRoute(
      from.name(), options,
      [&all](absl::string_view name) -> std::optional<NamespaceOptions> {
        const auto it = all.find(name);
        if (it == all.end()) return std::nullopt;
        NamespaceOptions to;
        to.dead_letter_namespace =
            it->second->options().dead_letter_namespace();
        return to;
      });
}

absl::Status Check(const config::v1::ServerConfig& config,
                   const config::v1::NamespaceConfig& from, JournalKind kind,
                   const Configured& all) {
  const absl::StatusOr<NamespaceOptions> options = OptionsIn(config, from);
  if (!options.ok()) return options.status();
  absl::Status status = CheckDurability(options->durability, kind);
  if (!status.ok()) return status;
  status = ValidateNamespace(from.name(), *options);
  return status.ok() ? CheckRoute(from, *options, all) : status;
}

using ChangeOfOptions = std::function<absl::Status(NamespaceOptions*)>;

// Of the namespace's maps those that are here.
absl::Status UpdateOwn(const std::string& name, const ChangeOfOptions& change,
                       Registry* registry, const OwnMaps& own) {
  if (own.all()) return UpdatePartitions(name, change, registry);
  absl::Status first;
  if (own.Has(name)) first = registry->Update(name, change).status();
  for (const auto& map : registry->List()) {
    if (map->partition() == 0 || map->namespace_name() != name) continue;
    first.Update(registry->Update(map->name(), change).status());
  }
  return first;
}

absl::Status Update(const std::string& name,
                    const v1::NamespaceOptions& changed, Registry* registry,
                    const OwnMaps& own) {
  if (changed.ByteSizeLong() == 0) return absl::OkStatus();
  const absl::Status status = UpdateOwn(
      name,
      [&](NamespaceOptions* options) {
        return ChangeOptions(changed, options);
      },
      registry, own);
  if (status.ok() && own.Has(name)) {
    const std::vector<std::string> warnings = registry->Warnings(name);
    LogNamespace({.event = "namespace_updated",
                  .name = name,
                  .options = &changed,
                  .warnings = warnings});
  }
  return status;
}

// Of the namespace's maps those that belong here, the first one last.
// ALREADY_EXISTS if one does: the others may be new.
absl::Status CreateOwn(const std::string& name, const NamespaceOptions& options,
                       Registry* registry, const OwnMaps& own) {
  absl::Status first;
  for (int i = options.num_partitions - 1; i >= 0; --i) {
    const std::string map = PartitionName(name, i);
    if (!own.Has(map)) continue;
    first.Update(registry->CreateConfigured(map, options).status());
  }
  return first;
}

// An existing one gets the options that are set: a client created it meanwhile,
// or it was restored after a restart.
absl::Status CreateOrUpdate(const config::v1::ServerConfig& config,
                            const config::v1::NamespaceConfig& from,
                            Registry* registry, const OwnMaps& own,
                            bool* created) {
  const absl::Status status =
      own.all()
          ? CreatePartitions(from.name(), *OptionsIn(config, from), registry)
          : CreateOwn(from.name(), *OptionsIn(config, from), registry, own);
  *created = status.ok() && own.Has(from.name());
  return absl::IsAlreadyExists(status)
             ? Update(from.name(), from.options(), registry, own)
             : status;
}

void WarnOf(absl::string_view name, absl::Span<const std::string> warnings) {
  for (const std::string& warning : warnings) {
    Log(LogLevel::kWarning, "namespace_warning",
        {{"namespace", name}, {"about", warning}});
  }
}

}  // namespace

void LogNamespace(const AdminChange& change) {
  std::vector<LogField> fields = {{"namespace", change.name}};
  if (!change.group.empty()) fields.push_back({"group", change.group});
  std::string options;
  if (change.options != nullptr) {
    options = ProtoToJson(*change.options);
    fields.push_back({"options", LogJson{options}});
  }
  if (change.entries.has_value()) {
    fields.push_back({"entries", *change.entries});
  }
  Log(LogLevel::kInfo,
      std::string_view(change.event.data(), change.event.size()), fields);
  WarnOf(change.name, change.warnings);
}

absl::Status CheckNamespaces(const config::v1::ServerConfig& config) {
  const JournalKind kind =
      !config.cluster().name().empty()       ? JournalKind::kCluster
      : config.journal().directory().empty() ? JournalKind::kNone
                                             : JournalKind::kDisk;
  Configured all;
  for (const config::v1::NamespaceConfig& from : config.namespaces()) {
    all[from.name()] = &from;
  }
  for (const config::v1::NamespaceConfig& from : config.namespaces()) {
    const absl::Status status = Check(config, from, kind, all);
    if (!status.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("namespace \"", from.name(), "\": ", status.message()));
    }
  }
  return absl::OkStatus();
}

absl::Status CreateNamespaces(const config::v1::ServerConfig& config,
                              Registry* registry, const OwnMaps& own) {
  absl::Status first;
  for (const config::v1::NamespaceConfig& from : config.namespaces()) {
    bool created;
    const absl::Status status =
        CreateOrUpdate(config, from, registry, own, &created);
    if (status.ok()) continue;
    first.Update(absl::Status(
        status.code(),
        absl::StrCat("namespace \"", from.name(), "\": ", status.message())));
    if (own.all()) break;
  }
  return first;
}

void LogNamespaces(const config::v1::ServerConfig& config,
                   const Registry& registry, const OwnMaps& own) {
  for (const config::v1::NamespaceConfig& from : config.namespaces()) {
    if (own.Has(from.name())) LogCreated(config, from, registry);
  }
}

absl::Status ReloadNamespaces(const config::v1::ServerConfig& before,
                              const config::v1::ServerConfig& now,
                              Registry* registry, const OwnMaps& own) {
  absl::flat_hash_map<std::string, const config::v1::NamespaceConfig*> old;
  for (const config::v1::NamespaceConfig& from : before.namespaces()) {
    old[from.name()] = &from;
  }
  absl::Status first;
  for (const config::v1::NamespaceConfig& from : now.namespaces()) {
    const auto it = old.find(from.name());
    absl::Status status;
    if (it == old.end()) {
      bool created;
      // Of default_partitions the value in force.
      status = CreateOrUpdate(before, from, registry, own, &created);
      if (created) LogCreated(before, from, *registry);
    } else {
      status = Update(from.name(), ChangedOptions(before, *it->second, from),
                      registry, own);
      old.erase(it);
    }
    if (status.ok()) continue;
    Log(LogLevel::kError, "namespace_not_reloaded",
        {{"namespace", from.name()}, {"error", status.message()}});
    first.Update(status);
  }
  for (const auto& [name, from] : old) {
    if (!own.Has(name)) continue;
    Log(LogLevel::kInfo, "namespace_kept",
        {{"namespace", name},
         {"about", absl::StrCat("no longer in the configuration; to delete it "
                                "with its content: timecachectl ns delete ",
                                name)}});
  }
  return first;
}

}  // namespace timecache::server
