/* weir_cdef.h: the whole C interface of libweir for ffi.cdef of LuaJIT and for cffi.
 *
 * Generated from the sources of the headers; do not edit. No compiler is to include it: C and C++ have the headers.
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */

/* weir.h */
typedef struct weir_buffer weir_buffer;
typedef struct weir_call weir_call;
typedef struct weir_completion weir_completion;
typedef struct weir_domain weir_domain;
typedef struct weir_engine weir_engine;
typedef struct weir_engine_attr weir_engine_attr;
typedef struct weir_event weir_event;
typedef struct weir_graph weir_graph;
typedef struct weir_kernel weir_kernel;
typedef struct weir_kernel_context weir_kernel_context;
typedef struct weir_program weir_program;
typedef struct weir_run weir_run;
typedef struct weir_stream weir_stream;
typedef struct weir_stream_attr weir_stream_attr;
typedef struct weir_tensor weir_tensor;
typedef struct weir_threadpool weir_threadpool;
typedef struct weir_trace weir_trace;
static const int WEIR_VERSION_MAJOR = 0;
static const int WEIR_VERSION_MINOR = 1;
static const int WEIR_VERSION_PATCH = 0;
static const int WEIR_ABI_VERSION = 1;
typedef enum weir_status_value {
  WEIR_OK = 0,
  WEIR_CANCELLED = 1,
  WEIR_UNKNOWN = 2,
  WEIR_INVALID_ARGUMENT = 3,
  WEIR_DEADLINE_EXCEEDED = 4,
  WEIR_NOT_FOUND = 5,
  WEIR_ALREADY_EXISTS = 6,
  WEIR_PERMISSION_DENIED = 7,
  WEIR_RESOURCE_EXHAUSTED = 8,
  WEIR_FAILED_PRECONDITION = 9,
  WEIR_ABORTED = 10,
  WEIR_OUT_OF_RANGE = 11,
  WEIR_UNIMPLEMENTED = 12,
  WEIR_INTERNAL = 13,
  WEIR_UNAVAILABLE = 14,
  WEIR_DATA_LOSS = 15,
  WEIR_DEVICE_LOST = 64
} weir_status_value;
typedef int32_t weir_status;
uint32_t weir_version(void);
const char *weir_version_string(void);
uint32_t weir_abi_version(void);
weir_status weir_check_version(uint32_t major, uint32_t minor);
const char *weir_status_name(weir_status status);
const char *weir_last_error_message(void);
typedef struct weir_failure {
  size_t struct_size;
  weir_status code;
  int32_t reserved;
  int64_t iteration;
  char node[128];
  char loop_node[128];
  char engine[64];
  char message[1024];
  size_t num_not_run;
  size_t not_run_bytes;
  char *not_run;
  size_t not_run_capacity;
} weir_failure;
weir_status weir_thread_get_failure(weir_failure *failure);
weir_status weir_run_get_failure(const weir_run *run, weir_failure *failure);
weir_status weir_stream_get_failure(const weir_stream *stream, weir_failure *failure);
typedef enum weir_threadpool_flags {
  WEIR_THREADPOOL_ASYNCHRONOUS = 1,
  WEIR_THREADPOOL_AUTO_BALANCING = 2,
  WEIR_THREADPOOL_NESTED = 4,
  WEIR_THREADPOOL_OWN_THREADS_ONLY = 8
} weir_threadpool_flags;
typedef void (*weir_task_fn)(void *arg, int32_t i);
typedef struct weir_task_hint {
  size_t struct_size;
  uint64_t cost_ns;
  int32_t priority;
  uint32_t flags;
} weir_task_hint;
typedef struct weir_threadpool_vtable {
  size_t struct_size;
  uint64_t flags;
  int32_t (*num_threads)(void *ctx);
  int32_t (*parallel_for)(void *ctx, int32_t n, weir_task_fn task, void *arg);
  int32_t (*schedule)(void *ctx, weir_task_fn task, void *arg, const weir_task_hint *hint);
  int32_t (*in_parallel)(void *ctx);
  int32_t (*thread_index)(void *ctx);
  int32_t (*help)(void *ctx);
  void (*release)(void *ctx);
  int32_t (*max_threads)(void *ctx);
} weir_threadpool_vtable;
typedef struct weir_threadpool_costs {
  size_t struct_size;
  double submit_ns;
  double arrive_ns;
  double join_ns;
} weir_threadpool_costs;
typedef struct weir_threadpool_options {
  size_t struct_size;
  int32_t num_threads;
  int32_t checking;
  uint64_t spin_ns;
  const weir_threadpool_costs *costs;
} weir_threadpool_options;
typedef int32_t (*weir_epilogue_fn)(void *arg);
typedef struct weir_parallel_hint {
  size_t struct_size;
  double cost_ns;
  int64_t grain;
  int32_t max_slots;
  uint32_t flags;
  weir_epilogue_fn epilogue;
} weir_parallel_hint;
typedef int32_t (*weir_range_fn)(void *arg, int64_t begin, int64_t end, int32_t slot);
typedef int32_t (*weir_box_fn)(void *arg, const int64_t *begin, const int64_t *end, int32_t slot);
typedef void (*weir_destroy_fn)(void *ctx);
weir_status weir_threadpool_create(const weir_threadpool_vtable *vtable,
                                   void *ctx,
                                   const weir_threadpool_options *options,
                                   weir_threadpool **out_pool);
weir_status weir_threadpool_get_vtable(weir_threadpool *pool,
                                       weir_threadpool_vtable *out_vtable,
                                       void **out_ctx);
weir_status weir_threadpool_create_builtin(const weir_threadpool_options *options,
                                           weir_threadpool **out_pool);
weir_status weir_threadpool_create_inline(weir_threadpool **out_pool);
weir_status weir_threadpool_retain(weir_threadpool *pool);
void weir_threadpool_release(weir_threadpool *pool);
weir_status weir_threadpool_close(weir_threadpool *pool, uint64_t timeout_ns);
weir_status weir_threadpool_get_num_threads(const weir_threadpool *pool,
                                            int32_t *out_num_threads);
weir_status weir_threadpool_get_flags(const weir_threadpool *pool, uint64_t *out_flags);
weir_status weir_threadpool_get_id(const weir_threadpool *pool, uint64_t *out_id);
weir_status weir_threadpool_in_parallel(const weir_threadpool *pool, int32_t *out_in_parallel);
weir_status weir_parallel_for(weir_threadpool *pool,
                              int64_t n,
                              const weir_parallel_hint *hint,
                              weir_range_fn fn,
                              void *arg);
weir_status weir_parallel_nd(weir_threadpool *pool,
                             int32_t rank,
                             const int64_t *extents,
                             const int64_t *tile,
                             const weir_parallel_hint *hint,
                             weir_box_fn fn,
                             void *arg);
typedef enum weir_engine_kind_value {
  WEIR_ENGINE_CPU = 1,
  WEIR_ENGINE_CUDA = 2,
  WEIR_ENGINE_EMULATED = 3
} weir_engine_kind_value;
typedef enum weir_wait_policy_value {
  WEIR_WAIT_DEFAULT = 0,
  WEIR_WAIT_BLOCK = 1,
  WEIR_WAIT_YIELD = 2
} weir_wait_policy_value;
typedef enum weir_thread_mode_value {
  WEIR_THREAD_MODE_GLOBAL = 1,
  WEIR_THREAD_MODE_PRIVATE = 2,
  WEIR_THREAD_MODE_KIND = 3,
  WEIR_THREAD_MODE_CALLER = 4
} weir_thread_mode_value;
typedef uint32_t weir_engine_kind;
typedef uint32_t weir_thread_mode;
typedef uint32_t weir_wait_policy;
typedef struct weir_engine_info {
  size_t struct_size;
  uint32_t kind;
  uint32_t index;
  uint32_t num_processors;
  uint32_t reserved;
  uint64_t alignment;
  char name[64];
  uint32_t thread_mode;
  uint32_t thread_count;
  uint64_t memory_bytes;
} weir_engine_info;
static const int WEIR_ENGINE_PLUGIN_FIRST = 4096;
weir_status weir_engine_attr_create(weir_engine_kind kind, weir_engine_attr **out_attr);
void weir_engine_attr_destroy(weir_engine_attr *attr);
weir_status weir_engine_attr_get_kind(const weir_engine_attr *attr, weir_engine_kind *out_kind);
weir_status weir_engine_attr_set_threadpool(weir_engine_attr *attr, weir_threadpool *pool);
weir_status weir_engine_attr_get_threadpool(const weir_engine_attr *attr,
                                            weir_threadpool **out_pool);
weir_status weir_engine_attr_set_thread_mode(weir_engine_attr *attr, weir_thread_mode mode);
weir_status weir_engine_attr_get_thread_mode(const weir_engine_attr *attr,
                                             weir_thread_mode *out_mode);
weir_status weir_engine_attr_set_thread_count(weir_engine_attr *attr, uint32_t count);
weir_status weir_engine_attr_get_thread_count(const weir_engine_attr *attr,
                                              uint32_t *out_count);
weir_status weir_engine_attr_set_max_streams(weir_engine_attr *attr, uint32_t count);
weir_status weir_engine_attr_get_max_streams(const weir_engine_attr *attr, uint32_t *out_count);
weir_status weir_engine_attr_set_wait_policy(weir_engine_attr *attr,
                                             weir_wait_policy policy,
                                             uint64_t spin_ns);
weir_status weir_engine_attr_get_wait_policy(const weir_engine_attr *attr,
                                             weir_wait_policy *out_policy,
                                             uint64_t *out_spin_ns);
weir_status weir_engine_count(weir_engine_kind kind, uint32_t *out_count);
weir_status weir_engine_create(weir_engine_kind kind,
                               uint32_t index,
                               const weir_engine_attr *attr,
                               weir_engine **out_engine);
weir_status weir_engine_create_all(weir_engine **out_engines,
                                   size_t capacity,
                                   size_t *out_count);
weir_status weir_engine_retain(weir_engine *engine);
void weir_engine_release(weir_engine *engine);
weir_status weir_engine_get_attr(const weir_engine *engine, const weir_engine_attr **out_attr);
weir_status weir_engine_get_threadpool(const weir_engine *engine, weir_threadpool **out_pool);
weir_status weir_engine_get_info(const weir_engine *engine, weir_engine_info *out_info);
weir_status weir_engine_synchronize(weir_engine *engine, uint64_t timeout_ns);
static const int WEIR_DIM_DYNAMIC = -1;
typedef enum weir_dtype_value {
  WEIR_DTYPE_ANY = 0,
  WEIR_F32 = 1,
  WEIR_S32 = 2,
  WEIR_U8 = 3,
  WEIR_S8 = 4,
  WEIR_F16 = 5,
  WEIR_BF16 = 6,
  WEIR_BOOL = 7,
  WEIR_S64 = 8
} weir_dtype_value;
typedef enum weir_limit {
  WEIR_MAX_RANK = 8,
  WEIR_MAX_ARGS = 64
} weir_limit;
typedef enum weir_memory_source_value {
  WEIR_MEMORY_FOREIGN = 0,
  WEIR_MEMORY_BUFFER = 1,
  WEIR_MEMORY_PINNED = 2
} weir_memory_source_value;
typedef uint32_t weir_dtype;
typedef struct weir_tensor_desc {
  weir_dtype dtype;
  uint32_t rank;
  int64_t dims[8];
} weir_tensor_desc;
typedef uint32_t weir_memory_source;
typedef struct weir_memory {
  size_t struct_size;
  weir_memory_source source;
  uint32_t reserved;
  void *data;
  size_t bytes;
  weir_destroy_fn release;
  void *release_ctx;
  weir_buffer *buffer;
  size_t offset;
  weir_engine *device;
} weir_memory;
typedef struct weir_tensor_view {
  void *data;
  size_t bytes;
  weir_tensor_desc desc;
} weir_tensor_view;
const char *weir_dtype_name(weir_dtype dtype);
weir_status weir_dtype_size(weir_dtype dtype, size_t *out_bytes);
weir_status weir_tensor_create(weir_engine *engine,
                               const weir_tensor_desc *desc,
                               const weir_memory *from,
                               weir_tensor **out_tensor);
weir_status weir_tensor_retain(weir_tensor *tensor);
void weir_tensor_release(weir_tensor *tensor);
weir_status weir_tensor_get_desc(const weir_tensor *tensor, weir_tensor_desc *out_desc);
weir_status weir_tensor_get_data(const weir_tensor *tensor, void **out_data);
weir_status weir_tensor_get_size(const weir_tensor *tensor, size_t *out_bytes);
weir_status weir_tensor_get_engine(const weir_tensor *tensor, weir_engine **out_engine);
typedef enum weir_stream_flags {
  WEIR_STREAM_DEFAULT = 0,
  WEIR_STREAM_ASYNCHRONOUS = 1
} weir_stream_flags;
typedef int32_t (*weir_host_fn)(void *arg);
typedef void (*weir_notify_fn)(void *ctx, weir_status status, weir_run *run);
typedef struct weir_notice {
  size_t struct_size;
  weir_notify_fn notify;
  void *ctx;
  weir_destroy_fn release;
  int32_t event_fd;
  uint32_t reserved;
} weir_notice;
weir_status weir_stream_attr_create(weir_engine_kind kind, weir_stream_attr **out_attr);
void weir_stream_attr_destroy(weir_stream_attr *attr);
weir_status weir_stream_attr_get_kind(const weir_stream_attr *attr, weir_engine_kind *out_kind);
weir_status weir_stream_attr_set_threadpool(weir_stream_attr *attr, weir_threadpool *pool);
weir_status weir_stream_attr_get_threadpool(const weir_stream_attr *attr,
                                            weir_threadpool **out_pool);
weir_status weir_stream_attr_set_asynchronous(weir_stream_attr *attr, int32_t asynchronous);
weir_status weir_stream_attr_get_asynchronous(const weir_stream_attr *attr,
                                              int32_t *out_asynchronous);
weir_status weir_stream_attr_set_spin_ns(weir_stream_attr *attr, uint64_t spin_ns);
weir_status weir_stream_attr_get_spin_ns(const weir_stream_attr *attr, uint64_t *out_spin_ns);
weir_status weir_stream_attr_set_priority(weir_stream_attr *attr, int32_t priority);
weir_status weir_stream_attr_get_priority(const weir_stream_attr *attr, int32_t *out_priority);
weir_status weir_stream_attr_set_name(weir_stream_attr *attr, const char *name);
weir_status weir_stream_attr_get_name(const weir_stream_attr *attr,
                                      char *buffer,
                                      size_t capacity,
                                      size_t *out_length);
weir_status weir_stream_create(weir_engine *engine,
                               uint64_t stream_flags,
                               const weir_stream_attr *attr,
                               weir_stream **out_stream);
weir_status weir_stream_retain(weir_stream *stream);
void weir_stream_release(weir_stream *stream);
weir_status weir_stream_get_engine(const weir_stream *stream, weir_engine **out_engine);
weir_status weir_stream_get_threadpool(const weir_stream *stream, weir_threadpool **out_pool);
weir_status weir_stream_get_attr(const weir_stream *stream, const weir_stream_attr **out_attr);
weir_status weir_enqueue_task(weir_stream *stream,
                              weir_host_fn fn,
                              void *arg,
                              weir_destroy_fn destroy);
weir_status weir_stream_synchronize(weir_stream *stream, uint64_t timeout_ns);
weir_status weir_stream_query(const weir_stream *stream, int32_t *out_done);
weir_status weir_stream_clear_error(weir_stream *stream);
weir_status weir_stream_wait_event(weir_stream *stream, weir_event *event);
weir_status weir_enqueue_copy(weir_stream *stream, weir_tensor *source, weir_tensor *target);
weir_status weir_enqueue_fill(weir_stream *stream, weir_tensor *tensor, int32_t value);
typedef enum weir_event_flags {
  WEIR_EVENT_DEFAULT = 0,
  WEIR_EVENT_TIMING = 1
} weir_event_flags;
weir_status weir_event_create(weir_engine *engine,
                              uint64_t event_flags,
                              weir_event **out_event);
weir_status weir_event_retain(weir_event *event);
void weir_event_release(weir_event *event);
weir_status weir_event_record(weir_event *event, weir_stream *stream);
weir_status weir_event_query(const weir_event *event, int32_t *out_done);
weir_status weir_event_synchronize(weir_event *event, uint64_t timeout_ns);
weir_status weir_event_notify(weir_event *event, const weir_notice *notice);
weir_status weir_event_elapsed_ns(const weir_event *start,
                                  const weir_event *end,
                                  int64_t *out_ns);
typedef struct weir_engine_sync {
  size_t struct_size;
  weir_status status;
  uint32_t reserved;
  char engine[64];
  char message[256];
} weir_engine_sync;
weir_status weir_sync_devices(uint64_t timeout_ns,
                              weir_engine_sync *results,
                              size_t capacity,
                              size_t *out_count);
weir_status weir_time_ns(weir_stream *stream,
                         weir_host_fn fn,
                         void *arg,
                         size_t repetitions,
                         uint64_t *out_times);
typedef enum weir_kernel_flags {
  WEIR_KERNEL_IN_PLACE = 1,
  WEIR_KERNEL_PURE = 2,
  WEIR_KERNEL_MAY_BLOCK = 4,
  WEIR_KERNEL_DYNAMIC = 8
} weir_kernel_flags;
typedef int32_t (*weir_compute_fn)(void *user, weir_kernel_context *context);
typedef int32_t (*weir_infer_fn)(void *user,
                                 const weir_tensor_desc *inputs,
                                 size_t num_inputs,
                                 weir_tensor_desc *outputs,
                                 size_t num_outputs);
typedef int32_t (*weir_compute_async_fn)(void *user, weir_kernel_context *context, weir_completion *done);
typedef struct weir_host_kernel_desc {
  size_t struct_size;
  const char *name;
  weir_compute_fn compute;
  void *user;
  weir_destroy_fn destroy;
  size_t num_inputs;
  const weir_tensor_desc *inputs;
  size_t num_outputs;
  const weir_tensor_desc *outputs;
  weir_infer_fn infer;
  uint64_t cost_ns;
  size_t scratch_bytes;
  uint64_t flags;
  weir_compute_async_fn compute_async;
} weir_host_kernel_desc;
typedef struct weir_kernel_info {
  size_t struct_size;
  size_t num_inputs;
  size_t num_outputs;
  char name[128];
} weir_kernel_info;
typedef struct weir_named_kernel_desc {
  size_t struct_size;
  const char *operation;
  const void *attributes;
  size_t attributes_bytes;
  size_t num_inputs;
  const weir_tensor_desc *inputs;
  size_t num_outputs;
  const weir_tensor_desc *outputs;
  weir_infer_fn infer;
  void *user;
  weir_destroy_fn destroy;
} weir_named_kernel_desc;
typedef struct weir_kernel_options {
  size_t struct_size;
  const char *name;
  uint64_t cost_ns;
  const char *settings;
} weir_kernel_options;
weir_status weir_kernel_create_host(weir_engine *engine,
                                    const weir_host_kernel_desc *desc,
                                    weir_kernel **out_kernel);
weir_status weir_kernel_retain(weir_kernel *kernel);
void weir_kernel_release(weir_kernel *kernel);
weir_status weir_kernel_get_info(const weir_kernel *kernel, weir_kernel_info *out_info);
weir_status weir_kernel_infer(const weir_kernel *kernel,
                              const weir_tensor_desc *inputs,
                              size_t num_inputs,
                              weir_tensor_desc *out_outputs,
                              size_t num_outputs);
weir_status weir_enqueue(weir_stream *stream,
                         weir_kernel *kernel,
                         weir_tensor *const *inputs,
                         size_t num_inputs,
                         weir_tensor *const *outputs,
                         size_t num_outputs);
weir_status weir_call_create(weir_stream *stream,
                             weir_kernel *kernel,
                             weir_tensor *const *inputs,
                             size_t num_inputs,
                             weir_tensor *const *outputs,
                             size_t num_outputs,
                             weir_call **out_call);
weir_status weir_call_retain(weir_call *call);
void weir_call_release(weir_call *call);
weir_status weir_call_enqueue(weir_call *call);
weir_status weir_kernel_context_get_inputs(const weir_kernel_context *context,
                                           const weir_tensor_view **out_views,
                                           size_t *out_count);
weir_status weir_kernel_context_get_outputs(const weir_kernel_context *context,
                                            const weir_tensor_view **out_views,
                                            size_t *out_count);
weir_status weir_kernel_context_get_num_slots(const weir_kernel_context *context,
                                              int32_t *out_num_slots);
weir_status weir_kernel_context_get_scratch(const weir_kernel_context *context,
                                            int32_t slot,
                                            void **out_scratch);
weir_status weir_kernel_context_parallel_for(const weir_kernel_context *context,
                                             int64_t n,
                                             const weir_parallel_hint *hint,
                                             weir_range_fn fn,
                                             void *arg);
weir_status weir_kernel_context_parallel_nd(const weir_kernel_context *context,
                                            int32_t rank,
                                            const int64_t *extents,
                                            const int64_t *tile,
                                            const weir_parallel_hint *hint,
                                            weir_box_fn fn,
                                            void *arg);
weir_status weir_kernel_context_is_cancelled(const weir_kernel_context *context,
                                             int32_t *out_cancelled);
weir_status weir_kernel_context_fail(weir_kernel_context *context,
                                     weir_status code,
                                     const char *message);
weir_status weir_completion_done(weir_completion *done, weir_status status, const char *text);
weir_status weir_kernel_create_named(weir_engine *engine,
                                     const weir_named_kernel_desc *desc,
                                     const weir_kernel_options *options,
                                     weir_kernel **out_kernel);
weir_status weir_kernel_context_run_program(const weir_kernel_context *context,
                                            weir_program *program,
                                            size_t count,
                                            weir_tensor *const *inputs,
                                            size_t num_inputs,
                                            weir_tensor *const *outputs,
                                            size_t num_outputs);
weir_status weir_kernel_context_allocate_output(const weir_kernel_context *context,
                                                size_t index,
                                                const int64_t *dims,
                                                size_t rank,
                                                void **out_data);
weir_status weir_program_trim(weir_program *program);
typedef enum weir_forwarding_value {
  WEIR_FORWARD_AUTO = -1,
  WEIR_FORWARD_NEVER = -2
} weir_forwarding_value;
typedef enum weir_placement_value {
  WEIR_PLACEMENT_DEFAULT = 0,
  WEIR_PLACEMENT_KERNEL = 1,
  WEIR_PLACEMENT_ANY = 2
} weir_placement_value;
typedef uint64_t weir_value;
typedef uint64_t weir_node;
typedef uint32_t weir_placement;
weir_status weir_graph_create(const char *name, weir_graph **out_graph);
void weir_graph_destroy(weir_graph *graph);
weir_status weir_graph_add_input(weir_graph *graph,
                                 const char *name,
                                 const weir_tensor_desc *desc,
                                 weir_value *out_value);
weir_status weir_graph_add_constant(weir_graph *graph,
                                    const char *name,
                                    weir_tensor *tensor,
                                    weir_value *out_value);
weir_status weir_graph_add_kernel(weir_graph *graph,
                                  const char *name,
                                  weir_kernel *kernel,
                                  const weir_value *inputs,
                                  size_t num_inputs,
                                  weir_value *out_outputs,
                                  size_t num_outputs,
                                  weir_node *out_node);
weir_status weir_graph_add_program(weir_graph *graph,
                                   const char *name,
                                   weir_program *program,
                                   const weir_value *inputs,
                                   size_t num_inputs,
                                   weir_value *out_outputs,
                                   size_t num_outputs,
                                   weir_node *out_node);
weir_status weir_graph_add_task(weir_graph *graph,
                                const char *name,
                                weir_host_fn fn,
                                void *arg,
                                weir_destroy_fn destroy,
                                uint64_t cost_ns,
                                weir_node *out_node);
weir_status weir_graph_add_control_edge(weir_graph *graph, weir_node from, weir_node to);
weir_status weir_graph_set_forwarding(weir_graph *graph,
                                      weir_node node,
                                      int32_t output,
                                      int32_t input);
weir_status weir_graph_add_output(weir_graph *graph, const char *name, weir_value value);
typedef enum weir_compile_flags {
  WEIR_COMPILE_ALLOW_ABSENT = 1,
  WEIR_COMPILE_STATISTICS = 2,
  WEIR_COMPILE_NO_DEVICE_CONTROL = 4,
  WEIR_COMPILE_NO_REGIONS = 8,
  WEIR_COMPILE_NO_FUSION = 16
} weir_compile_flags;
typedef enum weir_segments_value {
  WEIR_SEGMENTS_TIMED = 0,
  WEIR_SEGMENTS_NEVER = 1,
  WEIR_SEGMENTS_ALWAYS = 2
} weir_segments_value;
typedef enum weir_port_kind_value {
  WEIR_PORT_INPUT = 1,
  WEIR_PORT_OUTPUT = 2
} weir_port_kind_value;
typedef uint32_t weir_port_kind;
typedef uint32_t weir_segments;
typedef struct weir_compile_options {
  size_t struct_size;
  uint64_t flags;
  uint64_t hop_ns;
  weir_threadpool *blocking_threadpool;
  size_t partial_runs;
  uint32_t max_concurrent_runs;
  weir_placement placement;
  weir_segments segments;
  uint32_t reserved;
} weir_compile_options;
typedef struct weir_program_info {
  size_t struct_size;
  size_t num_inputs;
  size_t num_outputs;
  size_t num_nodes;
  uint64_t begun;
  uint64_t ended;
  uint64_t failed;
  uint64_t cancelled;
  uint64_t running;
} weir_program_info;
typedef struct weir_port_info {
  size_t struct_size;
  weir_tensor_desc desc;
  weir_engine *engine;
  char name[128];
} weir_port_info;
weir_status weir_graph_set_port_engine(weir_graph *graph,
                                       weir_port_kind kind,
                                       size_t index,
                                       weir_engine *engine);
weir_status weir_graph_set_placement(weir_graph *graph,
                                     weir_node node,
                                     weir_placement placement);
weir_status weir_graph_compile(const weir_graph *graph,
                               weir_engine *const *engines,
                               size_t num_engines,
                               const weir_compile_options *options,
                               weir_program **out_program);
weir_status weir_program_get_options(const weir_program *program,
                                     weir_compile_options *out_options);
weir_status weir_program_retain(weir_program *program);
void weir_program_release(weir_program *program);
weir_status weir_program_get_info(const weir_program *program,
                                  weir_program_info *out_info);
weir_status weir_program_get_port(const weir_program *program,
                                  weir_port_kind kind,
                                  size_t index,
                                  weir_port_info *out_info);
typedef enum weir_run_flags {
  WEIR_RUN_DETERMINISTIC = 1,
  WEIR_RUN_FINISH_INDEPENDENT = 2,
  WEIR_RUN_NO_WAIT = 4
} weir_run_flags;
typedef struct weir_run_progress {
  size_t struct_size;
  weir_run *run;
  uint64_t nodes_done;
  uint64_t nodes_total;
  uint64_t elapsed_ns;
  uint64_t estimated_remaining_ns;
  char node[128];
} weir_run_progress;
typedef void (*weir_progress_fn)(void *ctx, const weir_run_progress *progress);
typedef struct weir_run_options {
  size_t struct_size;
  uint64_t flags;
  uint64_t deadline_ns;
  weir_threadpool *threadpool;
  const size_t *outputs;
  size_t num_outputs;
  uint8_t *absent;
  size_t num_absent;
  const weir_notice *notice;
  weir_trace *trace;
  weir_progress_fn progress;
  void *progress_ctx;
  uint64_t progress_interval_ns;
} weir_run_options;
weir_status weir_program_run(weir_program *program,
                             weir_stream *stream,
                             weir_tensor *const *inputs,
                             size_t num_inputs,
                             weir_tensor *const *outputs,
                             size_t num_outputs,
                             const weir_run_options *options);
weir_status weir_program_start(weir_program *program,
                               weir_stream *stream,
                               weir_tensor *const *inputs,
                               size_t num_inputs,
                               weir_tensor *const *outputs,
                               size_t num_outputs,
                               const weir_run_options *options,
                               weir_run **out_run);
weir_status weir_program_run_many(weir_program *program,
                                  size_t count,
                                  weir_tensor *const *inputs,
                                  size_t num_inputs,
                                  weir_tensor *const *outputs,
                                  size_t num_outputs,
                                  const weir_run_options *options);
weir_status weir_run_retain(weir_run *run);
void weir_run_release(weir_run *run);
weir_status weir_run_synchronize(weir_run *run, uint64_t timeout_ns);
weir_status weir_run_query(const weir_run *run, int32_t *out_done);
weir_status weir_run_notify(weir_run *run, const weir_notice *notice);
weir_status weir_run_cancel(weir_run *run);

/* weir/memory.h */
typedef enum weir_memory_mode_value {
  WEIR_MEMORY_MODE_POOLED = 1,
  WEIR_MEMORY_MODE_DIRECT = 2
} weir_memory_mode_value;
typedef struct weir_allocator weir_allocator;
typedef struct weir_allocator_vtable {
  size_t struct_size;
  uint64_t flags;
  size_t alignment;
  void *(*allocate)(void *ctx, size_t bytes, size_t alignment);
  void (*deallocate)(void *ctx, void *data, size_t bytes, size_t alignment);
  void (*release)(void *ctx);
} weir_allocator_vtable;
typedef uint32_t weir_memory_mode;
weir_status weir_allocator_create(const weir_allocator_vtable *vtable,
                                  void *ctx,
                                  weir_allocator **out_allocator);
weir_status weir_allocator_retain(weir_allocator *allocator);
void weir_allocator_release(weir_allocator *allocator);
weir_status weir_engine_attr_set_allocator(weir_engine_attr *attr,
                                           weir_allocator *allocator);
weir_status weir_engine_attr_get_allocator(const weir_engine_attr *attr,
                                           weir_allocator **out_allocator);
weir_status weir_engine_attr_set_memory_limit(weir_engine_attr *attr, uint64_t bytes);
weir_status weir_engine_attr_get_memory_limit(const weir_engine_attr *attr,
                                              uint64_t *out_bytes);
weir_status weir_engine_attr_set_memory_mode(weir_engine_attr *attr, weir_memory_mode mode);
weir_status weir_engine_attr_get_memory_mode(const weir_engine_attr *attr,
                                             weir_memory_mode *out_mode);
weir_status weir_engine_trim(weir_engine *engine, uint64_t bytes_to_keep);
weir_status weir_buffer_create(weir_engine *engine,
                               size_t bytes,
                               const weir_memory *from,
                               weir_buffer **out_buffer);
weir_status weir_buffer_retain(weir_buffer *buffer);
void weir_buffer_release(weir_buffer *buffer);
weir_status weir_buffer_get_data(const weir_buffer *buffer, void **out_data);
weir_status weir_buffer_get_size(const weir_buffer *buffer, size_t *out_bytes);
weir_status weir_buffer_get_engine(const weir_buffer *buffer, weir_engine **out_engine);
weir_status weir_buffer_pin(weir_buffer *buffer, weir_engine *device);
weir_status weir_buffer_is_pinned(const weir_buffer *buffer,
                                  const weir_engine *device,
                                  int32_t *out_pinned);
weir_status weir_tensor_is_pinned(const weir_tensor *tensor,
                                  const weir_engine *device,
                                  int32_t *out_pinned);
weir_status weir_engine_attr_set_pinned_limit(weir_engine_attr *attr, uint64_t bytes);
weir_status weir_engine_attr_get_pinned_limit(const weir_engine_attr *attr,
                                              uint64_t *out_bytes);

/* weir/task_group.h */
typedef struct weir_task_group weir_task_group;
weir_status weir_task_group_create(weir_threadpool *pool, weir_task_group **out_group);
weir_status weir_kernel_context_create_task_group(weir_kernel_context *context,
                                                  weir_task_group **out_group);
weir_status weir_task_group_retain(weir_task_group *group);
void weir_task_group_release(weir_task_group *group);
weir_status weir_task_group_spawn(weir_task_group *group,
                                  weir_host_fn fn,
                                  void *arg,
                                  weir_destroy_fn destroy);
weir_status weir_task_group_spawn_copy(weir_task_group *group,
                                       weir_host_fn fn,
                                       const void *data,
                                       size_t size);
weir_status weir_task_group_synchronize(weir_task_group *group);
weir_status weir_task_group_cancel(weir_task_group *group);
weir_status weir_task_group_is_stopped(const weir_task_group *group,
                                       int32_t *out_stopped);
weir_status weir_task_group_notify(weir_task_group *group, const weir_notice *notice);

/* weir/domain.h */
weir_status weir_domain_create(const char *name, weir_domain **out_domain);
weir_status weir_domain_retain(weir_domain *domain);
void weir_domain_release(weir_domain *domain);
weir_status weir_domain_get_name(const weir_domain *domain,
                                 char *buffer,
                                 size_t capacity,
                                 size_t *out_length);
weir_status weir_engine_attr_set_domain(weir_engine_attr *attr, weir_domain *domain);
weir_status weir_engine_attr_get_domain(const weir_engine_attr *attr, weir_domain **out_domain);
weir_status weir_engine_attr_set_name(weir_engine_attr *attr, const char *name);
weir_status weir_engine_attr_get_name(const weir_engine_attr *attr,
                                      char *buffer,
                                      size_t capacity,
                                      size_t *out_length);
weir_status weir_engine_get_name(const weir_engine *engine,
                                 char *buffer,
                                 size_t capacity,
                                 size_t *out_length);
weir_status weir_sync_domain(const weir_domain *domain,
                             uint64_t timeout_ns,
                             weir_engine_sync *results,
                             size_t capacity,
                             size_t *out_count);
weir_status weir_async_scope_begin_in(const weir_domain *domain, uint64_t *out_scope);
weir_status weir_async_scope_begin(uint64_t *out_scope);
weir_status weir_async_scope_end(uint64_t scope, uint64_t timeout_ns);

/* weir/control.h */
typedef struct weir_cond_desc {
  size_t struct_size;
  weir_value predicate;
  const weir_graph *then_graph;
  const weir_graph *else_graph;
  const weir_value *inputs;
  size_t num_inputs;
} weir_cond_desc;
typedef struct weir_case_desc {
  size_t struct_size;
  weir_value index;
  const weir_graph *const *branches;
  size_t num_branches;
  const weir_value *inputs;
  size_t num_inputs;
} weir_case_desc;
typedef struct weir_while_desc {
  size_t struct_size;
  const weir_graph *cond_graph;
  const weir_graph *body_graph;
  const weir_value *variables;
  size_t num_variables;
  const weir_value *invariants;
  size_t num_invariants;
  int32_t parallel_iterations;
  uint32_t reserved;
} weir_while_desc;
weir_status weir_graph_add_cond(weir_graph *graph,
                                const char *name,
                                const weir_cond_desc *desc,
                                weir_value *out_outputs,
                                size_t num_outputs,
                                weir_node *out_node);
weir_status weir_graph_add_case(weir_graph *graph,
                                const char *name,
                                const weir_case_desc *desc,
                                weir_value *out_outputs,
                                size_t num_outputs,
                                weir_node *out_node);
weir_status weir_graph_add_while(weir_graph *graph,
                                 const char *name,
                                 const weir_while_desc *desc,
                                 weir_value *out_outputs,
                                 weir_node *out_node);
weir_status weir_graph_add_switch(weir_graph *graph,
                                  const char *name,
                                  weir_value value,
                                  weir_value predicate,
                                  weir_value *out_false,
                                  weir_value *out_true,
                                  weir_node *out_node);
weir_status weir_graph_add_merge(weir_graph *graph,
                                 const char *name,
                                 const weir_value *inputs,
                                 size_t num_inputs,
                                 weir_value *out_value,
                                 weir_value *out_index,
                                 weir_node *out_node);
weir_status weir_graph_add_enter(weir_graph *graph,
                                 const char *name,
                                 weir_value value,
                                 const char *frame_name,
                                 int32_t is_constant,
                                 int32_t parallel_iterations,
                                 weir_value *out_value,
                                 weir_node *out_node);
weir_status weir_graph_add_loop_merge(weir_graph *graph,
                                      const char *name,
                                      weir_value value,
                                      weir_value *out_value,
                                      weir_node *out_node);
weir_status weir_graph_set_back_edge(weir_graph *graph,
                                     weir_node loop_merge,
                                     weir_value next_iteration);
weir_status weir_graph_add_loop_cond(weir_graph *graph,
                                     const char *name,
                                     weir_value predicate,
                                     weir_value *out_value,
                                     weir_node *out_node);
weir_status weir_graph_add_next_iteration(weir_graph *graph,
                                          const char *name,
                                          weir_value value,
                                          weir_value *out_value,
                                          weir_node *out_node);
weir_status weir_graph_add_exit(weir_graph *graph,
                                const char *name,
                                weir_value value,
                                weir_value *out_value,
                                weir_node *out_node);

/* weir/ops.h */
typedef enum weir_packed_weights_flags {
  WEIR_PACKED_WEIGHTS_TRANSPOSED = 1
} weir_packed_weights_flags;
typedef enum weir_activation_value {
  WEIR_ACTIVATION_NONE = 0,
  WEIR_ACTIVATION_RELU = 1,
  WEIR_ACTIVATION_GELU_ERF = 2,
  WEIR_ACTIVATION_GELU_TANH = 3,
  WEIR_ACTIVATION_SIGMOID = 4,
  WEIR_ACTIVATION_TANH = 5,
  WEIR_ACTIVATION_LEAKY_RELU = 6,
  WEIR_ACTIVATION_CLIP = 7,
  WEIR_ACTIVATION_SWISH = 8,
  WEIR_ACTIVATION_HARDSIGMOID = 9,
  WEIR_ACTIVATION_HARDSWISH = 10
} weir_activation_value;
typedef enum weir_matmul_flags {
  WEIR_MATMUL_TRANSPOSE_A = 1,
  WEIR_MATMUL_TRANSPOSE_B = 2,
  WEIR_MATMUL_BIAS = 4,
  WEIR_MATMUL_SUM = 8,
  WEIR_MATMUL_F32_RESULT = 16,
  WEIR_MATMUL_ALLOW_TF32 = 32
} weir_matmul_flags;
typedef enum weir_matmul_int8_flags {
  WEIR_MATMUL_INT8_TRANSPOSE_A = 1,
  WEIR_MATMUL_INT8_TRANSPOSE_B = 2,
  WEIR_MATMUL_INT8_BIAS = 4,
  WEIR_MATMUL_INT8_SCALES = 8
} weir_matmul_int8_flags;
typedef struct weir_packed_weights weir_packed_weights;
typedef uint32_t weir_activation;
typedef struct weir_matmul_desc {
  size_t struct_size;
  uint64_t flags;
  weir_activation activation;
  uint32_t reserved;
  weir_packed_weights *weights;
  float alpha;
  float beta;
} weir_matmul_desc;
typedef struct weir_matmul_int8_desc {
  size_t struct_size;
  uint64_t flags;
  weir_dtype dtype;
  float scale;
  int32_t zero_a;
  int32_t zero_b;
  int32_t zero_c;
  uint32_t reserved;
  weir_packed_weights *weights;
} weir_matmul_int8_desc;
typedef struct weir_packed_weights_desc {
  size_t struct_size;
  uint64_t flags;
} weir_packed_weights_desc;
weir_status weir_kernel_create_matmul(weir_engine *engine,
                                      const weir_matmul_desc *desc,
                                      const weir_kernel_options *options,
                                      weir_kernel **out_kernel);
weir_status weir_kernel_create_matmul_int8(weir_engine *engine,
                                           const weir_matmul_int8_desc *desc,
                                           const weir_kernel_options *options,
                                           weir_kernel **out_kernel);
weir_status weir_packed_weights_create(weir_engine *engine,
                                       const weir_tensor *tensor,
                                       const weir_packed_weights_desc *desc,
                                       weir_packed_weights **out_weights);
weir_status weir_packed_weights_retain(weir_packed_weights *weights);
void weir_packed_weights_release(weir_packed_weights *weights);
weir_status weir_packed_weights_get_size(const weir_packed_weights *weights,
                                         size_t *out_bytes);
typedef enum weir_binary_op_value {
  WEIR_BINARY_ADD = 1,
  WEIR_BINARY_SUB = 2,
  WEIR_BINARY_MUL = 3,
  WEIR_BINARY_DIV = 4,
  WEIR_BINARY_MIN = 5,
  WEIR_BINARY_MAX = 6,
  WEIR_BINARY_POW = 7,
  WEIR_BINARY_EQ = 8,
  WEIR_BINARY_NE = 9,
  WEIR_BINARY_LT = 10,
  WEIR_BINARY_LE = 11,
  WEIR_BINARY_GT = 12,
  WEIR_BINARY_GE = 13,
  WEIR_BINARY_REM = 14
} weir_binary_op_value;
typedef enum weir_eltwise_op_value {
  WEIR_ELTWISE_RELU = 1,
  WEIR_ELTWISE_ELU = 2,
  WEIR_ELTWISE_GELU_ERF = 3,
  WEIR_ELTWISE_GELU_TANH = 4,
  WEIR_ELTWISE_TANH = 5,
  WEIR_ELTWISE_SIGMOID = 6,
  WEIR_ELTWISE_SWISH = 7,
  WEIR_ELTWISE_EXP = 8,
  WEIR_ELTWISE_LOG = 9,
  WEIR_ELTWISE_SQRT = 10,
  WEIR_ELTWISE_SQUARE = 11,
  WEIR_ELTWISE_ABS = 12,
  WEIR_ELTWISE_NEG = 13,
  WEIR_ELTWISE_CLIP = 14,
  WEIR_ELTWISE_LINEAR = 15,
  WEIR_ELTWISE_POW = 16,
  WEIR_ELTWISE_HARDSIGMOID = 17,
  WEIR_ELTWISE_HARDSWISH = 18,
  WEIR_ELTWISE_ROUND = 19,
  WEIR_ELTWISE_MISH = 20,
  WEIR_ELTWISE_SOFTPLUS = 21,
  WEIR_ELTWISE_ERF = 22,
  WEIR_ELTWISE_FLOOR = 23,
  WEIR_ELTWISE_CEIL = 24,
  WEIR_ELTWISE_TRUNC = 25,
  WEIR_ELTWISE_SIGN = 26,
  WEIR_ELTWISE_SIN = 27,
  WEIR_ELTWISE_COS = 28,
  WEIR_ELTWISE_TAN = 29,
  WEIR_ELTWISE_ASIN = 30,
  WEIR_ELTWISE_ACOS = 31,
  WEIR_ELTWISE_ATAN = 32,
  WEIR_ELTWISE_SINH = 33,
  WEIR_ELTWISE_COSH = 34
} weir_eltwise_op_value;
typedef enum weir_rounding_value {
  WEIR_ROUNDING_ZERO = 0,
  WEIR_ROUNDING_NEAREST = 1,
  WEIR_ROUNDING_FLOOR = 2
} weir_rounding_value;
typedef enum weir_overflow_value {
  WEIR_OVERFLOW_WRAP = 0,
  WEIR_OVERFLOW_SATURATE = 1
} weir_overflow_value;
typedef enum weir_quantize_flags {
  WEIR_QUANTIZE_ZERO_POINT = 1,
  WEIR_QUANTIZE_DEQUANTIZE = 2
} weir_quantize_flags;
typedef uint32_t weir_eltwise_op;
typedef struct weir_eltwise_desc {
  size_t struct_size;
  weir_eltwise_op op;
  float alpha;
  float beta;
  uint32_t reserved;
} weir_eltwise_desc;
typedef uint32_t weir_binary_op;
typedef uint32_t weir_rounding;
typedef uint32_t weir_overflow;
typedef struct weir_binary_desc {
  size_t struct_size;
  weir_binary_op op;
  uint32_t reserved;
  weir_rounding rounding;
  weir_overflow overflow;
} weir_binary_desc;
typedef struct weir_select_desc {
  size_t struct_size;
} weir_select_desc;
typedef struct weir_convert_desc {
  size_t struct_size;
  weir_dtype dtype;
  float scale;
  float shift;
  uint32_t reserved;
  weir_rounding rounding;
  weir_overflow overflow;
} weir_convert_desc;
typedef struct weir_quantize_desc {
  size_t struct_size;
  uint64_t flags;
  weir_dtype dtype;
  int32_t axis;
} weir_quantize_desc;
weir_status weir_kernel_create_eltwise(weir_engine *engine,
                                       const weir_eltwise_desc *desc,
                                       const weir_kernel_options *options,
                                       weir_kernel **out_kernel);
weir_status weir_kernel_create_binary(weir_engine *engine,
                                      const weir_binary_desc *desc,
                                      const weir_kernel_options *options,
                                      weir_kernel **out_kernel);
weir_status weir_kernel_create_select(weir_engine *engine,
                                      const weir_select_desc *desc,
                                      const weir_kernel_options *options,
                                      weir_kernel **out_kernel);
weir_status weir_kernel_create_convert(weir_engine *engine,
                                       const weir_convert_desc *desc,
                                       const weir_kernel_options *options,
                                       weir_kernel **out_kernel);
weir_status weir_kernel_create_quantize(weir_engine *engine,
                                        const weir_quantize_desc *desc,
                                        const weir_kernel_options *options,
                                        weir_kernel **out_kernel);
typedef enum weir_gather_flags {
  WEIR_GATHER_FROM_END = 1
} weir_gather_flags;
typedef enum weir_gather_elements_flags {
  WEIR_GATHER_ELEMENTS_FROM_END = 1
} weir_gather_elements_flags;
typedef enum weir_gather_nd_flags {
  WEIR_GATHER_ND_FROM_END = 1
} weir_gather_nd_flags;
typedef enum weir_nonzero_flags {
  WEIR_NONZERO_EXACT = 1
} weir_nonzero_flags;
typedef enum weir_one_hot_flags {
  WEIR_ONE_HOT_FROM_END = 1
} weir_one_hot_flags;
typedef enum weir_pad_mode_value {
  WEIR_PAD_CONSTANT = 0,
  WEIR_PAD_REFLECT = 1,
  WEIR_PAD_EDGE = 2
} weir_pad_mode_value;
typedef enum weir_reshape_dim {
  WEIR_RESHAPE_INFER = -1,
  WEIR_RESHAPE_KEEP = -2
} weir_reshape_dim;
typedef enum weir_scatter_mode_value {
  WEIR_SCATTER_ELEMENTS = 0,
  WEIR_SCATTER_ND = 1
} weir_scatter_mode_value;
typedef enum weir_scatter_reduction_value {
  WEIR_SCATTER_NONE = 0,
  WEIR_SCATTER_ADD = 1,
  WEIR_SCATTER_MUL = 2,
  WEIR_SCATTER_MIN = 3,
  WEIR_SCATTER_MAX = 4
} weir_scatter_reduction_value;
typedef enum weir_scatter_flags {
  WEIR_SCATTER_FROM_END = 1
} weir_scatter_flags;
typedef enum weir_tile_mode_value {
  WEIR_TILE_REPEAT = 0,
  WEIR_TILE_EXPAND = 1
} weir_tile_mode_value;
typedef struct weir_transpose_desc {
  size_t struct_size;
  uint32_t rank;
  uint32_t reserved;
  int32_t permutation[8];
} weir_transpose_desc;
typedef struct weir_concat_desc {
  size_t struct_size;
  uint32_t num_inputs;
  int32_t axis;
} weir_concat_desc;
typedef struct weir_slice_desc {
  size_t struct_size;
  uint32_t rank;
  uint32_t reserved;
  int64_t begin[8];
  int64_t end[8];
  int64_t step[8];
} weir_slice_desc;
typedef uint32_t weir_pad_mode;
typedef struct weir_pad_desc {
  size_t struct_size;
  uint32_t rank;
  weir_pad_mode mode;
  int64_t before[8];
  int64_t after[8];
  double value;
} weir_pad_desc;
typedef uint32_t weir_tile_mode;
typedef struct weir_tile_desc {
  size_t struct_size;
  uint32_t rank;
  weir_tile_mode mode;
  int64_t counts[8];
} weir_tile_desc;
typedef struct weir_reshape_desc {
  size_t struct_size;
  uint32_t rank;
  uint32_t reserved;
  int64_t dims[8];
} weir_reshape_desc;
typedef struct weir_gather_desc {
  size_t struct_size;
  int32_t axis;
  int32_t reserved;
  uint64_t flags;
} weir_gather_desc;
typedef struct weir_gather_elements_desc {
  size_t struct_size;
  int32_t axis;
  int32_t reserved;
  uint64_t flags;
} weir_gather_elements_desc;
typedef struct weir_gather_nd_desc {
  size_t struct_size;
  uint64_t flags;
  uint64_t batch_dims;
} weir_gather_nd_desc;
typedef uint32_t weir_scatter_mode;
typedef uint32_t weir_scatter_reduction;
typedef struct weir_scatter_desc {
  size_t struct_size;
  uint64_t flags;
  weir_scatter_mode mode;
  weir_scatter_reduction reduction;
  int32_t axis;
  int32_t reserved;
} weir_scatter_desc;
typedef struct weir_one_hot_desc {
  size_t struct_size;
  int32_t axis;
  int32_t reserved;
  int64_t depth;
  uint64_t flags;
} weir_one_hot_desc;
typedef struct weir_nonzero_desc {
  size_t struct_size;
  uint64_t flags;
} weir_nonzero_desc;
typedef struct weir_shape_desc {
  size_t struct_size;
} weir_shape_desc;
typedef struct weir_range_desc {
  size_t struct_size;
} weir_range_desc;
weir_status weir_kernel_create_transpose(weir_engine *engine,
                                         const weir_transpose_desc *desc,
                                         const weir_kernel_options *options,
                                         weir_kernel **out_kernel);
weir_status weir_kernel_create_concat(weir_engine *engine,
                                      const weir_concat_desc *desc,
                                      const weir_kernel_options *options,
                                      weir_kernel **out_kernel);
weir_status weir_kernel_create_slice(weir_engine *engine,
                                     const weir_slice_desc *desc,
                                     const weir_kernel_options *options,
                                     weir_kernel **out_kernel);
weir_status weir_kernel_create_pad(weir_engine *engine,
                                   const weir_pad_desc *desc,
                                   const weir_kernel_options *options,
                                   weir_kernel **out_kernel);
weir_status weir_kernel_create_tile(weir_engine *engine,
                                    const weir_tile_desc *desc,
                                    const weir_kernel_options *options,
                                    weir_kernel **out_kernel);
weir_status weir_kernel_create_reshape(weir_engine *engine,
                                       const weir_reshape_desc *desc,
                                       const weir_kernel_options *options,
                                       weir_kernel **out_kernel);
weir_status weir_kernel_create_gather(weir_engine *engine,
                                      const weir_gather_desc *desc,
                                      const weir_kernel_options *options,
                                      weir_kernel **out_kernel);
weir_status weir_kernel_create_gather_elements(weir_engine *engine,
                                               const weir_gather_elements_desc *desc,
                                               const weir_kernel_options *options,
                                               weir_kernel **out_kernel);
weir_status weir_kernel_create_gather_nd(weir_engine *engine,
                                         const weir_gather_nd_desc *desc,
                                         const weir_kernel_options *options,
                                         weir_kernel **out_kernel);
weir_status weir_kernel_create_scatter(weir_engine *engine,
                                       const weir_scatter_desc *desc,
                                       const weir_kernel_options *options,
                                       weir_kernel **out_kernel);
weir_status weir_kernel_create_one_hot(weir_engine *engine,
                                       const weir_one_hot_desc *desc,
                                       const weir_kernel_options *options,
                                       weir_kernel **out_kernel);
weir_status weir_kernel_create_nonzero(weir_engine *engine,
                                       const weir_nonzero_desc *desc,
                                       const weir_kernel_options *options,
                                       weir_kernel **out_kernel);
weir_status weir_kernel_create_shape(weir_engine *engine,
                                     const weir_shape_desc *desc,
                                     const weir_kernel_options *options,
                                     weir_kernel **out_kernel);
weir_status weir_kernel_create_range(weir_engine *engine,
                                     const weir_range_desc *desc,
                                     const weir_kernel_options *options,
                                     weir_kernel **out_kernel);
typedef enum weir_cumsum_flags {
  WEIR_CUMSUM_EXCLUSIVE = 1,
  WEIR_CUMSUM_REVERSE = 2
} weir_cumsum_flags;
typedef enum weir_nms_flags {
  WEIR_NMS_CENTERS = 1,
  WEIR_NMS_SCORE_BOUND = 2,
  WEIR_NMS_EXACT = 4
} weir_nms_flags;
typedef enum weir_norm_op_value {
  WEIR_NORM_LAYER = 1,
  WEIR_NORM_RMS = 2,
  WEIR_NORM_BATCH = 3,
  WEIR_NORM_GROUP = 4
} weir_norm_op_value;
typedef enum weir_norm_flags {
  WEIR_NORM_SCALE = 1,
  WEIR_NORM_SHIFT = 2
} weir_norm_flags;
typedef enum weir_reduce_op_value {
  WEIR_REDUCE_SUM = 1,
  WEIR_REDUCE_MEAN = 2,
  WEIR_REDUCE_MIN = 3,
  WEIR_REDUCE_MAX = 4,
  WEIR_REDUCE_MUL = 5,
  WEIR_REDUCE_NORM_MAX = 6,
  WEIR_REDUCE_NORM_SUM = 7,
  WEIR_REDUCE_NORM_POWER_MAX = 8,
  WEIR_REDUCE_NORM_POWER_SUM = 9,
  WEIR_REDUCE_ARGMAX = 10,
  WEIR_REDUCE_ARGMIN = 11
} weir_reduce_op_value;
typedef enum weir_reduce_flags {
  WEIR_REDUCE_KEEP_DIMS = 1,
  WEIR_REDUCE_S64_INDICES = 2
} weir_reduce_flags;
typedef enum weir_softmax_flags {
  WEIR_SOFTMAX_LOG = 1
} weir_softmax_flags;
typedef enum weir_topk_flags {
  WEIR_TOPK_LEAST = 1,
  WEIR_TOPK_S64_INDICES = 2
} weir_topk_flags;
typedef struct weir_softmax_desc {
  size_t struct_size;
  int32_t axis;
  int32_t reserved;
  uint64_t flags;
} weir_softmax_desc;
typedef uint32_t weir_reduce_op;
typedef struct weir_reduce_desc {
  size_t struct_size;
  uint64_t flags;
  weir_reduce_op op;
  uint32_t num_axes;
  int32_t axes[8];
  float p;
  float eps;
} weir_reduce_desc;
typedef uint32_t weir_norm_op;
typedef struct weir_norm_desc {
  size_t struct_size;
  uint64_t flags;
  weir_norm_op op;
  int32_t axis;
  uint32_t groups;
  float epsilon;
} weir_norm_desc;
typedef struct weir_lrn_desc {
  size_t struct_size;
  int64_t size;
  float alpha;
  float beta;
  float bias;
  int32_t reserved;
} weir_lrn_desc;
typedef struct weir_cumsum_desc {
  size_t struct_size;
  int32_t axis;
  int32_t reserved;
  uint64_t flags;
} weir_cumsum_desc;
typedef struct weir_topk_desc {
  size_t struct_size;
  int32_t axis;
  int32_t reserved;
  int64_t k;
  uint64_t flags;
} weir_topk_desc;
typedef struct weir_nms_desc {
  size_t struct_size;
  uint64_t flags;
  int64_t most_boxes;
  float most_overlap;
  float least_score;
  uint64_t reserved;
} weir_nms_desc;
weir_status weir_kernel_create_softmax(weir_engine *engine,
                                       const weir_softmax_desc *desc,
                                       const weir_kernel_options *options,
                                       weir_kernel **out_kernel);
weir_status weir_kernel_create_reduce(weir_engine *engine,
                                      const weir_reduce_desc *desc,
                                      const weir_kernel_options *options,
                                      weir_kernel **out_kernel);
weir_status weir_kernel_create_norm(weir_engine *engine,
                                    const weir_norm_desc *desc,
                                    const weir_kernel_options *options,
                                    weir_kernel **out_kernel);
weir_status weir_kernel_create_lrn(weir_engine *engine,
                                   const weir_lrn_desc *desc,
                                   const weir_kernel_options *options,
                                   weir_kernel **out_kernel);
weir_status weir_kernel_create_cumsum(weir_engine *engine,
                                      const weir_cumsum_desc *desc,
                                      const weir_kernel_options *options,
                                      weir_kernel **out_kernel);
weir_status weir_kernel_create_topk(weir_engine *engine,
                                    const weir_topk_desc *desc,
                                    const weir_kernel_options *options,
                                    weir_kernel **out_kernel);
weir_status weir_kernel_create_nms(weir_engine *engine,
                                   const weir_nms_desc *desc,
                                   const weir_kernel_options *options,
                                   weir_kernel **out_kernel);
typedef enum weir_weights_layout_value {
  WEIR_LAYOUT_OIHW = 0
} weir_weights_layout_value;
typedef enum weir_padding_value {
  WEIR_PADDING_ZERO = 0,
  WEIR_PADDING_REFLECT = 1
} weir_padding_value;
typedef enum weir_conv_flags {
  WEIR_CONV_BIAS = 1,
  WEIR_CONV_SUM = 2
} weir_conv_flags;
typedef enum weir_conv_int8_flags {
  WEIR_CONV_INT8_BIAS = 1,
  WEIR_CONV_INT8_SCALES = 2
} weir_conv_int8_flags;
typedef enum weir_conv_transpose_flags {
  WEIR_CONV_TRANSPOSE_BIAS = 1
} weir_conv_transpose_flags;
typedef enum weir_grid_sample_flags {
  WEIR_GRID_SAMPLE_ALIGN_CORNERS = 1
} weir_grid_sample_flags;
typedef enum weir_grid_sample_edge_value {
  WEIR_GRID_SAMPLE_ZEROS = 0,
  WEIR_GRID_SAMPLE_BORDER = 1,
  WEIR_GRID_SAMPLE_REFLECTION = 2
} weir_grid_sample_edge_value;
typedef enum weir_pooling_op_value {
  WEIR_POOLING_MAX = 1,
  WEIR_POOLING_AVERAGE = 2,
  WEIR_POOLING_AVERAGE_INSIDE = 3
} weir_pooling_op_value;
typedef enum weir_pooling_flags {
  WEIR_POOLING_GLOBAL = 1
} weir_pooling_flags;
typedef enum weir_resize_mode_value {
  WEIR_RESIZE_NEAREST = 0,
  WEIR_RESIZE_LINEAR = 1,
  WEIR_RESIZE_CUBIC = 2
} weir_resize_mode_value;
typedef enum weir_resize_coordinates_value {
  WEIR_RESIZE_HALF_PIXEL = 0,
  WEIR_RESIZE_ALIGN_CORNERS = 1,
  WEIR_RESIZE_ASYMMETRIC = 2,
  WEIR_RESIZE_PYTORCH_HALF_PIXEL = 3,
  WEIR_RESIZE_HALF_PIXEL_SYMMETRIC = 4
} weir_resize_coordinates_value;
typedef enum weir_resize_rounding_value {
  WEIR_RESIZE_PREFER_FLOOR = 0,
  WEIR_RESIZE_PREFER_CEIL = 1,
  WEIR_RESIZE_FLOOR = 2,
  WEIR_RESIZE_CEIL = 3
} weir_resize_rounding_value;
typedef enum weir_resize_flags {
  WEIR_RESIZE_EXCLUDE_OUTSIDE = 1
} weir_resize_flags;
typedef enum weir_data_layout_value {
  WEIR_LAYOUT_NCHW = 0
} weir_data_layout_value;
typedef uint32_t weir_data_layout;
typedef uint32_t weir_weights_layout;
typedef uint32_t weir_padding;
typedef struct weir_conv_desc {
  size_t struct_size;
  uint64_t flags;
  weir_data_layout data_layout;
  weir_weights_layout weights_layout;
  weir_padding padding;
  weir_activation activation;
  int64_t groups;
  int64_t strides[2];
  int64_t dilations[2];
  int64_t padding_begin[2];
  int64_t padding_end[2];
  float alpha;
  float beta;
  int64_t depth_stride;
  int64_t depth_dilation;
  int64_t depth_padding_begin;
  int64_t depth_padding_end;
} weir_conv_desc;
typedef struct weir_conv_int8_desc {
  size_t struct_size;
  uint64_t flags;
  weir_dtype dtype;
  float scale;
  int32_t zero_x;
  int32_t zero_w;
  int32_t zero_y;
  uint32_t reserved;
  int64_t groups;
  int64_t strides[2];
  int64_t dilations[2];
  int64_t padding_begin[2];
  int64_t padding_end[2];
} weir_conv_int8_desc;
typedef struct weir_conv_transpose_desc {
  size_t struct_size;
  uint64_t flags;
  weir_data_layout data_layout;
  weir_activation activation;
  int64_t groups;
  int64_t strides[2];
  int64_t dilations[2];
  int64_t padding_begin[2];
  int64_t padding_end[2];
  int64_t more[2];
  float alpha;
  float beta;
  int64_t depth_stride;
  int64_t depth_dilation;
  int64_t depth_padding_begin;
  int64_t depth_padding_end;
  int64_t depth_more;
} weir_conv_transpose_desc;
typedef uint32_t weir_pooling_op;
typedef struct weir_pooling_desc {
  size_t struct_size;
  uint64_t flags;
  weir_pooling_op op;
  weir_data_layout data_layout;
  int64_t kernel[2];
  int64_t strides[2];
  int64_t dilations[2];
  int64_t padding_begin[2];
  int64_t padding_end[2];
  int64_t depth_kernel;
  int64_t depth_stride;
  int64_t depth_dilation;
  int64_t depth_padding_begin;
  int64_t depth_padding_end;
} weir_pooling_desc;
typedef uint32_t weir_resize_mode;
typedef uint32_t weir_resize_coordinates;
typedef uint32_t weir_resize_rounding;
typedef struct weir_resize_desc {
  size_t struct_size;
  uint64_t flags;
  weir_resize_mode mode;
  weir_resize_coordinates coordinates;
  weir_resize_rounding rounding;
  float cubic;
  int64_t sizes[2];
  double scales[2];
} weir_resize_desc;
typedef uint32_t weir_grid_sample_edge;
typedef struct weir_grid_sample_desc {
  size_t struct_size;
  uint64_t flags;
  weir_resize_mode mode;
  weir_grid_sample_edge edge;
} weir_grid_sample_desc;
weir_status weir_kernel_create_conv(weir_engine *engine,
                                    const weir_conv_desc *desc,
                                    const weir_kernel_options *options,
                                    weir_kernel **out_kernel);
weir_status weir_kernel_create_conv_int8(weir_engine *engine,
                                         const weir_conv_int8_desc *desc,
                                         const weir_kernel_options *options,
                                         weir_kernel **out_kernel);
weir_status weir_kernel_create_conv_transpose(weir_engine *engine,
                                              const weir_conv_transpose_desc *desc,
                                              const weir_kernel_options *options,
                                              weir_kernel **out_kernel);
weir_status weir_kernel_create_pooling(weir_engine *engine,
                                       const weir_pooling_desc *desc,
                                       const weir_kernel_options *options,
                                       weir_kernel **out_kernel);
weir_status weir_kernel_create_resize(weir_engine *engine,
                                      const weir_resize_desc *desc,
                                      const weir_kernel_options *options,
                                      weir_kernel **out_kernel);
weir_status weir_kernel_create_grid_sample(weir_engine *engine,
                                           const weir_grid_sample_desc *desc,
                                           const weir_kernel_options *options,
                                           weir_kernel **out_kernel);
typedef enum weir_gate_order_value {
  WEIR_GATES_ONNX = 0,
  WEIR_GATES_TORCH = 1
} weir_gate_order_value;
typedef enum weir_gru_flags {
  WEIR_GRU_BIAS = 1,
  WEIR_GRU_LINEAR_BEFORE_RESET = 2
} weir_gru_flags;
typedef enum weir_gru_sequence_flags {
  WEIR_GRU_SEQUENCE_BIAS = 1,
  WEIR_GRU_SEQUENCE_LENGTHS = 2,
  WEIR_GRU_SEQUENCE_STATES = 4,
  WEIR_GRU_SEQUENCE_LINEAR_BEFORE_RESET = 8,
  WEIR_GRU_SEQUENCE_BATCH_FIRST = 16
} weir_gru_sequence_flags;
typedef enum weir_lstm_flags {
  WEIR_LSTM_BIAS = 1
} weir_lstm_flags;
typedef enum weir_lstm_sequence_flags {
  WEIR_LSTM_SEQUENCE_BIAS = 1,
  WEIR_LSTM_SEQUENCE_LENGTHS = 2,
  WEIR_LSTM_SEQUENCE_STATES = 4,
  WEIR_LSTM_SEQUENCE_PEEPHOLES = 8,
  WEIR_LSTM_SEQUENCE_BATCH_FIRST = 16
} weir_lstm_sequence_flags;
typedef enum weir_sequence_direction_value {
  WEIR_SEQUENCE_FORWARD = 0,
  WEIR_SEQUENCE_REVERSE = 1,
  WEIR_SEQUENCE_BIDIRECTIONAL = 2
} weir_sequence_direction_value;
typedef uint32_t weir_gate_order;
typedef struct weir_lstm_desc {
  size_t struct_size;
  uint64_t flags;
  weir_gate_order gate_order;
  uint32_t reserved;
} weir_lstm_desc;
typedef struct weir_gru_desc {
  size_t struct_size;
  uint64_t flags;
  weir_gate_order gate_order;
  uint32_t reserved;
} weir_gru_desc;
typedef uint32_t weir_sequence_direction;
typedef struct weir_lstm_sequence_desc {
  size_t struct_size;
  uint64_t flags;
  weir_gate_order gate_order;
  weir_sequence_direction direction;
  float clip;
  uint32_t reserved;
} weir_lstm_sequence_desc;
typedef struct weir_gru_sequence_desc {
  size_t struct_size;
  uint64_t flags;
  weir_gate_order gate_order;
  weir_sequence_direction direction;
  float clip;
  uint32_t reserved;
} weir_gru_sequence_desc;
weir_status weir_kernel_create_lstm(weir_engine *engine,
                                    const weir_lstm_desc *desc,
                                    const weir_kernel_options *options,
                                    weir_kernel **out_kernel);
weir_status weir_kernel_create_gru(weir_engine *engine,
                                   const weir_gru_desc *desc,
                                   const weir_kernel_options *options,
                                   weir_kernel **out_kernel);
weir_status weir_kernel_create_lstm_sequence(weir_engine *engine,
                                             const weir_lstm_sequence_desc *desc,
                                             const weir_kernel_options *options,
                                             weir_kernel **out_kernel);
weir_status weir_kernel_create_gru_sequence(weir_engine *engine,
                                            const weir_gru_sequence_desc *desc,
                                            const weir_kernel_options *options,
                                            weir_kernel **out_kernel);
typedef struct weir_kernel_cache_info {
  size_t struct_size;
  uint64_t capacity;
  uint64_t entries;
  uint64_t hits;
  uint64_t misses;
  uint64_t shared_builds;
  uint64_t evictions;
} weir_kernel_cache_info;
weir_status weir_kernel_cache_set_capacity(size_t capacity);
weir_status weir_kernel_cache_get_info(weir_kernel_cache_info *out_info);
typedef enum weir_gemm_offset_value {
  WEIR_GEMM_OFFSET_FIXED = 1,
  WEIR_GEMM_OFFSET_ROW = 2,
  WEIR_GEMM_OFFSET_COLUMN = 3
} weir_gemm_offset_value;
typedef uint32_t weir_gemm_offset;
weir_status weir_sgemm(int32_t transpose_a,
                       int32_t transpose_b,
                       int64_t m,
                       int64_t n,
                       int64_t k,
                       float alpha,
                       const float *a,
                       int64_t lda,
                       const float *b,
                       int64_t ldb,
                       float beta,
                       float *c,
                       int64_t ldc,
                       weir_threadpool *pool);
weir_status weir_gemm_u8s8s32(int32_t transpose_a,
                              int32_t transpose_b,
                              weir_gemm_offset offsetc,
                              int64_t m,
                              int64_t n,
                              int64_t k,
                              float alpha,
                              const uint8_t *a,
                              int64_t lda,
                              uint8_t ao,
                              const int8_t *b,
                              int64_t ldb,
                              int8_t bo,
                              float beta,
                              int32_t *c,
                              int64_t ldc,
                              const int32_t *co,
                              weir_threadpool *pool);
weir_status weir_gemm_s8s8s32(int32_t transpose_a,
                              int32_t transpose_b,
                              weir_gemm_offset offsetc,
                              int64_t m,
                              int64_t n,
                              int64_t k,
                              float alpha,
                              const int8_t *a,
                              int64_t lda,
                              int8_t ao,
                              const int8_t *b,
                              int64_t ldb,
                              int8_t bo,
                              float beta,
                              int32_t *c,
                              int64_t ldc,
                              const int32_t *co,
                              weir_threadpool *pool);

/* weir/resource.h */
typedef enum weir_resource_kind_value {
  WEIR_RESOURCE_ANY = 0,
  WEIR_RESOURCE_VARIABLE = 1,
  WEIR_RESOURCE_TABLE = 2,
  WEIR_RESOURCE_HOST = 3
} weir_resource_kind_value;
typedef struct weir_resource weir_resource;
typedef uint32_t weir_resource_kind;
typedef weir_status (*weir_resource_build_fn)(void *arg, weir_resource **out_resource);
typedef struct weir_resource_info {
  size_t struct_size;
  uint64_t id;
  weir_resource_kind kind;
  uint32_t optimistic;
  uint64_t references;
  uint64_t bytes;
  uint64_t rows;
  char container[64];
  char name[128];
  char type_name[64];
  weir_tensor_desc desc;
} weir_resource_info;
weir_status weir_resource_lookup(weir_engine *engine,
                                 const char *container,
                                 const char *name,
                                 weir_resource_kind kind,
                                 weir_resource **out_resource);
weir_status weir_resource_lookup_or_create(weir_engine *engine,
                                           const char *container,
                                           const char *name,
                                           weir_resource_kind kind,
                                           weir_resource_build_fn build,
                                           void *arg,
                                           weir_resource **out_resource);
weir_status weir_resource_create_host(weir_engine *engine,
                                      const char *container,
                                      const char *name,
                                      const char *type_name,
                                      void *object,
                                      weir_destroy_fn destroy,
                                      weir_resource **out_resource);
weir_status weir_resource_get_host(const weir_resource *resource,
                                   const char *type_name,
                                   void **out_object);
weir_status weir_resource_retain(weir_resource *resource);
void weir_resource_release(weir_resource *resource);
weir_status weir_resource_delete(weir_engine *engine, const char *container, const char *name);
weir_status weir_resource_clear(weir_engine *engine, const char *container, size_t *out_count);
weir_status weir_resource_list(weir_engine *engine,
                               const char *container,
                               weir_resource_info *infos,
                               size_t capacity,
                               size_t *out_count);
weir_status weir_resource_get_info(const weir_resource *resource,
                                   weir_resource_info *out_info);
weir_status weir_resource_from_id(weir_engine *engine,
                                  uint64_t id,
                                  weir_resource **out_resource);
weir_status weir_resource_get_leaks(char *buffer, size_t capacity, size_t *out_length);
typedef enum weir_variable_flags {
  WEIR_VARIABLE_EXCLUSIVE = 0,
  WEIR_VARIABLE_OPTIMISTIC = 1
} weir_variable_flags;
typedef enum weir_variable_op_value {
  WEIR_VARIABLE_READ = 1,
  WEIR_VARIABLE_ASSIGN = 2,
  WEIR_VARIABLE_ASSIGN_ADD = 3
} weir_variable_op_value;
typedef uint32_t weir_variable_op;
weir_status weir_variable_create(weir_engine *engine,
                                 const char *container,
                                 const char *name,
                                 const weir_tensor_desc *desc,
                                 uint64_t flags,
                                 const weir_tensor *initial,
                                 weir_resource **out_variable);
weir_status weir_variable_read(const weir_resource *variable, weir_tensor *tensor);
weir_status weir_variable_assign(weir_resource *variable, const weir_tensor *tensor);
weir_status weir_kernel_create_variable(weir_engine *engine,
                                        const weir_resource *variable,
                                        weir_variable_op op,
                                        const weir_kernel_options *options,
                                        weir_kernel **out_kernel);
typedef enum weir_table_op_value {
  WEIR_TABLE_FIND = 1,
  WEIR_TABLE_INSERT = 2,
  WEIR_TABLE_SIZE = 3
} weir_table_op_value;
typedef enum weir_table_key_value {
  WEIR_TABLE_KEY_INT64 = 1,
  WEIR_TABLE_KEY_BYTES = 2
} weir_table_key_value;
typedef uint32_t weir_table_key;
typedef struct weir_table_desc {
  size_t struct_size;
  weir_table_key key;
  uint32_t reserved;
  weir_tensor_desc row;
} weir_table_desc;
typedef struct weir_table_keys {
  size_t struct_size;
  size_t count;
  const int64_t *integers;
  const void *const *bytes;
  const size_t *lengths;
} weir_table_keys;
typedef struct weir_table_contents {
  size_t struct_size;
  size_t capacity;
  size_t count;
  int64_t *integers;
  size_t *lengths;
  void *bytes;
  size_t bytes_capacity;
  size_t bytes_size;
  void *rows;
  size_t rows_capacity;
  size_t rows_size;
} weir_table_contents;
typedef uint32_t weir_table_op;
weir_status weir_table_create(weir_engine *engine,
                              const char *container,
                              const char *name,
                              const weir_table_desc *desc,
                              weir_resource **out_table);
weir_status weir_table_insert(weir_resource *table,
                              const weir_table_keys *keys,
                              const void *rows,
                              size_t bytes);
weir_status weir_table_find(const weir_resource *table,
                            const weir_table_keys *keys,
                            const void *default_row,
                            void *out_rows,
                            size_t bytes,
                            size_t *out_found,
                            uint8_t *out_flags);
weir_status weir_table_export(const weir_resource *table, weir_table_contents *contents);
weir_status weir_kernel_create_table(weir_engine *engine,
                                     const weir_resource *table,
                                     weir_table_op op,
                                     const weir_kernel_options *options,
                                     weir_kernel **out_kernel);

/* weir/inspect.h */
typedef enum weir_report_format_value {
  WEIR_REPORT_TEXT = 1,
  WEIR_REPORT_JSON = 2
} weir_report_format_value;
typedef enum weir_dump_format_value {
  WEIR_DUMP_DOT = 1,
  WEIR_DUMP_JSON = 2
} weir_dump_format_value;
typedef uint32_t weir_dump_format;
typedef uint32_t weir_report_format;
weir_status weir_graph_dump(const weir_graph *graph,
                            weir_dump_format format,
                            char *buffer,
                            size_t capacity,
                            size_t *out_length);
weir_status weir_program_dump(const weir_program *program,
                              weir_dump_format format,
                              char *buffer,
                              size_t capacity,
                              size_t *out_length);
weir_status weir_program_report(const weir_program *program,
                                weir_report_format format,
                                char *buffer,
                                size_t capacity,
                                size_t *out_length);
typedef struct weir_node_stats {
  size_t struct_size;
  uint64_t count;
  uint64_t total_ns;
  uint64_t min_ns;
  uint64_t max_ns;
  char name[128];
  uint64_t waited_ns;
} weir_node_stats;
weir_status weir_program_get_node_stats(const weir_program *program,
                                        size_t index,
                                        weir_node_stats *out_stats);
weir_status weir_program_save_costs(const weir_program *program,
                                    char *buffer,
                                    size_t capacity,
                                    size_t *out_length);
weir_status weir_program_load_costs(weir_program *program,
                                    const char *costs,
                                    size_t *out_num_known);
weir_status weir_threadpool_measure(weir_threadpool *pool);
weir_status weir_threadpool_get_costs(const weir_threadpool *pool,
                                      weir_threadpool_costs *out_costs);
typedef enum weir_pinning_flags {
  WEIR_PINNING_ALLOCATES = 1,
  WEIR_PINNING_REGISTERS = 2
} weir_pinning_flags;
typedef struct weir_memory_info {
  size_t struct_size;
  uint64_t limit;
  uint64_t in_use;
  uint64_t peak_in_use;
  uint64_t reserved;
  uint64_t peak_reserved;
  uint64_t largest_free;
  uint64_t blocks;
  uint64_t regions;
  uint64_t allocations;
  uint64_t region_allocations;
  double fragmentation;
  uint64_t host_limit;
  uint64_t host_in_use;
  uint64_t host_peak_in_use;
  uint64_t host_reserved;
  uint64_t registered;
  uint32_t pinning;
  uint32_t reserved0;
} weir_memory_info;
weir_status weir_engine_get_memory_info(const weir_engine *engine,
                                        weir_memory_info *out_info);
weir_status weir_engine_reset_memory_peak(weir_engine *engine);
weir_status weir_engine_dump_memory(const weir_engine *engine,
                                    char *buffer,
                                    size_t capacity,
                                    size_t *out_length);
typedef enum weir_thread_origin_value {
  WEIR_THREAD_ORIGIN_BUILTIN_POOL = 1,
  WEIR_THREAD_ORIGIN_LANE = 2,
  WEIR_THREAD_ORIGIN_ENGINE_POOL = 3,
  WEIR_THREAD_ORIGIN_KIND_POOL = 4,
  WEIR_THREAD_ORIGIN_CONFORMANCE = 5,
  WEIR_THREAD_ORIGIN_WATCH = 6
} weir_thread_origin_value;
typedef struct weir_runtime_info {
  size_t struct_size;
  uint64_t threads_started;
  uint64_t threads_alive;
  uint64_t allocations;
  uint64_t bytes_in_use;
  uint64_t threadpools;
  uint64_t engines;
  uint64_t streams;
  uint64_t events;
  uint64_t tensors;
  uint64_t kernels;
  uint64_t graphs;
  uint64_t programs;
  uint64_t runs;
  uint64_t attrs;
  uint64_t threads_of_builtin_pools;
  uint64_t threads_of_lanes;
  uint64_t threads_of_engines;
  uint64_t threads_of_kinds;
  uint64_t packed_weights;
  uint64_t threads_of_devices;
  uint64_t allocators;
  uint64_t buffers;
  uint64_t resources;
  uint64_t leaked_resources;
  uint64_t domains;
  uint64_t task_groups;
  uint64_t traces;
  uint64_t comms;
  uint64_t calls;
} weir_runtime_info;
typedef uint32_t weir_thread_origin;
typedef struct weir_thread_info {
  size_t struct_size;
  weir_thread_origin origin;
  uint32_t index;
  uint64_t pool;
  uint64_t os_id;
  char name[32];
  char owner[64];
} weir_thread_info;
weir_status weir_runtime_get_info(weir_runtime_info *out_info);
weir_status weir_runtime_get_threads(weir_thread_info *infos,
                                     size_t capacity,
                                     size_t *out_count);

/* weir/trace.h */
typedef enum weir_trace_flags {
  WEIR_TRACE_KEEP_LAST = 1,
  WEIR_TRACE_ONLY_ASKED = 2
} weir_trace_flags;
typedef enum weir_trace_format_value {
  WEIR_TRACE_PERFETTO = 1,
  WEIR_TRACE_CHROME = 2,
  WEIR_TRACE_FOLDED = 3,
  WEIR_TRACE_PPROF = 4,
  WEIR_TRACE_REPORT = 5,
  WEIR_TRACE_HTML = 6,
  WEIR_TRACE_JSON = 7
} weir_trace_format_value;
typedef enum weir_trace_node_flags {
  WEIR_TRACE_NODE_AGAIN = 1,
  WEIR_TRACE_NODE_FAILED = 2,
  WEIR_TRACE_NODE_LATER = 4
} weir_trace_node_flags;
typedef enum weir_trace_markers {
  WEIR_TRACE_NVTX = 1,
  WEIR_TRACE_ITT = 2
} weir_trace_markers;
typedef struct weir_trace_options {
  size_t struct_size;
  uint64_t flags;
  weir_domain *domain;
  weir_engine *engine;
  weir_program *program;
  size_t records_per_thread;
  uint32_t threads;
  uint32_t reserved;
} weir_trace_options;
typedef uint32_t weir_trace_format;
typedef weir_status (*weir_trace_write_fn)(void *ctx, const void *data, size_t size);
typedef struct weir_trace_info {
  size_t struct_size;
  uint32_t recording;
  uint32_t threads;
  uint64_t records;
  uint64_t lost;
  uint64_t lost_without_ring;
  uint64_t begin_ns;
  uint64_t end_ns;
  uint64_t clock_error_ns;
  char clock[32];
} weir_trace_info;
typedef struct weir_trace_thread {
  size_t struct_size;
  uint64_t os_id;
  uint64_t records;
  uint64_t lost;
  char name[32];
} weir_trace_thread;
typedef struct weir_trace_run {
  size_t struct_size;
  const char *program;
  uint64_t number;
  uint64_t outer;
} weir_trace_run;
typedef void (*weir_trace_run_fn)(void *ctx, const weir_trace_run *run);
typedef struct weir_trace_node {
  size_t struct_size;
  const char *name;
  const char *engine;
  uint32_t index;
  uint32_t flags;
} weir_trace_node;
typedef void (*weir_trace_node_fn)(void *ctx, const weir_trace_run *run, const weir_trace_node *node);
typedef struct weir_trace_region {
  size_t struct_size;
  uint64_t number;
  uint32_t helps;
  uint32_t reserved;
} weir_trace_region;
typedef void (*weir_trace_region_fn)(void *ctx, const weir_trace_region *region);
typedef struct weir_trace_hooks {
  size_t struct_size;
  weir_trace_run_fn run_begin;
  void (*run_end)(void *ctx, const weir_trace_run *run, weir_status status);
  weir_trace_run_fn stay_begin;
  weir_trace_run_fn stay_end;
  weir_trace_node_fn node_begin;
  weir_trace_node_fn node_end;
  weir_trace_region_fn region_begin;
  weir_trace_region_fn region_end;
  weir_destroy_fn release;
} weir_trace_hooks;
weir_status weir_trace_start(const weir_trace_options *options, weir_trace **out_trace);
weir_status weir_trace_stop(weir_trace *trace);
weir_status weir_trace_retain(weir_trace *trace);
void weir_trace_release(weir_trace *trace);
weir_status weir_trace_save(const weir_trace *trace,
                            const char *path,
                            weir_trace_format format);
weir_status weir_trace_save_to(const weir_trace *trace,
                               weir_trace_format format,
                               weir_trace_write_fn write,
                               void *ctx);
weir_status weir_trace_get_info(const weir_trace *trace, weir_trace_info *out_info);
weir_status weir_trace_get_thread(const weir_trace *trace,
                                  size_t index,
                                  weir_trace_thread *out_thread);
weir_status weir_trace_intern(const char *name, uint32_t *out_name);
weir_status weir_trace_mark(uint32_t name, uint64_t value);
weir_status weir_trace_span_begin(uint32_t name);
void weir_trace_span_end(void);
weir_status weir_trace_set_hooks(const weir_trace_hooks *hooks, void *ctx);
weir_status weir_trace_use_markers(uint32_t kinds);

/* weir/comm.h */
static const int WEIR_COMM_MESSAGE_BYTES = 64;
typedef enum weir_comm_op_value {
  WEIR_COMM_SEND = 1,
  WEIR_COMM_RECV = 2,
  WEIR_COMM_BROADCAST = 3,
  WEIR_COMM_REDUCE = 4,
  WEIR_COMM_ALL_REDUCE = 5,
  WEIR_COMM_ALL_GATHER = 6,
  WEIR_COMM_REDUCE_SCATTER = 7,
  WEIR_COMM_ALL_TO_ALL = 8,
  WEIR_COMM_BARRIER = 9
} weir_comm_op_value;
typedef enum weir_comm_reduction_value {
  WEIR_COMM_SUM = 1,
  WEIR_COMM_PRODUCT = 2,
  WEIR_COMM_MIN = 3,
  WEIR_COMM_MAX = 4
} weir_comm_reduction_value;
typedef enum weir_communication_flags {
  WEIR_COMMUNICATION_DETERMINISTIC = 1
} weir_communication_flags;
typedef enum weir_comm_flags {
  WEIR_COMM_ONE_THREAD = 1,
  WEIR_COMM_FIXED_ORDER = 2,
  WEIR_COMM_ABORT_RELEASES = 4,
  WEIR_COMM_NEEDS_PROGRESS = 8
} weir_comm_flags;
typedef enum weir_comm_option_flags {
  WEIR_COMM_OWN_THREAD = 1,
  WEIR_COMM_CHECKED = 2,
  WEIR_COMM_TENSORS_STAY = 4
} weir_comm_option_flags;
typedef struct weir_comm weir_comm;
typedef struct weir_comm_transport_info {
  size_t struct_size;
  int32_t rank;
  int32_t size;
  uint64_t flags;
  uint64_t ops;
  uint64_t dtypes;
  uint64_t reductions;
  int32_t max_tag;
  uint32_t reserved;
  uint64_t max_bytes;
  char name[64];
  weir_engine_kind engine_kind;
  int32_t engine_index;
  uint64_t device_ops;
  uint64_t device_dtypes;
  uint64_t device_reductions;
} weir_comm_transport_info;
typedef uint32_t weir_comm_op;
typedef uint32_t weir_comm_reduction;
typedef struct weir_comm_operation {
  size_t struct_size;
  weir_comm_op op;
  weir_comm_reduction reduction;
  weir_dtype dtype;
  int32_t peer;
  int32_t tag;
  uint32_t reserved;
  uint64_t count;
  size_t element_bytes;
  const void *send;
  void *recv;
} weir_comm_operation;
typedef struct weir_comm_vtable {
  size_t struct_size;
  weir_status (*get_info)(void *ctx, weir_comm_transport_info *out_info);
  weir_status (*start)(void *ctx, const weir_comm_operation *operation, void **out_request);
  weir_status (*test)(void *ctx, void *request, int32_t *out_done);
  weir_status (*progress)(void *ctx);
  weir_status (*control_send)(void *ctx, int32_t peer, const void *message);
  weir_status (*control_poll)(void *ctx, int32_t *out_peer, void *out_message, int32_t *out_got);
  weir_status (*duplicate)(void *ctx, void **out_ctx);
  weir_status (*split)(void *ctx, int32_t color, int32_t key, void **out_ctx);
  void (*abort)(void *ctx);
  weir_status (*recover)(void *ctx, void **out_ctx);
  void (*last_error)(void *ctx, int32_t *out_rank, char *text, size_t capacity);
  void (*release)(void *ctx);
  weir_status (*enqueue)(void *ctx, const weir_comm_operation *operations, size_t num_operations, uint64_t stream);
} weir_comm_vtable;
typedef struct weir_comm_options {
  size_t struct_size;
  const char *name;
  uint64_t flags;
  uint64_t limit_ns;
} weir_comm_options;
typedef struct weir_comm_info {
  size_t struct_size;
  int32_t rank;
  int32_t size;
  uint64_t flags;
  uint64_t begun;
  uint64_t ended;
  uint64_t built;
  uint64_t quarantined_bytes;
  uint32_t dead;
  uint32_t recoverable;
  char transport[64];
  uint64_t device_ops;
} weir_comm_info;
typedef struct weir_communication {
  size_t struct_size;
  weir_comm_op op;
  weir_comm_reduction reduction;
  int32_t peer;
  int32_t tag;
  weir_tensor_desc desc;
  uint64_t flags;
  size_t num_tensors;
} weir_communication;
weir_status weir_comm_create(const weir_comm_vtable *vtable,
                             void *ctx,
                             const weir_comm_options *options,
                             weir_comm **out_comm);
weir_status weir_comm_create_local(int32_t size,
                                   const weir_comm_options *options,
                                   weir_comm **out_comms);
weir_status weir_comm_retain(weir_comm *comm);
void weir_comm_release(weir_comm *comm);
weir_status weir_comm_get_info(const weir_comm *comm, weir_comm_info *out_info);
weir_status weir_comm_duplicate(weir_comm *comm,
                                const weir_comm_options *options,
                                weir_comm **out_comm);
weir_status weir_comm_split(weir_comm *comm,
                            int32_t color,
                            int32_t key,
                            const weir_comm_options *options,
                            weir_comm **out_comm);
weir_status weir_comm_progress(weir_comm *comm,
                               uint64_t budget_ns,
                               int32_t *out_pending);
weir_status weir_comm_abort(weir_comm *comm, const char *text);
weir_status weir_comm_recover(weir_comm *comm,
                              const weir_comm_options *options,
                              weir_comm **out_comm);
weir_status weir_kernel_create_communication(weir_engine *engine,
                                             weir_comm *comm,
                                             const weir_communication *desc,
                                             const weir_kernel_options *options,
                                             weir_kernel **out_kernel);
weir_status weir_program_agree(const weir_program *program,
                               weir_comm *comm,
                               uint64_t limit_ns);

/* weir/device.h */
typedef enum weir_device_capability_flags {
  WEIR_DEVICE_OWN_MEMORY = 1,
  WEIR_DEVICE_CONCURRENT = 2,
  WEIR_DEVICE_TIMING = 4,
  WEIR_DEVICE_PEER_COPY = 8,
  WEIR_DEVICE_CALLBACK = 16,
  WEIR_DEVICE_NATIVE_HANDLE = 32,
  WEIR_DEVICE_PINNED_MEMORY = 64,
  WEIR_DEVICE_REGISTER_MEMORY = 128,
  WEIR_DEVICE_IDLE_QUERY = 256,
  WEIR_DEVICE_RECORDINGS = 512,
  WEIR_DEVICE_CONTROL_FLOW = 1024,
  WEIR_DEVICE_PREPARED_LAUNCHES = 2048,
  WEIR_DEVICE_SCRATCH = 4096,
  WEIR_DEVICE_HOST_KERNELS = 8192,
  WEIR_DEVICE_IN_PLACE = 16384,
  WEIR_DEVICE_WHOLE_TEXTS = 32768,
  WEIR_DEVICE_ENDS_IN_CALLBACKS = 65536,
  WEIR_DEVICE_DIRECT_MEMORY = 131072,
  WEIR_DEVICE_REGIONS = 262144
} weir_device_capability_flags;
typedef enum weir_device_vtable_flags {
  WEIR_DEVICE_UNLISTED = 1
} weir_device_vtable_flags;
typedef enum weir_device_object_value {
  WEIR_DEVICE_OBJECT_DEVICE = 1,
  WEIR_DEVICE_OBJECT_STREAM = 2,
  WEIR_DEVICE_OBJECT_EVENT = 3
} weir_device_object_value;
typedef enum weir_device_work_kind_value {
  WEIR_DEVICE_WORK_LAUNCH = 1,
  WEIR_DEVICE_WORK_COPY = 2,
  WEIR_DEVICE_WORK_FILL = 3,
  WEIR_DEVICE_WORK_BRANCH = 4,
  WEIR_DEVICE_WORK_LOOP = 5
} weir_device_work_kind_value;
typedef enum weir_device_relation_value {
  WEIR_DEVICE_NOT_ZERO = 0,
  WEIR_DEVICE_EQ = 1,
  WEIR_DEVICE_NE = 2,
  WEIR_DEVICE_LT = 3,
  WEIR_DEVICE_LE = 4,
  WEIR_DEVICE_GT = 5,
  WEIR_DEVICE_GE = 6
} weir_device_relation_value;
typedef struct weir_device_info {
  size_t struct_size;
  uint64_t capabilities;
  uint64_t memory_bytes;
  uint64_t alignment;
  char name[64];
  uint32_t max_streams;
  uint32_t reserved;
} weir_device_info;
typedef uint64_t weir_device_address;
typedef struct weir_device_stream_attr {
  size_t struct_size;
  const char *name;
  int32_t priority;
  uint32_t reserved;
} weir_device_stream_attr;
typedef void (*weir_device_callback_fn)(void *arg);
typedef int32_t (*weir_device_host_call_fn)(void *user,
                                            const weir_tensor_view *inputs,
                                            size_t num_inputs,
                                            const weir_tensor_view *outputs,
                                            size_t num_outputs,
                                            char *text,
                                            size_t capacity);
typedef struct weir_device_recipe {
  size_t struct_size;
  const char *operation;
  const void *attributes;
  size_t attributes_bytes;
  size_t num_inputs;
  size_t num_outputs;
  weir_device_host_call_fn host_call;
  void *host_user;
  weir_destroy_fn host_retain;
  weir_destroy_fn host_release;
} weir_device_recipe;
typedef struct weir_device_launch {
  size_t struct_size;
  const weir_tensor_view *inputs;
  size_t num_inputs;
  const weir_tensor_view *outputs;
  size_t num_outputs;
  weir_device_address scratch;
  uint64_t scratch_bytes;
} weir_device_launch;
typedef struct weir_device_copy {
  size_t struct_size;
  uint64_t bytes;
  void *to_device;
  weir_device_address to;
  void *from_device;
  weir_device_address from;
} weir_device_copy;
typedef struct weir_device_fill {
  size_t struct_size;
  weir_device_address to;
  uint64_t bytes;
  uint8_t value;
  uint8_t reserved[7];
} weir_device_fill;
typedef struct weir_device_branch {
  size_t struct_size;
  weir_device_address choice;
  uint32_t dtype;
  int32_t is_cond;
  const struct weir_device_step_list *branches;
  size_t num_branches;
} weir_device_branch;
typedef struct weir_device_loop {
  size_t struct_size;
  uint32_t relation;
  uint32_t dtype;
  weir_device_address addresses[2];
  const struct weir_device_step_list *body;
  const size_t *behind;
  size_t num_behind;
} weir_device_loop;
typedef struct weir_device_work {
  size_t struct_size;
  uint32_t kind;
  uint32_t reserved;
  const char *name;
  void *kernel;
  const weir_device_launch *launch;
  const weir_device_copy *copy;
  const weir_device_fill *fill;
  const weir_device_branch *branch;
  const weir_device_loop *again;
} weir_device_work;
typedef struct weir_device_step {
  const weir_device_work *work;
  const size_t *after;
  size_t num_after;
} weir_device_step;
typedef struct weir_device_step_list {
  const weir_device_step *steps;
  size_t num_steps;
} weir_device_step_list;
typedef struct weir_device_recording {
  size_t struct_size;
  const char *name;
  weir_device_step_list list;
} weir_device_recording;
typedef struct weir_device_region_node {
  const char *name;
  const weir_device_recipe *recipe;
  void *kernel;
  const size_t *inputs;
  size_t num_inputs;
  const size_t *outputs;
  size_t num_outputs;
  const size_t *after;
  size_t num_after;
} weir_device_region_node;
typedef struct weir_device_region_value {
  weir_tensor_desc desc;
  weir_device_address constant;
} weir_device_region_value;
typedef struct weir_device_region {
  size_t struct_size;
  const char *name;
  const weir_device_region_node *nodes;
  size_t num_nodes;
  const weir_device_region_value *values;
  size_t num_values;
  const size_t *inputs;
  size_t num_inputs;
  const size_t *outputs;
  size_t num_outputs;
} weir_device_region;
typedef struct weir_device_vtable {
  size_t struct_size;
  uint64_t flags;
  int32_t (*device_count)(void *ctx, uint32_t *out_count);
  int32_t (*device_open)(void *ctx, uint32_t index, void **out_device);
  void (*device_close)(void *ctx, void *device);
  int32_t (*device_info)(void *ctx, void *device, weir_device_info *info);
  void (*error_text)(void *ctx, char *buffer, size_t capacity);
  int32_t (*allocate)(void *device, uint64_t bytes, const char *name, weir_device_address *out_address);
  void (*deallocate)(void *device, weir_device_address address, uint64_t bytes);
  int32_t (*stream_create)(void *device, const weir_device_stream_attr *attr, void **out_stream);
  void (*stream_destroy)(void *device, void *stream);
  int32_t (*stream_clear_error)(void *device, void *stream);
  int32_t (*event_create)(void *device, uint64_t flags, void **out_event);
  void (*event_destroy)(void *device, void *event);
  int32_t (*event_record)(void *device, void *event, void *stream);
  int32_t (*event_wait)(void *device, void *event, void *stream);
  int32_t (*event_query)(void *device, void *event, int32_t *out_reached);
  int32_t (*event_synchronize)(void *device, void *event, uint64_t timeout_ns, int32_t *out_reached);
  int32_t (*event_elapsed)(void *device, void *start, void *end, int64_t *out_nanoseconds);
  int32_t (*event_callback)(void *device, void *event, weir_device_callback_fn callback, void *arg);
  int32_t (*copy_to_device)(void *device, void *stream, weir_device_address to, const void *from, uint64_t bytes);
  int32_t (*copy_to_host)(void *device, void *stream, void *to, weir_device_address from, uint64_t bytes);
  int32_t (*copy_on_device)(void *device, void *stream, weir_device_address to, weir_device_address from, uint64_t bytes);
  int32_t (*copy_peer)(void *device,
                       void *stream,
                       void *to_device,
                       weir_device_address to,
                       void *from_device,
                       weir_device_address from,
                       uint64_t bytes);
  int32_t (*fill)(void *device, void *stream, weir_device_address to, uint8_t value, uint64_t bytes);
  int32_t (*kernel_create)(void *device, const weir_device_recipe *recipe, void **out_kernel);
  void (*kernel_destroy)(void *device, void *kernel);
  int32_t (*launch)(void *device, void *stream, void *kernel, const weir_device_launch *launch);
  int32_t (*native_handle)(void *device, uint32_t what, void *object, uint64_t *out_handle);
  void (*release)(void *ctx);
  int32_t (*host_allocate)(void *device, uint64_t bytes, const char *name, void **out_data);
  void (*host_deallocate)(void *device, void *data, uint64_t bytes);
  int32_t (*host_register)(void *device, void *data, uint64_t bytes);
  void (*host_unregister)(void *device, void *data, uint64_t bytes);
  int32_t (*stream_query)(void *device, void *stream, int32_t *out_idle);
  int32_t (*record)(void *device, const weir_device_recording *recording, void **out_executable);
  int32_t (*executable_update)(void *device, void *executable, size_t step, const weir_device_work *work);
  void (*executable_destroy)(void *device, void *executable);
  int32_t (*replay)(void *device, void *stream, void *executable);
  int32_t (*prepare)(void *device,
                     void *kernel,
                     const weir_device_launch *launch,
                     void *before,
                     void **out_prepared);
  int32_t (*launch_prepared)(void *device, void *stream, void *prepared);
  void (*prepared_destroy)(void *device, void *prepared);
  int32_t (*kernel_scratch)(void *device, void *kernel, const weir_device_launch *launch, uint64_t *out_bytes);
  int32_t (*device_open_with)(void *ctx, uint32_t index, const void *settings, size_t bytes, void **out_device);
  int32_t (*device_settings)(void *device, void *settings, size_t capacity, size_t *out_bytes);
  int32_t (*device_fits)(void *device, const void *settings, size_t bytes);
  int32_t (*work_submit)(void *device, void *stream, const weir_device_work *work);
  void (*batch_begin)(void *device);
  void (*batch_end)(void *device);
  void (*memory_trim)(void *device, uint64_t keep_bytes);
  void (*host_used)(void *device, const void *data, uint64_t bytes, int32_t writes, const char *name);
  int32_t (*error_origin)(void *ctx);
  int32_t (*region_claim)(void *device, const weir_device_region *region, uint32_t *out_groups);
  int32_t (*region_compile)(void *device, const weir_device_region *region, void **out_kernel);
} weir_device_vtable;
typedef struct weir_device_plugin_api {
  size_t struct_size;
  uint32_t version;
  uint32_t abi_version;
  int32_t (*device_register)(const char *name, int32_t priority, const weir_device_vtable *vtable, void *ctx);
  int32_t (*device_replace)(const char *name, int32_t priority, const weir_device_vtable *vtable, void *ctx);
  int32_t (*device_unregister)(const char *name, int32_t priority);
  const char *(*last_error_message)(void);
  void (*fail)(const char *text);
} weir_device_plugin_api;
typedef int32_t (*weir_device_plugin_init_fn)(const weir_device_plugin_api *api);
weir_status weir_engine_kind_from_name(const char *name, weir_engine_kind *out_kind);
const char *weir_engine_kind_name(weir_engine_kind kind);
weir_status weir_engine_kind_list(weir_engine_kind *out_kinds,
                                  size_t capacity,
                                  size_t *out_count);
weir_status weir_device_register(const char *name,
                                 int32_t priority,
                                 const weir_device_vtable *vtable,
                                 void *ctx);
weir_status weir_device_replace(const char *name,
                                int32_t priority,
                                const weir_device_vtable *vtable,
                                void *ctx);
weir_status weir_device_unregister(const char *name, int32_t priority);
weir_status weir_device_load(const char *path);
weir_status weir_engine_attr_set_device_settings(weir_engine_attr *attr,
                                                 const void *settings,
                                                 size_t bytes);
weir_status weir_engine_attr_get_device_settings(const weir_engine_attr *attr,
                                                 void *out_settings,
                                                 size_t capacity,
                                                 size_t *out_bytes);
void weir_last_error_set(weir_status status, const char *function, const char *text);
weir_status weir_engine_get_native_handle(const weir_engine *engine, uint64_t *out_handle);
weir_status weir_stream_get_native_handle(const weir_stream *stream, uint64_t *out_handle);
weir_status weir_event_get_native_handle(const weir_event *event, uint64_t *out_handle);

/* weir/cuda.h */
typedef enum weir_cuda_source_value {
  WEIR_CUDA_SOURCE_TEXT = 1,
  WEIR_CUDA_SOURCE_PTX = 2,
  WEIR_CUDA_SOURCE_BINARY = 3
} weir_cuda_source_value;
typedef enum weir_cuda_argument_kind_value {
  WEIR_CUDA_ARGUMENT_INPUT = 1,
  WEIR_CUDA_ARGUMENT_OUTPUT = 2,
  WEIR_CUDA_ARGUMENT_INPUT_ELEMENTS = 3,
  WEIR_CUDA_ARGUMENT_OUTPUT_ELEMENTS = 4,
  WEIR_CUDA_ARGUMENT_VALUE = 5
} weir_cuda_argument_kind_value;
typedef struct weir_cuda_device_info {
  size_t struct_size;
  int32_t driver_version;
  uint32_t capability_major;
  uint32_t capability_minor;
  uint32_t multiprocessors;
  uint32_t max_threads_per_block;
  uint32_t max_shared_bytes;
  uint64_t memory_bytes;
  uint64_t free_bytes;
  uint32_t has_memory_pool;
  uint32_t reserved;
  uint8_t uuid[16];
  char pci_bus_id[32];
  char name[128];
  char products[128];
} weir_cuda_device_info;
typedef uint32_t weir_cuda_source;
typedef uint32_t weir_cuda_argument_kind;
typedef struct weir_cuda_argument {
  weir_cuda_argument_kind kind;
  uint32_t index;
  const void *value;
  size_t bytes;
} weir_cuda_argument;
typedef struct weir_cuda_kernel_desc {
  size_t struct_size;
  const void *source;
  size_t source_bytes;
  weir_cuda_source source_kind;
  uint32_t shared_bytes;
  const char *entry;
  const char *const *options;
  size_t num_options;
  uint32_t grid[3];
  uint32_t block[3];
  const weir_cuda_argument *arguments;
  size_t num_arguments;
  size_t num_inputs;
  const weir_tensor_desc *inputs;
  size_t num_outputs;
  const weir_tensor_desc *outputs;
  weir_infer_fn infer;
  void *user;
  weir_destroy_fn destroy;
  uint64_t flags;
} weir_cuda_kernel_desc;
weir_status weir_cuda_get_device_info(const weir_engine *engine,
                                      weir_cuda_device_info *out_info);
weir_status weir_engine_attr_set_cuda_context(weir_engine_attr *attr, void *context);
weir_status weir_stream_wrap_cuda(weir_engine *engine,
                                  void *cuda_stream,
                                  const weir_stream_attr *attr,
                                  weir_stream **out_stream);
weir_status weir_stream_wait_cuda_event(weir_stream *stream, void *cuda_event);
weir_status weir_stream_record_cuda_event(weir_stream *stream, void *cuda_event);
weir_status weir_kernel_create_cuda(weir_engine *engine,
                                    const weir_cuda_kernel_desc *desc,
                                    const weir_kernel_options *options,
                                    weir_kernel **out_kernel);

/* weir/dlpack.h */
typedef enum { kDLCPU = 1, kDLCUDA = 2, kDLCUDAHost = 3, kDLExtDev = 12, kDLCUDAManaged = 13 } DLDeviceType;
typedef struct DLDevice {
    int32_t device_type;
    int32_t device_id;
} DLDevice;
typedef enum { kDLInt = 0, kDLUInt = 1, kDLFloat = 2, kDLOpaqueHandle = 3, kDLBfloat = 4, kDLComplex = 5, kDLBool = 6 } DLDataTypeCode;
typedef struct DLDataType {
    uint8_t code;
    uint8_t bits;
    uint16_t lanes;
} DLDataType;
typedef struct DLTensor {
    void *data;
    DLDevice device;
    int32_t ndim;
    DLDataType dtype;
    int64_t *shape;
    int64_t *strides;
    uint64_t byte_offset;
} DLTensor;
typedef struct DLManagedTensor {
    DLTensor dl_tensor;
    void *manager_ctx;
    void (*deleter)(struct DLManagedTensor *self);
} DLManagedTensor;
typedef struct DLPackVersion {
    uint32_t major;
    uint32_t minor;
} DLPackVersion;
typedef struct DLManagedTensorVersioned {
    DLPackVersion version;
    void *manager_ctx;
    void (*deleter)(struct DLManagedTensorVersioned *self);
    uint64_t flags;
    DLTensor dl_tensor;
} DLManagedTensorVersioned;
typedef enum weir_dlpack_flags {
  WEIR_DLPACK_READ_ONLY = 1,
  WEIR_DLPACK_COPY = 2
} weir_dlpack_flags;
weir_status weir_tensor_to_dlpack(weir_tensor *tensor,
                                  weir_stream *producer,
                                  weir_stream *consumer,
                                  uint64_t flags,
                                  struct DLManagedTensorVersioned **out_managed);
weir_status weir_tensor_to_dlpack_legacy(weir_tensor *tensor,
                                         weir_stream *producer,
                                         weir_stream *consumer,
                                         uint64_t flags,
                                         struct DLManagedTensor **out_managed);
weir_status weir_tensor_from_dlpack(weir_engine *engine,
                                    struct DLManagedTensorVersioned *managed,
                                    uint64_t flags,
                                    weir_tensor **out_tensor);
weir_status weir_tensor_from_dlpack_legacy(weir_engine *engine,
                                           struct DLManagedTensor *managed,
                                           uint64_t flags,
                                           weir_tensor **out_tensor);

/* weir/conformance.h */
typedef enum weir_conformance_verdict_value {
  WEIR_CONFORMANCE_PASS = 0,
  WEIR_CONFORMANCE_FAIL = 1,
  WEIR_CONFORMANCE_NOT_OFFERED = 2,
  WEIR_CONFORMANCE_NOTE = 3,
  WEIR_CONFORMANCE_NOT_CHECKED = 4
} weir_conformance_verdict_value;
typedef struct weir_conformance_options {
  size_t struct_size;
  uint64_t budget_ns;
  uint64_t seed;
  int32_t rounds;
  uint32_t flags;
} weir_conformance_options;
typedef struct weir_conformance_line {
  size_t struct_size;
  const char *clause;
  const char *title;
  const char *text;
  int32_t verdict;
  int32_t reserved;
} weir_conformance_line;
typedef void (*weir_conformance_fn)(void *report_arg, const weir_conformance_line *line);
typedef int (*weir_conformance_pool_fn)(weir_threadpool_vtable *out_vtable, void **out_ctx);
weir_status weir_threadpool_conformance(const weir_threadpool_vtable *vtable,
                                        void *ctx,
                                        const weir_conformance_options *options,
                                        weir_conformance_fn report,
                                        void *report_arg,
                                        int32_t *out_failed);
weir_status weir_device_conformance(weir_engine_kind kind,
                                    uint32_t index,
                                    const weir_conformance_options *options,
                                    weir_conformance_fn report,
                                    void *report_arg,
                                    int32_t *out_failed);
weir_status weir_comm_conformance(const weir_comm_vtable *vtable,
                                  void *ctx,
                                  const weir_conformance_options *options,
                                  weir_conformance_fn report,
                                  void *report_arg,
                                  int32_t *out_failed);
weir_status weir_threadpool_get_broken_clause(const weir_threadpool *pool,
                                              char *buffer,
                                              size_t capacity,
                                              size_t *out_length);
