/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * A program outside of weir's tree, just large enough to prove that the library is found, loads and works: it adds two
 * vectors.
 */

#include <weir.h>
#include <weir/ops.h>

#include <stdio.h>
#include <stdlib.h>

static void check(weir_status status, const char *call) {
    if (status != WEIR_OK) {
        fprintf(stderr, "%s: %s: %s\n", call, weir_status_name(status), weir_last_error_message());
        exit(1);
    }
}

#define CHECK(call) check((call), #call)

int main(void) {
    float a[3] = {1.0f, 2.0f, 3.0f};
    float b[3] = {10.0f, 20.0f, 30.0f};
    float sum[3] = {0.0f, 0.0f, 0.0f};
    float *data[3];
    const weir_tensor_desc desc = {WEIR_F32, 1, {3}};
    weir_engine *engine = NULL;
    weir_stream *stream = NULL;
    weir_kernel *add = NULL;
    weir_binary_desc plus = {0};
    weir_tensor *tensors[3] = {NULL, NULL, NULL};

    data[0] = a;
    data[1] = b;
    data[2] = sum;
    CHECK(weir_check_version(WEIR_VERSION_MAJOR, WEIR_VERSION_MINOR));
    CHECK(weir_engine_create(WEIR_ENGINE_CPU, 0, NULL, &engine));
    CHECK(weir_stream_create(engine, WEIR_STREAM_DEFAULT, NULL, &stream));
    plus.struct_size = sizeof plus;
    plus.op = WEIR_BINARY_ADD;
    CHECK(weir_kernel_create_binary(engine, &plus, NULL, &add));
    for (int i = 0; i < 3; i++) {
        CHECK(weir_tensor_create(engine, &desc, &(weir_memory){.struct_size = sizeof(weir_memory), .data = data[i]}, &tensors[i]));
    }
    CHECK(weir_enqueue(stream, add, tensors, 2, &tensors[2], 1));
    CHECK(weir_sync_devices(WEIR_TIMEOUT_INFINITE, NULL, 0, NULL));
    for (int i = 0; i < 3; i++) {
        weir_tensor_release(tensors[i]);
    }
    weir_kernel_release(add);
    weir_stream_release(stream);
    weir_engine_release(engine);

    printf("weir %s: %g %g %g\n", weir_version_string(), sum[0], sum[1], sum[2]);
    return sum[0] == 11.0f && sum[1] == 22.0f && sum[2] == 33.0f ? 0 : 1;
}
