#include "server/peer/slot_router.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "server/base/error.h"
#include "server/engine/parts/gather.h"
#include "server/peer/slot_reader.h"

namespace timecache::server {
namespace {

using NamespacePage = Page<NamespaceInfo>;

// Of the names in all pages those that all of them have got to, `most` at most.
NamespacePage Merge(std::vector<NamespacePage> pages, size_t most) {
  NamespacePage merged;
  std::optional<std::string> until;
  for (NamespacePage& page : pages) {
    if (page.more && !page.items.empty() &&
        (!until.has_value() || page.items.back().name < *until)) {
      until = page.items.back().name;
    }
    merged.more |= page.more;
    for (NamespaceInfo& info : page.items) {
      merged.items.push_back(std::move(info));
    }
  }
  std::sort(merged.items.begin(), merged.items.end(),
            [](const NamespaceInfo& a, const NamespaceInfo& b) {
              return a.name < b.name;
            });
  const auto end = std::find_if(
      merged.items.begin(), merged.items.end(), [&](const NamespaceInfo& info) {
        return until.has_value() && info.name > *until;
      });
  merged.items.erase(end, merged.items.end());
  if (merged.items.size() > most) {
    merged.items.resize(most);
    merged.more = true;
  }
  return merged;
}

}  // namespace

// One list.
struct SlotRouter::Listing : std::enable_shared_from_this<Listing> {
  struct Source {
    Store* store;
    std::shared_ptr<Store> kept;
    // Of another node.
    std::vector<uint32_t> slots = {};
  };

  SlotRouter* router;
  ListQuery query;
  DoneWith<NamespacePage> done;
  int tries = 0;

  void Try() {
    ++tries;
    const SlotMap& slots = router->slots();
    const bool own = query.slots.empty() && router->peers() == nullptr;
    std::vector<uint32_t> asked = query.slots;
    for (uint32_t slot = 0; query.slots.empty() && slot < slots.slots();
         ++slot) {
      asked.push_back(slot);
    }
    std::vector<Source> sources;
    std::map<std::string, size_t> by_address;
    for (const uint32_t slot : asked) {
      if (slot >= slots.slots()) continue;
      if (std::shared_ptr<Store> maps = slots.Local(slot)) {
        Store* const store = maps.get();
        sources.push_back({store, std::move(maps)});
        continue;
      }
      if (own) continue;
      const std::string owner =
          router->peers() == nullptr ? "" : slots.OwnerAddress(slot);
      if (owner.empty()) return TryLater(SlotNotServed(slots, slot));
      const auto [it, added] = by_address.emplace(owner, sources.size());
      if (added) sources.push_back({router->peers()->At(owner), nullptr});
      sources[it->second].slots.push_back(slot);
    }
    if (sources.empty()) return done(NamespacePage());
    GatherAll<NamespacePage>(
        sources.size(),
        [&](size_t i, DoneWith<NamespacePage> listed) {
          ListQuery part = query;
          part.slots = std::move(sources[i].slots);
          Store* const store = sources[i].store;
          store->ListNamespaces(
              std::move(part),
              [kept = std::move(sources[i].kept), listed = std::move(listed)](
                  absl::StatusOr<NamespacePage> page) mutable {
                listed(std::move(page));
              });
        },
        [self = shared_from_this()](
            absl::StatusOr<std::vector<NamespacePage>> pages) {
          if (ReasonOf(pages.status()) == Reason::kNotOwner) {
            return self->TryLater(pages.status());
          }
          if (!pages.ok()) return self->done(pages.status());
          self->done(Merge(*std::move(pages), self->query.most));
        });
  }

  void TryLater(absl::Status error) {
    if (router->peers() == nullptr || tries >= kMaxTries) {
      return done(std::move(error));
    }
    router->peers()->After(kLookAgain,
                           [self = shared_from_this()] { self->Try(); });
  }
};

void SlotRouter::ListNamespaces(ListQuery query,
                                DoneWith<Page<NamespaceInfo>> done) {
  const auto listing = std::make_shared<Listing>();
  listing->router = this;
  listing->query = std::move(query);
  listing->done = std::move(done);
  listing->Try();
}

StoreUsage SlotRouter::GetUsage() const {
  StoreUsage sum;
  for (size_t slot = 0; slot < slots().slots(); ++slot) {
    const std::shared_ptr<Store> maps = slots().Local(slot);
    if (maps == nullptr) continue;
    const StoreUsage usage = maps->GetUsage();
    sum.namespaces += usage.namespaces;
    sum.entries += usage.entries;
    sum.bytes += usage.bytes;
    // Those of the process.
    sum.max_namespaces = usage.max_namespaces;
    sum.max_entries = usage.max_entries;
    sum.max_bytes = usage.max_bytes;
  }
  return sum;
}

}  // namespace timecache::server
