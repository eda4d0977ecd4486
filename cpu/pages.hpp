// Memory for matrices: on huge pages where the system has them, so that a walk down a column does
// not wait for address translation.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <vector>

namespace cpu {

inline constexpr std::size_t kHugePage = std::size_t{2} << 20;  // bytes

/// At least `bytes`, aligned to a cache line; from a quarter of a huge page on aligned to one and
/// advised to be made of them, which is a hint: a system without them gives ordinary memory. Freed
/// with std::free. Throws std::bad_alloc.
void* allocate(std::size_t bytes);

/// The same for containers.
template <class T>
struct Allocator {
  using value_type = T;
  Allocator() = default;
  template <class U>
  explicit Allocator(const Allocator<U>&) {}
  T* allocate(std::size_t count) { return static_cast<T*>(cpu::allocate(count * sizeof(T))); }
  void deallocate(T* p, std::size_t) { std::free(p); }
  bool operator==(const Allocator&) const = default;
};

/// Bytes that the system can give without writing others to disk; all there could be where it does
/// not tell.
std::size_t free_memory();

using Floats = std::vector<float, Allocator<float>>;

}  // namespace cpu
