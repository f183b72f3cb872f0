#include "server/engine/parts/dead_letter_walk.h"

#include <memory>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "server/engine/store/dead_letter_route.h"

namespace timecache::server {
namespace {

// The namespaces that were asked for, of those that are there.
using Known = absl::flat_hash_map<std::string, NamespaceOptions>;

std::optional<NamespaceOptions> Find(const Known& known,
                                     absl::string_view name) {
  const auto it = known.find(name);
  if (it == known.end()) return std::nullopt;
  return it->second;
}

struct Route {
  Store* store;
  std::string name;
  NamespaceOptions options;
  Store::Done done;
  Known known;
  int steps = 0;
  // The namespace that is asked for.
  std::string next;
};

void EndRoute(Route* route) {
  std::exchange(route->done, nullptr)(CheckDeadLetterRoute(
      route->name, route->options,
      [route](absl::string_view name) { return Find(route->known, name); }));
}

// Asks for the next one, unless the route ends there.
void Step(std::shared_ptr<Route> route) {
  if (route->next.empty() || route->next == route->name ||
      route->known.contains(route->next) ||
      route->steps++ == kMaxDeadLetterSteps) {
    return EndRoute(route.get());
  }
  Route& asked = *route;
  asked.store->GetNamespace(
      asked.next, /*include_statistics=*/false,
      [route = std::move(route)](
          const absl::StatusOr<NamespaceInfo>& info) mutable {
        if (absl::IsNotFound(info.status())) return EndRoute(route.get());
        if (!info.ok()) {
          return std::exchange(route->done, nullptr)(info.status());
        }
        route->known[route->next] = info->options;
        route->next = info->options.dead_letter_namespace;
        Step(std::move(route));
      });
}

struct Warned {
  Store* store;
  std::string name;
  NamespaceOptions options;
  WarningsDone done;
  std::string to;
  Known known;
  // Whether it is known what `to` is.
  bool knows_to = false;
  int senders = 0;
  int pages = 0;
};

void EndWarnings(Warned* warned) {
  NamespaceOptions options = warned->options;
  if (!warned->knows_to) options.dead_letter_namespace.clear();
  std::exchange(warned->done, nullptr)(DeadLetterWarnings(
      warned->name, options, warned->senders,
      [warned](absl::string_view name) { return Find(warned->known, name); }));
}

void CountSenders(std::shared_ptr<Warned> warned, std::string after) {
  if (warned->pages++ == kMaxSendersPages) return EndWarnings(warned.get());
  Store* const store = warned->store;
  ListQuery query;
  query.after = std::move(after);
  query.most = kSendersPage;
  store->ListNamespaces(
      std::move(query),
      [warned = std::move(warned)](
          const absl::StatusOr<Page<NamespaceInfo>>& page) mutable {
        if (!page.ok()) return EndWarnings(warned.get());
        for (const NamespaceInfo& info : page->items) {
          if (info.options.dead_letter_namespace == warned->name) {
            ++warned->senders;
          }
        }
        if (!page->more || page->items.empty()) {
          return EndWarnings(warned.get());
        }
        CountSenders(std::move(warned), page->items.back().name);
      });
}

}  // namespace

void CheckDeadLetterRoute(Store* store, absl::string_view name,
                          const NamespaceOptions& options, Store::Done done) {
  auto route = std::make_shared<Route>();
  route->store = store;
  route->name = std::string(name);
  route->options = options;
  route->done = std::move(done);
  route->next = options.dead_letter_namespace;
  Step(std::move(route));
}

void FindDeadLetterWarnings(Store* store, absl::string_view name,
                            const NamespaceOptions& options,
                            WarningsDone done) {
  auto warned = std::make_shared<Warned>();
  warned->store = store;
  warned->name = std::string(name);
  warned->options = options;
  warned->done = std::move(done);
  warned->to = options.dead_letter_namespace;
  const auto senders = [](std::shared_ptr<Warned> of) {
    if (of->options.ttl_us >= kMinDeadLetterTtlUs) return EndWarnings(of.get());
    CountSenders(std::move(of), "");
  };
  if (warned->to.empty()) return senders(std::move(warned));
  Warned& asked = *warned;
  store->GetNamespace(asked.to, /*include_statistics=*/false,
                      [senders, warned = std::move(warned)](
                          const absl::StatusOr<NamespaceInfo>& info) mutable {
                        warned->knows_to =
                            info.ok() || absl::IsNotFound(info.status());
                        if (info.ok()) {
                          warned->known[warned->to] = info->options;
                        }
                        senders(std::move(warned));
                      });
}

}  // namespace timecache::server
