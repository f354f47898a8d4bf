#include "core/json_text.h"

#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "core/error.h"

namespace deltagauge {
namespace {

using Json = nlohmann::json;

// Follows the events of the parser with the place they belong to. Stops at the first key that stands twice.
class Keys : public nlohmann::json_sax<Json> {
 public:
  explicit Keys(JsonPath style) : style_(style) {}
  std::string path, twice;  // the object, and the key in it

  bool key(std::string& text) override {
    key_ = text;
    if (open_.back().keys.insert(text).second) return true;
    path = place();
    twice = text;
    return false;
  }
  bool start_object(std::size_t) override { return start(false); }
  bool end_object() override { return end(); }
  bool start_array(std::size_t) override { return start(true); }
  bool end_array() override { return end(); }
  bool null() override { return value(); }
  bool boolean(bool) override { return value(); }
  bool number_integer(std::int64_t) override { return value(); }
  bool number_unsigned(std::uint64_t) override { return value(); }
  bool number_float(double, const std::string&) override { return value(); }
  bool string(std::string&) override { return value(); }
  bool binary(binary_t&) override { return value(); }
  bool parse_error(std::size_t, const std::string&, const nlohmann::json::exception&) override { return false; }

 private:
  struct Open {
    bool array = false;
    std::size_t items = 0;  // seen so far
    std::string step;       // from the one around it to this one
    std::set<std::string> keys;
  };
  bool start(bool array) {
    std::string step;
    if (!open_.empty()) {
      const bool dollar = style_ == JsonPath::dollar;
      if (open_.back().array)
        step = (dollar ? "[" : "/") + std::to_string(open_.back().items) + (dollar ? "]" : "");
      else
        step = (dollar ? "." : "/") + key_;
    }
    open_.push_back({array, 0, std::move(step), {}});
    return true;
  }
  bool end() {
    open_.pop_back();
    return value();
  }
  bool value() {
    if (!open_.empty()) ++open_.back().items;
    return true;
  }
  std::string place() const {
    std::string text = style_ == JsonPath::dollar ? "$" : "#";
    for (const Open& open : open_) text += open.step;
    return text;
  }

  JsonPath style_;
  std::string key_;
  std::vector<Open> open_;
};

}  // namespace

void check_json_text(std::string_view json, JsonPath style) {
  if (const auto nul = json.find('\0'); nul != json.npos) fail("not JSON: NUL at byte ", nul);
  Keys keys(style);
  Json::sax_parse(json, &keys);
  if (!keys.path.empty()) fail(keys.path, ": the key '", keys.twice, "' stands twice");
}

}  // namespace deltagauge
