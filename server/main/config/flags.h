#ifndef TIMECACHED_SERVER_MAIN_CONFIG_FLAGS_H_
#define TIMECACHED_SERVER_MAIN_CONFIG_FLAGS_H_

#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "timecache/config/v1/config.pb.h"

namespace timecache::server {

// Of `timecached cluster init`, which makes the topics of --cluster.
struct ClusterInitFlags {
  // Unset: the default, or what is there.
  std::optional<uint32_t> partitions;
  uint32_t replication_factor = 3;
  bool json = false;
};

// Of `timecached cluster restore`, which puts a backup into these topics.
struct ClusterRestoreFlags {
  std::string directory;
  bool json = false;
};

// The server's command line. Empty strings and vectors: the flag was not given.
struct Flags {
  std::string config;               // path of the configuration file
  std::vector<std::string> listen;  // addresses, checked
  std::string tls_certificate;      // files, for what is in listen
  std::string tls_key;
  std::string tls_client_ca;
  bool allow_plaintext = false;  // for what is in listen
  std::string http;              // address for metrics and probes, checked
  std::string journal;           // directory
  std::string restore;           // directory of a backup, or "-"
  std::string cluster;           // name
  std::string node;              // name
  std::string advertise;         // address, checked
  std::vector<std::string> kafka_brokers;
  bool cluster_allow_unsafe = false;
  bool virtual_clock = false;  // time stands still until it is advanced
  bool check_config = false;   // check the configuration, print it, and end
  std::string log_level;       // debug, info, warning, error
  std::string log_format;      // text, json
  // Make the topics, and end.
  std::optional<ClusterInitFlags> cluster_init;
  // Fill them, and end.
  std::optional<ClusterRestoreFlags> cluster_restore;
};

// Returns the flags, or an exit code: 0 after --help or --version, which are
// written to `out`, and 2 after an invalid flag, which is reported to `err` in
// one line.
std::variant<Flags, int> ParseFlags(int argc, const char* const* argv,
                                    std::ostream& out, std::ostream& err);

// The same with standard output and standard error.
std::variant<Flags, int> ParseFlags(int argc, const char* const* argv);

// The configuration that these flags ask for: the file's, or the default, with
// the flags over it. --listen replaces all listeners of the file; the other
// flags about TLS and plain text apply to those of --listen, or to the default
// listener. With cluster_init or cluster_restore, the node itself may be incomplete. Errors as
// LoadConfig.
absl::StatusOr<config::v1::ServerConfig> ConfigFromFlags(const Flags& flags);

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_MAIN_CONFIG_FLAGS_H_
