#include "inference/evaluation_log.h"

#include <unistd.h>

#include <bit>
#include <cerrno>
#include <cstring>
#include <system_error>

namespace nrec {

namespace {

constexpr std::string_view kMagic = "nrecevl1";
constexpr std::uint32_t kFloat = 1, kGradients = 2;
constexpr std::size_t kHeaderBytes = 16;       // magic, hash of the key
constexpr std::size_t kBlockHeaderBytes = 16;  // rows, kind, hash of the thetas
constexpr std::size_t kMostRows = 1u << 30;
static_assert(std::endian::native == std::endian::little, "the log is written as it lies in memory");

/// One step of a hash that tells accidental changes apart.
std::uint64_t mixed(std::uint64_t hash, std::uint64_t word) {
  hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
  return hash ^ (hash >> 32);
}

std::uint64_t hash_of(std::string_view bytes) {
  std::uint64_t hash = bytes.size();
  for (std::size_t i = 0; i < bytes.size(); i += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data() + i, std::min<std::size_t>(8, bytes.size() - i));
    hash = mixed(hash, word);
  }
  return hash;
}

std::uint64_t hash_of(MatrixView<const double> theta) {
  std::uint64_t hash = mixed(theta.rows, theta.cols);
  for (std::size_t i = 0; i < theta.rows; ++i) {
    for (const double value : theta.row(i)) hash = mixed(hash, std::bit_cast<std::uint64_t>(value));
  }
  return hash;
}

template <typename T>
void put(std::vector<char>& bytes, const T& value) {
  const std::size_t at = bytes.size();
  bytes.resize(at + sizeof value);
  std::memcpy(bytes.data() + at, &value, sizeof value);
}

template <typename T>
T get(const char* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

/// Whether every value is that of a float: then half the bytes do.
bool are_floats(std::span<const double> values) {
  for (const double value : values) {
    if (std::bit_cast<std::uint64_t>(static_cast<double>(static_cast<float>(value))) !=
        std::bit_cast<std::uint64_t>(value))
      return false;
  }
  return true;
}

}  // namespace

EvaluationLog::EvaluationLog(std::filesystem::path path, std::string_view key, bool resume, LogSink& log)
    : path_(std::move(path)), log_(log) {
  const std::uint64_t key_hash = hash_of(key);
  if (resume) file_ = std::fopen(path_.c_str(), "r+be");
  if (file_ && read_header(key_hash)) {
    is_replaying_ = true;
    return;
  }
  if (file_) std::fclose(file_);
  file_ = std::fopen(path_.c_str(), "w+be");
  if (!file_) {
    give_up("made");
    return;
  }
  std::vector<char> header(kMagic.begin(), kMagic.end());
  put(header, key_hash);
  if (std::fwrite(header.data(), 1, header.size(), file_) != header.size()) give_up("written");
  good_ = kHeaderBytes;
}

EvaluationLog::~EvaluationLog() {
  if (file_) std::fclose(file_);
}

bool EvaluationLog::read_header(std::uint64_t key_hash) {
  char header[kHeaderBytes];
  if (std::fread(header, 1, sizeof header, file_) != sizeof header) return false;
  good_ = kHeaderBytes;
  return std::string_view(header, kMagic.size()) == kMagic &&
         get<std::uint64_t>(header + kMagic.size()) == key_hash;
}

/// Reads the next block into block_; false when it is not the answer to this question.
bool EvaluationLog::read_block(std::size_t rows, std::size_t cols, std::uint64_t question,
                               bool has_gradients) {
  block_.resize(kBlockHeaderBytes);
  if (std::fread(block_.data(), 1, kBlockHeaderBytes, file_) != kBlockHeaderBytes) return false;
  const auto kind = get<std::uint32_t>(block_.data() + 4);
  if (get<std::uint32_t>(block_.data()) != rows || get<std::uint64_t>(block_.data() + 8) != question ||
      ((kind & kGradients) != 0) != has_gradients)
    return false;
  const std::size_t value_bytes = rows * ((kind & kFloat) ? sizeof(float) : sizeof(double));
  const std::size_t gradient_bytes = has_gradients ? rows * cols * sizeof(double) : 0;
  const std::size_t rest = value_bytes + gradient_bytes + sizeof(std::uint64_t);
  block_.resize(kBlockHeaderBytes + rest);
  if (std::fread(block_.data() + kBlockHeaderBytes, 1, rest, file_) != rest) return false;
  const std::size_t content = block_.size() - sizeof(std::uint64_t);
  return hash_of({block_.data(), content}) == get<std::uint64_t>(block_.data() + content);
}

bool EvaluationLog::replay(MatrixView<const double> theta, std::span<double> values,
                           MatrixView<double> gradients) {
  if (!is_replaying_) return false;
  const bool has_gradients = gradients.data != nullptr;
  if (!read_block(theta.rows, theta.cols, hash_of(theta), has_gradients)) {
    begin_recording();
    return false;
  }
  const bool is_float = get<std::uint32_t>(block_.data() + 4) & kFloat;
  const char* from = block_.data() + kBlockHeaderBytes;
  for (double& value : values) {
    value = is_float ? static_cast<double>(get<float>(from)) : get<double>(from);
    from += is_float ? sizeof(float) : sizeof(double);
  }
  for (std::size_t i = 0; i < gradients.rows; ++i, from += theta.cols * sizeof(double))
    std::memcpy(gradients.row(i).data(), from, theta.cols * sizeof(double));
  good_ += static_cast<long>(block_.size());
  num_replayed_ += theta.rows;
  return true;
}

void EvaluationLog::begin_recording() {
  is_replaying_ = false;
  if (std::fseek(file_, good_, SEEK_SET) != 0 || ftruncate(fileno(file_), good_) != 0) give_up("written");
}

void EvaluationLog::append(MatrixView<const double> theta, std::span<const double> values,
                           MatrixView<const double> gradients) {
  if (!file_ || theta.rows == 0 || theta.rows > kMostRows) return;
  const bool is_float = are_floats(values);
  block_.clear();
  put(block_, static_cast<std::uint32_t>(theta.rows));
  put(block_, (is_float ? kFloat : 0u) | (gradients.data ? kGradients : 0u));
  put(block_, hash_of(theta));
  for (const double value : values) {
    if (is_float) {
      put(block_, static_cast<float>(value));
    } else {
      put(block_, value);
    }
  }
  for (std::size_t i = 0; i < gradients.rows; ++i) {
    for (const double value : gradients.row(i)) put(block_, value);
  }
  put(block_, hash_of({block_.data(), block_.size()}));
  if (std::fwrite(block_.data(), 1, block_.size(), file_) != block_.size()) give_up("written");
}

void EvaluationLog::flush() {
  if (file_ && std::fflush(file_) != 0) give_up("written");
}

void EvaluationLog::remove() {
  if (file_) std::fclose(file_);
  file_ = nullptr;
  is_replaying_ = false;
  std::error_code ignored;
  std::filesystem::remove(path_, ignored);
}

void EvaluationLog::give_up(const char* what) {
  const std::string reason = std::generic_category().message(errno);
  log_.warning(path_.string() + ": cannot be " + what + " (" + reason +
               "), so that sampling will start over if it is cut off; nothing else is affected");
  remove();
}

Posterior recorded(const Posterior& posterior, std::shared_ptr<EvaluationLog> log) {
  return posterior.through(
      [log](const Posterior::LogRatio& ask, MatrixView<const double> theta, std::span<double> values) {
        if (log->replay(theta, values, {})) return;
        ask(theta, values);
        log->append(theta, values, {});
      },
      [log](const Posterior::LogRatioGradient& ask, MatrixView<const double> theta, std::span<double> values,
            MatrixView<double> d_u) {
        if (log->replay(theta, values, d_u)) return;
        ask(theta, values, d_u);
        log->append(theta, values, d_u);
      });
}

}  // namespace nrec
