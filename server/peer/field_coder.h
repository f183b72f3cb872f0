// The coding of what nodes tell each other: the same list of fields is written and
// read.

#ifndef TIMECACHED_SERVER_PEER_FIELD_CODER_H_
#define TIMECACHED_SERVER_PEER_FIELD_CODER_H_

#include <array>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "server/base/wire_format.h"

namespace timecache::server {

// A struct is coded by a function that names its fields, in their order, for a
// FieldWriter and a FieldReader alike:
//
//   template <typename Coder, Is<LogPoint> T>
//   void CodeFields(Coder& code, T& point) {
//     code(point.log_id, point.next_event, point.watermark_us);
//   }
//
// It stands behind its length: fields that a newer node has appended are skipped,
// and those that an older one has not sent keep their defaults. So fields are
// appended only, and a new one is one more name.
template <typename T, typename Struct>
concept Is = std::same_as<std::remove_const_t<T>, Struct>;

template <typename T>
concept IsNumber = std::integral<T> || std::is_enum_v<T>;

// Of a struct: of fixed size, as it is written once the struct has been.
inline constexpr size_t kStructLengthBytes = 4;

// Appends fields to a string. Not thread-safe.
class FieldWriter {
 public:
  static constexpr bool kReads = false;

  FieldWriter() = default;
  // Goes on behind what is there.
  explicit FieldWriter(std::string begun) : bytes_(std::move(begun)) {}

  template <typename... Fields>
  void operator()(const Fields&... fields) {
    (Write(fields), ...);
  }
  // Flags in one number: at most 63.
  template <std::same_as<bool>... Bool>
  void Flags(const Bool&... flags) {
    uint64_t bits = 0;
    int bit = 0;
    ((bits |= uint64_t{flags} << bit++), ...);
    PutVarint(bits, &bytes_);
  }

  // Room for so many bytes more.
  void Reserve(size_t bytes) { bytes_.reserve(bytes_.size() + bytes); }
  // Fields that another one has written.
  void Append(absl::string_view fields) {
    bytes_.append(fields.data(), fields.size());
  }

  std::string Take() { return std::move(bytes_); }

 private:
  template <IsNumber T>
  void Write(T number) {
    PutVarint(static_cast<uint64_t>(number), &bytes_);
  }
  void Write(double number) { Write(std::bit_cast<uint64_t>(number)); }
  void Write(absl::string_view bytes) {
    Write(bytes.size());
    bytes_.append(bytes.data(), bytes.size());
  }
  void Write(const std::string& bytes) { Write(absl::string_view(bytes)); }
  template <typename T>
  void Write(const std::vector<T>& all) {
    Write(all.size());
    for (const T& each : all) Write(each);
  }
  template <typename T, size_t kSize>
  void Write(const std::array<T, kSize>& all) {
    Write(kSize);
    for (const T& each : all) Write(each);
  }
  template <typename Key, typename T>
  void Write(const std::map<Key, T>& all) {
    Write(all.size());
    for (const auto& [key, value] : all) (*this)(key, value);
  }
  template <typename T>
  void Write(const std::optional<T>& value) {
    Write(value.has_value());
    if (value.has_value()) Write(*value);
  }
  template <typename T>
  void Write(const std::unique_ptr<const T>& value) {
    Write(value != nullptr);
    if (value != nullptr) Write(*value);
  }
  template <typename T>
  void Write(const std::shared_ptr<const T>& value) {
    Write(value != nullptr);
    if (value != nullptr) Write(*value);
  }
  template <typename T>
  requires std::is_class_v<T>
  void Write(const T& value) {
    const size_t begin = bytes_.size();
    bytes_.append(kStructLengthBytes, '\0');
    CodeFields(*this, value);
    const auto length =
        static_cast<uint32_t>(bytes_.size() - begin - kStructLengthBytes);
    std::memcpy(bytes_.data() + begin, &length, sizeof length);
  }

  std::string bytes_;
};

// Reads them. What it does not understand makes it not ok(), and what it reads
// then means nothing, but is bounded by the bytes. Views are into the bytes. Not
// thread-safe.
class FieldReader {
 public:
  static constexpr bool kReads = true;

  explicit FieldReader(absl::string_view bytes) : left_(bytes) {}

  template <typename... Fields>
  void operator()(Fields&... fields) {
    (Read(&fields), ...);
  }
  template <std::same_as<bool>... Bool>
  void Flags(Bool&... flags) {
    uint64_t bits = 0;
    Read(&bits);
    ((flags = (bits & 1) != 0, bits >>= 1), ...);
  }

  bool ok() const { return ok_; }
  bool done() const { return left_.empty(); }
  // Of a list of elements that take at least one byte each.
  bool ReadCount(size_t* count) {
    Read(count);
    if (*count > left_.size()) Fail();
    return ok_;
  }

 private:
  void Fail() {
    ok_ = false;
    left_ = {};
  }

  template <IsNumber T>
  void Read(T* number) {
    // A newer node's fields begin behind this one's: the rest keep defaults.
    if (left_.empty()) return;
    uint64_t value;
    if (!TakeVarint(&left_, &value)) return Fail();
    *number = static_cast<T>(value);
  }
  void Read(double* number) {
    auto bits = std::bit_cast<uint64_t>(*number);
    Read(&bits);
    *number = std::bit_cast<double>(bits);
  }
  void Read(absl::string_view* bytes) {
    if (left_.empty()) return;
    size_t size = 0;
    if (!ReadCount(&size)) return;
    *bytes = left_.substr(0, size);
    left_.remove_prefix(size);
  }
  void Read(std::string* bytes) {
    absl::string_view view(*bytes);
    Read(&view);
    if (view.data() != bytes->data()) bytes->assign(view.data(), view.size());
  }
  template <typename T>
  void Read(std::vector<T>* all) {
    if (left_.empty()) return;
    size_t count = 0;
    if (!ReadCount(&count)) return;
    all->clear();
    for (size_t i = 0; i < count && ok_; ++i) {
      T each = {};
      Read(&each);
      all->push_back(std::move(each));
    }
  }
  // Of what a newer node has more, the rest is left out.
  template <typename T, size_t kSize>
  void Read(std::array<T, kSize>* all) {
    size_t count = 0;
    if (!ReadCount(&count)) return;
    for (size_t i = 0; i < count && ok_; ++i) {
      T each = {};
      Read(&each);
      if (i < kSize) (*all)[i] = std::move(each);
    }
  }
  template <typename Key, typename T>
  void Read(std::map<Key, T>* all) {
    size_t count = 0;
    if (!ReadCount(&count)) return;
    for (size_t i = 0; i < count && ok_; ++i) {
      Key key = {};
      T value = {};
      (*this)(key, value);
      all->emplace(std::move(key), std::move(value));
    }
  }
  template <typename T>
  void Read(std::optional<T>* value) {
    bool has = false;
    Read(&has);
    if (has) Read(&value->emplace());
  }
  template <typename T>
  void Read(std::unique_ptr<const T>* value) {
    bool has = false;
    Read(&has);
    if (!has) return;
    auto read = std::make_unique<T>();
    Read(read.get());
    *value = std::move(read);
  }
  template <typename T>
  void Read(std::shared_ptr<const T>* value) {
    std::unique_ptr<const T> read;
    Read(&read);
    if (read != nullptr) *value = std::move(read);
  }
  template <typename T>
  requires std::is_class_v<T>
  void Read(T* value) {
    if (left_.empty()) return;
    uint32_t length = 0;
    if (left_.size() < kStructLengthBytes) return Fail();
    std::memcpy(&length, left_.data(), sizeof length);
    left_.remove_prefix(kStructLengthBytes);
    if (length > left_.size()) return Fail();
    FieldReader fields(left_.substr(0, length));
    CodeFields(fields, *value);
    if (!fields.ok()) return Fail();
    left_.remove_prefix(length);
  }

  absl::string_view left_;
  bool ok_ = true;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_PEER_FIELD_CODER_H_
