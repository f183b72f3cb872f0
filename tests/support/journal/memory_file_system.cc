#include "tests/support/journal/memory_file_system.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace timecache::server {
namespace {

constexpr size_t kBlockBytes = 512;

absl::Status Missing(const std::string& path) {
  return absl::NotFoundError(absl::StrCat(path, ": No such file"));
}

std::string DirectoryOf(const std::string& path) {
  return path.substr(0, path.rfind('/'));
}

}  // namespace

class MemoryFile final : public File {
 public:
  MemoryFile(MemoryFileSystem* owner, std::string path,
             std::shared_ptr<MemoryFileSystem::Node> node)
      : owner_(owner), path_(std::move(path)), node_(std::move(node)) {}

  absl::StatusOr<size_t> Read(uint64_t offset, size_t bytes,
                              char* to) const override {
    absl::MutexLock lock(&owner_->mu_);
    if (offset >= node_->now.size()) return 0;
    return node_->now.copy(to, bytes, offset);
  }
  absl::Status Write(uint64_t offset, absl::string_view data) override {
    return owner_->WriteTo(path_, node_.get(),
                           {offset, std::string(data), false});
  }
  absl::Status Truncate(uint64_t bytes) override {
    return owner_->WriteTo(path_, node_.get(), {bytes, "", true});
  }
  absl::Status Allocate(uint64_t bytes) override {
    return owner_->Allocate(path_, node_.get(), bytes);
  }
  absl::StatusOr<uint64_t> Allocated() const override {
    absl::MutexLock lock(&owner_->mu_);
    return node_->room();
  }
  absl::Status Sync() override { return owner_->SyncNode(path_, node_.get()); }
  absl::StatusOr<uint64_t> Size() const override {
    absl::MutexLock lock(&owner_->mu_);
    return node_->now.size();
  }

 private:
  MemoryFileSystem* const owner_;
  const std::string path_;
  const std::shared_ptr<MemoryFileSystem::Node> node_;
};

class MemoryLock final : public DirectoryLock {
 public:
  MemoryLock(MemoryFileSystem* owner, std::string path)
      : owner_(owner), path_(std::move(path)) {}
  ~MemoryLock() override {
    absl::MutexLock lock(&owner_->mu_);
    owner_->locks_.erase(path_);
  }
  absl::Status Sync() override { return owner_->SyncDirectory(path_); }

 private:
  MemoryFileSystem* const owner_;
  const std::string path_;
};

void MemoryFileSystem::Apply(const Write& write, std::string* to) {
  if (write.truncate) {
    to->resize(write.offset);
    return;
  }
  if (to->size() < write.offset + write.data.size()) {
    to->resize(write.offset + write.data.size());
  }
  to->replace(write.offset, write.data.size(), write.data);
}

void MemoryFileSystem::LosePower(Unsynced unsynced, std::mt19937_64* random) {
  absl::MutexLock lock(&mu_);
  const bool part = unsynced == Unsynced::kKeptInPart;
  std::bernoulli_distribution keep(part ? 0.5 : 0);
  std::set<Node*> nodes;
  for (const auto& [path, node] : now_) nodes.insert(node.get());
  for (const auto& [path, node] : synced_) nodes.insert(node.get());
  for (Node* const node : nodes) {
    node->now = node->synced;
    for (const Write& write : node->since) {
      if (write.truncate) {
        if (keep(*random)) Apply(write, &node->now);
        continue;
      }
      for (size_t at = 0; at < write.data.size(); at += kBlockBytes) {
        if (!keep(*random)) continue;
        Apply({write.offset + at, write.data.substr(at, kBlockBytes), false},
              &node->now);
      }
    }
    node->synced = node->now;
    node->since.clear();
  }
  std::set<std::string> paths;
  for (const auto& [path, node] : now_) paths.insert(path);
  for (const auto& [path, node] : synced_) paths.insert(path);
  for (const std::string& path : paths) {
    if (!keep(*random)) continue;
    if (const auto entry = now_.find(path); entry != now_.end()) {
      synced_[path] = entry->second;
    } else {
      synced_.erase(path);
    }
  }
  now_ = synced_;
}

void MemoryFileSystem::SetFault(Fault fault) {
  absl::MutexLock lock(&mu_);
  // What it refers to may be gone after this.
  mu_.Await(absl::Condition(
      +[](int* syncing) { return *syncing == 0; }, &syncing_));
  fault_ = std::move(fault);
}

void MemoryFileSystem::SetRoom(uint64_t bytes) {
  absl::MutexLock lock(&mu_);
  room_ = bytes;
  greedy_ = false;
}

void MemoryFileSystem::KillAfter(int changes) {
  absl::MutexLock lock(&mu_);
  changes_left_ = changes;
}

void MemoryFileSystem::IgnoreSyncs() {
  absl::MutexLock lock(&mu_);
  ignore_syncs_ = true;
}

uint64_t MemoryFileSystem::syncs(const std::string& path_part) const {
  absl::MutexLock lock(&mu_);
  uint64_t sum = 0;
  for (const auto& [path, count] : syncs_) {
    if (absl::StrContains(path, path_part)) sum += count;
  }
  return sum;
}

uint64_t MemoryFileSystem::used_bytes() const {
  absl::MutexLock lock(&mu_);
  return UsedBytes();
}

uint64_t MemoryFileSystem::UsedBytes() const {
  uint64_t sum = 0;
  for (const auto& [path, node] : now_) sum += node->room();
  return sum;
}

void MemoryFileSystem::TakeAllRoom() {
  absl::MutexLock lock(&mu_);
  greedy_ = true;
  room_ = UsedBytes();
}

void MemoryFileSystem::TakeFreedRoom() {
  if (greedy_) room_ = std::min(room_, UsedBytes());
}

void MemoryFileSystem::SetChangeFault(ChangeFault fault) {
  absl::MutexLock lock(&mu_);
  change_fault_ = std::move(fault);
}

absl::Status MemoryFileSystem::CheckChange(const std::string& path) {
  absl::Status status = change_fault_ ? change_fault_(path) : absl::OkStatus();
  return status.ok() ? CheckAlive() : status;
}

absl::Status MemoryFileSystem::Allocate(const std::string& path, Node* node,
                                        uint64_t bytes) {
  absl::MutexLock lock(&mu_);
  absl::Status status = CheckAlive();
  if (!status.ok()) return status;
  status = CheckFault(path, bytes, false);
  if (!status.ok()) return status;
  const uint64_t grows = bytes > node->room() ? bytes - node->room() : 0;
  if (grows > 0 && UsedBytes() + grows > room_) {
    return absl::ResourceExhaustedError(
        absl::StrCat(path, ": No space left on device"));
  }
  node->allocated = std::max(node->allocated, bytes);
  return absl::OkStatus();
}

std::string MemoryFileSystem::Contents(const std::string& path) const {
  absl::MutexLock lock(&mu_);
  return now_.at(path)->now;
}

void MemoryFileSystem::SetContents(const std::string& path,
                                   std::string contents) {
  absl::MutexLock lock(&mu_);
  auto node = std::make_shared<Node>();
  node->now = node->synced = std::move(contents);
  now_[path] = synced_[path] = node;
}

std::vector<std::string> MemoryFileSystem::Paths() const {
  absl::MutexLock lock(&mu_);
  std::vector<std::string> paths;
  for (const auto& [path, node] : now_) paths.push_back(path);
  return paths;
}

std::unique_ptr<MemoryFileSystem> MemoryFileSystem::Copy() const {
  auto copy = std::make_unique<MemoryFileSystem>();
  absl::MutexLock lock(&mu_);
  absl::MutexLock copy_lock(&copy->mu_);
  std::map<const Node*, std::shared_ptr<Node>> nodes;
  const auto copied = [&nodes](const Names& names) {
    Names to;
    for (const auto& [path, node] : names) {
      auto& twin = nodes[node.get()];
      if (twin == nullptr) twin = std::make_shared<Node>(*node);
      to[path] = twin;
    }
    return to;
  };
  copy->now_ = copied(now_);
  copy->synced_ = copied(synced_);
  return copy;
}

std::unique_ptr<MemoryFileSystem> MemoryFileSystem::CopyWithoutPower(
    Unsynced unsynced, std::mt19937_64* random) const {
  auto copy = Copy();
  copy->LosePower(unsynced, random);
  return copy;
}

absl::Status MemoryFileSystem::CheckAlive() {
  if (changes_left_ == 0) return absl::CancelledError("killed");
  --changes_left_;
  return absl::OkStatus();
}

absl::Status MemoryFileSystem::CheckFault(const std::string& path,
                                          uint64_t bytes, bool sync) {
  return fault_ ? fault_(path, bytes, sync) : absl::OkStatus();
}

absl::Status MemoryFileSystem::WriteTo(const std::string& path, Node* node,
                                       Write write) {
  absl::MutexLock lock(&mu_);
  absl::Status status = write.truncate ? CheckChange(path) : CheckAlive();
  if (!status.ok()) return status;
  status = CheckFault(path, write.data.size(), false);
  const uint64_t end = write.offset + write.data.size();
  const uint64_t grows = end > node->room() ? end - node->room() : uint64_t{0};
  if (status.ok() && !write.truncate && grows > 0 &&
      UsedBytes() + grows > room_) {
    status = absl::ResourceExhaustedError(
        absl::StrCat(path, ": No space left on device"));
  }
  if (!status.ok()) write.data.resize(write.data.size() / 2);
  if (status.ok() || !write.data.empty()) {
    Apply(write, &node->now);
    if (write.truncate) node->allocated = 0;
    TakeFreedRoom();
    node->since.push_back(std::move(write));
  }
  return status;
}

absl::Status MemoryFileSystem::SyncNode(const std::string& path, Node* node) {
  Fault fault;
  size_t writes = 0;
  {
    absl::MutexLock lock(&mu_);
    absl::Status status = CheckAlive();
    if (!status.ok()) return status;
    ++syncs_[path];
    if (ignore_syncs_) return absl::OkStatus();
    fault = fault_;
    ++syncing_;
    writes = node->since.size();
  }
  // Others may write meanwhile: that is not synced.
  const absl::Status status = fault ? fault(path, 0, true) : absl::OkStatus();
  absl::MutexLock lock(&mu_);
  --syncing_;
  const auto end = node->since.begin() +
                   static_cast<ptrdiff_t>(std::min(writes, node->since.size()));
  if (status.ok()) {
    for (auto write = node->since.begin(); write != end; ++write) {
      Apply(*write, &node->synced);
    }
    node->since.erase(node->since.begin(), end);
  } else {
    // As Linux has it, what failed counts as written, and a later sync does not
    // try it again.
    node->since.clear();
  }
  return status;
}

absl::StatusOr<std::unique_ptr<File>> MemoryFileSystem::Open(
    const std::string& path) {
  absl::MutexLock lock(&mu_);
  const auto entry = now_.find(path);
  if (entry == now_.end()) return Missing(path);
  return std::make_unique<MemoryFile>(this, path, entry->second);
}

absl::StatusOr<std::unique_ptr<File>> MemoryFileSystem::OpenToRead(
    const std::string& path) {
  return Open(path);
}

absl::StatusOr<std::unique_ptr<File>> MemoryFileSystem::Create(
    const std::string& path) {
  absl::MutexLock lock(&mu_);
  absl::Status status = CheckChange(path);
  if (!status.ok()) return status;
  auto node = std::make_shared<Node>();
  now_[path] = node;
  return std::make_unique<MemoryFile>(this, path, node);
}

absl::Status MemoryFileSystem::Rename(const std::string& from,
                                      const std::string& to) {
  absl::MutexLock lock(&mu_);
  const auto entry = now_.find(from);
  if (entry == now_.end()) return Missing(from);
  absl::Status status = CheckChange(to);
  if (!status.ok()) return status;
  now_[to] = entry->second;
  now_.erase(from);
  TakeFreedRoom();
  return absl::OkStatus();
}

absl::Status MemoryFileSystem::Remove(const std::string& path) {
  absl::MutexLock lock(&mu_);
  const auto entry = now_.find(path);
  if (entry == now_.end()) return Missing(path);
  absl::Status status = CheckAlive();
  if (status.ok()) now_.erase(entry);
  TakeFreedRoom();
  return status;
}

absl::Status MemoryFileSystem::CreateDirectory(const std::string&) {
  return absl::OkStatus();
}

absl::Status MemoryFileSystem::SyncDirectory(const std::string& path) {
  absl::MutexLock lock(&mu_);
  absl::Status status = CheckAlive();
  if (!status.ok()) return status;
  ++syncs_[path];
  if (ignore_syncs_) return absl::OkStatus();
  status = CheckFault(path, 0, true);
  if (!status.ok()) return status;
  for (auto entry = synced_.begin(); entry != synced_.end();) {
    entry = DirectoryOf(entry->first) == path ? synced_.erase(entry)
                                              : std::next(entry);
  }
  for (const auto& [name, node] : now_) {
    if (DirectoryOf(name) == path) synced_[name] = node;
  }
  return status;
}

absl::StatusOr<std::vector<std::string>> MemoryFileSystem::List(
    const std::string& path) {
  absl::MutexLock lock(&mu_);
  std::vector<std::string> names;
  for (const auto& [name, node] : now_) {
    if (DirectoryOf(name) == path) {
      names.push_back(name.substr(path.size() + 1));
    }
  }
  return names;
}

absl::StatusOr<std::unique_ptr<DirectoryLock>> MemoryFileSystem::Lock(
    const std::string& directory, const std::string&, LockedBy) {
  absl::MutexLock lock(&mu_);
  if (!locks_.insert(directory).second) {
    return absl::FailedPreconditionError(
        absl::StrCat(directory, ": in use by another server"));
  }
  return std::make_unique<MemoryLock>(this, directory);
}

}  // namespace timecache::server
