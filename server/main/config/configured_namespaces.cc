#include "server/main/config/configured_namespaces.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "google/protobuf/util/message_differencer.h"
#include "server/api/proto_namespace.h"
#include "server/api/proto_to_text.h"
#include "server/base/error.h"
#include "server/engine/dead_letter_route.h"
#include "server/engine/partitioned_maps.h"
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

absl::Status Update(const std::string& name,
                    const v1::NamespaceOptions& changed, Registry* registry) {
  if (changed.ByteSizeLong() == 0) return absl::OkStatus();
  const absl::Status status = UpdatePartitions(
      name,
      [&](NamespaceOptions* options) {
        return ChangeOptions(changed, options);
      },
      registry);
  if (status.ok()) {
    const std::vector<std::string> warnings = registry->Warnings(name);
    LogNamespace({.event = "namespace_updated",
                  .name = name,
                  .options = &changed,
                  .warnings = warnings});
  }
  return status;
}

// An existing one gets the options that are set: a client created it meanwhile,
// or it was restored after a restart.
absl::Status CreateOrUpdate(const config::v1::ServerConfig& config,
                            const config::v1::NamespaceConfig& from,
                            Registry* registry, bool* created) {
  const absl::Status status =
      CreatePartitions(from.name(), *OptionsIn(config, from), registry);
  *created = status.ok();
  return absl::IsAlreadyExists(status)
             ? Update(from.name(), from.options(), registry)
             : status;
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
  for (const std::string& warning : change.warnings) {
    Log(LogLevel::kWarning, "namespace_warning",
        {{"namespace", change.name}, {"about", warning}});
  }
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
                              Registry* registry) {
  for (const config::v1::NamespaceConfig& from : config.namespaces()) {
    bool created;
    const absl::Status status =
        CreateOrUpdate(config, from, registry, &created);
    if (!status.ok()) {
      return absl::Status(
          status.code(),
          absl::StrCat("namespace \"", from.name(), "\": ", status.message()));
    }
  }
  return absl::OkStatus();
}

void LogNamespaces(const config::v1::ServerConfig& config,
                   const Registry& registry) {
  for (const config::v1::NamespaceConfig& from : config.namespaces()) {
    LogCreated(config, from, registry);
  }
}

absl::Status ReloadNamespaces(const config::v1::ServerConfig& before,
                              const config::v1::ServerConfig& now,
                              Registry* registry) {
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
      status = CreateOrUpdate(before, from, registry, &created);
      if (created) LogCreated(before, from, *registry);
    } else {
      status = Update(from.name(), ChangedOptions(before, *it->second, from),
                      registry);
      old.erase(it);
    }
    if (status.ok()) continue;
    Log(LogLevel::kError, "namespace_not_reloaded",
        {{"namespace", from.name()}, {"error", status.message()}});
    first.Update(status);
  }
  for (const auto& [name, from] : old) {
    Log(LogLevel::kInfo, "namespace_kept",
        {{"namespace", name},
         {"about", absl::StrCat("no longer in the configuration; to delete it "
                                "with its content: timecachectl ns delete ",
                                name)}});
  }
  return first;
}

}  // namespace timecache::server
