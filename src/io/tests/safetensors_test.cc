#include "nrec/io/safetensors.h"

#include <gtest/gtest.h>

#include "io/tests/fuzz.h"
#include "io/tests/temporary_folder.h"
#include "nrec/io/file.h"

namespace nrec {
namespace {

using namespace std::string_literals;

std::vector<NamedTensor> some_tensors() {
  const std::vector<float> weights = {1, 2, 3};
  const std::vector<double> means = {0.1, -1e300};
  const std::vector<std::int64_t> counts = {-7};
  return {make_tensor("w", {3, 1}, weights), make_tensor("mean", {2}, means),
          make_tensor("count", {}, counts), make_tensor("none", {0, 4}, std::span<const float>())};
}

std::string file_with(const std::string& header, const std::string& data = "") {
  std::string bytes;
  for (int i = 0; i < 8; ++i) bytes += static_cast<char>(header.size() >> (8 * i) & 0xff);
  return bytes + header + data;
}

std::string io_message(const std::string& bytes) {
  return message_of<IoError>([&] { parse_safetensors(bytes, "f"); });
}

TEST(Safetensors, GivesBackTensorsAndMetadata) {
  const TemporaryFolder folder;
  const auto tensors = some_tensors();
  write_safetensors(folder / "m.safetensors", tensors, {{"b", "2"}, {"a", "{\"x\": 1}"}});
  const TensorFile file = read_safetensors(folder / "m.safetensors");
  ASSERT_EQ(file.tensors.size(), 4u);
  EXPECT_EQ(f32_values(*file.find("w")), (std::vector<float>{1, 2, 3}));
  EXPECT_EQ(file.find("w")->shape, (std::vector<std::size_t>{3, 1}));
  EXPECT_EQ(f64_values(*file.find("mean")), (std::vector<double>{0.1, -1e300}));
  EXPECT_EQ(i64_values(*file.find("count")), (std::vector<std::int64_t>{-7}));
  EXPECT_TRUE(f32_values(*file.find("none")).empty());
  EXPECT_EQ(file.find("other"), nullptr);
  EXPECT_EQ(file.metadata.at("a"), "{\"x\": 1}");
}

TEST(Safetensors, LaysOutAlignedBytesAndRepeatsThem) {
  const auto tensors = some_tensors();
  const std::string bytes = safetensors_bytes(tensors, {{"k", "v"}});
  EXPECT_EQ(bytes, safetensors_bytes(tensors, {{"k", "v"}}));
  const std::string header =
      "{\"__metadata__\":{\"k\":\"v\"},\"mean\":{\"dtype\":\"F64\",\"shape\":[2],\"data_offsets\":[0,16]},"
      "\"count\":{\"dtype\":\"I64\",\"shape\":[],\"data_offsets\":[16,24]},\"w\":{\"dtype\":\"F32\","
      "\"shape\":[3,1],\"data_offsets\":[24,36]},"
      "\"none\":{\"dtype\":\"F32\",\"shape\":[0,4],\"data_offsets\":[36,36]}}";
  EXPECT_EQ(bytes.substr(8, header.size()), header);
  const std::size_t length =
      static_cast<unsigned char>(bytes[0]) + 256u * static_cast<unsigned char>(bytes[1]);
  EXPECT_EQ(length % 8, 0u);
  EXPECT_EQ(bytes.size(), 8 + length + 36);
  EXPECT_EQ(bytes.substr(8 + length + 24, 4), "\x00\x00\x80\x3f"s);
}

TEST(Safetensors, RefusesTensorsThatCannotBeWritten) {
  const std::vector<float> values = {1};
  EXPECT_EQ(message_of<ShapeError>([&] { make_tensor("w", {2}, values); }),
            "make_tensor: \"w\" has shape (2,) but 1 values");
  auto tensors = some_tensors();
  tensors[0].bytes.pop_back();
  EXPECT_EQ(message_of<ShapeError>([&] { safetensors_bytes(tensors); }),
            "write_safetensors: tensor \"w\" has shape (3, 1) of F32 but 11 bytes");
  tensors = some_tensors();
  tensors[1].name = "w";
  EXPECT_EQ(message_of<ConfigError>([&] { safetensors_bytes(tensors); }),
            "write_safetensors: the name \"w\" is used twice; rename one");
  tensors[1].name = "__metadata__";
  EXPECT_EQ(message_of<ConfigError>([&] { safetensors_bytes(tensors); }),
            "write_safetensors: \"__metadata__\" cannot be the name of a tensor; choose another");
  tensors[1].name = "\xff";
  EXPECT_EQ(message_of<IoError>([&] { safetensors_bytes(tensors); }),
            "write_safetensors: a name or a metadata text is not UTF-8; convert it first");
  EXPECT_EQ(message_of<ShapeError>([&] { f64_values(some_tensors()[0]); }),
            "tensor \"w\" has type F32 where F64 is needed; was the file written by another version?");
}

TEST(Safetensors, RefusesDamagedLayouts) {
  EXPECT_EQ(io_message("abc"),
            "f: is not a complete safetensors file: its 3 bytes do not hold the header they announce; copy "
            "or write it again");
  EXPECT_EQ(io_message(std::string(8, '\xff') + "{}"),
            "f: is not a complete safetensors file: its 10 bytes do not hold the header they announce; copy "
            "or write it again");
  EXPECT_EQ(io_message(file_with("[]")),
            "f: is not a safetensors file: its header does not start with {; is it the right file?");
  const auto one = [](const std::string& type, const std::string& shape, const std::string& offsets) {
    return "{\"a\":{\"dtype\":\"" + type + "\",\"shape\":" + shape + ",\"data_offsets\":" + offsets + "}}";
  };
  const std::string end = "; the file is truncated or damaged, copy or write it again";
  EXPECT_EQ(io_message(file_with(one("F32", "[1]", "[0,4]"), "123")),
            "f: tensor \"a\" lies at bytes 0 to 4 but the file has 3 bytes of data" + end);
  EXPECT_EQ(io_message(file_with(one("F32", "[1]", "[4,0]"), "1234")),
            "f: tensor \"a\" lies at bytes 4 to 0 but the file has 4 bytes of data" + end);
  EXPECT_EQ(io_message(file_with(one("F32", "[1]", "[4,8]"), "12345678")),
            "f: tensor \"a\" starts at byte 4 where 0 is due (tensors must not overlap or leave gaps)" + end);
  EXPECT_EQ(io_message(file_with(one("F32", "[2]", "[0,4]"), "1234")),
            "f: tensor \"a\" has shape (2,) of F32 but 4 bytes" + end);
  EXPECT_EQ(io_message(file_with(one("F32", "[4294967296,4294967296]", "[0,0]"))),
            "f: tensor \"a\" has shape (4294967296, 4294967296) of F32 but 0 bytes" + end);
  EXPECT_EQ(io_message(file_with(one("F32", "[1]", "[0,4]"), "12345")),
            "f: the tensors end at byte 4 but the file has 5 bytes of data" + end);
  EXPECT_EQ(io_message(file_with("{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},\"b\":{"
                                 "\"dtype\":\"F64\",\"shape\":[1],\"data_offsets\":[4,12]}}",
                                 "123456789012")),
            "f: tensor \"b\" starts at byte 4, which is not aligned to its type F64" + end);
  EXPECT_EQ(message_of<UnsupportedError>(
                [&] { parse_safetensors(file_with(one("BF16", "[1]", "[0,2]"), "12"), "f"); }),
            "f: tensor \"a\" has type BF16; F32, F64 and I64 can be read, convert it before saving");
}

TEST(Safetensors, RefusesDamagedHeaders) {
  const auto damage = [](const std::string& header) {
    std::string text = io_message(file_with(header));
    const std::string start = "f: the safetensors header is damaged: ",
                      end = "; copy or write the file again";
    EXPECT_TRUE(text.starts_with(start) && text.ends_with(end)) << text;
    return text.substr(start.size(), text.size() - start.size() - end.size());
  };
  EXPECT_EQ(damage("{\"a\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[0,0]},\"a\":1}"),
            "the key \"a\" appears twice");
  EXPECT_EQ(damage("{\"a\":{\"dtype\":\"F32\",\"dtype\":\"F32\"}}"), "the key \"dtype\" appears twice");
  EXPECT_EQ(damage("{\"a\":{\"dtype\":\"F32\"}}"),
            "tensor \"a\" needs exactly dtype, shape and data_offsets");
  EXPECT_EQ(damage("{\"a\":{\"dtype\":\"F32\",\"shape\":[-1],\"data_offsets\":[0,0]}}"),
            "shape of tensor \"a\" holds something other than sizes");
  EXPECT_EQ(damage("{\"a\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[0]}}"),
            "data_offsets of tensor \"a\" are not a pair");
  EXPECT_EQ(damage("{\"a\":{\"dtype\":\"F32\",\"shape\":1,\"data_offsets\":[0]}}"),
            "shape of tensor \"a\" is no list");
  EXPECT_EQ(damage("{\"__metadata__\":{\"a\":1}}"), "\"a\" of __metadata__ is no text");
  EXPECT_EQ(damage("{\"__metadata__\":1}"), "__metadata__ is no object {...}");
  EXPECT_EQ(damage("{\"a\":[[[[1]]]]}"), "it is nested too deeply");
  EXPECT_TRUE(io_message(file_with("{\"a\":")).starts_with("f:1:")) << io_message(file_with("{\"a\":"));
}

TEST(Safetensors, SurvivesEveryDamagedByte) {
  const std::string bytes = safetensors_bytes(some_tensors(), {{"k", "v"}});
  EXPECT_GT(count_refusals(bytes, bytes.size(),
                           [](const std::string& damaged) { parse_safetensors(damaged, "f"); }),
            1000);
}

TEST(Safetensors, RefusesNamesThatATerminalWouldObey) {
  EXPECT_EQ(
      io_message(file_with("{\"a\\u001b[2J\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[0,0]}}")),
      "f: the safetensors header is damaged: the name \"a\\x1b[2J\" holds a control character; copy or "
      "write the file again");
}

}  // namespace
}  // namespace nrec
