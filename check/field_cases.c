/* SPDX-License-Identifier: Apache-2.0 */
/* What this library composes or fuses, each beside its parts, for trine check --exact-field. */
#include "field.h"

#define FACTOR "f = rsqrt(add(mean(mul(x, x)), eps)); "

const field_case field_cases[] = {
    { "rms_norm_matmul and its parts", "x: r k; weight: k; b: k n; eps", "rms_norm_matmul(x, weight, b, eps)",
      "matmul(rms_norm(x, weight, eps), b)" },
    { "rms_norm_matmul, its rows' factors at the end", "x: r k; weight: k; b: k n; eps",
      "rms_norm_matmul(x, weight, b, eps)", FACTOR "mul(matmul(mul(x, weight), b), f)" },
    { "rms_norm_matmul, its weight in b", "x: r k; weight: k; b: k n; bias: n; eps",
      "gelu(add(rms_norm_matmul(x, weight, b, eps), bias))",
      FACTOR "gelu(add(mul(f, matmul(x, mul(b, transpose(weight)))), bias))" },
    { "swiglu of two products", "x: r k; g: k n; u: k n", "swiglu(matmul(x, g), matmul(x, u))",
      "z = matmul(x, g); mul(mul(z, matmul(x, u)), div(exp(z), add(exp(z), 1)))" },
    { "a gated MLP behind a norm", "x: r k; weight: k; g: k n; u: k n; d: n k; eps",
      "h = rms_norm(x, weight, eps); matmul(swiglu(matmul(h, g), matmul(h, u)), d)",
      FACTOR "h = mul(x, weight); matmul(swiglu(mul(f, matmul(h, g)), mul(matmul(h, u), f)), d)" },
    { "linear_cross_entropy about any maximum", "x: r k; w: v k; label: r v; most: r 1",
      "z = matmul(x, transpose(w)); div(exp(sum(mul(label, z))), sum(exp(z)))",
      "z = matmul(x, transpose(w)); div(exp(sub(sum(mul(label, z)), most)), sum(exp(sub(z, most))))" },
    { "linear_cross_entropy_backward without probabilities", "x: r k; w: v k; label: r v",
      "z = matmul(x, transpose(w)); matmul(sub(softmax(z), label), w)",
      "e = exp(matmul(x, transpose(w))); sub(div(matmul(e, w), sum(e)), matmul(label, w))" },
    { "softmax about any maximum", "x: r n; most: r 1", "softmax(x)", "softmax(sub(x, most))" },
    { "attention, its sums divided at the end", "q: s d; k: t d; v: t d; scale; most: s 1", "attention(q, k, v, scale)",
      "e = exp(sub(matmul(mul(q, scale), transpose(k)), most)); div(matmul(e, v), sum(e))" },
    { "attention_merge of two parts", "q: s d; k1: t d; v1: t d; k2: u d; v2: u d",
      "e1 = exp(matmul(q, transpose(k1))); e2 = exp(matmul(q, transpose(k2)));"
      "div(add(matmul(e1, v1), matmul(e2, v2)), add(sum(e1), sum(e2)))",
      "s1 = sum(exp(matmul(q, transpose(k1)))); s2 = sum(exp(matmul(q, transpose(k2)))); s = add(s1, s2);"
      "add(mul(attention(q, k1, v1, 1), div(s1, s)), mul(attention(q, k2, v2, 1), div(s2, s)))" },
    { "attention's scores of normalized queries and keys", "q: s d; k: t d; a: d; b: d",
      "matmul(rms_norm(q, a, 0), transpose(rms_norm(k, b, 0)))",
      "mul(div(matmul(mul(q, mul(a, b)), transpose(k)), sqrt(mean(mul(q, q)))),"
      "    transpose(rsqrt(mean(mul(k, k)))))" },
    { "layer_norm by two sums", "x: r n; weight: n; bias: n; eps", "layer_norm(x, weight, bias, eps)",
      "m = mean(x); f = rsqrt(add(sub(mean(mul(x, x)), mul(m, m)), eps)); add(mul(mul(sub(x, m), f), weight), bias)" },
    { "muon's iteration, all at once", "x: m n; a; b; c",
      "s = matmul_symmetric(x); add(mul(a, x), matmul(add(mul(b, s), mul(c, matmul(s, s))), x))",
      "s = matmul_symmetric(x); y = matmul(s, x); add(mul(a, x), add(mul(b, y), mul(c, matmul(s, y))))" },
    { "an adapter beside a product", "x: r k; w: k n; a: k j; b: j n", "matmul(x, add(w, matmul(a, b)))",
      "add(matmul(x, w), matmul(matmul(x, a), b))" },
    { "linear attention by its state", "q: s d; k: t d; v: t e", "matmul(matmul(q, transpose(k)), v)",
      "matmul(q, matmul(transpose(k), v))" },
    { "matmul with scales of rows and columns", "a: m k; b: k n; row: m 1; column: n; bias: n",
      "relu(add(mul(mul(matmul(a, b), row), column), bias))", "relu(add(matmul(mul(a, row), mul(b, column)), bias))" },
    { 0 },
};
