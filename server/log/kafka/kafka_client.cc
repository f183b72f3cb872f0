#include "server/log/kafka/kafka_client.h"

#include <librdkafka/rdkafka.h>

#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/synchronization/mutex.h"

namespace timecache::server {
namespace {

using Properties = std::map<std::string, std::string>;

struct DestroyConf {
  void operator()(rd_kafka_conf_t* conf) const { rd_kafka_conf_destroy(conf); }
};
using Conf = std::unique_ptr<rd_kafka_conf_t, DestroyConf>;

// On these the log's safety rests, or the code that uses them: see
// PartitionAppender and KafkaConsumer. Each with its other names.
bool IsFixed(absl::string_view name) {
  static const auto* const names = new absl::flat_hash_set<absl::string_view>{
      "acks",
      "auto.offset.reset",
      "batch.num.messages",
      "bootstrap.servers",
      "delivery.report.only.error",
      "enable.auto.commit",
      "auto.commit.enable",
      "enable.auto.offset.store",
      "enable.gapless.guarantee",
      "enable.idempotence",
      "enable.partition.eof",
      "group.id",
      "group.instance.id",
      "isolation.level",
      "log.queue",
      "max.in.flight",
      "max.in.flight.requests.per.connection",
      "message.send.max.retries",
      "metadata.broker.list",
      "queuing.strategy",
      "request.required.acks",
      "retries",
      "transactional.id",
  };
  return names->contains(name);
}

const Properties& Fixed(KafkaHandle::Kind kind) {
  static const auto* const producer = new Properties{
      {"acks", "all"},
      // Retries, and which of two attempts counts, are the log's own.
      {"enable.idempotence", "false"},
      {"retries", "0"},
      {"max.in.flight", "1"},
      // A message is a batch, and bounded as one.
      {"batch.num.messages", "1"},
  };
  static const auto* const consumer = new Properties{
      {"enable.auto.commit", "false"},
      {"enable.auto.offset.store", "false"},
      {"isolation.level", "read_uncommitted"},
      // An offset that is gone is an error, not another place to read on.
      {"auto.offset.reset", "error"},
      {"enable.partition.eof", "true"},
  };
  return kind == KafkaHandle::Kind::kProducer ? *producer : *consumer;
}

// What users may set otherwise.
const Properties& Defaults(KafkaHandle::Kind kind) {
  static const auto* const producer = new Properties{
      {"linger.ms", "0"},
      // A broker that stands still holds up its partitions for so long.
      {"request.timeout.ms", "5000"},
      {"message.timeout.ms", "10000"},
      // Connected before the node owns: its claims do not wait for that.
      {"enable.sparse.connections", "false"},
      // The topic's own bound is what refuses a message.
      {"message.max.bytes", "100000000"},
  };
  static const auto* const consumer = new Properties{
      {"fetch.error.backoff.ms", "50"},
      // What a new fetch of another partition waits for.
      {"fetch.wait.max.ms", "50"},
      // With what is in flight a standby that is slow holds some 50 MiB.
      {"queued.max.messages.kbytes", "16384"},
  };
  return kind == KafkaHandle::Kind::kProducer ? *producer : *consumer;
}

const Properties& CommonDefaults() {
  static const auto* const both = new Properties{
      {"client.id", "timecached"},
      {"reconnect.backoff.max.ms", "1000"},
      {"socket.connection.setup.timeout.ms", "5000"},
      {"socket.keepalive.enable", "true"},
      // A request's last bytes do not wait until the broker has acknowledged others.
      {"socket.nagle.disable", "true"},
      {"socket.timeout.ms", "10000"},
      {"topic.metadata.refresh.fast.interval.ms", "100"},
      // How long a topic that was made anew stays unknown.
      {"topic.metadata.refresh.interval.ms", "10000"},
  };
  return *both;
}

absl::Status Set(rd_kafka_conf_t* conf, const std::string& name,
                 const std::string& value) {
  char problem[512];
  if (rd_kafka_conf_set(conf, name.c_str(), value.c_str(), problem,
                        sizeof problem) == RD_KAFKA_CONF_OK) {
    return absl::OkStatus();
  }
  // Not the text, which repeats the value: it may be a secret.
  return absl::InvalidArgumentError(absl::StrCat(
      "Kafka property \"", name, "\": librdkafka ", rd_kafka_version_str(),
      " does not know it, or refuses its value"));
}

absl::Status SetAll(rd_kafka_conf_t* conf, const Properties& properties) {
  for (const auto& [name, value] : properties) {
    if (absl::Status status = Set(conf, name, value); !status.ok()) {
      return status;
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Conf> MakeConf(const KafkaOptions& options,
                              KafkaHandle::Kind kind, const Properties& extra) {
  if (options.brokers.empty()) {
    return absl::InvalidArgumentError("no broker of Kafka is named");
  }
  for (const auto& [name, value] : options.properties) {
    if (IsFixed(name)) {
      return absl::InvalidArgumentError(
          absl::StrCat("Kafka property \"", name,
                       "\" is set by the server and cannot be changed"));
    }
  }
  Conf conf(rd_kafka_conf_new());
  const Properties brokers = {
      {"bootstrap.servers", absl::StrJoin(options.brokers, ",")}};
  for (const Properties* properties :
       {&CommonDefaults(), &Defaults(kind), &extra, &options.properties,
        &Fixed(kind), &brokers}) {
    if (absl::Status status = SetAll(conf.get(), *properties); !status.ok()) {
      return status;
    }
  }
  return conf;
}

}  // namespace

struct KafkaHandle::Context {
  // From any thread of librdkafka's.
  void OnLog(int level, absl::string_view facility, absl::string_view text) {
    // Properties are given to both kinds of clients, which is what it warns of.
    if (facility == "CONFWARN" &&
        absl::StrContains(text, " property and will be ignored by this ")) {
      return;
    }
    if (facility == "FAIL" || facility == "ERROR") {
      // After "[thrd:NAME]: ".
      const size_t thread = text.find("]: ");
      absl::MutexLock lock(&mu);
      failure =
          std::string(thread == text.npos ? text : text.substr(thread + 3));
    }
    if (log) log(level, absl::StrCat(facility, ": ", text));
  }

  std::function<void(int, absl::string_view)> log;
  OnReport on_report = nullptr;
  void* opaque = nullptr;

  absl::Mutex mu;
  // What became of a connection: the last that librdkafka has said.
  std::string failure ABSL_GUARDED_BY(mu);
};

absl::Status CheckKafkaOptions(const KafkaOptions& options) {
  for (const auto kind :
       {KafkaHandle::Kind::kProducer, KafkaHandle::Kind::kConsumer}) {
    // Also what properties contradict each other, and files that are missing.
    const auto handle = KafkaHandle::Open(options, kind, "");
    if (!handle.ok()) return handle.status();
  }
  return absl::OkStatus();
}

absl::Status KafkaError(int code, absl::string_view what) {
  const auto error = static_cast<rd_kafka_resp_err_t>(code);
  const std::string text = absl::StrCat(what, ": ", rd_kafka_err2str(error),
                                        " (", rd_kafka_err2name(error), ")");
  switch (error) {
    case RD_KAFKA_RESP_ERR_NO_ERROR:
      return absl::OkStatus();
    case RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC:
    case RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION:
    case RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART:
      return absl::NotFoundError(text);
    case RD_KAFKA_RESP_ERR__AUTO_OFFSET_RESET:
    case RD_KAFKA_RESP_ERR_OFFSET_OUT_OF_RANGE:
      return absl::OutOfRangeError(text);
    case RD_KAFKA_RESP_ERR_TOPIC_ALREADY_EXISTS:
      return absl::AlreadyExistsError(text);
    case RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED:
    case RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED:
      return absl::PermissionDeniedError(text);
    case RD_KAFKA_RESP_ERR_SASL_AUTHENTICATION_FAILED:
    case RD_KAFKA_RESP_ERR__AUTHENTICATION:
    case RD_KAFKA_RESP_ERR__SSL:
      return absl::UnauthenticatedError(text);
    case RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE:
    case RD_KAFKA_RESP_ERR_INVALID_MSG_SIZE:
    case RD_KAFKA_RESP_ERR_RECORD_LIST_TOO_LARGE:
      return absl::ResourceExhaustedError(text);
    case RD_KAFKA_RESP_ERR__INVALID_ARG:
    case RD_KAFKA_RESP_ERR_INVALID_REPLICATION_FACTOR:
    case RD_KAFKA_RESP_ERR_INVALID_PARTITIONS:
    case RD_KAFKA_RESP_ERR_INVALID_CONFIG:
    case RD_KAFKA_RESP_ERR_TOPIC_EXCEPTION:
      return absl::InvalidArgumentError(text);
    default:
      return absl::UnavailableError(text);
  }
}

KafkaHandle::KafkaHandle() : context_(std::make_unique<Context>()) {}

KafkaHandle::KafkaHandle(KafkaHandle&&) noexcept = default;
KafkaHandle::~KafkaHandle() = default;

void KafkaHandle::DestroyClient::operator()(rd_kafka_s* client) const {
  rd_kafka_destroy(client);
}

void KafkaHandle::DestroyTopic::operator()(rd_kafka_topic_s* topic) const {
  rd_kafka_topic_destroy(topic);
}

absl::StatusOr<KafkaHandle> KafkaHandle::Open(
    const KafkaOptions& options, Kind kind, const std::string& topic,
    const std::map<std::string, std::string>& extra, OnReport on_report,
    void* opaque) {
  auto conf = MakeConf(options, kind, extra);
  if (!conf.ok()) return conf.status();
  KafkaHandle handle;
  handle.context_->log = options.log;
  handle.context_->on_report = on_report;
  handle.context_->opaque = opaque;
  rd_kafka_conf_set_opaque(conf->get(), handle.context_.get());
  rd_kafka_conf_set_log_cb(conf->get(), [](const rd_kafka_t* client, int level,
                                           const char* fac, const char* text) {
    auto* const context = static_cast<Context*>(rd_kafka_opaque(client));
    if (context != nullptr) context->OnLog(level, fac, text);
  });
  if (on_report != nullptr) {
    rd_kafka_conf_set_dr_msg_cb(
        conf->get(), [](rd_kafka_t* client, const rd_kafka_message_t* message,
                        void* opaque) {
          const auto* context = static_cast<const Context*>(opaque);
          context->on_report(client, message, context->opaque);
        });
  }
  char problem[512];
  handle.client_.reset(rd_kafka_new(
      kind == Kind::kProducer ? RD_KAFKA_PRODUCER : RD_KAFKA_CONSUMER,
      conf->get(), problem, sizeof problem));
  if (handle.client_ == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("librdkafka refuses its properties: ", problem));
  }
  // The client's own now.
  conf->release();  // NOLINT(bugprone-unused-return-value)
  if (!topic.empty()) {
    handle.topic_.reset(
        rd_kafka_topic_new(handle.client(), topic.c_str(), nullptr));
    if (handle.topic_ == nullptr) {
      return KafkaError(rd_kafka_last_error(), topic);
    }
  }
  return handle;
}

absl::Status KafkaHandle::Explain(const absl::Status& status) const {
  if (!absl::IsUnavailable(status)) return status;
  absl::MutexLock lock(&context_->mu);
  if (context_->failure.empty()) return status;
  const bool is_sasl = absl::StrContains(context_->failure, "SASL");
  return absl::UnavailableError(absl::StrCat(
      status.message(), ": ", context_->failure,
      ": check the Kafka properties ",
      is_sasl ? "sasl.mechanism, sasl.username and sasl.password"
              : "security.protocol and ssl.*, and the brokers' addresses"));
}

}  // namespace timecache::server
