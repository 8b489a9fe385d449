// Communicators: ranks, and operations between them.
// SPDX-License-Identifier: MIT OR Apache-2.0

#ifndef WEIR_COMM_HPP
#define WEIR_COMM_HPP

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "comm.h"
#include "graph.hpp"
#include "handle.hpp"
#include "kernel.hpp"

namespace weir {

/// Options of a communicator: the members of weir_comm_options, with setters that chain. The name must be valid until
/// the communicator is made.
struct comm_options : weir_comm_options {
    comm_options() noexcept : weir_comm_options{} { struct_size = sizeof(weir_comm_options); }
    comm_options &set_name(const char *value) noexcept { return name = value, *this; }
    comm_options &set_flags(std::uint64_t value) noexcept { return flags = value, *this; }
    comm_options &set_limit_ns(std::uint64_t value) noexcept { return limit_ns = value, *this; }
};

/// An operation between ranks: the members of weir_communication, with setters that chain.
struct communication : weir_communication {
    /** With defaults for all but its operation. */
    explicit communication(weir_comm_op what) noexcept : weir_communication{} {
        struct_size = sizeof(weir_communication);
        op = what;
    }
    communication &set_reduction(weir_comm_reduction value) noexcept { return reduction = value, *this; }
    communication &set_peer(std::int32_t value) noexcept { return peer = value, *this; }
    communication &set_tag(std::int32_t value) noexcept { return tag = value, *this; }
    communication &set_desc(const weir_tensor_desc &value) noexcept { return desc = value, *this; }
    communication &set_flags(std::uint64_t value) noexcept { return flags = value, *this; }
    communication &set_num_tensors(std::size_t value) noexcept { return num_tensors = value, *this; }
};

/// Ranks that exchange values:
///
///     weir::kernel sum = comm.kernel(engine, weir::communication(WEIR_COMM_ALL_REDUCE));
class comm : public shared<weir_comm> {
public:
    using shared::shared;
    comm() noexcept = default;
    /// Over a transport of the program's. On success `ctx` is the communicator's, which releases it.
    comm(const weir_comm_vtable &vtable, void *ctx, const comm_options &options = {}) {
        check(weir_comm_create(&vtable, ctx, &options, out()));
    }
    /// Ranks in this process, in their order.
    static std::vector<comm> local(std::int32_t size, const comm_options &options = {}) {
        std::vector<weir_comm *> raw(size > 0 ? static_cast<std::size_t>(size) : 1);
        std::vector<comm> comms;
        if (!check(weir_comm_create_local(size, &options, raw.data()))) return comms;
        for (weir_comm *one : raw) comms.emplace_back(one);
        return comms;
    }
    weir_comm_info info() const {
        auto info = sized<weir_comm_info>();
        check(weir_comm_get_info(get(), &info));
        return info;
    }
    /// Among the same ranks, with operations of its own.
    comm duplicate(const weir_comm_options *options = nullptr) const {
        weir_comm *made = nullptr;
        check(weir_comm_duplicate(get(), options, &made));
        return comm(made);
    }
    /// Among the ranks with the same color; empty for a color below 0.
    comm split(std::int32_t color, std::int32_t key, const weir_comm_options *options = nullptr) const {
        weir_comm *made = nullptr;
        check(weir_comm_split(get(), color, key, options, &made));
        return comm(made);
    }
    /// Among the ranks that are left.
    comm recover(const weir_comm_options *options = nullptr) const {
        weir_comm *made = nullptr;
        check(weir_comm_recover(get(), options, &made));
        return comm(made);
    }
    /// Moves operations for up to `budget_ns`, and returns how many are left.
    std::int32_t progress(std::uint64_t budget_ns) const {
        std::int32_t pending = 0;
        check(weir_comm_progress(get(), budget_ns, &pending));
        return pending;
    }
    /// Ends the runs of all ranks.
    void abort(const std::string &text) const { check(weir_comm_abort(get(), text.c_str())); }
    /// An operation, for graphs and streams.
    weir::kernel kernel(const engine &on, const communication &what, const kernel_options &options = {}) const {
        weir_kernel *made = nullptr;
        check(weir_kernel_create_communication(on, get(), &what, &options, &made));
        return weir::kernel(made);
    }
    /// Compares the program with those of the other ranks.
    void agree(const program &with, std::uint64_t limit_ns) const {
        check(weir_program_agree(with.get(), get(), limit_ns));
    }
};

} // namespace weir

#endif // WEIR_COMM_HPP
