/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Bad input for engines, their settings, and the waits for them.
 */

#include <weir/domain.h>
#include <weir/device.h>
#include <weir/testing.h>

#include "bad_input.h"

static void rows_of_attributes(void) {
    ROW(weir_engine_attr_create, (0, NEW(engine_attr)), INVALID, "kind is 0");
    ROW(weir_engine_attr_create, (UINT32_MAX, NEW(engine_attr)), INVALID, "kind is 4294967295");
    ROW(weir_engine_attr_create, (WEIR_ENGINE_CPU, NULL), INVALID, "out_attr is NULL");
    ROW(weir_engine_attr_get_kind, (NULL, &out.u32), INVALID, "attr is NULL");
    ROW(weir_engine_attr_get_kind, (good.engine_attr, NULL), INVALID, "out_kind is NULL");
    ROW(weir_engine_attr_get_kind, (WRONG(stream_attr), &out.u32),
        INVALID, "attr: expected an engine_attr, got a stream_attr");
    ROW(weir_engine_attr_set_threadpool, (NULL, good.threadpool), INVALID, "attr is NULL");
    ROW(weir_engine_attr_set_threadpool, (WRONG(engine), good.threadpool), INVALID, "attr: expected an engine_attr");
    ROW(weir_engine_attr_set_threadpool, (good.engine_attr, WRONG(tensor)),
        INVALID, "pool: expected a threadpool, got a tensor");
    ROW(weir_engine_attr_get_threadpool, (NULL, NEW(threadpool)), INVALID, "attr is NULL");
    ROW(weir_engine_attr_get_threadpool, (good.engine_attr, NULL), INVALID, "out_pool is NULL");
    ROW(weir_engine_attr_get_threadpool, (NO_OBJECT, NEW(threadpool)),
        INVALID, "attr: expected an engine_attr, got no weir object");
}

static void rows_of_threads(void) {
    weir_engine_attr *both = NULL, *other_kind = NULL;
    CHECK_OK(weir_engine_attr_create(WEIR_ENGINE_CPU, &both));
    CHECK_OK(weir_engine_attr_create(WEIR_ENGINE_CUDA, &other_kind));

    ROW(weir_engine_attr_set_thread_mode, (NULL, WEIR_THREAD_MODE_KIND), INVALID, "attr is NULL");
    ROW(weir_engine_attr_set_thread_mode, (WRONG(stream_attr), WEIR_THREAD_MODE_KIND),
        INVALID, "attr: expected an engine_attr, got a stream_attr");
    ROW(weir_engine_attr_set_thread_mode, (both, 0), INVALID, "mode is 0");
    ROW(weir_engine_attr_set_thread_mode, (both, WEIR_THREAD_MODE_CALLER + 1), INVALID, "mode is 5");
    ROW(weir_engine_attr_get_thread_mode, (NULL, &out.u32), INVALID, "attr is NULL");
    ROW(weir_engine_attr_get_thread_mode, (both, NULL), INVALID, "out_mode is NULL");
    ROW(weir_engine_attr_get_thread_mode, (WRONG(event), &out.u32), INVALID, "attr: expected an engine_attr");
    ROW(weir_engine_attr_set_thread_mode, (other_kind, 0), INVALID, "mode is 0");
    ROW(weir_engine_attr_set_thread_count, (NULL, 2), INVALID, "attr is NULL");
    ROW(weir_engine_attr_set_max_streams, (NULL, 2), INVALID, "attr is NULL");
    ROW(weir_engine_attr_set_max_streams, (WRONG(graph), 2), INVALID, "attr: expected an engine_attr, got a graph");
    ROW(weir_engine_attr_set_max_streams, (both, 65), INVALID, "count is 65, expected 0 to 64");
    ROW(weir_engine_attr_get_max_streams, (NULL, &out.u32), INVALID, "attr is NULL");
    ROW(weir_engine_attr_get_max_streams, (both, NULL), INVALID, "out_count is NULL");
    ROW(weir_engine_attr_get_max_streams, (WRONG(graph), &out.u32), INVALID, "attr: expected an engine_attr, got a graph");
    ROW(weir_engine_attr_set_device_settings, (NULL, "x", 1), INVALID, "attr is NULL");
    ROW(weir_engine_attr_set_device_settings, (WRONG(graph), "x", 1), INVALID, "attr: expected an engine_attr, got a graph");
    ROW(weir_engine_attr_set_device_settings, (both, NULL, 1), INVALID, "settings is NULL");
    ROW(weir_engine_attr_get_device_settings, (NULL, NULL, 0, &out.size), INVALID, "attr is NULL");
    ROW(weir_engine_attr_get_device_settings, (WRONG(graph), NULL, 0, &out.size), INVALID, "attr: expected an engine_attr, got a graph");
    ROW(weir_engine_attr_get_device_settings, (both, NULL, 0, NULL), INVALID, "out_bytes is NULL");
    ROW(weir_engine_attr_get_device_settings, (both, NULL, 1, &out.size), INVALID, "out_settings is NULL");
    CHECK_OK(weir_engine_attr_set_device_settings(both, "four", 4));
    CHECK_CODE(weir_engine_attr_get_device_settings(both, &out.u32, 3, &out.size), WEIR_OUT_OF_RANGE, "capacity is 3, they have 4 bytes");
    CHECK(out.size == 4);
    ROW(weir_engine_create, (WEIR_ENGINE_CPU, 0, both, NEW(engine)), WEIR_UNIMPLEMENTED, "engine cpu:0 has no settings of the device");
    CHECK_OK(weir_engine_attr_set_device_settings(both, NULL, 0));
    ROW(weir_engine_attr_set_thread_count, (WRONG(graph), 2), INVALID, "attr: expected an engine_attr, got a graph");
    ROW(weir_engine_attr_set_thread_count, (both, 257), INVALID, "count is 257, expected 0 to 256");
    ROW(weir_engine_attr_set_thread_count, (both, UINT32_MAX), INVALID, "count is 4294967295");
    ROW(weir_engine_attr_set_thread_count, (other_kind, 2),
        PRECONDITION, "attr is for a cuda engine, only a cpu engine takes a number of threads");
    ROW(weir_engine_attr_get_thread_count, (NULL, &out.u32), INVALID, "attr is NULL");
    ROW(weir_engine_attr_get_thread_count, (both, NULL), INVALID, "out_count is NULL");
    ROW(weir_engine_attr_get_thread_count, (WRONG(run), &out.u32), INVALID, "attr: expected an engine_attr, got a run");
    ROW(weir_engine_attr_get_thread_count, (other_kind, &out.u32), PRECONDITION, "attr is for a cuda");

    /* A pool goes with mode GLOBAL only, whichever of the two was set first. */
    CHECK_OK(weir_engine_attr_set_threadpool(both, good.threadpool));
    CHECK_OK(weir_engine_attr_set_thread_mode(both, WEIR_THREAD_MODE_PRIVATE));
    ROW(weir_engine_create, (WEIR_ENGINE_CPU, 0, both, NEW(engine)),
        INVALID, "attr has a thread pool and thread mode private");
    CHECK_OK(weir_engine_attr_set_thread_mode(both, WEIR_THREAD_MODE_KIND));
    CHECK_OK(weir_engine_attr_set_threadpool(both, good.threadpool));
    ROW(weir_engine_create, (WEIR_ENGINE_CPU, 0, both, NEW(engine)),
        INVALID, "attr has a thread pool and thread mode kind");
    CHECK_OK(weir_engine_attr_set_thread_mode(both, WEIR_THREAD_MODE_CALLER));
    ROW(weir_engine_create, (WEIR_ENGINE_CPU, 0, both, NEW(engine)),
        INVALID, "attr has a thread pool and thread mode caller");
    weir_engine_attr_destroy(other_kind);
    weir_engine_attr_destroy(both);
}

static void rows_of_create(void) {
    weir_stream_attr *other_kind = NULL;
    weir_engine_attr *other_engine_kind = NULL;
    CHECK_OK(weir_stream_attr_create(WEIR_ENGINE_CUDA, &other_kind));
    CHECK_OK(weir_engine_attr_create(WEIR_ENGINE_CUDA, &other_engine_kind));

    ROW(weir_engine_count, (WEIR_ENGINE_CPU, NULL), INVALID, "out_count is NULL");
    ROW(weir_engine_count, (99, &out.u32), INVALID, "kind is 99");
    ROW(weir_engine_create, (WEIR_ENGINE_CPU, 0, NULL, NULL), INVALID, "out_engine is NULL");
    weir_engine *all[1] = {NULL};
    ROW(weir_engine_create_all, (all, 1, NULL), INVALID, "out_count is NULL");
    ROW(weir_engine_create_all, (NULL, 1, &out.size), INVALID, "out_engines is NULL, but its length is 1");
    ROW(weir_engine_create_all, (UNALIGNED, 1, &out.size), INVALID, "out_engines is not aligned");
    CHECK(all[0] == NULL);
    ROW(weir_engine_create, (99, 0, NULL, NEW(engine)), INVALID, "kind is 99");
    ROW(weir_engine_create, (WEIR_ENGINE_CPU, 4711, NULL, NEW(engine)), RANGE, "index is 4711");
    ROW(weir_engine_create, (WEIR_ENGINE_CPU, 0, WRONG(stream_attr), NEW(engine)),
        INVALID, "attr: expected an engine_attr");
    ROW(weir_engine_create, (WEIR_ENGINE_CPU, 0, other_engine_kind, NEW(engine)), INVALID, "attr");
    ROW(weir_stream_create, (good.engine, 0, other_kind, NEW(stream)), INVALID, "attr");
    weir_engine_attr_destroy(other_engine_kind);
    weir_stream_attr_destroy(other_kind);
}

static void rows_of_engines(void) {
    weir_engine_info info = {.struct_size = sizeof info};

    ROW(weir_engine_retain, (NULL), INVALID, "engine is NULL");
    ROW(weir_engine_retain, (WRONG(threadpool)), INVALID, "engine: expected an engine, got a threadpool");
    ROW(weir_engine_get_attr, (NULL, NEW(lent_engine_attr)), INVALID, "engine is NULL");
    ROW(weir_engine_get_attr, (good.engine, NULL), INVALID, "out_attr is NULL");
    ROW(weir_engine_get_attr, (WRONG(stream), NEW(lent_engine_attr)),
        INVALID, "engine: expected an engine, got a stream");
    ROW(weir_engine_get_threadpool, (NULL, NEW(threadpool)), INVALID, "engine is NULL");
    ROW(weir_engine_get_threadpool, (good.engine, NULL), INVALID, "out_pool is NULL");
    ROW(weir_engine_get_threadpool, (WRONG(program), NEW(threadpool)),
        INVALID, "engine: expected an engine, got a program");
    ROW(weir_engine_get_info, (NULL, &info), INVALID, "engine is NULL");
    ROW(weir_engine_get_info, (good.engine, NULL), INVALID, "out_info is NULL");
    ROW(weir_engine_get_info, (WRONG(run), &info), INVALID, "engine: expected an engine, got a run");
    info.struct_size = offsetof(weir_engine_info, thread_mode) - 1;
    ROW(weir_engine_get_info, (good.engine, &info), INVALID, "out_info->struct_size is 95, expected 112 (at least 96)");
    info.struct_size = 4097;
    ROW(weir_engine_get_info, (good.engine, &info), INVALID, "out_info->struct_size is 4097, expected 112");
    CHECK(info.kind == 0 && info.name[0] == '\0');
    ROW(weir_engine_synchronize, (NULL, 0), INVALID, "engine is NULL");
    ROW(weir_engine_synchronize, (WRONG(event), WEIR_TIMEOUT_INFINITE),
        INVALID, "engine: expected an engine, got an event");
    weir_engine_sync synced = {.struct_size = sizeof synced}, short_synced = {.struct_size = 8};
    ROW(weir_sync_devices, (0, &synced, 1, NULL), INVALID, "out_count is NULL");
    ROW(weir_sync_devices, (0, NULL, 1, &out.size), INVALID, "results is NULL");
    ROW(weir_sync_devices, (0, &short_synced, 1, &out.size), INVALID, "results->struct_size is 8");
    ROW(weir_async_scope_begin, (NULL), INVALID, "out_scope is NULL");
    ROW(weir_async_scope_end, (0, 0), WEIR_OK, NULL);
    ROW(weir_async_scope_end, (UINT64_MAX, WEIR_TIMEOUT_INFINITE), WEIR_OK, NULL);
    ROW(weir_time_ns, (NULL, NULL, NULL, 1, &out.u64), INVALID, "fn is NULL");
    ROW(weir_time_ns, (NULL, fail_with_data_loss, NULL, 0, &out.u64), INVALID, "repetitions is 0");
    ROW(weir_time_ns, (NULL, fail_with_data_loss, NULL, 1, NULL), INVALID, "out_times is NULL");
    ROW(weir_time_ns, (WRONG(tensor), fail_with_data_loss, NULL, 1, &out.u64), INVALID, "stream: expected a stream");
    ROW(weir_time_ns, (NULL, fail_with_data_loss, NULL, 1, &out.u64), WEIR_DATA_LOSS, "fn failed with DATA_LOSS");
    ROW(weir_sync_devices, (WEIR_TIMEOUT_INFINITE, NULL, 0, NULL), WEIR_OK, NULL);
    ROW(weir_sync_devices, (0, NULL, 0, NULL), WEIR_OK, NULL);
    ROW(weir_sync_devices, (0, &synced, 0, NULL), INVALID, "out_count is NULL");
}

static void rows_of_domains(void) {
    char buffer[8];
    weir_engine_attr *attr = NULL;
    weir_engine *engine = NULL;
    weir_engine_sync synced = {.struct_size = sizeof synced}, short_synced = {.struct_size = 8};
    CHECK_OK(weir_engine_attr_create(WEIR_ENGINE_CPU, &attr));
    CHECK_OK(weir_engine_attr_set_domain(attr, good.domain));
    CHECK_OK(weir_engine_attr_set_name(attr, "named"));
    CHECK_OK(weir_engine_create(WEIR_ENGINE_CPU, 0, attr, &engine));

    ROW(weir_domain_create, (NULL, NEW(domain)), INVALID, "name is NULL");
    ROW(weir_domain_create, ("d", NULL), INVALID, "out_domain is NULL");
    ROW(weir_domain_create, ("", NEW(domain)), INVALID, "name is empty");
    ROW(weir_domain_create, (BAD_UTF8, NEW(domain)), INVALID, "name is not UTF-8");
    ROW(weir_domain_create, ("a/b", NEW(domain)), INVALID, "name 'a/b' has '/' in it");
    ROW(weir_domain_create, ("good#2", NEW(domain)), INVALID, "name 'good#2' has '#' in it");
    ROW(weir_domain_create, ("a name of twenty-five byte", NEW(domain)), INVALID, "name has 26 bytes, expected at most 24");
    ROW(weir_domain_retain, (NULL), INVALID, "domain is NULL");
    ROW(weir_domain_retain, (WRONG(engine)), INVALID, "domain: expected a domain, got an engine");
    ROW(weir_domain_release, (NULL));
    ROW(weir_domain_release, (WRONG(engine)));
    ROW(weir_domain_get_name, (NULL, buffer, 8, &out.size), INVALID, "domain is NULL");
    ROW(weir_domain_get_name, (good.domain, NULL, 8, &out.size), INVALID, "buffer is NULL, but capacity is 8");
    ROW(weir_domain_get_name, (good.domain, NULL, 0, NULL), INVALID, "out_length is NULL");
    ROW(weir_domain_get_name, (WRONG(event), buffer, 8, &out.size), INVALID, "domain: expected a domain, got an event");

    ROW(weir_engine_attr_set_domain, (NULL, good.domain), INVALID, "attr is NULL");
    ROW(weir_engine_attr_set_domain, (attr, WRONG(stream)), INVALID, "domain: expected a domain, got a stream");
    ROW(weir_engine_attr_set_domain, (WRONG(domain), good.domain), INVALID, "attr: expected an engine_attr, got a domain");
    ROW(weir_engine_attr_get_domain, (NULL, NEW(domain)), INVALID, "attr is NULL");
    ROW(weir_engine_attr_get_domain, (attr, NULL), INVALID, "out_domain is NULL");
    ROW(weir_engine_attr_get_domain, (WRONG(run), NEW(domain)), INVALID, "attr: expected an engine_attr, got a run");
    ROW(weir_engine_attr_set_name, (NULL, "e"), INVALID, "attr is NULL");
    ROW(weir_engine_attr_set_name, (attr, NULL), INVALID, "name is NULL");
    ROW(weir_engine_attr_set_name, (attr, BAD_UTF8), INVALID, "name is not UTF-8");
    ROW(weir_engine_attr_set_name, (attr, "cpu:0"), INVALID, "name 'cpu:0' has ':' in it");
    ROW(weir_engine_attr_set_name, (WRONG(graph), "e"), INVALID, "attr: expected an engine_attr, got a graph");
    ROW(weir_engine_attr_get_name, (NULL, buffer, 8, &out.size), INVALID, "attr is NULL");
    ROW(weir_engine_attr_get_name, (attr, NULL, 8, &out.size), INVALID, "buffer is NULL, but capacity is 8");
    ROW(weir_engine_attr_get_name, (WRONG(graph), buffer, 8, &out.size), INVALID, "attr: expected an engine_attr, got a graph");
    ROW(weir_engine_get_name, (NULL, buffer, 8, &out.size), INVALID, "engine is NULL");
    ROW(weir_engine_get_name, (engine, NULL, 8, &out.size), INVALID, "buffer is NULL, but capacity is 8");
    ROW(weir_engine_get_name, (WRONG(domain), buffer, 8, &out.size), INVALID, "engine: expected an engine, got a domain");
    ROW(weir_sync_domain, (NULL, WEIR_TIMEOUT_INFINITE, NULL, 0, NULL), WEIR_OK, NULL);
    ROW(weir_sync_domain, (WRONG(engine), 0, NULL, 0, NULL), INVALID, "domain: expected a domain, got an engine");
    ROW(weir_sync_domain, (NULL, 0, &synced, 1, NULL), INVALID, "out_count is NULL");
    ROW(weir_sync_domain, (good.domain, 0, NULL, 1, &out.size), INVALID, "results is NULL");
    ROW(weir_sync_domain, (good.domain, 0, &short_synced, 1, &out.size), INVALID, "results->struct_size is 8");
    ROW(weir_sync_domain, (WRONG(engine), 0, &synced, 1, &out.size), INVALID, "domain: expected a domain, got an engine");
    ROW(weir_async_scope_begin_in, (good.domain, NULL), INVALID, "out_scope is NULL");
    ROW(weir_async_scope_begin_in, (WRONG(kernel), &out.u64), INVALID, "domain: expected a domain, got a kernel");
    weir_engine_release(engine);
    weir_engine_attr_destroy(attr);
}

static void rows_of_emulation(void) {
    weir_engine_attr *attr = NULL;
    weir_emulation sane = {.struct_size = sizeof sane, .seed = 1}, emulation = sane;
    weir_emulated_counters counters = {.struct_size = sizeof counters};
    weir_emulated_race races[2] = {{.struct_size = 0}};
    uint64_t numbers[2] = {7, 7};
    weir_engine *engine = NULL;
    CHECK_OK(weir_engine_attr_create(WEIR_ENGINE_EMULATED, &attr));
    CHECK_OK(weir_engine_create(WEIR_ENGINE_EMULATED, 5, NULL, &engine));

    ROW(weir_engine_attr_set_emulation, (NULL, &sane), INVALID, "attr is NULL");
    ROW(weir_engine_attr_set_emulation, (attr, NULL), INVALID, "emulation is NULL");
    ROW(weir_engine_attr_set_emulation, (WRONG(stream_attr), &sane), INVALID, "attr: expected an engine_attr");
    ROW(weir_engine_attr_set_emulation, (good.engine_attr, &sane), PRECONDITION, "attr is for a cpu engine");
    emulation.flags = WEIR_EMULATION_STRICT;
    ROW(weir_engine_attr_set_emulation, (attr, &emulation), INVALID, "emulation: flags has WEIR_EMULATION_STRICT without");
    emulation.flags = 1 << 20;
    ROW(weir_engine_attr_set_emulation, (attr, &emulation), INVALID, "emulation: flags has unknown bits 0x100000");
    emulation = sane, emulation.regions = 4;
    ROW(weir_engine_attr_set_emulation, (attr, &emulation), INVALID, "emulation: regions is 4, expected 0 to 3");
    emulation = sane, emulation.struct_size = 16;
    ROW(weir_engine_attr_set_emulation, (attr, &emulation), INVALID, "emulation->struct_size is 16, expected 112 (at least 88)");
    ROW(weir_engine_attr_get_emulation, (NULL, &sane), INVALID, "attr is NULL");
    ROW(weir_engine_attr_get_emulation, (attr, NULL), INVALID, "out_emulation is NULL");
    ROW(weir_engine_attr_get_emulation, (good.engine_attr, &sane), PRECONDITION, "attr is for a cpu engine");
    CHECK(sane.seed == 1);

    /* Another engine on a device in use shares it as it is, or is refused. */
    CHECK_OK(weir_engine_attr_set_emulation(attr, &sane));
    ROW(weir_engine_create, (WEIR_ENGINE_EMULATED, 5, attr, NEW(engine)),
        PRECONDITION, "emulated:5 is in use and emulated in another way than attr asks for");
    ROW(weir_engine_create, (WEIR_ENGINE_EMULATED, 8, NULL, NEW(engine)), RANGE, "index is 8, there are 8 emulated");

    ROW(weir_emulated_register, (), WEIR_OK, NULL);
    ROW(weir_emulated_get_counters, (NULL, &counters), INVALID, "engine is NULL");
    ROW(weir_emulated_get_counters, (good.engine, &counters), PRECONDITION, "engine is cpu:0, not an emulated one");
    ROW(weir_emulated_get_counters, (engine, NULL), INVALID, "out_counters is NULL");
    counters.struct_size = 8;
    ROW(weir_emulated_get_counters, (engine, &counters), INVALID, "out_counters->struct_size is 8, expected ");
    ROW(weir_emulated_get_order, (NULL, numbers, 2, &out.size), INVALID, "engine is NULL");
    ROW(weir_emulated_get_order, (good.engine, numbers, 2, &out.size), PRECONDITION, "engine is cpu:0");
    ROW(weir_emulated_get_order, (engine, NULL, 2, &out.size), INVALID, "numbers is NULL");
    ROW(weir_emulated_get_order, (engine, numbers, 2, NULL), INVALID, "out_count is NULL");
    CHECK(numbers[0] == 7 && numbers[1] == 7);
    ROW(weir_emulated_get_races, (NULL, races, 2, &out.size), INVALID, "engine is NULL");
    ROW(weir_emulated_get_races, (good.engine, races, 2, &out.size), PRECONDITION, "engine is cpu:0");
    ROW(weir_emulated_get_races, (engine, NULL, 2, &out.size), INVALID, "races is NULL");
    ROW(weir_emulated_get_races, (engine, races, 2, NULL), INVALID, "out_count is NULL");
    ROW(weir_emulated_get_races, (engine, races, 2, &out.size), INVALID, "races->struct_size is 0, expected 824");
    ROW(weir_emulated_clear_races, (NULL), INVALID, "engine is NULL");
    ROW(weir_emulated_clear_races, (good.engine), PRECONDITION, "engine is cpu:0, not an emulated one");
    weir_engine_release(engine);
    weir_engine_attr_destroy(attr);
}

void bad_input_engine(void) {
    rows_of_attributes();
    rows_of_threads();
    rows_of_create();
    rows_of_engines();
    rows_of_domains();
    rows_of_emulation();
}
