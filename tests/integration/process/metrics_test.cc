// What the process tells of itself: metrics, exact after a known scenario, and
// all that dashboard, alerts and documents say about them.
#include "server/ops/metrics.h"

#include <signal.h>

#include <fstream>
#include <memory>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "server/main/cluster_metrics.h"
#include "tests/support/await.h"
#include "tests/support/net/certificates.h"
#include "tests/support/rpc.h"
#include "tests/support/scrape.h"
#include "tests/support/server_process.h"
#include "tests/support/watch_reader.h"
#include "timecache/testing/v1/virtual_clock.grpc.pb.h"
#include "timecache/v1/groups.grpc.pb.h"

namespace timecache::test {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using Data = v1::TimeCacheService::Stub;

std::string ReadFile(const std::string& path) {
  std::ifstream file(path);
  EXPECT_TRUE(file.is_open()) << path;
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// Those of nodes of clusters, which take brokers to run.
Scrape ClusterScrape() {
  const server::PeerCounts peers;
  const server::ClusterMetrics owner(
      "eu", [] { return server::ClusterTerm::Status(); });
  const server::SharedClusterMetrics shared(
      "eu", [] { return server::SharedClusterStatus(); }, &peers);
  server::Metrics of_owner;
  of_owner.Add(&owner);
  server::Metrics of_shared;
  of_shared.Add(&shared);
  Scrape all = ParseScrape(of_owner.Text());
  all.families.merge(ParseScrape(of_shared.Text()).families);
  return all;
}

// A server with all that there are metrics of, but a cluster: TLS on its second listener, a
// journal, access rules by which everything is denied to those without a token.
class MetricsTest : public ::testing::Test {
 protected:
  static constexpr char kToken[] = "a-token-for-tests";

  MetricsTest() {
    directory_.Write("server", CertificateAuthority().Issue());
    const std::string hash =
        RunToEnd({"/bin/sh", "-c",
                  absl::StrCat("printf %s ", kToken, " | sha256sum")})
            .out.substr(0, 64);
    directory_.Write(
        "access.yaml",
        absl::StrCat("principals: [{name: tester, token_sha256: [", hash,
                     "]}]\nrules: [{principals: [tester], namespaces: [\"*\"], "
                     "verbs: [read, write, watch, settle, admin]}]\n"));
    const std::string config = directory_.Write(
        "timecached.yaml",
        absl::StrCat("listeners:\n  - address: 127.0.0.1:0\n"
                     "  - address: 127.0.0.1:0\n    tls:\n"
                     "      certificate_file: ",
                     directory_.Path("server.crt"),
                     "\n      key_file: ", directory_.Path("server.key"),
                     "\naccess:\n  file: ", directory_.Path("access.yaml"),
                     "\njournal:\n  directory: ", directory_.Path("journal"),
                     "\nhttp:\n  address: 127.0.0.1:0\nnamespaces:\n"
                     "  - name: default\n  - name: small\n    options:\n"
                     "      max_entries: 2\ndrain_delay: 5m\n"));
    server_ = std::make_unique<ServerProcess>(
        std::vector<std::string>{"--config", config, "--virtual-clock"});
    http_ = server_->started().value("http", "");
    groups_ = v1::GroupService::NewStub(server_->channel());
    clock_ = testing::v1::VirtualClockService::NewStub(server_->channel());
    // It says that it serves a little after it does.
    EXPECT_EQ(AwaitReadiness(200).body, "ok\n");
  }

  // Asks until the probe answers with this status.
  HttpAnswer AwaitReadiness(int status) const {
    HttpAnswer answer;
    Await([&] {
      answer = HttpGet(http_, "/readyz");
      return answer.status == status;
    });
    return answer;
  }

  // A call as one who may.
  template <typename Stub, typename Request, typename Response>
  Reply<Response> CallAllowed(Stub* stub,
                              grpc::Status (Stub::*method)(grpc::ClientContext*,
                                                           const Request&,
                                                           Response*),
                              const std::string& request) {
    grpc::ClientContext context;
    SetDeadline(&context);
    Allow(&context);
    Reply<Response> reply;
    reply.status =
        (stub->*method)(&context, Proto<Request>(request), &reply.response);
    return reply;
  }
  static void Allow(grpc::ClientContext* context) {
    context->AddMetadata("authorization", absl::StrCat("Bearer ", kToken));
  }

  void Put(const std::string& name, const std::string& key) {
    Must(CallAllowed(
        server_->data(), &Data::Put,
        absl::StrCat("namespace: '", name, "' key: '", key, "' value: 'v'")));
  }
  int64_t AdvanceBy(int64_t seconds) {
    return ToUs(
        Must(CallAllowed(clock_.get(),
                         &testing::v1::VirtualClockService::Stub::Advance,
                         absl::StrCat("by { seconds: ", seconds, " }")))
            .now());
  }

  // A batch, limits, denials, deaths, a watcher and a consumer group.
  void DoEverything() {
    Must(CallAllowed(groups_.get(), &v1::GroupService::Stub::CreateGroup,
                     "namespace: 'default' name: 'g'"));
    for (const char* key : {"a", "b", "c"}) Put("default", key);
    Must(CallAllowed(server_->data(), &Data::Execute,
                     "namespace: 'default' "
                     "operations { put { key: 'd' value: 'v' } } "
                     "operations { get { key: 'a' } } "
                     "operations { get { key: 'none' } } "
                     "operations { contains { key: 'b' } } "
                     "operations { remove { key: 'd' } }"));
    Put("small", "1");
    Put("small", "2");
    EXPECT_EQ(CallAllowed(server_->data(), &Data::Put,
                          "namespace: 'small' key: '3' value: 'v'")
                  .status.error_code(),
              grpc::StatusCode::RESOURCE_EXHAUSTED);
    EXPECT_EQ(Call(server_->data(), &Data::Get,
                   Proto<v1::GetRequest>("namespace: 'default' key: 'a'"))
                  .status.error_code(),
              grpc::StatusCode::UNAUTHENTICATED);
    // On time: no step is longer than a bucket is wide.
    AdvanceBy(29);
    for (int i = 0; i < 8; ++i) {
      Must(CallAllowed(clock_.get(),
                       &testing::v1::VirtualClockService::Stub::Advance,
                       "by { nanos: 200000000 }"));
    }
    grpc::ClientContext context;
    SetDeadline(&context);
    Allow(&context);
    const auto member = server_->data()->ConsumeExpired(
        &context, Proto<v1::ConsumeExpiredRequest>(
                      "namespaces: 'default' group: 'g' max_in_flight: 10"));
    v1::ConsumeExpiredResponse message;
    std::vector<std::string> tokens;
    while (tokens.size() < 3 && member->Read(&message)) {
      for (const v1::ExpiredEvent& event : message.events()) {
        tokens.push_back(event.delivery_token());
      }
    }
    ASSERT_EQ(tokens.size(), 3u);
    Must(CallAllowed(server_->data(), &Data::SettleExpired,
                     absl::StrCat("namespace: 'default' group: 'g' "
                                  "settlements { delivery_token: '",
                                  absl::CEscape(tokens[0]), "' ack {} }")));
    scrape_ = ScrapeFrom(http_);
    scrape_.families.merge(ClusterScrape().families);
    context.TryCancel();
    while (member->Read(&message)) {
    }
    member->Finish();
  }

  TemporaryDirectory directory_;
  std::unique_ptr<ServerProcess> server_;
  std::string http_;
  std::unique_ptr<v1::GroupService::Stub> groups_;
  std::unique_ptr<testing::v1::VirtualClockService::Stub> clock_;
  // While everything is as DoEverything leaves it, a member included.
  Scrape scrape_;
};

TEST_F(MetricsTest, CountsAreExact) {
  ASSERT_NO_FATAL_FAILURE(DoEverything());
  const std::string unary =
      "{grpc_type=\"unary\",grpc_service=\"timecache.v1.TimeCacheService\","
      "grpc_method=\"";
  // One of each source; ops_test has the others.
  const std::vector<std::pair<std::string, double>> expected = {
      {"timecache_puts_total{namespace=\"default\"}", 4},
      {"timecache_expired_total{namespace=\"default\",cause=\"expired\"}", 3},
      {"timecache_refused_total{namespace=\"small\",reason=\"MAX_ENTRIES\"}",
       1},
      {"timecache_bound_violations_total{namespace=\"default\"}", 0},
      {"timecache_group_in_flight{namespace=\"default\",group=\"g\"}", 2},
      {"timecache_group_acked_total{namespace=\"default\",group=\"g\"}", 1},
      {"grpc_server_handled_total" + unary + "Put\",grpc_code=\"OK\"}", 5},
      {"grpc_server_handled_total" + unary +
           "Put\",grpc_code=\"ResourceExhausted\"}",
       1},
      {"grpc_server_handled_total" + unary +
           "Get\",grpc_code=\"Unauthenticated\"}",
       1},
      {"grpc_server_handling_seconds_count" + unary + "Execute\"}", 1},
      {"timecache_access_denied_total{reason=\"NO_CREDENTIALS\"}", 1},
      {"timecache_access_reload_ok", 1},
      {"timecache_config_reload_ok", 1},
      {"timecache_server_state{state=\"serving\"}", 1},
  };
  for (const auto& [sample, value] : expected) {
    EXPECT_EQ(scrape_.Value(sample), value) << sample;
  }
  // What the member holds died about a second ago.
  EXPECT_NEAR(scrape_.Value("timecache_group_lag_seconds{namespace=\"default\","
                            "group=\"g\"}"),
              0.5, 0.5);
}

// Numbers, and names of namespaces, groups and methods.
TEST_F(MetricsTest, TellNoSecretsAndNobodysName) {
  ASSERT_NO_FATAL_FAILURE(DoEverything());
  EXPECT_THAT(scrape_.text, Not(HasSubstr("tester")));
  EXPECT_THAT(scrape_.text, Not(HasSubstr(kToken)));
  std::set<std::string> labels;
  for (const auto& [name, family] : scrape_.families) {
    labels.insert(family.labels.begin(), family.labels.end());
  }
  EXPECT_THAT(labels,
              ElementsAre("address", "cause", "cluster", "group", "grpc_code",
                          "grpc_method", "grpc_service", "grpc_type", "holder",
                          "namespace", "reason", "role", "state", "version"));
}

TEST_F(MetricsTest, PrometheusFindsNothingWrong) {
  ASSERT_NO_FATAL_FAILURE(DoEverything());
  const std::string path = directory_.Write("scrape", scrape_.text);
  const Exit check =
      RunToEnd({"/bin/sh", "-c", "promtool check metrics < " + path});
  EXPECT_EQ(check.code, 0);
  EXPECT_EQ(check.out, "");
  EXPECT_EQ(check.err, "");
}

// Names and labels in a PromQL expression that are ours.
void ExpectExported(const std::string& expression, const Scrape& scrape) {
  static const std::regex word("[a-zA-Z_][a-zA-Z0-9_]*");
  static const std::regex text("\"[^\"]*\"|\\$\\w+|\\[[^\\]]*\\]");
  // Of PromQL, of Prometheus' own labels, and up.
  static const std::set<std::string> known = {
      "and",      "or",       "on",           "by",
      "sum",      "unless",   "max",          "min",
      "rate",     "time",     "le",           "up",
      "increase", "changes",  "deriv",        "histogram_quantile",
      "job",      "instance", "label_values", "vector",
      "abs"};
  const std::string bare = std::regex_replace(expression, text, "");
  std::set<std::string> labels;
  for (const auto& [name, family] : scrape.families) {
    labels.insert(family.labels.begin(), family.labels.end());
  }
  for (std::sregex_iterator it(bare.begin(), bare.end(), word), end; it != end;
       ++it) {
    std::string name = it->str();
    for (const char* suffix : {"_bucket", "_sum", "_count"}) {
      const size_t at = name.rfind(suffix);
      if (at != std::string::npos && at + strlen(suffix) == name.size() &&
          scrape.families.contains(name.substr(0, at))) {
        name.resize(at);
      }
    }
    EXPECT_TRUE(known.contains(name) || labels.contains(name) ||
                scrape.families.contains(name))
        << name << " in " << expression;
  }
}

// All strings under a key, at any depth.
void Collect(const json& value, const std::string& key,
             std::vector<std::string>* found) {
  if (value.is_array()) {
    for (const json& item : value) Collect(item, key, found);
  } else if (value.is_object()) {
    for (const auto& [name, item] : value.items()) {
      if (name == key && item.is_string()) found->push_back(item);
      Collect(item, key, found);
    }
  }
}

TEST_F(MetricsTest, TheDashboardShowsOnlyWhatThereIs) {
  ASSERT_NO_FATAL_FAILURE(DoEverything());
  const json dashboard =
      json::parse(ReadFile(DEPLOY "/helm/timecached/files/dashboard.json"));
  std::vector<std::string> expressions;
  Collect(dashboard, "expr", &expressions);
  EXPECT_GE(expressions.size(), 50u);
  for (const std::string& expression : expressions) {
    ExpectExported(expression, scrape_);
  }
  std::vector<std::string> queries;
  Collect(dashboard["templating"], "definition", &queries);
  EXPECT_EQ(queries.size(), 2u);
  for (const std::string& query : queries) ExpectExported(query, scrape_);
}

// Expressions of the rules' file: behind expr:, on one line or on several that
// stand further in.
std::vector<std::string> ExpressionsOf(const std::string& yaml) {
  std::vector<std::string> expressions;
  size_t indent = 0;
  for (const std::string& line :
       std::vector<std::string>(absl::StrSplit(yaml, '\n'))) {
    const size_t at = line.find_first_not_of(' ');
    if (at == std::string::npos) continue;
    if (line.substr(at, 6) == "expr: ") {
      expressions.push_back(line.substr(at + 6));
      indent = expressions.back() == "|" ? at : 0;
      if (indent > 0) expressions.back().clear();
    } else if (indent > 0 && at > indent) {
      expressions.back() += line + " ";
    } else {
      indent = 0;
    }
  }
  return expressions;
}

TEST_F(MetricsTest, AlertsWatchOnlyWhatThereIs) {
  ASSERT_NO_FATAL_FAILURE(DoEverything());
  const std::string alerts =
      ReadFile(DEPLOY "/helm/timecached/files/alerts.yaml");
  const std::vector<std::string> expressions = ExpressionsOf(alerts);
  EXPECT_GE(expressions.size(), 20u);
  for (const std::string& expression : expressions) {
    ExpectExported(expression, scrape_);
  }
  // Each has its section of the runbook.
  const std::string runbook = ReadFile(DEPLOY "/prometheus/RUNBOOK.md");
  static const std::regex alert("alert: (\\w+)");
  int count = 0;
  for (std::sregex_iterator it(alerts.begin(), alerts.end(), alert), end;
       it != end; ++it, ++count) {
    EXPECT_THAT(runbook, HasSubstr("\n## " + (*it)[1].str() + "\n"));
  }
  EXPECT_EQ(static_cast<size_t>(count), expressions.size());
}

// METRICS.md is what this writes.
TEST_F(MetricsTest, AllAreDocumented) {
  ASSERT_NO_FATAL_FAILURE(DoEverything());
  std::string table =
      "| metric | type | labels | what it tells |\n|---|---|---|---|\n";
  for (const auto& [name, family] : scrape_.families) {
    absl::StrAppend(&table, "| `", name, "` | ", family.type, " | ",
                    absl::StrJoin(family.labels, ", "), " | ", family.help,
                    " |\n");
  }
  const std::string document = ReadFile(DEPLOY "/prometheus/METRICS.md");
  const size_t begin = document.find("| metric |");
  ASSERT_NE(begin, std::string::npos) << table;
  EXPECT_EQ(document.substr(begin), table);
}

TEST_F(MetricsTest, ProbesSayWhenItDrains) {
  EXPECT_EQ(HttpGet(http_, "/healthz").status, 200);
  server_->process().Signal(SIGTERM);
  EXPECT_EQ(AwaitReadiness(503).body, "draining\n");
  EXPECT_EQ(HttpGet(http_, "/healthz").status, 200);
  EXPECT_EQ(
      ScrapeFrom(http_).Value("timecache_server_state{state=\"draining\"}"), 1);
  // The drain_delay is long; a second signal does not wait for it.
  server_->process().Signal(SIGTERM);
  EXPECT_EQ(server_->process().Wait().code, 0);
}

}  // namespace
}  // namespace timecache::test
