#include "server/main/config/flags.h"

#include <iostream>
#include <string_view>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "server/api/enum_names.h"
#include "server/base/address.h"
#include "server/base/man_page.h"
#include "server/base/version.h"
#include "server/main/config/config.h"
#include "server/main/config/config_fields.h"

namespace timecache::server {
namespace {

constexpr int kExitWrongFlags = 2;

constexpr char kDescription[] =
    R"(timecached: an in-memory key-value server whose entries expire on
schedule and are streamed to subscribers. Speaks gRPC. Without flags: on
127.0.0.1:7171, with a namespace "default" (entries live 30 s, 101 buckets).
Logs go to standard error.
)";

constexpr char kExamples[] = R"(examples:
  timecached
  timecached --listen 127.0.0.1:8080 --listen unix:/run/timecached.sock
  timecached --listen 0.0.0.0:7171 --tls-cert server.crt --tls-key server.key
  timecached --http 127.0.0.1:7172
  timecached --journal /var/lib/timecached/journal
  timecached --journal /var/lib/timecached/journal --restore /backups/monday
  zstd -dc backup.tar.zst | timecached --journal journal --restore -
  timecached --config timecached.yaml --log-format=json
  timecached --config timecached.yaml --check-config
  timecached --cluster eu --kafka-brokers kafka-1:9092,kafka-2:9092 \
    --listen 0.0.0.0:7171 --advertise cache-1:7171 --tls-cert server.crt \
    --tls-key server.key
  timecached cluster init --cluster eu --kafka-brokers kafka-1:9092 \
    --partitions 16 --replication-factor 3
  timecached cluster restore --config timecached.yaml /backups/monday
  timecached --listen 127.0.0.1:0 --virtual-clock

--listen replaces the file's listeners; port 0 takes a free port, which the log
reports. SIGTERM and SIGINT let calls in flight finish.

exit code: 0 after SIGTERM, SIGINT, --help and --version; 1 when it cannot
serve, or the configuration is wrong; 2 when a flag is wrong.)";

constexpr char kInitFooter[] = R"(Makes NAME.journal and NAME.control, with the
settings that nodes require, and prints what they are then. Topics that exist
stay as they are; running it again is safe.

example:
  timecached cluster init --cluster eu --kafka-brokers kafka-1:9092 \
    --partitions 16 --replication-factor 3

exit code: 0 when nodes can start with the topics; 1 when they cannot, or
brokers do not answer; 2 when a flag is wrong.)";

constexpr char kRestoreFooter[] =
    R"(DIRECTORY is a backup of a server or of a cluster
(timecachectl backup), or the journal of a server that has stopped. The topics are
those of cluster init, without records, and no node runs: start the nodes
afterwards. Entries keep their deadlines, groups their positions; clients of the
server before resume as after --restore. Partitions may be more or fewer.

examples:
  timecached cluster restore --config timecached.yaml /backups/monday
  timecached cluster restore --cluster eu --kafka-brokers kafka-1:9092 \
    /var/lib/timecached/journal
  zstd -dc backup.tar.zst | timecachectl journal restore - backup && \
    timecached cluster restore --config timecached.yaml backup

exit code: 0 when all of it is in the topics; 1 when it cannot be restored; 2 when
a flag is wrong.)";

constexpr uint32_t kMaxJournalPartitions = 1024;
constexpr uint32_t kMaxReplicationFactor = 9;

// The flag takes one of the enum's names.
CLI::Validator OneOf(const google::protobuf::EnumDescriptor* type) {
  const std::string names = absl::StrJoin(EnumNames(*type), ", ");
  return {[type, names](const std::string& value) -> std::string {
            if (FindEnumValue(*type, value) != nullptr) return "";
            return absl::StrCat("expected ", names, ", got \"", value, "\"");
          },
          ""};
}

CLI::Validator Address() {
  return {[](const std::string& value) {
            return std::string(ValidateAddress(value).message());
          },
          ""};
}

// `what` is the kind of file.
CLI::Validator NameOf(const char* what) {
  return {[what](const std::string& value) {
            return value.empty() ? absl::StrCat("expected a ", what, "'s name")
                                 : std::string();
          },
          ""};
}

void AddTransportFlags(CLI::App* app, Flags* flags) {
  app->add_option("--tls-cert", flags->tls_certificate,
                  "Serve TLS on --listen with the certificate in this PEM file")
      ->type_name("FILE")
      ->check(NameOf("file"));
  app->add_option("--tls-key", flags->tls_key, "The certificate's private key")
      ->type_name("FILE")
      ->check(NameOf("file"));
  app->add_option("--tls-client-ca", flags->tls_client_ca,
                  "Ask for clients' certificates, signed by the roots in this "
                  "PEM file")
      ->type_name("FILE")
      ->check(NameOf("file"));
  app->add_flag("--allow-plaintext", flags->allow_plaintext,
                "Serve plain text on --listen addresses that other machines "
                "may reach");
}

void AddConfigFlag(CLI::App* app, Flags* flags) {
  app->add_option("--config", flags->config,
                  "Read the configuration from this YAML file")
      ->type_name("FILE")
      ->check(NameOf("file"));
}

// Those by which a cluster is reached.
void AddClusterFlags(CLI::App* app, Flags* flags, const char* cluster,
                     const char* allow_unsafe) {
  app->add_option("--cluster", flags->cluster, cluster)
      ->type_name("NAME")
      ->check(NameOf("cluster"));
  app->add_option("--kafka-brokers", flags->kafka_brokers,
                  "host:port of one or more of Kafka's brokers")
      ->type_name("LIST")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(Address());
  app->add_flag("--cluster-allow-unsafe", flags->cluster_allow_unsafe,
                allow_unsafe);
}

void AddNodeFlags(CLI::App* app, Flags* flags) {
  AddClusterFlags(app, flags,
                  "Be a node of this cluster, whose journal is in Kafka",
                  "Start although the topics' settings can lose acknowledged "
                  "writes: one broker on a laptop");
  app->add_option("--node", flags->node,
                  "The node's name in the cluster; default: the machine's")
      ->type_name("NAME")
      ->check(NameOf("node"));
  app->add_option("--advertise", flags->advertise,
                  "host:port at which clients reach this node; default: the "
                  "first --listen")
      ->type_name("ADDRESS")
      ->check(Address());
}

// `cluster init`. `init` is what it is given.
CLI::App* AddClusterInit(CLI::App* cluster, Flags* flags,
                         ClusterInitFlags* init) {
  CLI::App* const command = cluster->add_subcommand(
      "init",
      "Make the topics of a cluster in Kafka, or check those that exist");
  command->footer(kInitFooter);
  AddConfigFlag(command, flags);
  AddClusterFlags(command, flags, "The cluster's name",
                  "Accept topics that can lose acknowledged writes: one broker "
                  "on a laptop");
  command
      ->add_option("--partitions", init->partitions,
                   "Partitions of the journal, fixed from then on: how many "
                   "requests to Kafka a node has in flight; default: 16")
      ->type_name("N")
      ->check(CLI::Range(uint32_t{1}, kMaxJournalPartitions, "[1 - 1024]"));
  command
      ->add_option("--replication-factor", init->replication_factor,
                   "Brokers that keep each record; default: 3")
      ->type_name("N")
      ->check(CLI::Range(uint32_t{1}, kMaxReplicationFactor, "[1 - 9]"));
  command->add_flag("--json", init->json, "Print JSON");
  return command;
}

CLI::App* AddClusterRestore(CLI::App* cluster, Flags* flags,
                            ClusterRestoreFlags* restore) {
  CLI::App* const command = cluster->add_subcommand(
      "restore", "Put a backup into the topics of a cluster, which are empty");
  command->footer(kRestoreFooter);
  AddConfigFlag(command, flags);
  AddClusterFlags(command, flags, "The cluster's name",
                  "Accept topics that can lose acknowledged writes: one broker "
                  "on a laptop");
  command->add_option("directory", restore->directory, "The backup")
      ->required()
      ->type_name("DIRECTORY")
      ->check(NameOf("directory"));
  command->add_flag("--json", restore->json, "Print JSON");
  return command;
}

void AddFlags(CLI::App* app, Flags* flags) {
  AddConfigFlag(app, flags);
  app->add_option("--listen", flags->listen,
                  "Serve on host:port or unix:/path; may be repeated")
      ->type_name("ADDRESS")
      ->allow_extra_args(false)
      ->check(Address());
  app->add_option("--http", flags->http,
                  "Serve /metrics, /healthz and /readyz over HTTP on host:port")
      ->type_name("ADDRESS")
      ->check(Address());
  app->add_option("--journal", flags->journal,
                  "Keep namespaces of durability async and sync in this "
                  "directory, across restarts")
      ->type_name("DIRECTORY")
      ->check(NameOf("directory"));
  app->add_option("--restore", flags->restore,
                  "First restore this backup into the journal's directory, "
                  "which must not hold a journal; -: from standard input")
      ->type_name("DIRECTORY")
      ->check(NameOf("directory"));
  AddNodeFlags(app, flags);
  AddTransportFlags(app, flags);
  app->add_flag("--virtual-clock", flags->virtual_clock,
                "Time stands still until VirtualClockService.Advance");
  app->add_option("--log-level", flags->log_level,
                  "Log from debug, info, warning or error up")
      ->type_name("LEVEL")
      ->check(OneOf(config::v1::LogLevel_descriptor()));
  app->add_option("--log-format", flags->log_format, "Log as text or as json")
      ->type_name("FORMAT")
      ->check(OneOf(config::v1::LogFormat_descriptor()));
  app->add_flag("--check-config", flags->check_config,
                "Check the configuration, print it, and exit");
}

int NumberOf(const google::protobuf::EnumDescriptor* type,
             const std::string& name) {
  const auto* value = FindEnumValue(*type, name);
  return value == nullptr ? 0 : value->number();
}

// --listen and the flags that say how to serve there.
absl::Status SetListeners(const Flags& flags,
                          config::v1::ServerConfig* config) {
  const bool tls = !flags.tls_certificate.empty() || !flags.tls_key.empty() ||
                   !flags.tls_client_ca.empty();
  if (flags.listen.empty()) {
    if (!tls && !flags.allow_plaintext) return absl::OkStatus();
    if (!flags.config.empty()) {
      return absl::InvalidArgumentError(
          "command line: --tls-cert, --tls-key, --tls-client-ca and "
          "--allow-plaintext are for addresses of --listen: add one, or write "
          "them into the file's listeners");
    }
  } else {
    config->clear_listeners();
  }
  for (const std::string& address : flags.listen) {
    config->add_listeners()->set_address(address);
  }
  for (config::v1::Listener& listener : *config->mutable_listeners()) {
    listener.set_allow_plaintext(flags.allow_plaintext);
    if (!tls) continue;
    listener.mutable_tls()->set_certificate_file(flags.tls_certificate);
    listener.mutable_tls()->set_key_file(flags.tls_key);
    listener.mutable_tls()->set_client_ca_file(flags.tls_client_ca);
  }
  FillListenerDefaults(config);
  return absl::OkStatus();
}

// The cluster, once the listeners are set; `first` was the first of the file.
void SetCluster(const Flags& flags, const std::string& first,
                config::v1::ServerConfig* config) {
  config::v1::ClusterConfig& cluster = *config->mutable_cluster();
  if (!flags.cluster.empty()) cluster.set_name(flags.cluster);
  if (!flags.node.empty()) cluster.set_node(flags.node);
  // The default goes with the listener.
  if (cluster.advertise() == first) cluster.clear_advertise();
  if (!flags.advertise.empty()) cluster.set_advertise(flags.advertise);
  if (!flags.kafka_brokers.empty()) {
    cluster.mutable_kafka()->clear_brokers();
    for (const std::string& broker : flags.kafka_brokers) {
      cluster.mutable_kafka()->add_brokers(broker);
    }
  }
  if (flags.cluster_allow_unsafe) cluster.set_allow_unsafe(true);
  FillClusterDefaults(config);
}

}  // namespace

std::variant<Flags, int> ParseFlags(int argc, const char* const* argv,
                                    std::ostream& out, std::ostream& err) {
  Flags flags;
  CLI::App app(kDescription, "timecached");
  app.set_version_flag("--version", "timecached " + std::string(Version()));
  app.footer(kExamples);
  AddFlags(&app, &flags);
  // What no flag takes is reported below: CLI11 would list it in reverse.
  app.allow_extras();
  // In place of a server's flags.
  CLI::App* const cluster =
      app.add_subcommand("cluster", "Prepare a cluster of servers");
  cluster->require_subcommand(1);
  ClusterInitFlags init;
  const CLI::App* const init_command = AddClusterInit(cluster, &flags, &init);
  ClusterRestoreFlags restore;
  const CLI::App* const restore_command =
      AddClusterRestore(cluster, &flags, &restore);
  // For the manual's build.
  if (argc == 2 && std::string_view(argv[1]) == "--man") {
    out << WriteManPage({"timecached", "8", std::string(Version()),
                         "key-value server whose entries expire on schedule "
                         "and are streamed to subscribers",
                         "timecachectl(1)"},
                        app);
    return 0;
  }
  std::string problem;
  try {
    app.parse(argc, argv);
    if (app.remaining_size(/*recurse=*/true) == 0) {
      if (init_command->parsed()) flags.cluster_init = init;
      if (restore_command->parsed()) flags.cluster_restore = restore;
      return flags;
    }
    problem = absl::StrCat("unknown argument \"",
                           app.remaining(/*recurse=*/true).front(), "\"");
  } catch (const CLI::Success& e) {
    app.exit(e, out, err);
    return 0;
  } catch (const CLI::ParseError& e) {
    problem = absl::StrReplaceAll(e.what(), {{"\n", " "}});
  }
  err << "timecached: " << problem << " (timecached --help lists the flags)\n";
  return kExitWrongFlags;
}

std::variant<Flags, int> ParseFlags(int argc, const char* const* argv) {
  return ParseFlags(argc, argv, std::cout, std::cerr);
}

absl::StatusOr<config::v1::ServerConfig> ConfigFromFlags(const Flags& flags) {
  absl::StatusOr<config::v1::ServerConfig> config =
      flags.config.empty() ? DefaultConfig() : LoadConfig(flags.config);
  if (!config.ok()) return config;
  const std::string first = config->listeners(0).address();
  if (absl::Status set = SetListeners(flags, &*config); !set.ok()) return set;
  SetCluster(flags, first, &*config);
  if (!flags.http.empty()) config->mutable_http()->set_address(flags.http);
  if (!flags.journal.empty()) {
    config->mutable_journal()->set_directory(flags.journal);
  }
  config::v1::LogConfig& log = *config->mutable_log();
  if (!flags.log_level.empty()) {
    log.set_level(static_cast<config::v1::LogLevel>(
        NumberOf(config::v1::LogLevel_descriptor(), flags.log_level)));
  }
  if (!flags.log_format.empty()) {
    log.set_format(static_cast<config::v1::LogFormat>(
        NumberOf(config::v1::LogFormat_descriptor(), flags.log_format)));
  }
  const absl::Status valid = ValidateConfig(*config, "command line");
  if (!valid.ok()) return valid;
  if (const auto omission = FindClusterOmission(*config);
      omission.has_value() && !((flags.cluster_init || flags.cluster_restore) &&
                                omission->path == "cluster.advertise")) {
    return absl::InvalidArgumentError(
        absl::StrCat(flags.config.empty() ? "command line" : flags.config, ": ",
                     omission->path, ": ", omission->what));
  }
  return config;
}

}  // namespace timecache::server
