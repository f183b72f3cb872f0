#include "server/cluster/placement.h"

#include <algorithm>
#include <cstddef>

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

// FNV-1a of 64 bits (Fowler, Noll and Vo; RFC 9923).
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
        owned_(nodes.size()),
        stood_by_(nodes.size()),
        least_(static_cast<int>(slots.size() / nodes.size())),
        most_(least_ + (slots.size() % nodes.size() == 0 ? 0 : 1)),
        large_(static_cast<int>(slots.size() % nodes.size())) {
    for (size_t s = 0; s < slots.size(); ++s) {
      for (const std::string& node : nodes) {
        scores_.push_back(PlacementScore(static_cast<int>(s), node));
      }
    }
  }

  std::vector<SlotWish> Place() {
    KeepOwners();
    PlaceUnowned();
    FillNodes();
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

  // Each at most so many, of which those go that score lowest.
  void KeepOwners() {
    for (int n = 0; n < nodes(); ++n) {
      std::vector<size_t> own;
      for (size_t s = 0; s < slots_.size(); ++s) {
        if (slots_[s].owner == nodes_[At(n)]) own.push_back(s);
      }
      std::sort(own.begin(), own.end(), [&](size_t a, size_t b) {
        return Score(a, n) != Score(b, n) ? Score(a, n) > Score(b, n) : a < b;
      });
      own.resize(std::min(own.size(), At(most_)));
      for (const size_t s : own) Own(s, n);
    }
  }

  void Own(size_t slot, int node) {
    if (owners_[slot] != kNone) --owned_[At(owners_[slot])];
    owners_[slot] = node;
    ++owned_[At(node)];
  }

  // No more of them have more than the least than must.
  bool MayOwnMore(int node) const {
    if (owned_[At(node)] < least_) return true;
    if (owned_[At(node)] >= most_) return false;
    return std::count(owned_.begin(), owned_.end(), most_) < large_;
  }

  void PlaceUnowned() {
    for (size_t s = 0; s < slots_.size(); ++s) {
      if (owners_[s] != kNone) continue;
      int best = kNone;
      bool best_replays = false;
      for (int n = 0; n < nodes(); ++n) {
        if (!MayOwnMore(n)) continue;
        const bool replays = slots_[s].owner.empty() && Replays(s, n);
        if (best == kNone || replays > best_replays ||
            (replays == best_replays && Score(s, n) > Score(s, best))) {
          best = n;
          best_replays = replays;
        }
      }
      Own(s, best);
    }
  }

  bool Replays(size_t slot, int node) const {
    const std::vector<std::string>& standbys = slots_[slot].standbys;
    return std::find(standbys.begin(), standbys.end(), nodes_[At(node)]) !=
           standbys.end();
  }

  // Those that have too few get from those that have most.
  void FillNodes() {
    for (;;) {
      const int poor = static_cast<int>(
          std::min_element(owned_.begin(), owned_.end()) - owned_.begin());
      if (owned_[At(poor)] >= least_) return;
      const int rich = static_cast<int>(
          std::max_element(owned_.begin(), owned_.end()) - owned_.begin());
      size_t best = slots_.size();
      for (size_t s = 0; s < slots_.size(); ++s) {
        if (owners_[s] == rich &&
            (best == slots_.size() || Score(s, poor) > Score(best, poor))) {
          best = s;
        }
      }
      Own(best, poor);
    }
  }

  void PlaceStandbys() {
    if (nodes() < 2) return;
    for (size_t s = 0; s < slots_.size(); ++s) {
      int best = kNone;
      for (int n = 0; n < nodes(); ++n) {
        if (n == owners_[s] || stood_by_[At(n)] >= most_) continue;
        if (best == kNone || Score(s, n) > Score(s, best)) best = n;
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
  // How many each node has.
  std::vector<int> owned_;
  std::vector<int> stood_by_;
  const int least_;
  const int most_;
  // How many nodes have more than the least.
  const int large_;
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
