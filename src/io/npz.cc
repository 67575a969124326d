#include "nrec/io/npz.h"

#include <fmt/format.h>
#include <zip.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "io/npy_stream.h"
#include "nrec/core/error.h"
#include "nrec/core/printable_text.h"
#include "nrec/core/suggest.h"
#include "nrec/io/file.h"
#include "nrec/io/npy.h"

namespace nrec {

namespace {

constexpr std::int64_t kMaxEntries = 1000;
// Deflate makes at most 1032 bytes of one (zlib's technical notes); a larger claim is a lie or a bomb.
constexpr std::uint64_t kMaxDeflateRatio = 1032;

struct ZipDiscard {
  void operator()(zip_t* archive) const { zip_discard(archive); }
};
struct ZipFileClose {
  void operator()(zip_file_t* file) const { zip_fclose(file); }
};
using Archive = std::unique_ptr<zip_t, ZipDiscard>;

Archive open_archive(const std::filesystem::path& path, int flags) {
  int code = 0;
  Archive archive(zip_open(path.c_str(), flags, &code));
  if (archive) return archive;
  zip_error_t error;
  zip_error_init_with_code(&error, code);
  const std::string reason = zip_error_strerror(&error);
  zip_error_fini(&error);
  throw IoError(
      fmt::format("{}: is not a complete .npz archive: {}; it is truncated or of another format, write it "
                  "again with numpy.savez",
                  path.string(), reason));
}

// One entry of an archive, checked against the limits before anything is allocated for it.
struct Entry {
  std::string name;  // without ".npy"
  zip_uint64_t index = 0;
  std::uint64_t size = 0;
};

class EntrySource final : public io::ByteSource {
 public:
  EntrySource(zip_t* archive, const Entry& entry, std::string where)
      : size_(entry.size), where_(std::move(where)), file_(zip_fopen_index(archive, entry.index, 0)) {
    if (!file_) throw damaged(zip_strerror(archive));
  }
  std::size_t read(std::span<char> out) override {
    std::size_t done = 0;
    while (done < out.size()) {
      const zip_int64_t count = zip_fread(file_.get(), out.data() + done, out.size() - done);
      if (count < 0) throw damaged(zip_file_strerror(file_.get()));
      if (count == 0) break;
      done += static_cast<std::size_t>(count);
    }
    return done;
  }
  std::uint64_t size() const override { return size_; }
  // The check sum is compared when the end is met, so the end has to be met.
  void expect_end() {
    char extra;
    if (read({&extra, 1}) != 0) throw damaged("more bytes than declared");
  }

 private:
  IoError damaged(std::string_view reason) const {
    return IoError(fmt::format("{}: this entry of the archive is damaged: {}; copy or write the file again",
                               where_, reason));
  }
  std::uint64_t size_;
  std::string where_;
  std::unique_ptr<zip_file_t, ZipFileClose> file_;
};

bool leaves_the_archive(std::string_view name) {
  if (name.empty() || name.front() == '/' || name.find('\\') != std::string_view::npos) return true;
  if (name.size() > 1 && name[1] == ':') return true;
  for (std::size_t start = 0; start <= name.size();) {
    const std::size_t slash = std::min(name.find('/', start), name.size());
    if (name.substr(start, slash - start) == "..") return true;
    start = slash + 1;
  }
  return false;
}

Entry checked_entry(zip_t* archive, zip_uint64_t index, std::uint64_t file_size, const std::string& where) {
  zip_stat_t status;
  zip_stat_init(&status);
  constexpr zip_uint64_t kNeeded =
      ZIP_STAT_NAME | ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE | ZIP_STAT_COMP_METHOD | ZIP_STAT_ENCRYPTION_METHOD;
  if (zip_stat_index(archive, index, 0, &status) != 0 || (status.valid & kNeeded) != kNeeded) {
    throw IoError(fmt::format("{}: entry {} of the archive is damaged: {}; write the file again", where,
                              index, zip_strerror(archive)));
  }
  std::string name = status.name;
  if (leaves_the_archive(name))
    throw IoError(
        fmt::format("{}: the archive has an entry with the unsafe name {}; write it again with numpy.savez",
                    where, quoted_text(name)));
  if (has_control_character(name))
    throw IoError(
        fmt::format("{}: the archive has an entry named {}, which holds a control character; write it "
                    "again under another name",
                    where, quoted_text(name)));
  if (name.ends_with(".npy")) name.resize(name.size() - 4);
  const std::string entry_where = fmt::format("{}: \"{}\"", where, name);
  if (status.encryption_method != ZIP_EM_NONE)
    throw IoError(entry_where + " is encrypted; write the archive without a password");
  if (status.comp_method != ZIP_CM_STORE && status.comp_method != ZIP_CM_DEFLATE) {
    throw IoError(fmt::format("{} is compressed by method {}; use numpy.savez or numpy.savez_compressed",
                              entry_where, status.comp_method));
  }
  const bool stored = status.comp_method == ZIP_CM_STORE;
  const bool possible =
      status.comp_size <= file_size &&
      (stored ? status.size == status.comp_size : status.size / kMaxDeflateRatio <= status.comp_size);
  if (!possible) {
    throw IoError(
        fmt::format("{} claims {} bytes from {} stored ones in a file of {}, which cannot be; the archive is "
                    "damaged, write it again",
                    entry_where, status.size, status.comp_size, file_size));
  }
  return {std::move(name), index, status.size};
}

std::vector<Entry> checked_entries(zip_t* archive, const std::filesystem::path& path) {
  const std::string where = path.string();
  const zip_int64_t count = zip_get_num_entries(archive, 0);
  if (count > kMaxEntries)
    throw IoError(fmt::format("{}: has {} entries, more than the {} allowed; store few large arrays", where,
                              count, kMaxEntries));
  const std::uint64_t file_size = io::checked_file_size(path);
  std::vector<Entry> entries;
  for (zip_int64_t i = 0; i < count; ++i) {
    Entry entry = checked_entry(archive, static_cast<zip_uint64_t>(i), file_size, where);
    const auto same = [&](const Entry& other) { return other.name == entry.name; };
    if (std::any_of(entries.begin(), entries.end(), same))
      throw IoError(
          fmt::format("{}: the name \"{}\" appears twice in the archive; write it again", where, entry.name));
    entries.push_back(std::move(entry));
  }
  return entries;
}

std::vector<std::string> names_of(const std::vector<Entry>& entries) {
  std::vector<std::string> names;
  for (const Entry& entry : entries) names.push_back(entry.name);
  return names;
}

NamedArrays read_entries(zip_t* archive, std::span<const Entry> entries, const std::string& where,
                         const NpzLimits& limits) {
  std::uint64_t total = 0;
  for (const Entry& entry : entries) {
    if (entry.size > limits.max_bytes - total) {
      throw IoError(
          fmt::format("{}: its arrays inflate to more than the {} bytes allowed (at \"{}\"); split the file",
                      where, limits.max_bytes, entry.name));
    }
    total += entry.size;
  }
  NamedArrays arrays;
  for (const Entry& entry : entries) {
    const std::string entry_where = fmt::format("{}: \"{}\"", where, entry.name);
    EntrySource source(archive, entry, entry_where);
    arrays.emplace_back(entry.name, io::read_npy_stream(source, entry_where));
    source.expect_end();
  }
  return arrays;
}

void check_names(const NamedArrays& arrays) {
  if (arrays.empty()) throw ConfigError("write_npz: no arrays to write; an archive holds at least one");
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    const std::string& name = arrays[i].first;
    if (leaves_the_archive(name) || name.find('/') != std::string::npos) {
      throw ConfigError(
          fmt::format("write_npz: {} cannot be the name of an array; use letters, digits and underscores",
                      quoted_text(name)));
    }
    if (has_control_character(name)) {
      throw ConfigError(fmt::format("write_npz: the name {} holds a control character; rename the array",
                                    quoted_text(name)));
    }
    for (std::size_t j = 0; j < i; ++j) {
      if (arrays[j].first == name)
        throw ConfigError(fmt::format("write_npz: the name \"{}\" is used twice; rename one", name));
    }
  }
}

}  // namespace

std::vector<std::string> npz_names(const std::filesystem::path& path) {
  io::checked_file_size(path);
  const Archive archive = open_archive(path, ZIP_RDONLY);
  return names_of(checked_entries(archive.get(), path));
}

NamedArrays read_npz(const std::filesystem::path& path, const NpzLimits& limits) {
  io::checked_file_size(path);
  const Archive archive = open_archive(path, ZIP_RDONLY);
  return read_entries(archive.get(), checked_entries(archive.get(), path), path.string(), limits);
}

NamedArrays read_npz(const std::filesystem::path& path, std::span<const std::string> names,
                     const NpzLimits& limits) {
  io::checked_file_size(path);
  const Archive archive = open_archive(path, ZIP_RDONLY);
  const std::vector<Entry> entries = checked_entries(archive.get(), path);
  std::vector<Entry> wanted;
  for (const std::string& name : names) {
    const auto found =
        std::find_if(entries.begin(), entries.end(), [&](const Entry& entry) { return entry.name == name; });
    if (found == entries.end()) {
      const std::vector<std::string> known = names_of(entries);
      const std::string nearest = nearest_word(name, known);
      throw IoError(fmt::format("{}: has no array \"{}\"; it holds: {}{}", path.string(), name,
                                fmt::join(known, ", "),
                                nearest.empty() ? "" : fmt::format("; did you mean \"{}\"?", nearest)));
    }
    wanted.push_back(*found);
  }
  return read_entries(archive.get(), wanted, path.string(), limits);
}

void write_npz(const std::filesystem::path& path, const NamedArrays& arrays, bool compressed) {
  check_names(arrays);
  std::vector<std::string> contents;  // libzip reads them only when the archive is closed
  for (const auto& [name, array] : arrays) contents.push_back(npy_bytes(array));
  replace_file(path, [&](const std::filesystem::path& temporary) {
    Archive archive = open_archive(temporary, ZIP_CREATE | ZIP_TRUNCATE);
    const auto require = [&](bool ok) {
      if (!ok)
        throw IoError(fmt::format("{}: cannot be written: {}; check free space and permissions",
                                  path.string(), zip_strerror(archive.get())));
    };
    for (std::size_t i = 0; i < arrays.size(); ++i) {
      zip_source_t* source = zip_source_buffer(archive.get(), contents[i].data(), contents[i].size(), 0);
      require(source != nullptr);
      const zip_int64_t index =
          zip_file_add(archive.get(), (arrays[i].first + ".npy").c_str(), source, ZIP_FL_ENC_UTF_8);
      if (index < 0) zip_source_free(source);
      require(index >= 0);
      const auto entry = static_cast<zip_uint64_t>(index);
      constexpr zip_uint16_t kFirstOfJanuary1980 = 1 << 5 | 1;  // day 1, month 1, year 0 of the DOS calendar
      require(zip_file_set_dostime(archive.get(), entry, 0, kFirstOfJanuary1980, 0) == 0);
      require(zip_set_file_compression(archive.get(), entry, compressed ? ZIP_CM_DEFLATE : ZIP_CM_STORE, 0) ==
              0);
    }
    require(zip_close(archive.get()) == 0);
    archive.release();  // closed
  });
}

}  // namespace nrec
