// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Resources of weir.hpp: a variable that counts, a vocabulary, an object of the host's.

#include "expect.hpp"

#include <string>
#include <vector>
#include <weir/resource.h>

namespace {

void test_variable(const weir::engine &engine) {
    const auto desc = weir::desc(WEIR_S32, {3});
    const weir::tensor one(engine, desc), got(engine, desc);
    for (int i = 0; i < 3; i++) one.data<std::int32_t>()[i] = i + 1;
    const weir::variable state(engine, {"state", "model"}, one);
    const weir::stream stream(engine);
    stream.enqueue(state.adder(engine), {one.get()}, {});
    stream.enqueue(state.reader(engine), {}, {got.get()});
    EXPECT(got.data<std::int32_t>()[2] == 6);
    state.assign(one);
    stream.enqueue(state.assigner(engine), {got.get()}, {});
    weir::variable::find(engine, {"state", "model"}).read(got);
    EXPECT(got.data<std::int32_t>()[2] == 6);
    EXPECT(weir::resource::from_id(engine, state.id()).get() == state.get());
    EXPECT_THROWS(weir::variable::find(engine, "state"), WEIR_NOT_FOUND, "has no container 'default'");
    EXPECT(weir::resource::remove(engine, {"state", "model"}) && !weir::resource::remove(engine, {"state", "model"}));
    EXPECT_THROWS(weir::resource::from_id(engine, state.id()), WEIR_NOT_FOUND, "was destroyed");
}

void test_table(const weir::engine &engine) {
    const weir::table<std::int32_t> words(engine, "words", WEIR_TABLE_KEY_BYTES, weir::desc(WEIR_S32, {}));
    words.insert(std::vector<std::string>{"weir", "stream"}, {1, 2});
    EXPECT(words.size() == 2);
    EXPECT(words.find(std::vector<std::string>{"stream", "?", "weir"}, {-1}) == (std::vector<std::int32_t>{2, -1, 1}));
    const weir::table<float> rows(engine, "rows", WEIR_TABLE_KEY_INT64, weir::desc(WEIR_F32, {2}));
    rows.insert(std::vector<std::int64_t>{-5}, {0.5f, 1.5f});
    EXPECT(rows.find(std::vector<std::int64_t>{7, -5}) == (std::vector<float>{0, 0, 0.5f, 1.5f}));
}

void test_scope(const weir::engine &engine) {
    const weir::async_scope scope;
    const weir::stream stream(engine, WEIR_STREAM_ASYNCHRONOUS);
    stream.enqueue([] { return WEIR_DATA_LOSS; });
    EXPECT_THROWS(scope.end(), WEIR_DATA_LOSS, "engine cpu:0: stream");
    scope.end();
}

void test_object(const weir::engine &engine) {
    const auto kept = weir::resource::keep(engine, "settings", "text", std::string("quiet"));
    EXPECT(weir::resource::find(engine, "settings").object<std::string>("text") == "quiet");
    EXPECT_THROWS(kept.object<std::string>("number"), WEIR_INVALID_ARGUMENT, "expected 'number'");
    const auto all = weir::resource::list(engine);
    EXPECT(all.size() == 3 && std::string(all[1].name) == "settings" && all[1].references == 1);
    EXPECT(weir::resource::clear(engine) == 3 && weir::resource::clear(engine) == 0);
    EXPECT(weir::resource::leaks().empty());
}

} // namespace

int main() {
    const auto before = weir::runtime_info();
    {
        const weir::engine engine(WEIR_ENGINE_CPU, 0);
        test_variable(engine);
        test_table(engine);
        test_object(engine);
        test_scope(engine);
    }
    expect_released(before);
    return 0;
}
