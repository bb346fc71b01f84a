/* SPDX-License-Identifier: Apache-2.0 */
/* cuBLASLt: products on a CUDA device, with a bias, c and an activation, by the fastest of the algorithms that its
 * heuristics offer; float8 without fast accumulation, with scales. */
#include <cublasLt.h>
#include <cuda_runtime_api.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"
#include "peers.h"
#include "spec/places/matmul.h"

enum { ALGORITHMS = 8, WORKSPACE = 64 << 20, TRIALS = 20 };

/* Types as cuBLASLt has them: of the operands, the result, the sums, and the factors. It takes float8 with k
 * consecutive in both operands alone. */
typedef struct kind {
    trine_dtype in, in_b, out;
    cudaDataType_t a, b, d;
    cublasComputeType_t sum;
    cudaDataType_t scale;
    int32_t precision;
} kind;
static const kind kinds[] = {
    { TRINE_BF16, TRINE_BF16, TRINE_BF16, CUDA_R_16BF, CUDA_R_16BF, CUDA_R_16BF, CUBLAS_COMPUTE_32F, CUDA_R_32F },
    { TRINE_BF16, TRINE_BF16, TRINE_F32, CUDA_R_16BF, CUDA_R_16BF, CUDA_R_32F, CUBLAS_COMPUTE_32F, CUDA_R_32F },
    { TRINE_F16, TRINE_F16, TRINE_F16, CUDA_R_16F, CUDA_R_16F, CUDA_R_16F, CUBLAS_COMPUTE_32F, CUDA_R_32F },
    { TRINE_F16, TRINE_F16, TRINE_F32, CUDA_R_16F, CUDA_R_16F, CUDA_R_32F, CUBLAS_COMPUTE_32F, CUDA_R_32F },
    { TRINE_F32, TRINE_F32, TRINE_F32, CUDA_R_32F, CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F, CUDA_R_32F },
    { TRINE_F32, TRINE_F32, TRINE_F32, CUDA_R_32F, CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_TF32, CUDA_R_32F,
      TRINE_PRECISION_TF32 },
    { TRINE_F64, TRINE_F64, TRINE_F64, CUDA_R_64F, CUDA_R_64F, CUDA_R_64F, CUBLAS_COMPUTE_64F, CUDA_R_64F },
    { TRINE_I8, TRINE_I8, TRINE_I32, CUDA_R_8I, CUDA_R_8I, CUDA_R_32I, CUBLAS_COMPUTE_32I, CUDA_R_32I },
    { TRINE_E4M3, TRINE_E4M3, TRINE_BF16, CUDA_R_8F_E4M3, CUDA_R_8F_E4M3, CUDA_R_16BF, CUBLAS_COMPUTE_32F, CUDA_R_32F },
    { TRINE_E4M3, TRINE_E4M3, TRINE_F16, CUDA_R_8F_E4M3, CUDA_R_8F_E4M3, CUDA_R_16F, CUBLAS_COMPUTE_32F, CUDA_R_32F },
    { TRINE_E4M3, TRINE_E4M3, TRINE_F32, CUDA_R_8F_E4M3, CUDA_R_8F_E4M3, CUDA_R_32F, CUBLAS_COMPUTE_32F, CUDA_R_32F },
    { TRINE_E4M3, TRINE_E5M2, TRINE_BF16, CUDA_R_8F_E4M3, CUDA_R_8F_E5M2, CUDA_R_16BF, CUBLAS_COMPUTE_32F, CUDA_R_32F },
    { TRINE_E4M3, TRINE_E5M2, TRINE_F16, CUDA_R_8F_E4M3, CUDA_R_8F_E5M2, CUDA_R_16F, CUBLAS_COMPUTE_32F, CUDA_R_32F },
    { TRINE_E4M3, TRINE_E5M2, TRINE_F32, CUDA_R_8F_E4M3, CUDA_R_8F_E5M2, CUDA_R_32F, CUBLAS_COMPUTE_32F, CUDA_R_32F },
    { TRINE_E5M2, TRINE_E4M3, TRINE_BF16, CUDA_R_8F_E5M2, CUDA_R_8F_E4M3, CUDA_R_16BF, CUBLAS_COMPUTE_32F, CUDA_R_32F },
    { TRINE_E5M2, TRINE_E4M3, TRINE_F16, CUDA_R_8F_E5M2, CUDA_R_8F_E4M3, CUDA_R_16F, CUBLAS_COMPUTE_32F, CUDA_R_32F },
    { TRINE_E5M2, TRINE_E4M3, TRINE_F32, CUDA_R_8F_E5M2, CUDA_R_8F_E4M3, CUDA_R_32F, CUBLAS_COMPUTE_32F, CUDA_R_32F },
};

/* The activations that it has, without and with a bias; its gelu is that by tanh. */
typedef struct epilogue {
    int32_t activation;
    cublasLtEpilogue_t alone, biased;
} epilogue;
static const epilogue epilogues[] = {
    { TRINE_ACTIVATION_NONE, CUBLASLT_EPILOGUE_DEFAULT, CUBLASLT_EPILOGUE_BIAS },
    { TRINE_ACTIVATION_RELU, CUBLASLT_EPILOGUE_RELU, CUBLASLT_EPILOGUE_RELU_BIAS },
    { TRINE_ACTIVATION_GELU_TANH, CUBLASLT_EPILOGUE_GELU, CUBLASLT_EPILOGUE_GELU_BIAS },
};

typedef struct product {
    cublasLtHandle_t handle;
    cublasLtMatmulDesc_t desc;
    cublasLtMatrixLayout_t a, b, c, d;
    cublasLtMatmulHeuristicResult_t algorithm;
    void *workspace;
    bool scaled[2]; /* the operands: a and b */
    bool added, biased;
    union {
        float f;
        double d;
        int32_t i;
    } one, zero;
} product;

/* Our rows are its columns: it computes the transpose of d from those of b and a. */
static bool layout(cublasLtMatrixLayout_t *out, cudaDataType_t type, const trine_tensor *t) {
    const int row = t->rank - 2;
    const bool turned = t->stride[row + 1] != 1;
    const int inner = turned ? row : row + 1, outer = turned ? row + 1 : row,
              batches = t->rank > 2 ? (int)t->shape[0] : 1;
    const int64_t batch = batches > 1 ? t->stride[0] : 0;
    return cublasLtMatrixLayoutCreate(out, type, (uint64_t)t->shape[inner], (uint64_t)t->shape[outer],
                                      t->stride[outer]) == CUBLAS_STATUS_SUCCESS &&
           cublasLtMatrixLayoutSetAttribute(*out, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batches, sizeof batches) ==
               CUBLAS_STATUS_SUCCESS &&
           cublasLtMatrixLayoutSetAttribute(*out, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &batch, sizeof batch) ==
               CUBLAS_STATUS_SUCCESS;
}

static int scale_of(int operand) { return operand == MATMUL_A ? MATMUL_A_SCALE : MATMUL_B_SCALE; }

/* Where the factors of an operand's lanes are, or that of all. */
static bool point_scale(const product *p, const trine_tensor *t, cublasLtMatmulDescAttributes_t pointer, int operand) {
    return !p->scaled[operand == MATMUL_B] ||
           cublasLtMatmulDescSetAttribute(p->desc, pointer, &t[scale_of(operand)].data, sizeof(void *)) ==
               CUBLAS_STATUS_SUCCESS;
}
static bool point(const product *p, const trine_tensor *t) {
    return point_scale(p, t, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, MATMUL_A) &&
           point_scale(p, t, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, MATMUL_B) &&
           (!p->biased ||
            cublasLtMatmulDescSetAttribute(p->desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &t[MATMUL_BIAS].data,
                                           sizeof(void *)) == CUBLAS_STATUS_SUCCESS);
}

static bool run(const product *p, const trine_tensor *t, const cublasLtMatmulAlgo_t *algorithm) {
    if (!point(p, t)) return false;
    return cublasLtMatmul(p->handle, p->desc, &p->one, t[MATMUL_B].data, p->b, t[MATMUL_A].data, p->a,
                          p->added ? &p->one : &p->zero, t[p->added ? MATMUL_C : MATMUL_D].data, p->added ? p->c : p->d,
                          t[MATMUL_D].data, p->d, algorithm, p->workspace, WORKSPACE, NULL) == CUBLAS_STATUS_SUCCESS;
}

static void close_product(void *state) {
    product *p = state;
    if (p->a) cublasLtMatrixLayoutDestroy(p->a);
    if (p->b) cublasLtMatrixLayoutDestroy(p->b);
    if (p->c) cublasLtMatrixLayoutDestroy(p->c);
    if (p->d) cublasLtMatrixLayoutDestroy(p->d);
    if (p->desc) cublasLtMatmulDescDestroy(p->desc);
    if (p->handle) cublasLtDestroy(p->handle);
    cudaFree(p->workspace);
    free(p);
}

static bool describe_scale(product *p, const trine_case *c, int operand) {
    const cublasLtMatmulDescAttributes_t mode =
        operand == MATMUL_A ? CUBLASLT_MATMUL_DESC_B_SCALE_MODE : CUBLASLT_MATMUL_DESC_A_SCALE_MODE;
    const trine_tensor *t = &c->tensor[scale_of(operand)];
    const cublasLtMatmulMatrixScale_t how = t->shape[t->rank - 1] > 1 ? CUBLASLT_MATMUL_MATRIX_SCALE_OUTER_VEC_32F
                                                                      : CUBLASLT_MATMUL_MATRIX_SCALE_SCALAR_32F;
    p->scaled[operand == MATMUL_B] = c->present >> scale_of(operand) & 1;
    return !p->scaled[operand == MATMUL_B] ||
           cublasLtMatmulDescSetAttribute(p->desc, mode, &how, sizeof how) == CUBLAS_STATUS_SUCCESS;
}

static bool describe_end(product *p, const trine_case *c, const kind *k) {
    const int32_t activation = ((const trine_matmul_args *)(const void *)c->args)->activation;
    p->added = c->present >> MATMUL_C & 1, p->biased = c->present >> MATMUL_BIAS & 1;
    if (p->added && !layout(&p->c, k->d, &c->tensor[MATMUL_C])) return false;
    for (size_t i = 0; i < sizeof epilogues / sizeof epilogues[0]; i++) {
        const cublasLtEpilogue_t end = p->biased ? epilogues[i].biased : epilogues[i].alone;
        if (epilogues[i].activation == activation)
            return cublasLtMatmulDescSetAttribute(p->desc, CUBLASLT_MATMUL_DESC_EPILOGUE, &end, sizeof end) ==
                   CUBLAS_STATUS_SUCCESS;
    }
    return false;
}

static bool describe(product *p, const trine_case *c, const kind *k) {
    const cublasOperation_t turn = CUBLAS_OP_T;
    const trine_tensor *t = c->tensor;
    bool ok =
        cublasLtCreate(&p->handle) == CUBLAS_STATUS_SUCCESS && cudaMalloc(&p->workspace, WORKSPACE) == cudaSuccess &&
        cublasLtMatmulDescCreate(&p->desc, k->sum, k->scale) == CUBLAS_STATUS_SUCCESS &&
        layout(&p->a, k->a, &t[MATMUL_A]) && layout(&p->b, k->b, &t[MATMUL_B]) && layout(&p->d, k->d, &t[MATMUL_D]);
    if (ok && t[MATMUL_B].stride[t[MATMUL_B].rank - 1] != 1)
        ok = cublasLtMatmulDescSetAttribute(p->desc, CUBLASLT_MATMUL_DESC_TRANSA, &turn, sizeof turn) ==
             CUBLAS_STATUS_SUCCESS;
    if (ok && t[MATMUL_A].stride[t[MATMUL_A].rank - 1] != 1)
        ok = cublasLtMatmulDescSetAttribute(p->desc, CUBLASLT_MATMUL_DESC_TRANSB, &turn, sizeof turn) ==
             CUBLAS_STATUS_SUCCESS;
    ok = ok && describe_scale(p, c, MATMUL_A) && describe_scale(p, c, MATMUL_B) && describe_end(p, c, k);
    if (k->scale == CUDA_R_32F) p->one.f = 1;
    if (k->scale == CUDA_R_64F) p->one.d = 1;
    if (k->scale == CUDA_R_32I) p->one.i = 1;
    return ok;
}

static void *open_product(const trine_case *c, int threads) {
    (void)threads;
    const bool narrow = c->tensor[MATMUL_A].dtype == TRINE_E4M3 || c->tensor[MATMUL_A].dtype == TRINE_E5M2;
    if (strcmp(c->plan->spec->name, "matmul") != 0 ||
        !peer_plain(c, "precision activation", narrow ? "c bias a_scale b_scale" : "c bias"))
        return NULL;
    /* it wants one type for both */
    if ((c->present >> MATMUL_BIAS & 1) && c->tensor[MATMUL_BIAS].dtype != c->tensor[MATMUL_D].dtype) return NULL;
    const int32_t precision = ((const trine_matmul_args *)(const void *)c->args)->precision;
    const kind *k = NULL;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (kinds[i].in == c->tensor[MATMUL_A].dtype && kinds[i].in_b == c->tensor[MATMUL_B].dtype &&
            kinds[i].out == c->tensor[MATMUL_D].dtype && kinds[i].precision == precision)
            k = &kinds[i];
    product *p = calloc(1, sizeof *p);
    if (p != NULL && k != NULL && describe(p, c, k)) return p;
    if (p != NULL) close_product(p);
    return NULL;
}

static bool finish(void *state) {
    (void)state;
    return cudaDeviceSynchronize() == cudaSuccess;
}

/* Tries what the heuristics offer, on the first set of tensors. */
static bool choose(product *p, const trine_tensor *t) {
    cublasLtMatmulPreference_t preference;
    cublasLtMatmulHeuristicResult_t offered[ALGORITHMS];
    const size_t workspace = WORKSPACE;
    int count = 0;
    double best = 0;
    if (!point(p, t) || cublasLtMatmulPreferenceCreate(&preference) != CUBLAS_STATUS_SUCCESS) return false;
    cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace,
                                         sizeof workspace);
    cublasLtMatmulAlgoGetHeuristic(p->handle, p->desc, p->b, p->a, p->added ? p->c : p->d, p->d, preference, ALGORITHMS,
                                   offered, &count);
    cublasLtMatmulPreferenceDestroy(preference);
    for (int i = 0; i < count; i++) {
        if (!run(p, t, &offered[i].algo) || !finish(p)) continue;
        const double start = bench_now();
        for (int k = 0; k < TRIALS; k++) run(p, t, &offered[i].algo);
        if (!finish(p)) return false;
        const double seconds = bench_now() - start;
        if (best == 0 || seconds < best) best = seconds, p->algorithm = offered[i];
    }
    return best > 0;
}

static bool call_product(void *state, const trine_case *set) {
    product *p = state;
    if (p->algorithm.workspaceSize == 0 && p->algorithm.wavesCount == 0 && !choose(p, set->tensor)) return false;
    return run(p, set->tensor, &p->algorithm.algo);
}

const peer peer_cublaslt = { "cuBLASLt", "cuda", open_product, call_product, close_product, finish };
