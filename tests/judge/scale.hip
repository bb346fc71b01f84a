// SPDX-License-Identifier: Apache-2.0
// scale of contiguous f32, as device code for the judge: -DWRONG adds the shift twice.
#ifdef WRONG
#define TIMES 2
#else
#define TIMES 1
#endif

extern "C" __attribute__((global)) void my_scale(const float *x, float *y, long p, long q, long r, long n, double alpha,
                                                 double shift) {
    const long i = (long)__builtin_amdgcn_workgroup_id_x() * 256 + __builtin_amdgcn_workitem_id_x();
    if (i < p * q * r * n) y[i] = (float)alpha * x[i] + TIMES * (float)shift;
}
