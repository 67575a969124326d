#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace nrec::io {

// Bytes that come in order: a file, an entry of an archive, memory. size() is what the container declares and
// may be wrong; read() tells the truth.
class ByteSource {
 public:
  virtual ~ByteSource() = default;
  // Fills `out` as far as bytes are left and returns how many were written; fewer than asked means the end.
  virtual std::size_t read(std::span<char> out) = 0;
  // Bytes declared for the whole source.
  virtual std::uint64_t size() const = 0;
};

class MemorySource final : public ByteSource {
 public:
  explicit MemorySource(std::string_view bytes) : bytes_(bytes), size_(bytes.size()) {}
  std::size_t read(std::span<char> out) override;
  std::uint64_t size() const override { return size_; }

 private:
  std::string_view bytes_;
  std::uint64_t size_;
};

// A regular file opened for reading; the errors of its constructor say what is wrong and what to do.
class FileSource final : public ByteSource {
 public:
  explicit FileSource(const std::filesystem::path& path);
  FileSource(const FileSource&) = delete;
  FileSource& operator=(const FileSource&) = delete;
  ~FileSource() override;
  std::size_t read(std::span<char> out) override;
  std::uint64_t size() const override { return size_; }

 private:
  std::filesystem::path path_;
  int descriptor_;
  std::uint64_t size_ = 0;
};

// Declared size of a readable regular file, with the same errors as FileSource.
std::uint64_t checked_file_size(const std::filesystem::path& path);

}  // namespace nrec::io
