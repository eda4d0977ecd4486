// dlopen and two C interfaces: CBLAS and oneDNN. A vendor is recognised by the function that sets
// its number of threads, which is needed anyway.
#include "cpu/peers.hpp"

#include <dlfcn.h>
#include <omp.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <stdexcept>

namespace cpu {
namespace {

using CblasSgemm = void (*)(int order, int trans_a, int trans_b, int m, int n, int k, float alpha,
                            const float* a, int lda, const float* b, int ldb, float beta, float* c,
                            int ldc);
using DnnlSgemm = int (*)(char trans_a, char trans_b, std::int64_t m, std::int64_t n,
                          std::int64_t k, float alpha, const float* a, std::int64_t lda,
                          const float* b, std::int64_t ldb, float beta, float* c, std::int64_t ldc);
using SetInt = void (*)(int);
using SetInt64 = void (*)(std::int64_t);
using Chooser = int (*)(int);

constexpr int kRowMajor = 101, kNoTranspose = 111;  // CBLAS
constexpr int kMklLp64 = 0, kMklGnuThreads = 3;     // mkl_service.h

template <class Function>
Function symbol(void* library, const char* name) {
  return reinterpret_cast<Function>(dlsym(library, name));
}

using SetThreads = std::function<void(int)>;

struct Vendor {
  std::string_view row;
  const char* set_threads;
  SetThreads (*adapt)(void* library, const char* set_threads);
};

SetThreads adapt_int(void* library, const char* name) { return symbol<SetInt>(library, name); }

SetThreads adapt_int64(void* library, const char* name) {
  return [set = symbol<SetInt64>(library, name)](int threads) { set(threads); };
}

/// libmkl_rt chooses its layers at the first call: 32-bit integers, and the OpenMP that we run on
/// too. "Dynamic" would let it use fewer threads than it is told.
SetThreads adapt_mkl(void* library, const char* name) {
  if (const auto choose = symbol<Chooser>(library, "MKL_Set_Interface_Layer")) choose(kMklLp64);
  if (const auto choose = symbol<Chooser>(library, "MKL_Set_Threading_Layer"))
    choose(kMklGnuThreads);
  if (const auto set = symbol<SetInt>(library, "MKL_Set_Dynamic")) set(0);
  return symbol<SetInt>(library, name);
}

// scipy_ is the prefix of the OpenBLAS that is published for Python.
constexpr const char* kCblasNames[] = {"cblas_sgemm", "scipy_cblas_sgemm"};
constexpr Vendor kVendors[] = {
    {"SGEMM/CPU/PeerOpenBLAS", "openblas_set_num_threads", adapt_int},
    {"SGEMM/CPU/PeerOpenBLAS", "scipy_openblas_set_num_threads", adapt_int},
    {"SGEMM/CPU/PeerMKL", "MKL_Set_Num_Threads", adapt_mkl},
    {"SGEMM/CPU/PeerBLIS", "bli_thread_set_num_threads", adapt_int64},
};

int to_int(std::size_t value) {
  if (value > static_cast<std::size_t>(std::numeric_limits<int>::max())) {
    throw std::invalid_argument("the library takes 32-bit sizes; choose a smaller problem");
  }
  return static_cast<int>(value);
}

/// CBLAS wants leading dimensions of at least 1, for empty matrices too.
int leading(std::size_t value) { return std::max(1, to_int(value)); }

Variant cblas_peer(std::string_view row, CblasSgemm sgemm, SetThreads set_threads) {
  return {row, [sgemm, set_threads = std::move(set_threads)](const Product& p, Workspace& w) {
            set_threads(w.threads());
            sgemm(kRowMajor, kNoTranspose, kNoTranspose, to_int(p.m), to_int(p.n), to_int(p.k),
                  1.0F, p.a, leading(p.lda), p.b, leading(p.ldb), 0.0F, p.c, leading(p.ldc));
          }};
}

/// oneDNN runs on OpenMP's threads.
Variant dnnl_peer(DnnlSgemm sgemm) {
  return {"SGEMM/CPU/PeerOneDNN", [sgemm](const Product& p, Workspace& w) {
            omp_set_num_threads(w.threads());
            const int status =
                sgemm('N', 'N', to_int(p.m), to_int(p.n), to_int(p.k), 1.0F, p.a, leading(p.lda),
                      p.b, leading(p.ldb), 0.0F, p.c, leading(p.ldc));
            if (status != 0) {
              throw std::runtime_error("dnnl_sgemm failed with status " + std::to_string(status));
            }
          }};
}

void* load(const std::string& library) {
  unsetenv("OPENBLAS_CORETYPE");
  unsetenv("OPENBLAS_L2_SIZE");
  if (void* const handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL)) return handle;
  const char* const reason = dlerror();
  throw std::invalid_argument("cannot load the peer '" + library +
                              "': " + (reason != nullptr ? reason : "unknown error") +
                              "; install it, or give its full path");
}

}  // namespace

std::optional<Variant> find_peer(const std::string& library) {
  void* const handle = load(library);
  if (const auto sgemm = symbol<DnnlSgemm>(handle, "dnnl_sgemm")) return dnnl_peer(sgemm);
  for (const char* const name : kCblasNames) {
    const auto sgemm = symbol<CblasSgemm>(handle, name);
    if (sgemm == nullptr) continue;
    for (const Vendor& vendor : kVendors) {
      if (dlsym(handle, vendor.set_threads) == nullptr) continue;
      return cblas_peer(vendor.row, sgemm, vendor.adapt(handle, vendor.set_threads));
    }
  }
  return std::nullopt;
}

}  // namespace cpu
