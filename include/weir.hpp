// weir.hpp: weir.h for C++17 and later.
// SPDX-License-Identifier: MIT OR Apache-2.0
//
// A thin, header-only layer: handles that release themselves, statuses that throw weir::error, and C++ callables where
// C wants a function and a context. It adds nothing that C cannot do, so the contract of each call is the one in
// weir.h, under the same name.
//
// Handles convert to the C pointer, so the two APIs mix freely. Shared objects copy by taking a reference; attributes,
// options and graphs only move. An empty handle is NULL: "the calling thread" for a pool, "all default" for settings.
// Shared handles are empty when they are made from nothing; settings are made from nullptr to be empty.
//
// A program that is compiled without exceptions uses it too: a call that fails returns something empty, and
// weir::take_error() has the first failure since it was asked last.
//
// No exception leaves a callback. One that is thrown inside becomes a status: weir::error its own code, std::bad_alloc
// RESOURCE_EXHAUSTED, anything else UNKNOWN. The compute function of a kernel keeps the text too, and parallel_for
// throws again in its caller. Tasks of streams, graphs and task groups and the infer function of a kernel keep the code
// alone. A callback that returns no status says what becomes of its exceptions; a trace hook that throws ends the
// program.

#ifndef WEIR_HPP
#define WEIR_HPP

#if __cplusplus < 201703L
#error "weir.hpp is for C++17 and later; C++11 and C++14 include weir.h, which has the same functions"
#else
#include "weir.h"
#include "weir/callback.hpp"
#include "weir/comm.hpp"
#include "weir/device.hpp"
#include "weir/engine.hpp"
#include "weir/gemm.hpp"
#include "weir/graph.hpp"
#include "weir/handle.hpp"
#include "weir/kernel.hpp"
#include "weir/resource.hpp"
#include "weir/task_group.hpp"
#include "weir/threadpool.hpp"
#include "weir/trace.hpp"
#endif

#endif // WEIR_HPP
