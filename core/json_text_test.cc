#include "core/json_text.h"

#include <gtest/gtest.h>

#include <string>

#include "core/error.h"

namespace deltagauge {
namespace {

std::string complaint(std::string_view json, JsonPath style = JsonPath::dollar) {
  try {
    check_json_text(json, style);
  } catch (const Error& e) {
    return e.what();
  }
  return "accepted";
}

TEST(JsonText, names_the_key_that_stands_twice_and_its_object) {
  constexpr const char* kJson = R"({"grid": [1, [2], {"axes": {"len": 1, "K": {}, "len": 2}}]})";
  EXPECT_EQ(complaint(kJson), "$.grid[2].axes: the key 'len' stands twice");
  EXPECT_EQ(complaint(kJson, JsonPath::pointer), "#/grid/2/axes: the key 'len' stands twice");
  EXPECT_EQ(complaint(R"({"a": 1, "\u0061": 2})"), "$: the key 'a' stands twice");
}

TEST(JsonText, leaves_keys_of_different_objects_and_broken_json_alone) {
  for (const char* json : {R"([{"a": 1}, {"a": {"a": 1}}])", R"({"a": )", "", "]", "1e400", "7"})
    EXPECT_EQ(complaint(json), "accepted") << json;
}

TEST(JsonText, finds_what_stands_behind_a_nul) {
  EXPECT_EQ(complaint(std::string_view("{}\0x", 4)), "not JSON: NUL at byte 2");
}

}  // namespace
}  // namespace deltagauge
