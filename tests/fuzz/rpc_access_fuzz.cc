// Whole calls to a whole server with access rules. The first byte says who
// calls, the rest are records (rpc_records.h), of which the last number of all
// sets the call's metadata. Whoever may only read changes nothing, by no call
// and with no message; nobody is refused, and gets no answer.

#include <memory>
#include <string>
#include <vector>

#include "server/edge/access_rules.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/rpc_records.h"
#include "tests/fuzz/rpc_world.h"

namespace timecache::fuzz {
namespace {

constexpr uint8_t kSetMetadata = 255;
constexpr int kEntries = 3;

// The hashes are those of "reader-token" and "writer-token".
constexpr char kRules[] = R"(
principals:
  - name: reader
    token_sha256: [ba5005a40cf5212e4ac0190104cc127edab013294bb71279a975b27a80982d45]
  - name: writer
    token_sha256: [3590c0a59f72ce02700194a05f228a725c1f135a6dcb3ded9b2d86ab6a6f52cb]
rules:
  - principals: [reader]
    namespaces: ["*"]
    verbs: [read, watch]
  - principals: [writer]
    namespaces: [default, "a*"]
    verbs: [read, write, watch, settle, admin]
)";

class FixedAccess final : public server::Access {
 public:
  FixedAccess() : rules_(server::AccessRules::Parse(kRules, "rules").value()) {}

  absl::StatusOr<std::shared_ptr<const server::Caller>> Authenticate(
      const server::Credentials& credentials) const override {
    absl::Status error;
    const server::Caller* const caller = rules_->Find(credentials, &error);
    if (caller == nullptr) return error;
    return std::shared_ptr<const server::Caller>(rules_, caller);
  }
  std::shared_ptr<const server::Caller> FindPrincipal(
      absl::string_view name) const override {
    return std::shared_ptr<const server::Caller>(rules_,
                                                 rules_->FindPrincipal(name));
  }
  uint64_t generation() const override { return 1; }
  void SetListener(std::function<void()>) override {}

 private:
  const std::shared_ptr<const server::AccessRules> rules_;
};

enum class Who { kReader, kWriter, kNobody, kUnknown };

// Another call than this client can send is no call at all.
std::string Printable(std::string text) {
  for (char& c : text) c = static_cast<char>(' ' + (c & 0x7f) % ('~' - ' '));
  return text;
}

void SetMetadata(RpcWorld* world, Who who, const std::string& message) {
  if (message.empty()) return;
  const std::string value = Printable(message.substr(1));
  switch (message[0] % 3) {
    case 0:
      world->SetMetadata("x-request-id", value);
      break;
    case 1:
      world->SetMetadata("traceparent", value);
      break;
    default:
      // Not for a known one: two authorizations are none.
      if (who == Who::kUnknown) world->SetMetadata("authorization", value);
  }
}

void Prepare(RpcWorld* world, Who who) {
  world->Reset();
  for (int i = 0; i < kEntries; ++i) {
    const std::string key = "k" + std::to_string(i);
    (void)world->map().Apply(server::Operation::Put(key, "v"), world->now_us());
  }
  if (who == Who::kReader) {
    world->SetMetadata("authorization", "Bearer reader-token");
  } else if (who == Who::kWriter) {
    world->SetMetadata("authorization", "bearer writer-token");
  }
}

void CheckEnd(const grpc::Status& status, Who who) {
  const bool refused = status.error_code() == grpc::StatusCode::UNAUTHENTICATED;
  if (who == Who::kNobody || who == Who::kUnknown) {
    Require(refused, "a stranger is answered: " + status.error_message());
  } else {
    Require(status.error_code() != grpc::StatusCode::UNAUTHENTICATED,
            "a known caller is a stranger: " + status.error_message());
  }
}

void CheckUnchanged(RpcWorld* world, uint64_t version) {
  const auto maps = world->registry().List();
  Require(maps.size() == 1 && maps[0].get() == &world->map(),
          "namespaces have changed");
  Require(world->map().GetSize(world->now_us()).entries == kEntries,
          "entries have changed");
  const server::Result result =
      world->map().Apply(server::Operation::Get("k0"), world->now_us());
  Require(result.entry.version == version, "an entry was touched");
  const auto groups = world->map().groups().List();
  Require(groups.size() == 1, "groups have changed");
  const server::GroupStatistics statistics = groups[0]->GetStatistics();
  Require(statistics.delivered == 0 && statistics.members == 0,
          "events were taken");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  static FixedAccess& access = *new FixedAccess;
  static RpcWorld& world = *new RpcWorld(&access);
  const auto who = static_cast<Who>(data[0] % 4);
  Prepare(&world, who);
  const uint64_t version =
      world.map()
          .Apply(server::Operation::Get("k0"), world.now_us())
          .entry.version;
  const std::vector<RpcRecord> records = Records(Bytes(data + 1, size - 1));
  for (size_t i = 0; i < records.size(); ++i) {
    const uint8_t method = records[i].method;
    if (method == kSetMetadata) {
      SetMetadata(&world, who, records[i].message);
      continue;
    }
    const std::vector<std::string> messages =
        MessagesOfCall(records, world.IsClientStreaming(method), &i);
    CheckEnd(world.Call(method, messages), who);
    world.Check();
  }
  if (who != Who::kWriter) CheckUnchanged(&world, version);
  return 0;
}

}  // namespace timecache::fuzz
