#include "server/cluster/placement.h"

#include <algorithm>
#include <cstddef>
#include <numeric>

namespace timecache::server {
namespace {

// Of no node.
constexpr int kNone = -1;

// The finalizer of SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom
// number generators", OOPSLA 2014, with Stafford's constants "Mix13").
uint64_t Mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

// FNV-1a of 64 bits (Fowler, Noll and Vo).
uint64_t HashName(absl::string_view name) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : name) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  }
  return hash;
}

// Nodes and slots by number.
class Placer {
 public:
  Placer(const std::vector<std::string>& nodes,
         const std::vector<SlotHolders>& slots)
      : nodes_(nodes),
        slots_(slots),
        owners_(slots.size(), kNone),
        standbys_(slots.size(), kNone),
        share_(nodes.size()),
        owned_(nodes.size()),
        stood_by_(nodes.size()),
        most_((slots.size() + nodes.size() - 1) / nodes.size()) {
    for (size_t s = 0; s < slots.size(); ++s) {
      for (const std::string& node : nodes) {
        scores_.push_back(PlacementScore(static_cast<int>(s), node));
      }
    }
  }

  std::vector<SlotWish> Place() {
    Share();
    KeepOwners();
    PlaceUnowned();
    PlaceStandbys();
    std::vector<SlotWish> wishes(slots_.size());
    for (size_t s = 0; s < slots_.size(); ++s) {
      wishes[s].owner = nodes_[At(owners_[s])];
      if (standbys_[s] != kNone) wishes[s].standby = nodes_[At(standbys_[s])];
    }
    return wishes;
  }

 private:
  static size_t At(int node) { return static_cast<size_t>(node); }
  int nodes() const { return static_cast<int>(nodes_.size()); }
  uint64_t Score(size_t slot, int node) const {
    return scores_[slot * nodes_.size() + At(node)];
  }

  // How many slots each is to own: those that own most now are those that have one
  // more, so that the fewest move.
  void Share() {
    std::vector<int> order(nodes_.size());
    std::iota(order.begin(), order.end(), 0);
    std::vector<size_t> owned(nodes_.size());
    for (const int n : order) {
      owned[At(n)] = static_cast<size_t>(std::count_if(
          slots_.begin(), slots_.end(),
          [&](const auto& slot) { return slot.owner == nodes_[At(n)]; }));
    }
    std::stable_sort(order.begin(), order.end(),
                     [&](int a, int b) { return owned[At(a)] > owned[At(b)]; });
    const size_t least = slots_.size() / nodes_.size();
    const size_t larger = slots_.size() % nodes_.size();
    for (size_t i = 0; i < order.size(); ++i) {
      share_[At(order[i])] = least + (i < larger ? 1 : 0);
    }
  }

  // As many as it is to own, of which those go that score lowest.
  void KeepOwners() {
    for (int n = 0; n < nodes(); ++n) {
      std::vector<size_t> own;
      for (size_t s = 0; s < slots_.size(); ++s) {
        if (slots_[s].owner == nodes_[At(n)]) own.push_back(s);
      }
      std::sort(own.begin(), own.end(), [&](size_t a, size_t b) {
        return Score(a, n) != Score(b, n) ? Score(a, n) > Score(b, n) : a < b;
      });
      own.resize(std::min(own.size(), share_[At(n)]));
      for (const size_t s : own) Own(s, n);
    }
  }

  void Own(size_t slot, int node) {
    owners_[slot] = node;
    ++owned_[At(node)];
  }

  void PlaceUnowned() {
    for (size_t s = 0; s < slots_.size(); ++s) {
      if (owners_[s] != kNone) continue;
      int best = kNone;
      for (int n = 0; n < nodes(); ++n) {
        if (owned_[At(n)] < share_[At(n)] && IsBetter(s, n, best)) best = n;
      }
      Own(s, best);
    }
  }

  bool IsBetter(size_t slot, int node, int than) const {
    if (than == kNone) return true;
    const bool replays = Replays(slot, node);
    if (replays != Replays(slot, than)) return replays;
    return Score(slot, node) > Score(slot, than);
  }

  bool Replays(size_t slot, int node) const {
    const std::vector<std::string>& standbys = slots_[slot].standbys;
    return std::find(standbys.begin(), standbys.end(), nodes_[At(node)]) !=
           standbys.end();
  }

  void PlaceStandbys() {
    if (nodes() < 2) return;
    for (size_t s = 0; s < slots_.size(); ++s) {
      int best = kNone;
      for (int n = 0; n < nodes(); ++n) {
        if (n != owners_[s] && stood_by_[At(n)] < most_ &&
            IsBetter(s, n, best)) {
          best = n;
        }
      }
      if (best != kNone) {
        StandBy(s, best);
      } else {
        Swap(s);
      }
    }
  }

  void StandBy(size_t slot, int node) {
    if (standbys_[slot] != kNone) --stood_by_[At(standbys_[slot])];
    standbys_[slot] = node;
    ++stood_by_[At(node)];
  }

  // All but the owner have enough: a slot before gets it, and gives up its own. There
  // is one, as two others or more have `most_` each: of two nodes, one stands by for
  // what the other one owns.
  void Swap(size_t slot) {
    const int owner = owners_[slot];
    size_t s = 0;
    while (owners_[s] == owner || standbys_[s] == owner) ++s;
    StandBy(slot, standbys_[s]);
    StandBy(s, owner);
  }

  const std::vector<std::string>& nodes_;
  const std::vector<SlotHolders>& slots_;
  // By slot, then node.
  std::vector<uint64_t> scores_;
  std::vector<int> owners_;
  std::vector<int> standbys_;
  // How many each node is to own, and how many it has yet.
  std::vector<size_t> share_;
  std::vector<size_t> owned_;
  std::vector<size_t> stood_by_;
  // Of those that it is to stand by for.
  const size_t most_;
};

}  // namespace

uint64_t PlacementScore(int slot, absl::string_view node) {
  return Mix(HashName(node) + 0x9e3779b97f4a7c15 * (uint64_t(slot) + 1));
}

std::vector<SlotWish> PlaceSlots(const std::vector<std::string>& nodes,
                                 const std::vector<SlotHolders>& slots) {
  if (nodes.empty()) return std::vector<SlotWish>(slots.size());
  return Placer(nodes, slots).Place();
}

}  // namespace timecache::server
