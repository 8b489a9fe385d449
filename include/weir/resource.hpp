// What an engine keeps by name: variables, lookup tables, objects of yours.
// SPDX-License-Identifier: MIT OR Apache-2.0

#ifndef WEIR_RESOURCE_HPP
#define WEIR_RESOURCE_HPP

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "resource.h"
#include "kernel.hpp"

namespace weir {

/// Where a resource is kept: `{"name"}` or `{"name", "container"}`; without a name nowhere.
struct place {
    place() = default;
    /// A name in a container of the engine's.
    place(std::string its_name, std::string its_container = "default")
        : name(std::move(its_name)), container(std::move(its_container)) {}
    /// A name in the container "default".
    place(const char *its_name) : place(std::string(its_name)) {}
    /// The name as C wants it: nullptr where there is none.
    const char *name_or_null() const noexcept { return name.empty() ? nullptr : name.c_str(); }
    std::string name;                  ///< Empty for a resource that nobody finds by name.
    std::string container = "default"; ///< Has names of its own.
};

/// A resource of any kind.
class resource : public shared<weir_resource> {
public:
    using shared::shared;
    resource() noexcept = default;

    weir_resource_info info() const {
        auto info = sized<weir_resource_info>();
        check(weir_resource_get_info(get(), &info));
        return info;
    }
    /// The number that from_id finds it by.
    std::uint64_t id() const { return info().id; }

    static resource from_id(const engine &on, std::uint64_t id) {
        resource found;
        check(weir_resource_from_id(on, id, found.out()));
        return found;
    }
    /// True if there was one; the resource ends with its last reference.
    static bool remove(const engine &on, const place &at) {
        const weir_status status = weir_resource_delete(on, at.container.c_str(), at.name.c_str());
        return status != WEIR_NOT_FOUND && check(status);
    }
    /// How many there were.
    static std::size_t clear(const engine &on, const std::string &container = "default") {
        std::size_t count = 0;
        check(weir_resource_clear(on, container.c_str(), &count));
        return count;
    }
    /// Of all containers, in the order of containers and names.
    static std::vector<weir_resource_info> list(const engine &on) {
        for (;;) {
            std::size_t count = 0;
            check(weir_resource_list(on, nullptr, nullptr, 0, &count));
            std::vector<weir_resource_info> infos(count + 4);
            infos[0].struct_size = sizeof infos[0];
            const weir_status status = weir_resource_list(on, nullptr, infos.data(), infos.size(), &count);
            if (status == WEIR_OUT_OF_RANGE) continue; // more have come meanwhile
            check(status);
            infos.resize(count);
            return infos;
        }
    }
    /// What is still referenced although its engine is gone, a line for each.
    static std::string leaks() { return detail::text(weir_resource_get_leaks); }

    /// Keeps a copy of an object of yours under `type`; it is destroyed with the last reference.
    template <class T>
    static resource keep(const engine &on, const place &at, const std::string &type, T object) {
        auto kept = std::unique_ptr<T>(new T(std::move(object)));
        const weir_destroy_fn destroy = [](void *self) noexcept { delete static_cast<T *>(self); };
        resource made;
        if (check(weir_resource_create_host(on, at.container.c_str(), at.name_or_null(), type.c_str(), kept.get(),
                                            destroy, made.out()))) {
            static_cast<void>(kept.release());
        }
        return made;
    }
    /// The object that was kept under this type. A program without exceptions asks with weir_resource_get_host where
    /// there may be none: a reference cannot be empty.
    template <class T>
    T &object(const std::string &type) const {
        void *object = nullptr;
        check(weir_resource_get_host(get(), type.c_str(), &object));
        return *static_cast<T *>(object);
    }
    /// The one that is there, or what make() gives, which is a resource of this kind without a name. Of several threads
    /// one makes it.
    template <class Make>
    static resource find_or_make(const engine &on, const place &at, weir_resource_kind kind, Make &&make) {
        const weir_resource_build_fn build = [](void *arg, weir_resource **out) noexcept -> weir_status {
            auto run = [&] { *out = (*static_cast<std::remove_reference_t<Make> *>(arg))().detach(); };
            return detail::guarded(detail::silent, run);
        };
        resource found;
        check(weir_resource_lookup_or_create(on, at.container.c_str(), at.name.c_str(), kind, build,
                                             const_cast<void *>(static_cast<const void *>(std::addressof(make))),
                                             found.out()));
        return found;
    }
    static resource find(const engine &on, const place &at, weir_resource_kind kind = WEIR_RESOURCE_ANY) {
        resource found;
        check(weir_resource_lookup(on, at.container.c_str(), at.name.c_str(), kind, found.out()));
        return found;
    }
};

/// A tensor that lives between runs.
class variable : public resource {
public:
    using resource::resource;
    variable() noexcept = default;
    variable(const engine &on, const place &at, const weir_tensor_desc &desc,
             std::uint64_t flags = WEIR_VARIABLE_EXCLUSIVE) {
        check(weir_variable_create(on, at.container.c_str(), at.name_or_null(), &desc, flags, nullptr, out()));
    }
    variable(const engine &on, const place &at, const tensor &initial, std::uint64_t flags = WEIR_VARIABLE_EXCLUSIVE) {
        const weir_tensor_desc desc = initial.desc();
        check(weir_variable_create(on, at.container.c_str(), at.name_or_null(), &desc, flags, initial, out()));
    }
    static variable find(const engine &on, const place &at) {
        variable found;
        check(weir_resource_lookup(on, at.container.c_str(), at.name.c_str(), WEIR_RESOURCE_VARIABLE, found.out()));
        return found;
    }
    void read(const tensor &into) const { check(weir_variable_read(get(), into)); }
    void assign(const tensor &value) const { check(weir_variable_assign(get(), value)); }

    // Kernels of this variable.

    /// A kernel that reads the variable into its output.
    kernel reader(const engine &on, const kernel_options &options = {}) const {
        return make(WEIR_VARIABLE_READ, on, options);
    }
    /// A kernel that gives the variable the value of its input.
    kernel assigner(const engine &on, const kernel_options &options = {}) const {
        return make(WEIR_VARIABLE_ASSIGN, on, options);
    }
    /// A kernel that adds its input to the variable.
    kernel adder(const engine &on, const kernel_options &options = {}) const {
        return make(WEIR_VARIABLE_ASSIGN_ADD, on, options);
    }

private:
    kernel make(weir_variable_op op, const engine &on, const kernel_options &options) const {
        weir_kernel *raw = nullptr;
        check(weir_kernel_create_variable(on, get(), op, &options, &raw));
        return kernel(raw);
    }
};

/// 64-bit integers or byte strings to rows of T, each of `row` elements.
template <class T>
class table : public resource {
public:
    using resource::resource;
    table() noexcept = default;
    table(const engine &on, const place &at, weir_table_key key, const weir_tensor_desc &row) {
        auto desc = sized<weir_table_desc>();
        desc.key = key;
        desc.row = row;
        check(weir_table_create(on, at.container.c_str(), at.name_or_null(), &desc, out()));
    }
    /// How many rows it has now.
    std::size_t size() const { return info().rows; }

    void insert(const std::vector<std::int64_t> &keys, const std::vector<T> &rows) const {
        const auto raw = as_keys(keys);
        check(weir_table_insert(get(), &raw, rows.data(), rows.size() * sizeof(T)));
    }
    void insert(const std::vector<std::string> &keys, const std::vector<T> &rows) const {
        const views as_views(keys);
        const auto raw = as_views.keys();
        check(weir_table_insert(get(), &raw, rows.data(), rows.size() * sizeof(T)));
    }
    /// The rows one behind the other; `default_row` (empty: zeros) for keys that are not there.
    std::vector<T> find(const std::vector<std::int64_t> &keys, const std::vector<T> &default_row = {}) const {
        return find_raw(as_keys(keys), default_row);
    }
    /// The same for keys that are byte strings.
    std::vector<T> find(const std::vector<std::string> &keys, const std::vector<T> &default_row = {}) const {
        const views as_views(keys);
        return find_raw(as_views.keys(), default_row);
    }

    /// Keys in ascending order, and their rows one behind the other.
    struct contents {
        std::vector<std::int64_t> integers; ///< The keys, where they are integers.
        std::vector<std::string> strings;   ///< The keys, where they are byte strings.
        std::vector<T> rows;                ///< One row for each key.
    };
    /// All rows of one moment; others may write meanwhile.
    contents contents_now() const {
        for (;;) {
            auto raw = sized<weir_table_contents>();
            contents all;
            if (!check(weir_table_export(get(), &raw))) return all;
            // Of the two arrays for keys weir fills the one that the table has.
            const auto not_filled = static_cast<std::size_t>(-1);
            std::vector<std::size_t> lengths(raw.count, not_filled);
            std::vector<char> bytes(raw.bytes_size);
            all.integers.resize(raw.count);
            all.rows.resize(raw.rows_size / sizeof(T));
            raw.capacity = raw.count;
            raw.integers = all.integers.data(), raw.lengths = lengths.data();
            raw.bytes = bytes.data(), raw.bytes_capacity = bytes.size();
            raw.rows = all.rows.data(), raw.rows_capacity = all.rows.size() * sizeof(T);
            const weir_status status = weir_table_export(get(), &raw);
            if (status == WEIR_OUT_OF_RANGE) continue; // more have come meanwhile
            check(status);
            if (lengths.empty() || lengths.front() == not_filled) return all;
            all.integers.clear();
            const char *at = bytes.data();
            for (std::size_t length : lengths) {
                all.strings.emplace_back(at, length);
                at += length;
            }
            return all;
        }
    }

    // Kernels of this table.

    /// A kernel that finds the rows of its keys.
    kernel finder(const engine &on, const kernel_options &options = {}) const {
        return make(WEIR_TABLE_FIND, on, options);
    }
    /// A kernel that inserts keys with their rows.
    kernel inserter(const engine &on, const kernel_options &options = {}) const {
        return make(WEIR_TABLE_INSERT, on, options);
    }
    /// A kernel that says how many rows there are.
    kernel sizer(const engine &on, const kernel_options &options = {}) const {
        return make(WEIR_TABLE_SIZE, on, options);
    }

private:
    kernel make(weir_table_op op, const engine &on, const kernel_options &options) const {
        weir_kernel *raw = nullptr;
        check(weir_kernel_create_table(on, get(), op, &options, &raw));
        return kernel(raw);
    }
    struct views {
        explicit views(const std::vector<std::string> &keys) {
            for (const auto &key : keys) {
                bytes.push_back(key.data());
                lengths.push_back(key.size());
            }
        }
        weir_table_keys keys() const {
            auto raw = sized<weir_table_keys>();
            raw.count = bytes.size();
            raw.bytes = bytes.data();
            raw.lengths = lengths.data();
            return raw;
        }
        std::vector<const void *> bytes;
        std::vector<std::size_t> lengths;
    };
    static weir_table_keys as_keys(const std::vector<std::int64_t> &keys) {
        auto raw = sized<weir_table_keys>();
        raw.count = keys.size();
        raw.integers = keys.data();
        return raw;
    }
    std::vector<T> find_raw(const weir_table_keys &keys, const std::vector<T> &default_row) const {
        std::size_t elements = 1;
        const weir_tensor_desc row = info().desc;
        for (std::uint32_t i = 0; i < row.rank; i++) elements *= static_cast<std::size_t>(row.dims[i]);
        if (!default_row.empty() && default_row.size() != elements) {
            detail::fail(WEIR_INVALID_ARGUMENT, "weir::table: default_row is no row");
            return {};
        }
        std::vector<T> rows(keys.count * elements);
        if (!check(weir_table_find(get(), &keys, default_row.empty() ? nullptr : default_row.data(), rows.data(),
                                   rows.size() * sizeof(T), nullptr, nullptr))) {
            rows.clear();
        }
        return rows;
    }
};

} // namespace weir

#endif // WEIR_RESOURCE_HPP
