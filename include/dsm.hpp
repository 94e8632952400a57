/* SPDX-License-Identifier: BSD-3-Clause */
/* dsm.hpp - dsm.h for C++11 and later (GCC 9, Clang 9): containers, objects and arrays in shared memory, locks that
 * std::unique_lock, std::scoped_lock and std::shared_lock take, and atomics on shared words. Header only; link with
 * -lqdsm.
 *
 * Everything here is a thin layer on dsm.h, whose rules hold: who releases, who sees what, and which threads may call.
 * A pointer into shared memory is valid on all PEs, so a container whose elements and own variables both are in shared
 * memory (dsm::make) is one container of the whole job; like any data it is used under a lock, or between barriers. It
 * must hold nothing that is private to a PE: no pointer to other memory, no reference to a variable, no virtual
 * function.
 *
 * Classes of this file have the semantics of the standard's class of the same name. They are neither copied nor moved:
 * their address is what they are. A DSM_SHARED variable of such a class is one object of the job, if it is initialised
 * without arguments; an object with arguments, or in other memory, is constructed by one PE before the others use it.
 * Errors: std::bad_alloc where dsm.h returns NULL; other misuse ends the job with a message. */
#ifndef QUOIT_DSM_HPP
#define QUOIT_DSM_HPP

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <mutex>
#include <new>
#include <type_traits>
#include <utility>
#include <vector>

#include <dsm.h>

namespace dsm
{

namespace detail
{

inline void *allocate(std::size_t count, std::size_t bytes, std::size_t alignment)
{
    if (count > std::numeric_limits<std::size_t>::max() / bytes)
        throw std::bad_alloc();
    void *block =
        alignment > alignof(std::max_align_t) ? dsm_aligned_alloc(alignment, count * bytes) : dsm_malloc(count * bytes);
    if (!block)
        throw std::bad_alloc();
    return block;
}

/* Rounded up: a wait is never shorter than its duration, and one of centuries does not end. */
template <class Rep, class Period> std::uint64_t timeout_ns(const std::chrono::duration<Rep, Period> &duration)
{
    const double ns = std::chrono::duration<double, std::nano>(duration).count();
    return ns <= 0 ? 0 : ns >= 9e18 ? std::numeric_limits<std::uint64_t>::max() : static_cast<std::uint64_t>(ns) + 1;
}

/* The first word of an object, whose state is not in its bytes: a constructor gives it a new one, unless the compiler
 * evaluates it, for a DSM_SHARED variable, whose state is new in any case. */
inline std::uint64_t reset(dsm_flag_t *object) noexcept
{
    dsm_flag_init(object); /* for every kind the same */
    return 0;
}

template <class T, class... Args> void construct(void *place, Args &&...args) noexcept
{
    ::new (place) T(std::forward<Args>(args)...);
}

} /* namespace detail */
#define QUOIT_DSM_NEW(object)                                                                                          \
    {                                                                                                                  \
        __builtin_is_constant_evaluated() ? 0 : detail::reset(&(object))                                               \
    }

/* --- Memory. allocator: for containers of the standard library; all allocators are equal, on all PEs. vector: such a
 * container, whose own variables are where it was constructed. */
template <class T> struct allocator {
    using value_type = T;
    using is_always_equal = std::true_type;
    using propagate_on_container_move_assignment = std::true_type;

    allocator() noexcept = default;
    template <class U> allocator(const allocator<U> &) noexcept
    {
    }
    T *allocate(std::size_t count)
    {
        return static_cast<T *>(detail::allocate(count, sizeof(T), alignof(T)));
    }
    void deallocate(T *block, std::size_t) noexcept
    {
        dsm_free(block);
    }
};
template <class T, class U> bool operator==(const allocator<T> &, const allocator<U> &) noexcept
{
    return true;
}
template <class T, class U> bool operator!=(const allocator<T> &, const allocator<U> &) noexcept
{
    return false;
}
template <class T> using vector = std::vector<T, allocator<T>>;

/* One object in shared memory. make and destroy: any PE, any time; others use the object after they synchronised with
 * it. The all forms are collective: PE 0 constructs, or destroys, and all PEs return, with the same pointer, when that
 * is done. An exception of the constructor leaves make, and ends the job in all_make, whose other PEs wait. */
template <class T, class... Args> T *make(Args &&...args)
{
    void *place = detail::allocate(1, sizeof(T), alignof(T));
    try {
        return ::new (place) T(std::forward<Args>(args)...);
    } catch (...) {
        dsm_free(place);
        throw;
    }
}
template <class T> void destroy(T *object)
{
    if (!object)
        return;
    object->~T();
    dsm_free(object);
}
template <class T, class... Args> T *all_make(Args &&...args)
{
    static_assert(alignof(T) <= alignof(std::max_align_t), "dsm_all_malloc aligns as malloc does");
    void *place = dsm_all_malloc(sizeof(T));
    if (!place)
        throw std::bad_alloc();
    if (dsm_my_pe() == 0)
        detail::construct<T>(place, std::forward<Args>(args)...);
    dsm_barrier_all();
    return static_cast<T *>(place);
}
template <class T> void all_destroy(T *object)
{
    dsm_barrier_all();
    if (object && dsm_my_pe() == 0)
        object->~T();
    dsm_all_free(object);
}

/* --- Spans: a range of elements in shared memory, with what dsm.h does to ranges of pages. Copied like a pointer; a
 * std::span can be made of one. */
template <class T> class span
{
  public:
    using element_type = T;
    using value_type = typename std::remove_cv<T>::type;
    using iterator = T *;

    constexpr span() noexcept : data_(nullptr), size_(0)
    {
    }
    constexpr span(T *data, std::size_t size) noexcept : data_(data), size_(size)
    {
    }
    constexpr T *data() const noexcept
    {
        return data_;
    }
    constexpr std::size_t size() const noexcept
    {
        return size_;
    }
    constexpr std::size_t size_bytes() const noexcept
    {
        return size_ * sizeof(T);
    }
    constexpr bool empty() const noexcept
    {
        return size_ == 0;
    }
    constexpr T *begin() const noexcept
    {
        return data_;
    }
    constexpr T *end() const noexcept
    {
        return data_ + size_;
    }
    constexpr T &operator[](std::size_t index) const
    {
        return data_[index];
    }
    constexpr span subspan(std::size_t first, std::size_t count) const
    {
        return span(data_ + first, count);
    }
    /* The contiguous part of one of `parts`, whose sizes differ by at most one element. */
    constexpr span part(std::size_t number, std::size_t parts) const
    {
        return subspan(start_of(number, parts), start_of(number + 1, parts) - start_of(number, parts));
    }
    /* This PE's of all PEs. */
    span mine() const
    {
        return part(static_cast<std::size_t>(dsm_my_pe()), static_cast<std::size_t>(dsm_n_pes()));
    }
    /* As dsm_home of an element, dsm_prefetch, dsm_acquire, dsm_release and dsm_migrate of the range. */
    int home(std::size_t index) const
    {
        return dsm_home(data_ + index);
    }
    void prefetch() const
    {
        dsm_prefetch(data_, size_bytes());
    }
    void acquire() const
    {
        dsm_acquire(data_, size_bytes());
    }
    void release() const
    {
        dsm_release(data_, size_bytes());
    }
    void migrate(int pe) const
    {
        dsm_migrate(data_, size_bytes(), pe);
    }

  private:
    constexpr std::size_t start_of(std::size_t number, std::size_t parts) const
    {
        return size_ / parts * number + (size_ % parts < number ? size_ % parts : number);
    }
    T *data_;
    std::size_t size_;
};

/* Arrays of elements that need no constructor, which have no values before they are written: each PE writes its part
 * first and so is its home. all_make_array and all_free_array are collective. */
template <class T> span<T> make_array(std::size_t count)
{
    static_assert(std::is_trivial<T>::value, "elements that are constructed belong in a dsm::vector");
    return span<T>(static_cast<T *>(detail::allocate(count, sizeof(T), alignof(T))), count);
}
template <class T> span<T> make_array(std::size_t count, const dsm_attributes &attributes)
{
    static_assert(std::is_trivial<T>::value, "elements that are constructed belong in a dsm::vector");
    static_assert(alignof(T) <= alignof(std::max_align_t), "dsm_malloc_with aligns as malloc does");
    if (count > std::numeric_limits<std::size_t>::max() / sizeof(T))
        throw std::bad_alloc();
    void *block = dsm_malloc_with(count * sizeof(T), &attributes);
    if (!block)
        throw std::bad_alloc();
    return span<T>(static_cast<T *>(block), count);
}
template <class T> span<T> all_make_array(std::size_t count)
{
    static_assert(std::is_trivial<T>::value, "elements that are constructed belong in a dsm::vector");
    static_assert(alignof(T) <= alignof(std::max_align_t), "dsm_all_malloc aligns as malloc does");
    if (count > std::numeric_limits<std::size_t>::max() / sizeof(T))
        throw std::bad_alloc();
    void *block = dsm_all_malloc(count * sizeof(T));
    if (!block)
        throw std::bad_alloc();
    return span<T>(static_cast<T *>(block), count);
}
template <class T> void free_array(span<T> array)
{
    dsm_free(const_cast<typename std::remove_cv<T>::type *>(array.data()));
}
template <class T> void all_free_array(span<T> array)
{
    dsm_all_free(const_cast<typename std::remove_cv<T>::type *>(array.data()));
}

/* --- Locks. mutex has what std::timed_mutex has, shared_mutex what std::shared_mutex has. Any thread of the PE that
 * locked a mutex may unlock it. Not recursive. */
class mutex
{
  public:
    constexpr mutex() noexcept : lock_()
    {
    }
    mutex(const mutex &) = delete;
    mutex &operator=(const mutex &) = delete;

    void lock()
    {
        dsm_lock(&lock_);
    }
    bool try_lock()
    {
        return dsm_trylock(&lock_) == 0;
    }
    template <class Rep, class Period> bool try_lock_for(const std::chrono::duration<Rep, Period> &duration)
    {
        return dsm_timedlock(&lock_, detail::timeout_ns(duration)) == 0;
    }
    template <class Clock, class Duration> bool try_lock_until(const std::chrono::time_point<Clock, Duration> &end)
    {
        return try_lock_for(end - Clock::now());
    }
    void unlock()
    {
        dsm_unlock(&lock_);
    }
    using native_handle_type = dsm_lock_t *;
    native_handle_type native_handle() noexcept
    {
        return &lock_;
    }

  private:
    dsm_lock_t lock_;
};

class shared_mutex
{
  public:
    constexpr shared_mutex() noexcept : lock_()
    {
    }
    shared_mutex(const shared_mutex &) = delete;
    shared_mutex &operator=(const shared_mutex &) = delete;

    void lock()
    {
        dsm_wrlock(&lock_);
    }
    bool try_lock()
    {
        return dsm_trywrlock(&lock_) == 0;
    }
    void unlock()
    {
        dsm_rwunlock(&lock_);
    }
    void lock_shared()
    {
        dsm_rdlock(&lock_);
    }
    bool try_lock_shared()
    {
        return dsm_tryrdlock(&lock_) == 0;
    }
    void unlock_shared()
    {
        dsm_rwunlock(&lock_);
    }
    using native_handle_type = dsm_rwlock_t *;
    native_handle_type native_handle() noexcept
    {
        return &lock_;
    }

  private:
    dsm_rwlock_t lock_;
};

/* --- Condition variables, of a dsm::mutex. Without spurious wakeups; a stop condition is still checked by the waiter,
 * since another thread may have come first. */
class condition_variable
{
  public:
    constexpr condition_variable() noexcept : cond_()
    {
    }
    condition_variable(const condition_variable &) = delete;
    condition_variable &operator=(const condition_variable &) = delete;

    void notify_one()
    {
        dsm_cond_signal(&cond_);
    }
    void notify_all()
    {
        dsm_cond_broadcast(&cond_);
    }
    void wait(std::unique_lock<mutex> &lock)
    {
        dsm_cond_wait(&cond_, lock.mutex()->native_handle());
    }
    template <class Stop> void wait(std::unique_lock<mutex> &lock, Stop stop)
    {
        while (!stop())
            wait(lock);
    }
    template <class Rep, class Period>
    std::cv_status wait_for(std::unique_lock<mutex> &lock, const std::chrono::duration<Rep, Period> &duration)
    {
        return dsm_cond_timedwait(&cond_, lock.mutex()->native_handle(), detail::timeout_ns(duration)) == 0
                   ? std::cv_status::no_timeout
                   : std::cv_status::timeout;
    }
    template <class Rep, class Period, class Stop>
    bool wait_for(std::unique_lock<mutex> &lock, const std::chrono::duration<Rep, Period> &duration, Stop stop)
    {
        return wait_until(lock, std::chrono::steady_clock::now() + duration, stop);
    }
    template <class Clock, class Duration>
    std::cv_status wait_until(std::unique_lock<mutex> &lock, const std::chrono::time_point<Clock, Duration> &end)
    {
        return wait_for(lock, end - Clock::now());
    }
    template <class Clock, class Duration, class Stop>
    bool wait_until(std::unique_lock<mutex> &lock, const std::chrono::time_point<Clock, Duration> &end, Stop stop)
    {
        while (!stop()) {
            if (wait_until(lock, end) == std::cv_status::timeout)
                return stop();
        }
        return true;
    }

  private:
    dsm_cond_t cond_;
};

/* --- Semaphores, flags, routines that run once, and barriers of a group. */
class semaphore
{
  public:
    constexpr semaphore() noexcept : sem_ QUOIT_DSM_NEW(sem_)
    {
    }
    explicit semaphore(std::uint64_t value) : sem_()
    {
        dsm_sem_init(&sem_, value);
    }
    semaphore(const semaphore &) = delete;
    semaphore &operator=(const semaphore &) = delete;

    void acquire()
    {
        dsm_sem_wait(&sem_);
    }
    bool try_acquire()
    {
        return dsm_sem_trywait(&sem_) == 0;
    }
    template <class Rep, class Period> bool try_acquire_for(const std::chrono::duration<Rep, Period> &duration)
    {
        return dsm_sem_timedwait(&sem_, detail::timeout_ns(duration)) == 0;
    }
    void release(std::uint64_t count = 1)
    {
        for (; count > 0; count--)
            dsm_sem_post(&sem_);
    }

  private:
    dsm_sem_t sem_;
};

class flag /* a value that only grows; wait: until it is at least `least` */
{
  public:
    constexpr flag() noexcept : flag_ QUOIT_DSM_NEW(flag_)
    {
    }
    flag(const flag &) = delete;
    flag &operator=(const flag &) = delete;

    void set(std::uint64_t value)
    {
        dsm_flag_set(&flag_, value);
    }
    std::uint64_t get()
    {
        return dsm_flag_get(&flag_);
    }
    void wait(std::uint64_t least)
    {
        dsm_flag_wait(&flag_, least);
    }

  private:
    dsm_flag_t flag_;
};

class once_flag
{
  public:
    constexpr once_flag() noexcept : once_ QUOIT_DSM_NEW(once_)
    {
    }
    once_flag(const once_flag &) = delete;
    once_flag &operator=(const once_flag &) = delete;

  private:
    friend void call_once(once_flag &flag, void (*routine)());
    dsm_once_t once_;
};
inline void call_once(once_flag &flag, void (*routine)()) /* once in the job; the others wait for its end */
{
    dsm_once(&flag.once_, routine);
}

class barrier /* of `count` threads of any PEs */
{
  public:
    explicit barrier(std::uint64_t count) : barrier_(), count_(count)
    {
        dsm_barrier_init(&barrier_);
    }
    barrier(const barrier &) = delete;
    barrier &operator=(const barrier &) = delete;

    void arrive_and_wait()
    {
        dsm_barrier_wait(&barrier_, count_);
    }

  private:
    dsm_barrier_t barrier_;
    std::uint64_t count_;
};

/* --- Atomics: an integer of 8 bytes in shared memory that PEs change without a lock. Each operation is one at the
 * page's home, atomic with respect to the others, and orders nothing else: to pass data on take a lock, a flag or a
 * barrier. Values of all PEs' operations on one object appear in one order. The constructor is a plain store: other PEs
 * use the object after they synchronised with the one that constructed it. */
template <class T> class atomic
{
    static_assert(std::is_integral<T>::value && sizeof(T) == 8, "an integer of 8 bytes");

  public:
    using value_type = T;

    constexpr atomic() noexcept : word_(0)
    {
    }
    constexpr explicit atomic(T value) noexcept : word_(static_cast<std::uint64_t>(value))
    {
    }
    atomic(const atomic &) = delete;
    atomic &operator=(const atomic &) = delete;

    T load() const
    {
        return static_cast<T>(dsm_fetch(&word_));
    }
    void store(T value)
    {
        exchange(value);
    }
    T exchange(T value)
    {
        return static_cast<T>(dsm_swap(&word_, static_cast<std::uint64_t>(value)));
    }
    bool compare_exchange_strong(T &expected, T desired)
    {
        const T before = static_cast<T>(
            dsm_compare_swap(&word_, static_cast<std::uint64_t>(expected), static_cast<std::uint64_t>(desired)));
        const bool is_done = before == expected;
        expected = before;
        return is_done;
    }
    bool compare_exchange_weak(T &expected, T desired)
    {
        return compare_exchange_strong(expected, desired);
    }
    T fetch_add(T value)
    {
        return static_cast<T>(dsm_fetch_add(&word_, static_cast<std::uint64_t>(value)));
    }
    T fetch_sub(T value)
    {
        return static_cast<T>(dsm_fetch_add(&word_, 0 - static_cast<std::uint64_t>(value)));
    }
    operator T() const
    {
        return load();
    }
    T operator=(T value)
    {
        store(value);
        return value;
    }
    T operator+=(T value)
    {
        return sum(fetch_add(value), value);
    }
    T operator-=(T value)
    {
        return sum(fetch_sub(value), static_cast<T>(0 - static_cast<std::uint64_t>(value)));
    }
    T operator++()
    {
        return *this += 1;
    }
    T operator--()
    {
        return *this -= 1;
    }
    T operator++(int)
    {
        return fetch_add(1);
    }
    T operator--(int)
    {
        return fetch_sub(1);
    }

  private:
    static T sum(T a, T b) noexcept
    {
        return static_cast<T>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
    }
    std::uint64_t word_;
};

#undef QUOIT_DSM_NEW

} /* namespace dsm */

#endif
