// The CPU side: every way to write C = A·B as a plain function on float arrays, listed in tables.
// Contract: knows neither OpenCL nor Google Benchmark; a variant is a function and its row in the
// table at the foot of the same file.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

namespace cpu {

/// C = A·B in float32, row-major: A is m×k, B is k×n, C is m×n. Leading dimensions are in elements
/// (lda ≥ k, ldb ≥ n, ldc ≥ n). C is overwritten and never read (beta = 0); only its m×n elements
/// are touched. Any m, n, k ≥ 0 (k = 0 gives C = 0); pointers need no alignment beyond float's.
/// The matrix-vector product y = A·x is the same with n = 1 and ldb = ldc = 1.
struct Product {
  std::size_t m, n, k;
  const float* a;
  std::size_t lda;
  const float* b;
  std::size_t ldb;
  float* c;
  std::size_t ldc;
};

/// What a variant may use besides its operands: a number of threads, and scratch memory that is
/// allocated at the first call (the warm-up) and only reused afterwards, never in the timed region.
class Workspace {
 public:
  explicit Workspace(int threads) : threads_(threads) {}

  [[nodiscard]] int threads() const { return threads_; }

  /// At least `count` floats, 64-byte aligned, contents undefined. The span stays valid until the
  /// next call. Throws std::bad_alloc.
  std::span<float> floats(std::size_t count);

 private:
  struct Free {
    void operator()(float* p) const;
  };
  int threads_;
  std::size_t capacity_ = 0;
  std::unique_ptr<float[], Free> scratch_;
};

/// One row of a table. `name` is the whole benchmark family name, "SGEMM/CPU/Ikj".
struct Variant {
  std::string_view name;
  std::function<void(const Product&, Workspace&)> run;
};

// One table per source file, each at the foot of its file.
std::span<const Variant> loop_variants();  // loops.cpp: the textbook loop nests
std::span<const Variant> step_variants();  // steps.cpp: packing, then registers, in plain C++
std::span<const Variant>
packed_variants();  // packed.cpp: packed panels, a SIMD micro-kernel, threads
std::span<const Variant> gemv_variants();   // gemv.cpp: matrix-vector at memory bandwidth
std::span<const Variant> eigen_variants();  // eigen.cpp: the reference library as a contestant

/// Threads this process may really use: the affinity mask, capped by the cgroup's CPU quota.
int allowed_threads();

/// All tables in the order in which they are listed and run.
std::vector<Variant> variants();

}  // namespace cpu
