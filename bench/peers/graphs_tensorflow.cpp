// SPDX-License-Identifier: MIT OR Apache-2.0

#include "graphs_tensorflow.hpp"

#include <dlfcn.h>

#include <cstdlib>
#include <cstring>
#include <stdexcept>

#include "graphs.hpp"

namespace bench {
namespace tensorflow {

namespace {

functions load() {
    setenv("TF_CPP_MIN_LOG_LEVEL", "3", 0);
    setenv("TF_ENABLE_ONEDNN_OPTS", "0", 0); // else it says on stderr that they are on; nothing here uses them
    void *module = dlopen(WEIR_BENCH_TENSORFLOW_PATH, RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
    if (module == nullptr) throw std::runtime_error(dlerror());
    functions all{};
    const auto find = [module](const char *name) {
        void *symbol = dlsym(module, name);
        if (symbol == nullptr) throw std::runtime_error(dlerror());
        return symbol;
    };
#define WEIR_BENCH_FIND(name) all.name = reinterpret_cast<decltype(all.name)>(find(#name));
    WEIR_BENCH_TENSORFLOW_FUNCTIONS(WEIR_BENCH_FIND)
#undef WEIR_BENCH_FIND
    return all;
}

// A TF_Status that throws.
class status {
public:
    status() : raw_(library().TF_NewStatus()) {}
    status(const status &) = delete;
    status &operator=(const status &) = delete;
    ~status() { library().TF_DeleteStatus(raw_); }
    operator TF_Status *() const { return raw_; }
    void check() const {
        if (library().TF_GetCode(raw_) != TF_OK) {
            throw std::runtime_error(std::string("TensorFlow: ") + library().TF_Message(raw_));
        }
    }

private:
    TF_Status *raw_;
};

TF_Operation *finish(TF_OperationDescription *description) {
    const status status;
    TF_Operation *operation = library().TF_FinishOperation(description, status);
    status.check();
    return operation;
}

template <class T>
tensor scalar_of(TF_DataType type, T value) {
    tensor result(library().TF_AllocateTensor(type, nullptr, 0, sizeof value));
    std::memcpy(library().TF_TensorData(result.get()), &value, sizeof value);
    return result;
}

// A ConfigProto, as its wire format: threads of its own, no optimiser of any kind.
std::string config(int threads) {
    const auto number = [](int field, int value) {
        return std::string{static_cast<char>(field << 3), static_cast<char>(value)};
    };
    const auto message = [](int field, const std::string &body) {
        return std::string{static_cast<char>(field << 3 | 2), static_cast<char>(body.size())} + body;
    };
    const std::string minus_one("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 10);
    const std::string optimizer = std::string(1, 3 << 3) + minus_one + std::string(1, 5 << 3) + minus_one; // L0, no JIT
    const std::string rewriter("\x98\x01\x01", 3); // field 19, disable_meta_optimizer
    const std::string graph_options = message(3, optimizer) + message(10, rewriter);
    return number(2, threads) + number(5, threads) + number(9, 1) + message(10, graph_options);
}

} // namespace

const functions &library() {
    static const functions all = load();
    return all;
}

tensor scalar(std::int32_t value) {
    return scalar_of(TF_INT32, value);
}

tensor scalar(bool value) {
    return scalar_of(TF_BOOL, value);
}

TF_Operation *no_op(TF_Graph *into, const std::string &name, const std::vector<TF_Operation *> &after) {
    auto *description = library().TF_NewOperation(into, "NoOp", name.c_str());
    for (auto *operation : after) library().TF_AddControlInput(description, operation);
    return finish(description);
}

TF_Output identity(TF_Graph *into, const std::string &name, TF_Output value,
                   const std::vector<TF_Operation *> &after) {
    auto *description = library().TF_NewOperation(into, "Identity", name.c_str());
    library().TF_AddInput(description, value);
    for (auto *operation : after) library().TF_AddControlInput(description, operation);
    return {finish(description), 0};
}

TF_Output placeholder(TF_Graph *into, const std::string &name, TF_DataType type) {
    auto *description = library().TF_NewOperation(into, "Placeholder", name.c_str());
    library().TF_SetAttrType(description, "dtype", type);
    library().TF_SetAttrShape(description, "shape", nullptr, 0);
    return {finish(description), 0};
}

TF_Output constant(TF_Graph *into, const std::string &name, TF_DataType type, const tensor &value) {
    auto *description = library().TF_NewOperation(into, "Const", name.c_str());
    const status status;
    library().TF_SetAttrTensor(description, "value", value.get(), status);
    status.check();
    library().TF_SetAttrType(description, "dtype", type);
    return {finish(description), 0};
}

TF_Output operation(TF_Graph *into, const char *type, const std::string &name,
                    std::initializer_list<TF_Output> inputs) {
    auto *description = library().TF_NewOperation(into, type, name.c_str());
    for (const auto &input : inputs) library().TF_AddInput(description, input);
    return {finish(description), 0};
}

std::pair<TF_Output, TF_Output> switch_on(TF_Graph *into, const std::string &name, TF_Output value,
                                          TF_Output predicate) {
    TF_Operation *both = operation(into, "Switch", name, {value, predicate}).oper;
    return {{both, 0}, {both, 1}};
}

TF_Operation *switch_among(TF_Graph *into, const std::string &name, TF_Output value, TF_Output index, int count) {
    auto *description = library().TF_NewOperation(into, "_SwitchN", name.c_str());
    library().TF_AddInput(description, value);
    library().TF_AddInput(description, index);
    library().TF_SetAttrInt(description, "num_outs", count);
    return finish(description);
}

TF_Output merge(TF_Graph *into, const std::string &name, const std::vector<TF_Output> &values) {
    auto *description = library().TF_NewOperation(into, "Merge", name.c_str());
    library().TF_AddInputList(description, values.data(), static_cast<int>(values.size()));
    return {finish(description), 0};
}

graph new_graph() {
    return graph(library().TF_NewGraph());
}

session::session(TF_Graph *graph, int threads) {
    const status status;
    TF_SessionOptions *options = library().TF_NewSessionOptions();
    const std::string proto = config(threads);
    library().TF_SetConfig(options, proto.data(), proto.size(), status);
    status.check();
    session_ = library().TF_NewSession(graph, options, status);
    library().TF_DeleteSessionOptions(options);
    status.check();
}

session::~session() {
    const status status;
    library().TF_CloseSession(session_, status);
    library().TF_DeleteSession(session_, status);
}

void session::run(const std::vector<TF_Operation *> &targets) {
    const status status;
    library().TF_SessionRun(session_, nullptr, nullptr, nullptr, 0, nullptr, nullptr, 0, targets.data(),
                            static_cast<int>(targets.size()), nullptr, status);
    status.check();
}

tensor session::run(const std::vector<TF_Output> &fed, const std::vector<TF_Tensor *> &values, TF_Output fetch,
                    const std::vector<TF_Operation *> &targets) {
    const status status;
    TF_Tensor *result = nullptr;
    library().TF_SessionRun(session_, nullptr, fed.data(), values.data(), static_cast<int>(fed.size()), &fetch, &result,
                            1, targets.data(), static_cast<int>(targets.size()), nullptr, status);
    status.check();
    return tensor(result);
}

} // namespace tensorflow

namespace {

// The graph as NoOps with control edges, which TensorFlow's executor counts but does not call. One target behind all.
class on_tensorflow : public runner {
public:
    explicit on_tensorflow(const job &job) : graph_(tensorflow::new_graph()) {
        std::vector<std::vector<TF_Operation *>> before(job.graph.nodes);
        std::vector<TF_Operation *> ends;
        for (std::uint32_t i = 0; i < job.graph.nodes; i++) {
            auto *node = tensorflow::no_op(graph_.get(), "n" + std::to_string(i), before[i]);
            before[i].clear();
            for (std::uint32_t k = job.graph.first[i]; k < job.graph.first[i + 1]; k++) {
                before[job.graph.next[k]].push_back(node);
            }
            if (job.graph.first[i] == job.graph.first[i + 1]) ends.push_back(node);
        }
        target_ = {ends.size() == 1 ? ends[0] : tensorflow::no_op(graph_.get(), "last", ends)};
        session_ = std::make_unique<tensorflow::session>(graph_.get(), job.threads);
    }
    void run() override { session_->run(target_); }

private:
    tensorflow::graph graph_;
    std::vector<TF_Operation *> target_;
    std::unique_ptr<tensorflow::session> session_;
};

} // namespace

std::unique_ptr<runner> make_tensorflow(const job &job) {
    return std::make_unique<on_tensorflow>(job);
}

} // namespace bench
