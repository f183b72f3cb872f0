#include "tests/conformance/runner.h"

#include <exception>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "tests/conformance/calls.h"
#include "tests/support/await.h"

namespace timecache::conformance {

Runner::Runner(const std::string& address, const ClientOptions& options)
    : client_(address, options), clock_(client_), now_(absl::UnixEpoch()) {}

void Runner::Run(const Json& scenario) {
  for (const auto& [name, value] : scenario.items()) {
    Require(name == "name" || name == "about" || name == "namespaces" ||
                name == "steps",
            "unknown key " + name);
  }
  const absl::StatusOr<absl::Time> now = clock_.Now();
  Require(now.ok(), now.status().ToString());
  const absl::Duration age = *now - absl::UnixEpoch();
  now_ = absl::UnixEpoch() + absl::Ceil(age, absl::Hours(1));
  const absl::Status moved = clock_.AdvanceTo(now_).status();
  Require(moved.ok(), moved.ToString());
  matcher_.emplace(now_);
  recipes_.emplace(client_, [this](const std::string& name) {
    Watch& watch = *watches_.at(name);
    const absl::Status status = watch.ReadTo(now_);
    Require(status.ok(), status.ToString());
    return watch.TakeEvents();
  });

  const Json namespaces =
      scenario.value("namespaces", Json{{"main", Json::object()}});
  for (const auto& [name, options] : namespaces.items()) {
    client_.DeleteNamespace(name).IgnoreError();
    const auto made = client_.CreateNamespace(
        name, TakeNamespaceOptions(Args(*matcher_, options)));
    Require(made.ok(), made.status().ToString());
  }
  std::string failure;
  size_t number = 0;
  try {
    for (const Json& step : scenario["steps"]) {
      Step(step);
      ++number;
    }
  } catch (const std::exception& error) {
    failure = absl::StrCat("step ", number, ": ", error.what(), "\n    ",
                           scenario["steps"][number].dump());
  }
  watches_.clear();
  workers_.clear();
  for (const auto& [name, options] : namespaces.items()) {
    client_.DeleteNamespace(name).IgnoreError();
  }
  Require(failure.empty(), failure);
}

void Runner::Step(const Json& step) {
  static const std::map<std::string, std::set<std::string>> kinds = {
      {"call", {"args", "expect", "error", "save", "eventually"}},
      {"advance", {}},
      {"watch", {"args", "error"}},
      {"watch_expiring", {"args", "error"}},
      {"watch_changes", {"args", "error"}},
      {"member", {"args"}},
      {"worker", {"args", "handler"}},
      {"events", {"expect", "lost", "save", "error", "delivered"}},
      {"handled", {"expect"}},
      {"close", {}},
      {"recipe", {"as", "args"}},
      {"do", {"args", "expect", "error", "save"}}};
  std::string kind;
  for (const auto& [name, known] : kinds) {
    if (!step.contains(name)) continue;
    Require(kind.empty(), "both " + kind + " and " + name);
    kind = name;
  }
  Require(!kind.empty(), "a step of no kind");
  for (const auto& [name, value] : step.items()) {
    Require(name == kind || kinds.at(kind).contains(name),
            "unknown key " + name);
  }
  if (kind == "call") {
    Call(step);
  } else if (kind == "advance") {
    const auto now = clock_.Advance(Seconds(step["advance"]));
    Require(now.ok(), now.status().ToString());
    now_ = *now;
  } else if (kind == "worker") {
    BeginWorker(step);
  } else if (kind == "events") {
    Events(step);
  } else if (kind == "handled") {
    Handled(step);
  } else if (kind == "recipe") {
    recipes_->Make(step["recipe"], step["as"], ArgsOf(step));
  } else if (kind == "do") {
    Do(step);
  } else if (kind == "close") {
    Close(step["close"]);
  } else {
    BeginWatch(kind, step);
  }
}

Args Runner::ArgsOf(const Json& step) const {
  return {*matcher_, step.value("args", Json::object())};
}

void Runner::MatchError(const absl::Status& error, const Json& step) const {
  Require(step.contains("error"), error.ToString());
  matcher_->Match(ToJson(error), step["error"], "error");
}

void Runner::Call(const Json& step) {
  const absl::Time give_up_at = absl::Now() + kPatience;
  while (true) {
    const absl::StatusOr<Json> answer =
        DoCall(step["call"], client_, ArgsOf(step));
    if (!answer.ok()) return MatchError(answer.status(), step);
    Require(!step.contains("error"), "succeeded");
    try {
      matcher_->Match(*answer, step.value("expect", Json::object()), "answer");
      return matcher_->Save(*answer, step);
    } catch (const Mismatch&) {
      if (!step.value("eventually", false) || absl::Now() > give_up_at) throw;
    }
    absl::SleepFor(absl::Milliseconds(10));
  }
}

void Runner::BeginWatch(const std::string& kind, const Json& step) {
  WatchOptions options = TakeWatchOptions(ArgsOf(step));
  options.changes = kind == "watch_changes";
  auto watch = std::make_unique<Watch>(client_, std::move(options));
  const absl::Status status = watch->ReadStart();
  if (!status.ok()) return MatchError(status, step);
  Require(!step.contains("error"), "the watch stands");
  watches_[step[kind]] = std::move(watch);
}

void Runner::Events(const Json& step) {
  Watch& watch = *watches_.at(step["events"]);
  const Json expected = step.value("expect", Json::array());
  const Json& list = expected.is_object() ? expected.at("unordered") : expected;
  absl::Status status;
  if (step.contains("delivered")) {
    const absl::Time until =
        matcher_->start() + Seconds(step["delivered"].at("at"));
    status = watch.ReadDelivered(list.size(), until);
  } else if (watch.is_member()) {
    status = watch.ReadEvents(list.size());
  } else {
    status = watch.ReadTo(now_);
  }
  if (!status.ok()) return MatchError(status, step);
  Require(!step.contains("error"), "the watch goes on");
  const Json taken = watch.Take();
  matcher_->Match(taken["events"], expected, "events");
  matcher_->Match(taken["lost"], step.value("lost", Json(0)), "lost");
  matcher_->Save(taken, step);
}

void Runner::BeginWorker(const Json& step) {
  GroupWorkerOptions options = TakeWorkerOptions(ArgsOf(step));
  const Client client = client_.In(options.ns);
  const std::string group = options.group;
  workers_[step["worker"]] = std::make_unique<Worker>(
      client_, std::move(options), step.value("handler", Json::object()),
      *matcher_);
  const bool joined = test::Await([&] {
    const auto made = client.GetGroup(group, {.include_statistics = true});
    return made.ok() && made->statistics->members > 0;
  });
  Require(joined, "the group has no member");
}

void Runner::Handled(const Json& step) {
  const Json& expected = step["expect"];
  const Json& list = expected.is_object() ? expected.at("unordered") : expected;
  matcher_->Match(workers_.at(step["handled"])->Take(list.size()), expected,
                  "handled");
}

void Runner::Do(const Json& step) {
  const absl::StatusOr<Json> answer = recipes_->Do(step["do"], ArgsOf(step));
  if (!answer.ok()) return MatchError(answer.status(), step);
  Require(!step.contains("error"), "succeeded");
  matcher_->Match(*answer, step.value("expect", Json::object()), "answer");
  matcher_->Save(*answer, step);
}

void Runner::Close(const std::string& name) {
  watches_.erase(name);
  const auto it = workers_.find(name);
  if (it == workers_.end()) return;
  const absl::Status status = it->second->Stop();
  Require(status.ok(), status.ToString());
  workers_.erase(it);
}

}  // namespace timecache::conformance
