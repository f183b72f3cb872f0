#include "client/cli/resume_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/cli/output_file.h"
#include "client/cli/ui/bytes.h"
#include "client/cli/ui/output.h"
#include "client/cli/ui/units.h"

namespace timecache::cli {
namespace {

constexpr char kFormat[] = "timecachectl watch --resume-file";
constexpr int kVersion = 1;

bool WriteAll(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return true;
}

// A rename lasts over a failure of the machine once its directory is synced.
bool SyncDirectory(const std::string& path) {
  const std::filesystem::path parent =
      std::filesystem::path(path).parent_path();
  const Descriptor directory(open(parent.empty() ? "." : parent.c_str(),
                                  O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  return directory.get() >= 0 && fsync(directory.get()) == 0;
}

std::optional<std::string> StringField(const Json& object, const char* name) {
  const auto field = object.find(name);
  if (field == object.end() || !field->is_string()) return std::nullopt;
  return field->get<std::string>();
}

}  // namespace

ResumeFile::ResumeFile(std::string path,
                       const std::vector<std::string>& namespaces)
    : path_(std::move(path)) {
  for (const std::string& ns : namespaces) places_[ns];
}

ResumeFile::ResumeFile(ResumeFile&& other) noexcept
    : path_(std::move(other.path_)),
      places_(std::move(other.places_)),
      fd_(std::exchange(other.fd_, -1)) {}

ResumeFile::~ResumeFile() {
  if (fd_ >= 0) close(fd_);
}

absl::StatusOr<ResumeFile> ResumeFile::Open(
    const std::string& path, const std::vector<std::string>& namespaces) {
  // A link stays one: what it names is replaced.
  ResumeFile file(FollowLinks(path), namespaces);
  if (const absl::Status status = file.Read(); !status.ok()) return status;
  // A file that cannot be written is reported before anything is printed.
  if (const absl::Status status = file.Save(); !status.ok()) return status;
  if (!SyncDirectory(file.path_)) return file.SystemError("its directory");
  return file;
}

std::map<std::string, std::string> ResumeFile::tokens() const {
  std::map<std::string, std::string> tokens;
  for (const auto& [ns, place] : places_) {
    if (!place.token.empty()) tokens[ns] = place.token;
  }
  return tokens;
}

absl::Time ResumeFile::watermark(const std::string& ns) const {
  const auto place = places_.find(ns);
  return place == places_.end() ? absl::InfinitePast()
                                : place->second.watermark;
}

absl::Status ResumeFile::Record(const std::string& ns, const std::string& token,
                                absl::Time watermark) {
  places_[ns] = {.token = token, .watermark = watermark};
  return Save();
}

absl::Status ResumeFile::SystemError(const char* what) const {
  const int error = errno;
  return absl::UnknownError(absl::StrCat("resume file ", path_, ": ", what,
                                         ": ", std::strerror(error)));
}

absl::Status ResumeFile::Damaged(const std::string& why) const {
  return absl::DataLossError(absl::StrCat(
      "resume file ", path_, " is damaged (", why,
      "), so the position to resume from is unknown: restore the file from a "
      "copy, or remove it to start again, perhaps with --from-earliest"));
}

absl::Status ResumeFile::Read() {
  // Not held up by a FIFO.
  Descriptor file(open(path_.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (file.get() < 0) {
    return errno == ENOENT ? absl::OkStatus() : SystemError("open");
  }
  struct stat info;
  if (fstat(file.get(), &info) != 0) return SystemError("stat");
  if (!S_ISREG(info.st_mode)) {
    return absl::InvalidArgumentError(
        absl::StrCat("resume file ", path_, " is not a regular file"));
  }
  if (flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return SystemError("lock");
    return absl::FailedPreconditionError(absl::StrCat(
        "resume file ", path_,
        " is in use by another timecachectl: give each watch its own"));
  }
  std::string text(kMaxFileBytes + 1, '\0');
  const ssize_t length = pread(file.get(), text.data(), text.size(), 0);
  if (length < 0) return SystemError("read");
  text.resize(static_cast<size_t>(length));
  fd_ = file.Release();
  if (const absl::Status ours = CheckStillOurs(); !ours.ok()) return ours;
  return Parse(text);
}

absl::Status ResumeFile::Parse(const std::string& text) {
  if (text.empty()) return Damaged("it is empty");
  if (text.size() > kMaxFileBytes) return Damaged("it is too large");
  const Json object = Json::parse(text, nullptr, false);
  if (!object.is_object()) return Damaged("it is not a JSON object");
  if (StringField(object, "format") != kFormat) {
    return Damaged(absl::StrCat("its \"format\" is not \"", kFormat, "\""));
  }
  const auto version = object.find("version");
  if (version == object.end() || *version != kVersion) {
    return Damaged(absl::StrCat("its \"version\" is not ", kVersion));
  }
  const auto list = object.find("namespaces");
  if (list == object.end() || !list->is_array()) {
    return Damaged("it has no list of \"namespaces\"");
  }
  std::map<std::string, Place> places;
  bool has_token = false;
  for (const Json& item : *list) {
    const auto ns = StringField(item, "name");
    if (!ns || !places.try_emplace(*ns).second) {
      return Damaged("a namespace has no name, or is listed twice");
    }
    const auto token = StringField(item, "resume_token");
    const auto watermark = StringField(item, "watermark");
    if (!token && !watermark) continue;  // It had not begun.
    const auto bytes = Decode(token.value_or(""), Encoding::kBase64);
    const auto time = ParseTime(watermark.value_or(""));
    if (!bytes.ok() || bytes->empty() || !time.ok()) {
      return Damaged(absl::StrCat("the resume_token or the watermark of ", *ns,
                                  " cannot be read"));
    }
    places[*ns] = {.token = *bytes, .watermark = *time};
    has_token = true;
  }
  // Without a token it holds no place that could be lost.
  if (!has_token) return absl::OkStatus();
  const auto name = [](std::string* out, const auto& place) {
    out->append(place.first);
  };
  const std::string theirs = absl::StrJoin(places, " ", name);
  const std::string ours = absl::StrJoin(places_, " ", name);
  if (theirs != ours) {
    return absl::FailedPreconditionError(absl::StrCat(
        "resume file ", path_, " is of a watch of ", theirs,
        ", this one is of ", ours, ": watch the same, or give another file"));
  }
  places_ = std::move(places);
  return absl::OkStatus();
}

// Another process has replaced our file: it must not be overwritten.
absl::Status ResumeFile::CheckStillOurs() const {
  struct stat ours;
  struct stat there;
  if (fd_ < 0 || stat(path_.c_str(), &there) != 0) return absl::OkStatus();
  if (fstat(fd_, &ours) != 0) return SystemError("stat");
  if (ours.st_dev == there.st_dev && ours.st_ino == there.st_ino) {
    return absl::OkStatus();
  }
  return absl::AbortedError(absl::StrCat(
      "resume file ", path_,
      " was replaced by another program, and is left as that made it: give "
      "each watch its own"));
}

absl::Status ResumeFile::Save() {
  const std::string temporary = path_ + ".tmp";
  struct stat old;
  const bool exists = stat(path_.c_str(), &old) == 0;
  // Of two that begin at the same moment one fails here.
  auto file = OpenReplacement(temporary, path_, exists ? &old : nullptr);
  if (!file.ok()) {
    return absl::Status(file.status().code(),
                        absl::StrCat("resume file ", file.status().message()));
  }
  if (const absl::Status ours = CheckStillOurs(); !ours.ok()) return ours;
  if (!WriteAll(file->get(), Text()) || fsync(file->get()) != 0 ||
      rename(temporary.c_str(), path_.c_str()) != 0) {
    return SystemError("cannot be written");
  }
  if (fd_ >= 0) close(fd_);
  fd_ = file->Release();
  return absl::OkStatus();
}

std::string ResumeFile::Text() const {
  Json list = Json::array();
  for (const auto& [ns, place] : places_) {
    Json item = {{"name", ns}};
    if (!place.token.empty()) {
      item["watermark"] = ExactTimeText(place.watermark);
      item["resume_token"] = Encode(place.token, Encoding::kBase64);
    }
    list.push_back(std::move(item));
  }
  const Json object = {
      {"format", kFormat}, {"version", kVersion}, {"namespaces", list}};
  return object.dump(2) + "\n";
}

}  // namespace timecache::cli
