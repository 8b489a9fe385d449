// SPDX-License-Identifier: MIT OR Apache-2.0
//
// TensorFlow through its C interface, from the library in a Python package: loaded when it is first asked for, and
// apart from the names of this program, which has another Eigen.

#ifndef WEIR_BENCH_GRAPHS_TENSORFLOW_HPP
#define WEIR_BENCH_GRAPHS_TENSORFLOW_HPP

#include <tensorflow/c/c_api.h>

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace bench {
namespace tensorflow {

// clang-format off
#define WEIR_BENCH_TENSORFLOW_FUNCTIONS(F)                                                                             \
    F(TF_Version) F(TF_NewStatus) F(TF_DeleteStatus) F(TF_GetCode) F(TF_Message)                                       \
    F(TF_NewGraph) F(TF_DeleteGraph) F(TF_NewOperation) F(TF_FinishOperation) F(TF_AddInput) F(TF_AddInputList)        \
    F(TF_AddControlInput) F(TF_SetAttrType) F(TF_SetAttrInt) F(TF_SetAttrTensor) F(TF_SetAttrShape)                     \
    F(TF_NewWhile) F(TF_FinishWhile)                                                                                   \
    F(TF_NewSessionOptions) F(TF_DeleteSessionOptions) F(TF_SetConfig) F(TF_NewSession) F(TF_CloseSession)             \
    F(TF_DeleteSession) F(TF_SessionRun)                                                                               \
    F(TF_AllocateTensor) F(TF_DeleteTensor) F(TF_TensorData)
// clang-format on

struct functions {
#define WEIR_BENCH_DECLARE(name) decltype(&::name) name;
    WEIR_BENCH_TENSORFLOW_FUNCTIONS(WEIR_BENCH_DECLARE)
#undef WEIR_BENCH_DECLARE
};
/// Loads the library with the first call. Throws std::runtime_error.
const functions &library();

struct tensor_deleter {
    void operator()(TF_Tensor *tensor) const { library().TF_DeleteTensor(tensor); }
};
using tensor = std::unique_ptr<TF_Tensor, tensor_deleter>;
tensor scalar(std::int32_t value);
tensor scalar(bool value);

/// Operations are added in `into`, which is a graph or a part of a loop. Throws std::runtime_error.
TF_Operation *no_op(TF_Graph *into, const std::string &name, const std::vector<TF_Operation *> &after);
/// The value itself, but not before the others have ended.
TF_Output identity(TF_Graph *into, const std::string &name, TF_Output value, const std::vector<TF_Operation *> &after);
TF_Output placeholder(TF_Graph *into, const std::string &name, TF_DataType type);
TF_Output constant(TF_Graph *into, const std::string &name, TF_DataType type, const tensor &value);
/// An operation of one type `T`, with one output.
TF_Output operation(TF_Graph *into, const char *type, const std::string &name, std::initializer_list<TF_Output> inputs);
/// As Switch, to one of `count` by number: output k has the value if index is k.
TF_Operation *switch_among(TF_Graph *into, const std::string &name, TF_Output value, TF_Output index, int count);
/// Switch: {if false, if true}.
std::pair<TF_Output, TF_Output> switch_on(TF_Graph *into, const std::string &name, TF_Output value, TF_Output predicate);
TF_Output merge(TF_Graph *into, const std::string &name, const std::vector<TF_Output> &values);

struct graph_deleter {
    void operator()(TF_Graph *graph) const { library().TF_DeleteGraph(graph); }
};
using graph = std::unique_ptr<TF_Graph, graph_deleter>;
graph new_graph();

/// A session with so many threads of its own and no rewriting of graphs.
class session {
public:
    session(TF_Graph *graph, int threads);
    session(const session &) = delete;
    session &operator=(const session &) = delete;
    ~session();

    void run(const std::vector<TF_Operation *> &targets);
    /// The value of `fetch`; the targets run too.
    tensor run(const std::vector<TF_Output> &fed, const std::vector<TF_Tensor *> &values, TF_Output fetch,
               const std::vector<TF_Operation *> &targets);

private:
    TF_Session *session_;
};

} // namespace tensorflow
} // namespace bench

#endif // WEIR_BENCH_GRAPHS_TENSORFLOW_HPP
