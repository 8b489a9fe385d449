// Tensors to and from other libraries, by DLPack.
// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Not part of weir.hpp: the structs are those of dlpack.h, which is included first where a program has it.

#ifndef WEIR_DLPACK_HPP
#define WEIR_DLPACK_HPP

#include <cstdint>
#include <memory>

#include "dlpack.h"
#include "kernel.hpp"

namespace weir {

namespace detail {

template <class Managed>
struct dlpack_deleter {
    void operator()(Managed *managed) const noexcept {
        if (managed->deleter) managed->deleter(managed);
    }
};

} // namespace detail

/// An exported tensor. To pass it on, release it: `exported.release()`.
using dlpack_tensor = std::unique_ptr<DLManagedTensorVersioned, detail::dlpack_deleter<DLManagedTensorVersioned>>;
/// The same in the form without a version.
using dlpack_legacy_tensor = std::unique_ptr<DLManagedTensor, detail::dlpack_deleter<DLManagedTensor>>;

/// The same memory for another library; `producer` (may be empty) writes it. See weir_tensor_to_dlpack.
inline dlpack_tensor to_dlpack(const tensor &tensor, const stream &producer = stream(),
                               const stream &consumer = stream(), std::uint64_t flags = 0) {
    return dlpack_tensor(detail::value<DLManagedTensorVersioned *>(weir_tensor_to_dlpack, tensor.get(), producer.get(),
                                                                   consumer.get(), flags));
}

inline dlpack_legacy_tensor to_dlpack_legacy(const tensor &tensor, const stream &producer = stream(),
                                             const stream &consumer = stream(), std::uint64_t flags = 0) {
    return dlpack_legacy_tensor(detail::value<DLManagedTensor *>(weir_tensor_to_dlpack_legacy, tensor.get(),
                                                                 producer.get(), consumer.get(), flags));
}

/// A tensor over another library's memory, which `managed` hands over unless this fails. See weir_tensor_from_dlpack.
inline tensor from_dlpack(const engine &on, dlpack_tensor managed, std::uint64_t flags = 0) {
    weir_tensor *raw = nullptr;
    if (check(weir_tensor_from_dlpack(on, managed.get(), flags, &raw))) static_cast<void>(managed.release());
    return tensor(raw);
}

inline tensor from_dlpack(const engine &on, dlpack_legacy_tensor managed, std::uint64_t flags = 0) {
    weir_tensor *raw = nullptr;
    if (check(weir_tensor_from_dlpack_legacy(on, managed.get(), flags, &raw))) static_cast<void>(managed.release());
    return tensor(raw);
}

} // namespace weir

#endif // WEIR_DLPACK_HPP
