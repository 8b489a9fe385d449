-- SPDX-License-Identifier: MIT OR Apache-2.0
--
--     luajit layer.lua <weir_cdef.h> <libweir.so>
--
-- One layer of a network from LuaJIT: relu(x w + b) as a graph, compiled once and run with other numbers each time, on
-- weir's own pool of two threads. A pool of Lua's own is out of reach: the library calls a pool's functions on many
-- threads, and a Lua state belongs to one.

local ffi = require("ffi")
local cdef = assert(io.open(arg[1])):read("*a")
ffi.cdef(cdef)
local weir = ffi.load(arg[2])

-- A status is no exception in C, and becomes one here.
local function check(status)
    if status ~= weir.WEIR_OK then error(ffi.string(weir.weir_last_error_message()), 2) end
end

-- The object that a function makes, released when Lua no longer has it.
local function create(kind, release, make, ...)
    local out = ffi.new(kind .. " *[1]")
    local count, arguments = select("#", ...), { ... }
    arguments[count + 1] = out
    check(make(unpack(arguments, 1, count + 1)))
    return ffi.gc(out[0], release)
end

local function desc_of(...)
    local dims = { ... }
    local desc = ffi.new("weir_tensor_desc", { dtype = weir.WEIR_F32, rank = #dims })
    for i, n in ipairs(dims) do desc.dims[i - 1] = n end
    return desc
end

-- A tensor over memory of Lua's own, which must live as long.
local function tensor_over(engine, desc, numbers)
    local memory = ffi.new("weir_memory", { struct_size = ffi.sizeof("weir_memory"), data = numbers })
    return create("weir_tensor", weir.weir_tensor_release, weir.weir_tensor_create, engine, desc, memory)
end

local function sized(kind, members)
    local desc = ffi.new(kind, members or {})
    desc.struct_size = ffi.sizeof(kind)
    return desc
end

local ROWS, INNER, COLUMNS = 4, 3, 2

local two = sized("weir_threadpool_options", { num_threads = 2 })
local pool = create("weir_threadpool", weir.weir_threadpool_release, weir.weir_threadpool_create_builtin, two)
local attr = create("weir_engine_attr", weir.weir_engine_attr_destroy, weir.weir_engine_attr_create, weir.WEIR_ENGINE_CPU)
check(weir.weir_engine_attr_set_threadpool(attr, pool))
local cpu = create("weir_engine", weir.weir_engine_release, weir.weir_engine_create, weir.WEIR_ENGINE_CPU, 0, attr)

-- Kernels, and the graph that joins them.
local product = sized("weir_matmul_desc", { flags = weir.WEIR_MATMUL_BIAS })
local matmul = create("weir_kernel", weir.weir_kernel_release, weir.weir_kernel_create_matmul, cpu, product, nil)
local rectifier = sized("weir_eltwise_desc", { op = weir.WEIR_ELTWISE_RELU })
local relu = create("weir_kernel", weir.weir_kernel_release, weir.weir_kernel_create_eltwise, cpu, rectifier, nil)

local graph = create("weir_graph", weir.weir_graph_destroy, weir.weir_graph_create, "layer")
local inputs = ffi.new("weir_value[3]")
check(weir.weir_graph_add_input(graph, "x", desc_of(ROWS, INNER), inputs))
check(weir.weir_graph_add_input(graph, "w", desc_of(INNER, COLUMNS), inputs + 1))
check(weir.weir_graph_add_input(graph, "b", desc_of(COLUMNS), inputs + 2))
local sum, result, node = ffi.new("weir_value[1]"), ffi.new("weir_value[1]"), ffi.new("weir_node[1]")
check(weir.weir_graph_add_kernel(graph, "sum", matmul, inputs, 3, sum, 1, node))
check(weir.weir_graph_add_kernel(graph, "relu", relu, sum, 1, result, 1, node))
check(weir.weir_graph_add_output(graph, "y", result[0]))
local engines = ffi.new("weir_engine *[1]", { cpu })
local program = create("weir_program", weir.weir_program_release, weir.weir_graph_compile, graph, engines, 1, nil)

local x, w = ffi.new("float[?]", ROWS * INNER), ffi.new("float[?]", INNER * COLUMNS)
local b, y = ffi.new("float[?]", COLUMNS), ffi.new("float[?]", ROWS * COLUMNS)
local from = {
    tensor_over(cpu, desc_of(ROWS, INNER), x),
    tensor_over(cpu, desc_of(INNER, COLUMNS), w),
    tensor_over(cpu, desc_of(COLUMNS), b),
}
local into = tensor_over(cpu, desc_of(ROWS, COLUMNS), y)
local run_inputs, run_outputs = ffi.new("weir_tensor *[3]", from), ffi.new("weir_tensor *[1]", { into })

for run = 1, 100 do
    for i = 0, ROWS * INNER - 1 do x[i] = (i * run) % 7 - 3 end
    for i = 0, INNER * COLUMNS - 1 do w[i] = (i + run) % 5 - 2 end
    for i = 0, COLUMNS - 1 do b[i] = run % 3 - i end
    check(weir.weir_program_run(program, nil, run_inputs, 3, run_outputs, 1, nil))
    for r = 0, ROWS - 1 do
        for c = 0, COLUMNS - 1 do
            local expected = b[c]
            for k = 0, INNER - 1 do expected = expected + x[r * INNER + k] * w[k * COLUMNS + c] end
            assert(y[r * COLUMNS + c] == math.max(expected, 0), "run " .. run)
        end
    end
end

-- What does not fit is refused with a text that names it.
local ok, text = pcall(function()
    check(weir.weir_program_run(program, nil, run_inputs, 2, run_outputs, 1, nil))
end)
assert(not ok and tostring(text):find("weir_program_run"), text)
print("100 runs of a layer from LuaJIT; refused: " .. tostring(text):gsub("^.-: ", "", 1))

-- Every function of the interface is in the library under its name.
local count = 0
for name in cdef:gmatch("(weir_[a-z0-9_]+)%s*%([^*]") do
    assert(weir[name] ~= nil, name)
    count = count + 1
end
print(count .. " functions found")
