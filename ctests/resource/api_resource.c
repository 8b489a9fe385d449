/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Resources by name: containers, objects of the host's, one builder for many who ask, ids, lists, what outlives an
 * engine.
 */

#include <pthread.h>
#include <weir/resource.h>
#include <weir/inspect.h>

#include "make.h"

static weir_resource *keep(weir_engine *engine, const char *container, const char *name, atomic_int *destroyed) {
    weir_resource *resource = NULL;
    CHECK_OK(weir_resource_create_host(engine, container, name, "counter", destroyed, count_destroy, &resource));
    return resource;
}

static weir_resource_info info_of(const weir_resource *resource) {
    weir_resource_info info = {.struct_size = sizeof info};
    CHECK_OK(weir_resource_get_info(resource, &info));
    return info;
}

/* An object is there under its name until that is deleted, and ends with its last reference. */
static void test_names(void) {
    weir_engine *engine = make_engine(NULL), *other = make_engine(NULL);
    weir_resource *resource = NULL, *again = NULL;
    atomic_int destroyed = 0;
    void *object = NULL;
    CHECK_CODE(weir_resource_lookup(engine, "words", "count", WEIR_RESOURCE_ANY, &again), WEIR_NOT_FOUND,
               "engine cpu:0 has no container 'words'");
    resource = keep(engine, "words", "count", &destroyed);
    CHECK_CODE(weir_resource_lookup(engine, "words", "x", WEIR_RESOURCE_ANY, &again), WEIR_NOT_FOUND,
               "container 'words' of engine cpu:0 has no resource 'x'");
    CHECK_OK(weir_resource_lookup(engine, "words", "count", WEIR_RESOURCE_HOST, &again));
    CHECK(again == resource);
    CHECK_OK(weir_resource_get_host(again, "counter", &object));
    CHECK(object == &destroyed);
    CHECK_CODE(weir_resource_get_host(again, "window", &object), WEIR_INVALID_ARGUMENT,
               "host object 'count' of container 'words' is of type 'counter', expected 'window'");
    CHECK_CODE(weir_resource_lookup(engine, "words", "count", WEIR_RESOURCE_VARIABLE, &again), WEIR_INVALID_ARGUMENT,
               "host object 'count' of container 'words' is no variable");
    CHECK(again == NULL);
    /* Each engine has names of its own. */
    CHECK_CODE(weir_resource_lookup(other, "words", "count", WEIR_RESOURCE_ANY, &again), WEIR_NOT_FOUND, "no container");
    CHECK_CODE(weir_resource_create_host(engine, "words", "count", "t", NULL, count_destroy, &again),
               WEIR_ALREADY_EXISTS, "container 'words' of engine cpu:0 has a resource 'count' already");

    const uint64_t id = info_of(resource).id;
    CHECK(id != 0);
    CHECK_OK(weir_resource_from_id(engine, id, &again));
    CHECK(again == resource);
    weir_resource_release(again);
    weir_resource_release(resource); /* that of the lookup */
    CHECK_EQ(info_of(resource).references, 1);
    CHECK_OK(weir_resource_delete(engine, "words", "count"));
    CHECK_EQ(destroyed, 0); /* we hold it still */
    CHECK_EQ(info_of(resource).references, 1);
    CHECK(info_of(resource).name[0] == 0 && info_of(resource).container[0] == 0);
    /* Another one of that name changes nothing. */
    atomic_int others = 0;
    weir_resource *second = keep(engine, "words", "count", &others);
    CHECK_EQ(info_of(resource).references, 1);
    CHECK_EQ(info_of(second).references, 1);
    CHECK_OK(weir_resource_delete(engine, "words", "count"));
    CHECK_EQ(info_of(second).references, 1);
    weir_resource_release(second);
    CHECK_EQ(others, 1);
    CHECK_CODE(weir_resource_from_id(engine, id, &again), WEIR_NOT_FOUND, "was destroyed");
    CHECK_CODE(weir_resource_delete(engine, "words", "count"), WEIR_NOT_FOUND, "has no resource 'count'");
    weir_resource_release(resource);
    CHECK_EQ(destroyed, 1);

    /* Without anybody but the name; the engine's end is the end of the names. */
    weir_resource_release(keep(engine, NULL, "mine", &destroyed));
    CHECK_EQ(destroyed, 1);
    weir_engine_release(other);
    weir_engine_release(engine);
    CHECK_EQ(destroyed, 2);
}

static void test_containers(void) {
    weir_engine *engine = make_engine(NULL);
    weir_resource_info infos[4] = {{.struct_size = sizeof infos[0]}};
    atomic_int destroyed = 0;
    size_t count = 77;
    CHECK_OK(weir_resource_clear(engine, "b", &count)); /* nothing there: as good as cleared */
    CHECK_EQ(count, 0);
    weir_resource *held = keep(engine, "b", "z", &destroyed);
    weir_resource_release(keep(engine, "b", "a/1", &destroyed));
    weir_resource_release(keep(engine, NULL, "x", &destroyed));
    weir_resource_release(keep(engine, "a", "x", &destroyed));
    CHECK_OK(weir_resource_list(engine, NULL, NULL, 0, &count));
    CHECK_EQ(count, 4);
    CHECK_CODE(weir_resource_list(engine, NULL, infos, 3, &count), WEIR_OUT_OF_RANGE, "there are 4 resources");
    CHECK_OK(weir_resource_list(engine, NULL, infos, 4, &count));
    const char *expected[4][2] = {{"a", "x"}, {"b", "a/1"}, {"b", "z"}, {"default", "x"}};
    for (int i = 0; i < 4; i++) {
        CHECK(strcmp(infos[i].container, expected[i][0]) == 0 && strcmp(infos[i].name, expected[i][1]) == 0);
        CHECK_EQ(infos[i].kind, WEIR_RESOURCE_HOST);
        CHECK(strcmp(infos[i].type_name, "counter") == 0);
        CHECK_EQ(infos[i].references, i == 2);
    }
    CHECK_OK(weir_resource_list(engine, "default", infos, 4, &count));
    CHECK_EQ(count, 1);
    CHECK_OK(weir_resource_clear(engine, "b", &count));
    CHECK_EQ(count, 2);
    CHECK_EQ(destroyed, 1);
    CHECK_OK(weir_resource_clear(engine, "b", NULL));
    CHECK_OK(weir_resource_clear(engine, NULL, NULL));
    CHECK_EQ(destroyed, 2);
    weir_resource_release(held);
    CHECK_EQ(destroyed, 3);
    weir_engine_release(engine);
    CHECK_EQ(destroyed, 4);
}

typedef struct builder {
    weir_engine *engine;
    atomic_int built, destroyed;
    int fail;
} builder;

static weir_status build(void *arg, weir_resource **out) {
    builder *b = (builder *)arg;
    atomic_fetch_add(&b->built, 1);
    sleep_ms(5);
    if (b->fail) return WEIR_DATA_LOSS;
    return weir_resource_create_host(b->engine, NULL, NULL, "counter", &b->destroyed, count_destroy, out);
}

static void *ask(void *arg) {
    builder *b = (builder *)arg;
    weir_resource *resource = NULL;
    CHECK_OK(weir_resource_lookup_or_create(b->engine, "shared", "one", WEIR_RESOURCE_HOST, build, b, &resource));
    return resource;
}

static weir_status build_nothing(void *arg, weir_resource **out) {
    (void)arg;
    (void)out;
    return WEIR_OK;
}

/* Asks for the very thing that it builds. */
static weir_status build_in_a_circle(void *arg, weir_resource **out) {
    builder *b = (builder *)arg;
    return weir_resource_lookup_or_create(b->engine, "shared", "circle", WEIR_RESOURCE_ANY, build, b, out);
}

static void test_one_builder(void) {
    enum { THREADS = 6 };
    builder b = {.engine = make_engine(NULL)};
    pthread_t threads[THREADS];
    void *found[THREADS];
    weir_resource *resource = NULL;
    for (int i = 0; i < THREADS; i++) CHECK_EQ(pthread_create(&threads[i], NULL, ask, &b), 0);
    for (int i = 0; i < THREADS; i++) CHECK_EQ(pthread_join(threads[i], &found[i]), 0);
    for (int i = 0; i < THREADS; i++) CHECK(found[i] == found[0]);
    CHECK_EQ(b.built, 1);
    for (int i = 0; i < THREADS; i++) weir_resource_release((weir_resource *)found[i]);

    b.fail = 1;
    CHECK_CODE(weir_resource_lookup_or_create(b.engine, "shared", "bad", 0, build, &b, &resource), WEIR_DATA_LOSS,
               "the build function of 'bad' failed with DATA_LOSS");
    b.fail = 0;
    CHECK_CODE(weir_resource_lookup_or_create(b.engine, "shared", "bad", 0, build_nothing, &b, &resource),
               WEIR_INVALID_ARGUMENT, "the build function of 'bad' gave no resource");
    CHECK_CODE(weir_resource_lookup_or_create(b.engine, "shared", "bad", WEIR_RESOURCE_TABLE, build, &b, &resource),
               WEIR_INVALID_ARGUMENT, "is no table");
    CHECK_CODE(weir_resource_lookup_or_create(b.engine, "shared", "circle", 0, build_in_a_circle, &b, &resource),
               WEIR_FAILED_PRECONDITION, "the build function of 'circle' failed with FAILED_PRECONDITION");
    CHECK_EQ(b.destroyed, 1); /* the one that was no table */
    CHECK_OK(weir_resource_lookup_or_create(b.engine, "shared", "bad", 0, build, &b, &resource));
    weir_resource_release(resource);
    weir_engine_release(b.engine);
    CHECK_EQ(b.destroyed, 3);
}

/* What the host still holds when the engine goes is listed by name, and goes with its last reference. */
static void test_leaks(void) {
    weir_engine *engine = make_engine(NULL);
    atomic_int destroyed = 0;
    char text[256];
    size_t length = 0;
    weir_resource *held = keep(engine, "cache", "forgotten", &destroyed);
    weir_resource_release(keep(engine, "cache", "fine", &destroyed));
    CHECK_EQ(runtime_info().leaked_resources, 0);
    weir_engine_release(engine);
    CHECK_EQ(destroyed, 1);
    CHECK_EQ(runtime_info().leaked_resources, 1);
    CHECK_OK(weir_resource_get_leaks(text, sizeof text, &length));
    CHECK(strcmp(text, "engine cpu:0: host object 'forgotten' of container 'cache' (1 references)\n") == 0);
    CHECK_EQ(length, strlen(text));
    CHECK_CODE(weir_resource_get_leaks(text, 8, &length), WEIR_OUT_OF_RANGE, "capacity is 8");
    weir_resource_release(held);
    CHECK_EQ(destroyed, 2);
    CHECK_EQ(runtime_info().leaked_resources, 0);
    CHECK_OK(weir_resource_get_leaks(NULL, 0, &length));
    CHECK_EQ(length, 0);
}

int main(void) {
    weir_runtime_info before = runtime_info();
    test_names();
    test_containers();
    test_one_builder();
    test_leaks();
    check_released(&before);
    puts("resources are found by name, built once, and let go of");
    return 0;
}
