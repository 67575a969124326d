#include "nrec/io/json.h"

#include <gtest/gtest.h>

#include <cmath>

#include "io/tests/fuzz.h"
#include "io/tests/temporary_folder.h"

namespace nrec {
namespace {

Record full_record() {
  Record record;
  record.set("z.first", true);
  record.set("count", 3);
  record.set("whole", 1.0);
  record.set("tenth", 0.1);
  record.set("nan", std::nan(""));
  record.set("text", "a \"b\" \xC3\xA9");
  record.set("reals", RecordValue(std::vector<double>{1.0, -INFINITY, 1e-300}));
  record.set("integers", RecordValue(std::vector<std::int64_t>{-1, 9007199254740993}));
  record.set("texts", RecordValue(std::vector<std::string>{"a", "b"}));
  return record;
}

std::string io_message(const std::string& text) {
  return message_of<IoError>([&] { record_from_json(text, "f"); });
}

TEST(Json, WritesAFlatObjectInTheOrderOfTheRecord) {
  EXPECT_EQ(record_to_json(full_record(), -1),
            "{\"z.first\":true,\"count\":3,\"whole\":1.0,\"tenth\":0.1,\"nan\":\"nan\",\"text\":\"a "
            "\\\"b\\\" \xC3\xA9\","
            "\"reals\":[1.0,\"-inf\",1e-300],\"integers\":[-1,9007199254740993],\"texts\":[\"a\",\"b\"]}");
  Record record;
  record.set("a", 1);
  EXPECT_EQ(record_to_json(record), "{\n  \"a\": 1\n}\n");
}

TEST(Json, ReadsBackEveryKind) {
  const Record original = full_record();
  const Record record = record_from_json(record_to_json(original), "f");
  ASSERT_EQ(record.entries().size(), original.entries().size());
  for (std::size_t i = 0; i < original.entries().size(); ++i) {
    EXPECT_EQ(record.entries()[i].first, original.entries()[i].first);
    if (original.entries()[i].first == "nan") continue;  // nan equals nothing
    EXPECT_EQ(record.entries()[i].second, original.entries()[i].second) << original.entries()[i].first;
  }
  EXPECT_TRUE(std::isnan(std::get<double>(*record.find("nan"))));
}

TEST(Json, ListsBecomeTheNarrowestKindThatHoldsThem) {
  const Record record = record_from_json(
      "{\"a\": [1, 2.5, \"inf\"], \"b\": [], \"c\": [\"nan\", \"x\"], \"d\": [\"nan\"]}", "f");
  EXPECT_EQ(std::get<std::vector<double>>(*record.find("a")), (std::vector<double>{1, 2.5, INFINITY}));
  EXPECT_TRUE(std::get<std::vector<double>>(*record.find("b")).empty());
  EXPECT_EQ(std::get<std::vector<std::string>>(*record.find("c")), (std::vector<std::string>{"nan", "x"}));
  EXPECT_TRUE(std::isnan(std::get<std::vector<double>>(*record.find("d")).at(0)));
}

TEST(Json, RefusesWhatIsNoFlatRecord) {
  EXPECT_EQ(io_message("{\"a\": {}}"), "f: \"a\" is an object inside the object; use flat dotted names");
  EXPECT_EQ(io_message("{\"a\": [[1]]}"), "f: \"a\" is a list inside a list; only flat lists are read");
  EXPECT_EQ(io_message("{\"a\": [{}]}"), "f: \"a\" is an object inside the object; use flat dotted names");
  EXPECT_EQ(io_message("{\"a\": null}"), "f: \"a\" is null; leave it out or write \"nan\"");
  EXPECT_EQ(io_message("null"), "f: the text is a single value; a record is one object {...}");
  EXPECT_EQ(io_message("{\"a\": [true]}"),
            "f: the list \"a\" holds true or false; only numbers or texts can be listed");
  EXPECT_EQ(io_message("{\"a\": [1, \"b\"]}"), "f: the list \"a\" mixes numbers and texts; use one kind");
  EXPECT_EQ(io_message("{\"a\": [\"b\", 1]}"), "f: the list \"a\" mixes numbers and texts; use one kind");
  EXPECT_EQ(io_message("{\"a\": 1, \"a\": 2}"), "f: the name \"a\" appears twice; remove one");
  const std::string too_large = ", which is beyond 64 bits with sign; write it as a text";
  EXPECT_EQ(io_message("{\"a\": 9223372036854775808}"),
            "f: \"a\" holds the whole number 9223372036854775808" + too_large);
  EXPECT_EQ(io_message("{\"a\": 99999999999999999999}"),
            "f: \"a\" holds the whole number 99999999999999999999" + too_large);
  EXPECT_EQ(io_message("[1]"), "f: the text is a list; a record is one object {...}");
  EXPECT_EQ(io_message("1"), "f: the text is a single value; a record is one object {...}");
}

TEST(Json, SaysWhereTheSyntaxBreaks) {
  EXPECT_EQ(io_message("{\"a\": 1,\n  b}"),
            "f:2:3: is not valid JSON: syntax error while parsing object key - invalid literal; last read: "
            "'1,<U+000A>  b'; expected string literal");
  EXPECT_TRUE(io_message("").starts_with("f:1:1: is not valid JSON: ")) << io_message("");
  EXPECT_TRUE(io_message("{\"a\": 1e999}").starts_with("f:1:11: is not valid JSON: "))
      << io_message("{\"a\": 1e999}");
  Record record;
  record.set("a", "\xff");
  EXPECT_EQ(message_of<IoError>([&] { record_to_json(record); }),
            "record: a text in it is not UTF-8; convert it before it is put into the record");
}

TEST(Json, SurvivesEveryDamagedByteAndDeepNesting) {
  const std::string text = record_to_json(full_record(), -1);
  EXPECT_GT(
      count_refusals(text, text.size(), [](const std::string& damaged) { record_from_json(damaged, "f"); }),
      500);
  EXPECT_THROW(record_from_json("{\"a\":" + std::string(1000000, '['), "f"), IoError);
}

TEST(Json, RefusesNamesThatATerminalWouldObey) {
  EXPECT_EQ(io_message("{\"a\\u001b[2J\": 1}"),
            "f: the name \"a\\x1b[2J\" holds a control character; rename it");
  EXPECT_EQ(io_message("{\"a\\nb\": 1}"), "f: the name \"a\\x0ab\" holds a control character; rename it");
}

TEST(Json, RefusesRecordsOfANewerSchema) {
  const auto newer = [](const std::string& text) {
    return message_of<UnsupportedError>([&] { record_from_json(text, "f"); });
  };
  EXPECT_EQ(
      newer("{\"schema_version\": 99, \"nrec_version\": \"9.1\"}"),
      "f: schema_version = 99, but this program knows records up to version 1; use the nrec that wrote it "
      "(9.1) or a newer one, or start anew in another folder");
  EXPECT_NE(newer("{\"schema_version\": 2}").find("use the nrec that wrote it or a newer one"),
            std::string::npos);
  for (const char* version : {"0", "-1", "1.5", "\"1\"", "true"}) {
    EXPECT_EQ(io_message("{\"schema_version\": " + std::string(version) + "}"),
              "f: schema_version must be a whole number from 1; the record is damaged, write it again");
  }
  EXPECT_NO_THROW(record_from_json("{\"schema_version\": 1}", "f"));
}

}  // namespace
}  // namespace nrec
