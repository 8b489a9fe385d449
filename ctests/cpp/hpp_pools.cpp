// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Thread pools from C++ classes and lambdas: each kind runs regions and streams, and is let go of once.

#include "weir.hpp"

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "weir/testing.hpp"

#include "expect.hpp"

namespace {

// Threads that take functions from a queue.
class workers {
public:
    explicit workers(int n) {
        for (int i = 0; i < n; i++) threads_.emplace_back([this, i] { work(i); });
    }
    ~workers() {
        {
            const std::lock_guard<std::mutex> lock(mutex_);
            ending_ = true;
        }
        changed_.notify_all();
        for (auto &thread : threads_) thread.join();
    }
    void push(std::function<void()> f) {
        {
            const std::lock_guard<std::mutex> lock(mutex_);
            queue_.push_back(std::move(f));
        }
        changed_.notify_one();
    }
    int size() const { return static_cast<int>(threads_.size()); }
    static thread_local int index;

private:
    void work(int i) {
        index = i;
        std::unique_lock<std::mutex> lock(mutex_);
        for (;;) {
            changed_.wait(lock, [this] { return ending_ || !queue_.empty(); });
            if (queue_.empty()) return;
            auto f = std::move(queue_.front());
            queue_.pop_front();
            lock.unlock();
            f();
            lock.lock();
        }
    }
    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<std::function<void()>> queue_;
    bool ending_ = false;
    std::vector<std::thread> threads_;
};

thread_local int workers::index = -1;

std::atomic<int> pools_alive{0};

struct counted {
    counted() { ++pools_alive; }
    ~counted() { --pools_alive; }
};

// schedule only, as a template that takes any callable.
struct scheduling_pool : counted {
    workers &threads;
    std::atomic<int> asked{0};
    explicit scheduling_pool(workers &w) : threads(w) {}
    int num_threads() const { return threads.size(); }
    template <class F>
    void schedule(F task) {
        ++asked;
        threads.push(task);
    }
};

// parallel_for only; it waits for its tasks.
struct bulk_pool : counted {
    workers &threads;
    std::atomic<int> asked{0};
    explicit bulk_pool(workers &w) : threads(w) {}
    int num_threads() const noexcept { return threads.size(); }
    template <class F>
    bool parallel_for(int n, F task) {
        ++asked;
        std::mutex mutex;
        std::condition_variable done;
        int left = n;
        for (int i = 0; i < n; i++) {
            threads.push([&, i] {
                task(i);
                const std::lock_guard<std::mutex> lock(mutex);
                if (--left == 0) done.notify_one();
            });
        }
        std::unique_lock<std::mutex> lock(mutex);
        done.wait(lock, [&] { return left == 0; });
        return true;
    }
};

// Everything that a pool may have.
struct full_pool : counted {
    static constexpr std::uint64_t flags = WEIR_THREADPOOL_NESTED | WEIR_THREADPOOL_AUTO_BALANCING;
    workers &threads;
    std::atomic<int> asked{0}, priority{0};
    explicit full_pool(workers &w) : threads(w) {}
    int num_threads() { return threads.size(); }
    void parallel_for(int n, weir::pool_task task) {
        for (int i = 0; i < n; i++) task(i);
    }
    bool schedule(weir::pool_task task, const weir_task_hint &hint) {
        ++asked;
        priority = hint.priority;
        threads.push(task);
        return true;
    }
    bool in_parallel() const { return workers::index >= 0; }
    int thread_index() const { return workers::index; }
    bool help() { return false; }
    int max_threads() const { return threads.size(); }
};

// Each item once, on the pool and in the caller.
void check_regions(const weir::threadpool &pool) {
    auto hint = weir::sized<weir_parallel_hint>();
    hint.cost_ns = 100000;
    for (int n : {0, 1, 2, 7, 1000}) {
        std::vector<std::atomic<int>> items(static_cast<std::size_t>(n));
        weir::parallel_for(pool, n, [&](std::int64_t begin, std::int64_t end, std::int32_t slot) {
            EXPECT(slot >= 0 && slot <= pool.num_threads());
            for (std::int64_t i = begin; i < end; i++) ++items[static_cast<std::size_t>(i)];
        }, &hint);
        for (const auto &item : items) EXPECT(item == 1);
    }
    EXPECT_THROWS(weir::parallel_for(pool, 10, [](std::int64_t, std::int64_t, std::int32_t) { return WEIR_ABORTED; }),
                  WEIR_ABORTED, "weir_parallel_for");
}

void check_stream(const weir::threadpool &pool) {
    const auto engine = weir::engine::cpu(pool);
    const weir::stream stream(engine, WEIR_STREAM_ASYNCHRONOUS, weir::stream_attr().set_priority(7));
    int in_order = 0;
    for (int i = 0; i < 100; i++) {
        stream.enqueue([&in_order, i] { return in_order++ == i ? WEIR_OK : WEIR_INTERNAL; });
    }
    stream.synchronize();
    EXPECT(in_order == 100);
}

void check_pool(const weir::threadpool &pool, int width) {
    EXPECT(pool.num_threads() == width && !pool.in_parallel());
    check_regions(pool);
    check_stream(pool);
}

template <class P>
std::shared_ptr<P> check_class(workers &threads, std::uint64_t flags) {
    const auto host = std::make_shared<P>(threads);
    auto pool = weir::threadpool::from(host);
    EXPECT(pool.flags() == flags);
    check_pool(pool, threads.size());
    EXPECT(host.use_count() == 2 && host->asked > 0);
    pool = weir::threadpool();
    eventually([&] {
        static_cast<void>(weir::runtime_info());
        return host.use_count() == 1;
    });
    return host;
}

void test_classes(workers &threads) {
    check_class<scheduling_pool>(threads, 0);
    check_class<bulk_pool>(threads, 0);
    EXPECT(check_class<full_pool>(threads, full_pool::flags)->priority == 7);
    EXPECT(pools_alive == 0);
    full_pool on_the_stack(threads);
    check_pool(weir::threadpool::from_ref(on_the_stack), threads.size());
}

void test_lambdas(workers &threads) {
    const auto state = std::make_shared<std::atomic<int>>(0);
    {
        const auto pool = weir::threadpool::from_schedule(3, [state, &threads](auto task) {
            ++*state;
            threads.push(task);
        });
        check_pool(pool, 3);
        EXPECT(*state > 0);
    }
    eventually([&] {
        static_cast<void>(weir::runtime_info());
        return state.use_count() == 1;
    });
    check_pool(weir::threadpool::from_parallel_for(5, [](int n, auto task) {
        for (int i = n; i-- > 0;) task(i);
    }), 5);
    const auto asynchronous = weir::threadpool::from_parallel_for(2, [&threads](int n, weir::pool_task task) {
        for (int i = 0; i < n; i++) threads.push([task, i] { task(i); });
    }, WEIR_THREADPOOL_ASYNCHRONOUS);
    EXPECT(asynchronous.flags() == WEIR_THREADPOOL_ASYNCHRONOUS);
    check_pool(asynchronous, 2);
    check_pool(weir::threadpool::from_schedule(2, [](weir::pool_task) { return false; }), 2); // refuses everything
}

// A pool for one call: an object on the stack, which nothing calls after the scope.
struct call_object {
    workers &threads;
    std::atomic<int> &calls;
    std::atomic<bool> &over;
    int num_threads() const {
        EXPECT(!over);
        return threads.size();
    }
    void schedule(weir::pool_task task) {
        EXPECT(!over);
        ++calls;
        threads.push(task);
    }
    bool in_parallel() const {
        EXPECT(!over);
        return workers::index >= 0;
    }
};

void test_pools_of_calls(workers &threads) {
    std::atomic<int> calls{0}, items{0};
    for (int i = 0; i < 100; i++) {
        std::atomic<bool> over{false};
        call_object object{threads, calls, over};
        {
            weir::call_threadpool<call_object> pool(object);
            auto hint = weir::sized<weir_parallel_hint>();
            hint.cost_ns = 1e6;
            weir::parallel_for(pool, 8, [&](std::int64_t begin, std::int64_t end, std::int32_t) {
                items += static_cast<int>(end - begin);
            }, &hint);
        }
        over = true;
    }
    EXPECT(items == 800 && calls > 0);
    auto kept = weir::threadpool::from_schedule(2, [](weir::pool_task) { return false; });
    kept.close();
    EXPECT_THROWS(kept.num_threads(), WEIR_FAILED_PRECONDITION, "is closed");
}

void test_reference_pools() {
    check_pool(weir::threadpool::builtin(2), 2);
    check_pool(weir::threadpool::builtin(weir::threadpool_options().set_num_threads(3).set_spin_ns(WEIR_SPIN_NONE)), 3);
    EXPECT(weir::threadpool::builtin().num_threads() >= 1);
    check_pool(weir::threadpool::without_threads(), 1);
    check_pool(weir::testing::seeded_pool(5, 3), 3);
    EXPECT_THROWS(weir::testing::seeded_pool(5, 0), WEIR_INVALID_ARGUMENT, "num_threads is 0");
    weir::parallel_for(weir::threadpool(), 3, [](std::int64_t begin, std::int64_t end, std::int32_t slot) {
        EXPECT(begin < end && slot == 0);
    });
}

// Others that are given the functions of a pool may have no hint.
struct hinted {
    std::int32_t num_threads() const { return 1; }
    void schedule(weir::pool_task task, const weir_task_hint &hint) const {
        EXPECT(hint.cost_ns == 0 && hint.priority == 0);
        task();
    }
};

void test_tasks_without_a_hint() {
    void *ctx = nullptr;
    int ran = 0;
    const auto vtable = weir::threadpool::vtable_of(std::make_shared<hinted>(), &ctx);
    const auto count = [](void *arg, std::int32_t) { ++*static_cast<int *>(arg); };
    EXPECT(vtable.schedule(ctx, count, &ran, nullptr) == 0 && ran == 1);
    vtable.release(ctx);
}

long fib(const weir::threadpool &pool, int n) {
    if (n < 2) return n;
    long one = 0;
    const weir::task_group group(pool);
    group.run([&pool, &one, n] { one = fib(pool, n - 1); });
    const long two = fib(pool, n - 2);
    group.synchronize();
    return one + two;
}

void test_task_groups() {
    const auto pool = weir::threadpool::builtin(2);
    EXPECT(!weir::task_group(nullptr).get());
    EXPECT(fib(pool, 15) == 610);
    EXPECT(fib(weir::threadpool(), 10) == 55);
    weir::task_group group(pool);
    // One that is copied as bytes, and one that has to be kept.
    int number = 0;
    const auto kept = std::make_shared<std::atomic<int>>(0);
    group.run([&number] { number = 7; });
    group.run([kept, text = std::string("a text that is not small")] { *kept = static_cast<int>(text.size()); });
    group.synchronize();
    EXPECT(number == 7 && *kept == 24 && kept.use_count() == 1);
    group.run([] { throw weir::error(WEIR_DATA_LOSS, "as planned"); });
    EXPECT_THROWS(group.synchronize(), WEIR_DATA_LOSS, "a task of the group");
    group.run([&group]() -> weir_status {
        EXPECT(!group.is_stopped());
        group.cancel();
        EXPECT(group.is_stopped());
        return WEIR_OK;
    });
    EXPECT_THROWS(group.synchronize(), WEIR_CANCELLED, "cancelled");
    std::atomic<int> told{-1};
    group.run([kept] { *kept = 1; });
    group.notify([&told](weir_status status) { told = status; });
    while (told < 0) std::this_thread::yield();
    EXPECT(told == WEIR_OK && *kept == 1);
    weir::task_group same = group;
    EXPECT(same.get() == group.get());
}

// A class of a pool that gives each task 0 twice.
struct twice {
    std::int32_t num_threads() { return 2; }
    void parallel_for(std::int32_t n, weir::pool_task task) {
        for (std::int32_t i = 0; i < n; i++) task(i);
        task(0);
    }
};

void test_checked_pools() {
    const auto checked = weir::threadpool_options().set_checking(true);
    twice object;
    const auto again = [](std::int32_t n, weir::pool_task task) { twice().parallel_for(n, task); };
    const auto dropped = [](weir::pool_task task) { task(), task(); };
    weir::call_threadpool<twice> of_call(object, checked);
    const weir::threadpool &borrowed = of_call;
    for (const auto &pool : {weir::threadpool::from(std::make_shared<twice>(), checked), borrowed,
                             weir::threadpool::from_ref(object, checked),
                             weir::threadpool::from_parallel_for(2, again, 0, checked),
                             weir::threadpool::from_schedule(2, dropped, 0, checked)}) {
        EXPECT(pool.broken_clause().empty());
        auto hint = weir::sized<weir_parallel_hint>();
        hint.cost_ns = 1e6;
        std::atomic<int> calls{0};
        const auto count = [&calls](std::int64_t begin, std::int64_t end, std::int32_t) {
            calls += static_cast<int>(end - begin);
        };
        EXPECT_THROWS(weir::parallel_for(pool, 8, count, &hint), WEIR_FAILED_PRECONDITION, "");
        EXPECT(calls == 8 && !pool.broken_clause().empty());
    }
}

} // namespace

int main() {
    const auto before = weir::runtime_info();
    {
        workers threads(3);
        test_classes(threads);
        test_lambdas(threads);
        test_pools_of_calls(threads);
        test_reference_pools();
        test_tasks_without_a_hint();
        test_task_groups();
        test_checked_pools();
        expect_released(before);
    }
    return 0;
}
