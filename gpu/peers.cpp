// CLBlast and cuBLAS behind the interface of a multiplication; see the header.
#include "gpu/peers.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <functional>
#include <stdexcept>

namespace gpu {

namespace {

template <class Function>
Function symbol(void* library, const char* name) {
  return reinterpret_cast<Function>(dlsym(library, name));
}

void* load(const std::string& library) {
  if (void* const handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL)) return handle;
  throw std::invalid_argument(
      fmt::format("cannot load the peer: {}; install it, or give its full path", dlerror()));
}

void check(int code, const char* call) {
  if (code != 0) throw DeviceError(fmt::format("{} failed with {}", call, code));
}

// ---- CLBlast: its C interface, on our queue and buffers ----

using ClblastSgemm = int (*)(int layout, int transpose_a, int transpose_b, std::size_t m,
                             std::size_t n, std::size_t k, float alpha, cl_mem a,
                             std::size_t a_offset, std::size_t lda, cl_mem b, std::size_t b_offset,
                             std::size_t ldb, float beta, cl_mem c, std::size_t c_offset,
                             std::size_t ldc, cl_command_queue* queue, cl_event* event);
constexpr int kRowMajor = 101, kNoTranspose = 111;

class ClblastMultiplication final : public ClMultiplication {
 public:
  ClblastMultiplication(const Session& session, const Shape& shape, ClblastSgemm sgemm)
      : ClMultiplication(session, shape), sgemm_(sgemm) {}

 protected:
  void enqueue(cl::Event* first, cl::Event* last) override {
    if (first != nullptr) queue().enqueueMarkerWithWaitList(nullptr, first);
    const auto [a, b, c] = operands();
    cl_command_queue raw_queue = queue()();
    cl_event event = nullptr;
    check(sgemm_(kRowMajor, kNoTranspose, kNoTranspose, shape().m, shape().n, shape().k, 1.0F,
                 a.buffer(), 0, a.leading, b.buffer(), 0, b.leading, 0.0F, c.buffer(), 0, c.leading,
                 &raw_queue, last != nullptr ? &event : nullptr),
          "CLBlastSgemm");
    if (last != nullptr) *last = cl::Event(event);
  }

 private:
  ClblastSgemm sgemm_;
};

// ---- cuBLAS, on the memory of the CUDA driver interface (the driver is wherever cuBLAS runs) ----

using CudaPointer = unsigned long long;
using CudaHandle = void*;

struct Cuda {
  int (*init)(unsigned);
  int (*device)(int*, int);
  int (*retain)(CudaHandle*, int);
  int (*use)(CudaHandle);
  int (*allocate)(CudaPointer*, std::size_t);
  int (*release)(CudaPointer);
  int (*upload)(CudaPointer, const void*, std::size_t);
  int (*download)(void*, CudaPointer, std::size_t);
  int (*create_event)(CudaHandle*, unsigned);
  int (*record)(CudaHandle, CudaHandle);
  int (*wait)(CudaHandle);
  int (*elapsed)(float*, CudaHandle, CudaHandle);

  static const Cuda& get();
};

Cuda load_cuda() {
  void* const driver = load("libcuda.so.1");
  Cuda c{};
  const auto bind = [driver](auto& function, const char* name) {
    function = symbol<std::remove_reference_t<decltype(function)>>(driver, name);
    if (function == nullptr) throw DeviceError(fmt::format("the CUDA driver has no {}", name));
  };
  bind(c.init, "cuInit");
  bind(c.device, "cuDeviceGet");
  bind(c.retain, "cuDevicePrimaryCtxRetain");
  bind(c.use, "cuCtxSetCurrent");
  bind(c.allocate, "cuMemAlloc_v2");
  bind(c.release, "cuMemFree_v2");
  bind(c.upload, "cuMemcpyHtoD_v2");
  bind(c.download, "cuMemcpyDtoH_v2");
  bind(c.create_event, "cuEventCreate");
  bind(c.record, "cuEventRecord");
  bind(c.wait, "cuEventSynchronize");
  bind(c.elapsed, "cuEventElapsedTime");
  check(c.init(0), "cuInit");
  int device = 0;
  CudaHandle context = nullptr;
  check(c.device(&device, 0), "cuDeviceGet");
  check(c.retain(&context, device), "cuDevicePrimaryCtxRetain");
  check(c.use(context), "cuCtxSetCurrent");
  return c;
}

const Cuda& Cuda::get() {
  static const Cuda loaded = load_cuda();
  return loaded;
}

class CudaFloats {
 public:
  explicit CudaFloats(std::size_t count) {
    check(Cuda::get().allocate(&pointer_, std::max<std::size_t>(count, 1) * sizeof(float)),
          "cuMemAlloc");
  }
  ~CudaFloats() { Cuda::get().release(pointer_); }
  CudaFloats(const CudaFloats&) = delete;
  CudaFloats& operator=(const CudaFloats&) = delete;

  void upload(std::span<const float> from) {
    if (!from.empty())
      check(Cuda::get().upload(pointer_, from.data(), from.size_bytes()), "cuMemcpyHtoD");
  }
  void download(std::span<float> to) const {
    check(Cuda::get().download(to.data(), pointer_, to.size_bytes()), "cuMemcpyDtoH");
  }
  [[nodiscard]] float* at(std::size_t offset) const {
    // The driver hands out addresses as integers. NOLINTNEXTLINE(performance-no-int-to-ptr)
    return reinterpret_cast<float*>(pointer_ + offset * sizeof(float));
  }

 private:
  CudaPointer pointer_ = 0;
};

// cublasComputeType_t and the rest of its enumerations, by value.
constexpr int kComputePedantic = 69, kComputeTf32 = 77, kFloat32 = 0, kDefaultAlgorithm = -1;

using CublasCreate = int (*)(CudaHandle*);
using CublasGemm = int (*)(CudaHandle, int transpose_a, int transpose_b, int m, int n, int k,
                           const void* alpha, const void* a, int a_type, int lda, const void* b,
                           int b_type, int ldb, const void* beta, void* c, int c_type, int ldc,
                           int compute_type, int algorithm);

class CublasMultiplication final : public Multiplication {
 public:
  CublasMultiplication(CudaHandle cublas, CublasGemm gemm, int compute_type, const Shape& shape)
      : cublas_(cublas),
        gemm_(gemm),
        compute_type_(compute_type),
        shape_(shape),
        a_(shape.a_size()),
        b_(shape.b_size()),
        guarded_c_(shape.c_size() + 2 * kGuard) {
    for (CudaHandle* const event : {&begin_, &end_})
      check(Cuda::get().create_event(event, 0), "cuEventCreate");
  }

  void write_inputs(std::span<const float> a, std::span<const float> b) override {
    a_.upload(a);
    b_.upload(b);
  }
  void write_output(std::span<const float> guarded_c) override { guarded_c_.upload(guarded_c); }
  void read_output(std::span<float> guarded_c) override { guarded_c_.download(guarded_c); }

  double run(int batch) override {
    const Cuda& cuda = Cuda::get();
    check(cuda.record(begin_, nullptr), "cuEventRecord");
    for (int i = 0; i < batch; ++i) launch();
    check(cuda.record(end_, nullptr), "cuEventRecord");
    check(cuda.wait(end_), "cuEventSynchronize");
    float milliseconds = 0;
    check(cuda.elapsed(&milliseconds, begin_, end_), "cuEventElapsedTime");
    if (!(milliseconds > 0)) throw DeviceError("no usable time: CUDA's events are too close");
    return static_cast<double>(milliseconds) * 1e-3 / batch;
  }

 private:
  // cuBLAS is column-major: row-major C = A·B is its C' = B'·A'.
  void launch() {
    const float one = 1;
    const float zero = 0;
    const auto number = [](std::size_t value) { return static_cast<int>(value); };
    check(gemm_(cublas_, 0, 0, number(shape_.n), number(shape_.m), number(shape_.k), &one, b_.at(0),
                kFloat32, number(shape_.ldb), a_.at(0), kFloat32, number(shape_.lda), &zero,
                guarded_c_.at(kGuard), kFloat32, number(shape_.ldc), compute_type_,
                kDefaultAlgorithm),
          "cublasGemmEx");
  }

  CudaHandle cublas_;
  CublasGemm gemm_;
  int compute_type_;
  Shape shape_;
  CudaFloats a_, b_, guarded_c_;
  CudaHandle begin_ = nullptr, end_ = nullptr;
};

Peer clblast_peer(ClblastSgemm sgemm) {
  return {"SGEMM/GPU/PeerCLBlast", kFloat32Epsilon,
          [sgemm](const Session& session, const Shape& shape) -> std::unique_ptr<Multiplication> {
            return std::make_unique<ClblastMultiplication>(session, shape, sgemm);
          }};
}

Peer cublas_peer(const char* name, double epsilon, void* library, int compute_type) {
  return {name, epsilon,
          [=](const Session& session, const Shape& shape) -> std::unique_ptr<Multiplication> {
            if (!session.info().nvidia) throw Unsupported("cuBLAS needs an NVIDIA GPU");
            Cuda::get();
            static CudaHandle handle = nullptr;
            if (handle == nullptr)
              check(symbol<CublasCreate>(library, "cublasCreate_v2")(&handle), "cublasCreate");
            return std::make_unique<CublasMultiplication>(
                handle, symbol<CublasGemm>(library, "cublasGemmEx"), compute_type, shape);
          }};
}

}  // namespace

std::vector<Peer> find_peers(const std::string& library) {
  void* const handle = load(library);
  if (const auto sgemm = symbol<ClblastSgemm>(handle, "CLBlastSgemm")) return {clblast_peer(sgemm)};
  if (symbol<CublasGemm>(handle, "cublasGemmEx") != nullptr)
    return {
        cublas_peer("SGEMM/GPU/PeerCuBLAS", kFloat32Epsilon, handle, kComputePedantic),
        cublas_peer("SGEMM/GPU/PeerCuBLASTf32", kTf32Epsilon, handle, kComputeTf32),
    };
  return {};
}

}  // namespace gpu
