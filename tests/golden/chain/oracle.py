# SPDX-License-Identifier: Apache-2.0
"""Each program written out by hand in NumPy's float64, as what it says means: functions are NumPy's and SciPy's own.
Those in f64 are written in mpmath's numbers of 50 digits."""
import re

import mpmath as mp
import numpy as np
from scipy import special

from vectors import case, f32, rounded

mp.mp.dps = 50

X = ("x0", "x1", "x2", "x3", "x4", "x5", "x6", "x7")


def silu(x):
    return x * special.expit(x)


def gelu(x):
    return x * special.ndtr(x)


def gelu_tanh(x):
    return x * special.expit(2 * np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))


def total(x):
    return x.sum(-1, keepdims=True)


def mean(x):
    return x.mean(-1, keepdims=True)


def largest(x):
    return x.max(-1, keepdims=True)


def least(x):
    return x.min(-1, keepdims=True)


def nested(a):
    b = a / largest(np.abs(a))
    return [b - least(b), total(b * b) / 2 + 0 * b]


def number(x):
    return np.asarray(x, np.float64)


# Name, program, and what each output is. Inputs have 0 in no place where a quotient or a comparison would hang by it.
PROGRAMS = (
    ("precedence", "y0=x0-x1-x2*x3/x1+-x0*x2", lambda x: [((x[0] - x[1]) - (x[2] * x[3]) / x[1]) + (-x[0]) * x[2]]),
    ("from the left", "y0=x0/x1/x2*x3;y1=x0-(x1-x2)-x3",
     lambda x: [x[0] / x[1] / x[2] * x[3], x[0] - x[1] + x[2] - x[3]]),
    ("parentheses", "y0=((x0+x1))*(x2-(x3))", lambda x: [(x[0] + x[1]) * (x[2] - x[3])]),
    ("minus twice", "y0=--x0-x1*-x2", lambda x: [x[0] + x[1] * x[2]]),
    ("numbers", "y0=x0*.5+1.25e1-3E-2;y1=0.1", lambda x: [x[0] * 0.5 + 12.5 - f32(3e-2), np.full_like(x[0], f32(0.1))]),
    ("comparisons", "y0=(x0<x1)+2*(x0<=x1)+4*(x0>x1)+8*(x0>=x1)+16*(x0==x1)+32*(x0!=x1)",
     lambda x: [(x[0] < x[1]) + 2. * (x[0] <= x[1]) + 4. * (x[0] > x[1]) + 8. * (x[0] >= x[1]) + 16. * (x[0] == x[1]) +
                32. * (x[0] != x[1])]),
    ("equal and not", "y0=x0==x0;y1=x0!=x0;y2=x0<=x0;y3=x0<x0",
     lambda x: [number(x[0] == x[0]), number(x[0] != x[0]), number(x[0] <= x[0]), number(x[0] < x[0])]),
    ("a comparison of sums", "y0=x0+x1<x2*x3", lambda x: [number(x[0] + x[1] < x[2] * x[3])]),
    ("select", "y0=select(x0>x1,x2,x3);y1=select(0,x0,x1);y2=select(-0.5,x0,x1)",
     lambda x: [np.where(x[0] > x[1], x[2], x[3]), x[1], x[0]]),
    ("least and largest", "y0=min(x0,x1);y1=max(x0,x1);y2=min(max(x0,-1),1)",
     lambda x: [np.minimum(x[0], x[1]), np.maximum(x[0], x[1]), np.clip(x[0], -1, 1)]),
    ("fma", "y0=fma(x0,x1,x2);y1=fma(2,x3,-x0)", lambda x: [x[0] * x[1] + x[2], 2 * x[3] - x[0]]),
    ("abs and floor", "y0=abs(x0);y1=floor(x0*3);y2=-floor(-x0*3)",
     lambda x: [np.abs(x[0]), np.floor(x[0] * 3), np.ceil(x[0] * 3)]),
    ("roots", "y0=sqrt(abs(x0));y1=rsqrt(abs(x1));y2=sqrt(x0)",
     lambda x: [np.sqrt(np.abs(x[0])), 1 / np.sqrt(np.abs(x[1])), np.sqrt(x[0])]),
    ("exp and log", "y0=exp(x0);y1=log(abs(x1));y2=log(x1)",
     lambda x: [np.exp(x[0]), np.log(np.abs(x[1])), np.log(x[1])]),
    ("tanh and erf", "y0=tanh(x0);y1=erf(x0);y2=sigmoid(x0);y3=relu(x0)",
     lambda x: [np.tanh(x[0]), special.erf(x[0]), special.expit(x[0]), np.maximum(x[0], 0)]),
    ("gates", "y0=silu(x0);y1=gelu(x0);y2=gelu_tanh(x0)", lambda x: [silu(x[0]), gelu(x[0]), gelu_tanh(x[0])]),
    ("rounded on the way", "y0=bf16(x0);y1=f16(x0);y2=f32(x0);y3=bf16(x0)-x0",
     lambda x: [rounded(x[0], "bf16"), rounded(x[0], "f16"), x[0], rounded(x[0], "bf16") - x[0]]),
    ("names set again", "t=x0;t=t+x1;y0=t;t=t*x2;y1=t;y0=y0-t",
     lambda x: [x[0] + x[1] - (x[0] + x[1]) * x[2], (x[0] + x[1]) * x[2]]),
    ("sums of rows", "y0=sum_row(x0);y1=mean_row(x0);y2=max_row(x0);y3=min_row(x0)",
     lambda x: [f(x[0]) + 0 * x[0] for f in (total, mean, largest, least)]),
    ("softmax of a sum", "t = x0 + x1; m = max_row(t); e = exp(t - m); y0 = e / sum_row(e)",
     lambda x: [special.softmax(x[0] + x[1], axis=-1)]),
    ("layer_norm", "m=mean_row(x0);c=x0-m;y0=c*rsqrt(mean_row(c*c)+1e-5)*x1+x2",
     lambda x: [(x[0] - mean(x[0])) / np.sqrt(x[0].var(-1, keepdims=True) + f32(1e-5)) * x[1] + x[2]]),
    ("rms_norm", "y0=x0*rsqrt(mean_row(x0*x0)+1e-6)*x1",
     lambda x: [x[0] / np.sqrt(mean(x[0]**2) + f32(1e-6)) * x[1]]),
    ("softmax, backward", "y0=x0*(x1-sum_row(x0*x1))", lambda x: [x[0] * (x[1] - total(x[0] * x[1]))]),
    ("reductions of reductions", "a=x0-mean_row(x0);b=a/max_row(abs(a));y0=b-min_row(b);y1=sum_row(b*b)/2",
     lambda x: nested(x[0] - mean(x[0]))),
    ("a sum of a number", "y0=sum_row(0.5)+x0;y1=mean_row(3)*x0", lambda x: [x[0].shape[-1] / 2 + x[0], 3 * x[0]]),
    ("values of rows", "m=max_row(x0);e=exp(x0-m);s=sum_row(e);y0=e/s;r0=m+log(s);r1=mean_row(x0)*-2",
     lambda x: [special.softmax(x[0], axis=-1), special.logsumexp(x[0], axis=-1), -2 * x[0].mean(-1)]),
    ("a number for each row", "y0=x0*2;r1=-1.5", lambda x: [2 * x[0], np.full(x[0].shape[:-1], -1.5)]),
    ("all inputs", "y0=x0+2*x1+3*x2+4*x3+5*x4+6*x5+7*x6+8*x7", lambda x: [sum((i + 1) * a for i, a in enumerate(x))]),
)


def each(f):
    return np.frompyfunc(f, 1, 1)


def exact(x, dtype):
    return each(mp.mpf)(rounded(x.astype(np.float64), dtype))


def cdf(x):
    return each(lambda a: mp.erfc(-a / mp.sqrt(2)) / 2)(x)


def logistic(x):
    return each(lambda a: 1 / (1 + mp.exp(-a)))(x)


def truth(x):
    return x.astype(bool).astype(np.float64)


exp, log, root = each(mp.exp), each(mp.log), each(mp.sqrt)
F64 = ("f64",) * 5
# Name, types of x0, x1, the other inputs, y and r; program, and what each output is.
WIDE = (
    ("numbers in f64", F64, "y0=x0*0.1+x1/x2-1e-3*x3;y1=fma(x0,x1,-x2);y2=1e300*x0;y3=floor(x0*1e5)*0.5",
     lambda x: [x[0] * 0.1 + x[1] / x[2] - 1e-3 * x[3], x[0] * x[1] - x[2], 1e300 * x[0],
                each(mp.floor)(x[0] * 100000) / 2]),
    ("functions in f64", F64, "y0=exp(x0);y1=log(abs(x0));y2=tanh(x0);y3=erf(x0)",
     lambda x: [exp(x[0]), log(abs(x[0])), each(mp.tanh)(x[0]), each(mp.erf)(x[0])]),
    ("gates in f64", F64, "y0=sigmoid(x0*9);y1=silu(x0*4);y2=gelu(x0*3);y3=gelu_tanh(x0)",
     lambda x: [logistic(9 * x[0]), 4 * x[0] * logistic(4 * x[0]), 3 * x[0] * cdf(3 * x[0]),
                x[0] * logistic(2 * mp.sqrt(2 / mp.pi) * (x[0] + mp.mpf("0.044715") * x[0]**3))]),
    ("roots and the least in f64", F64, "y0=sqrt(abs(x0));y1=rsqrt(x0*x0+1e-40);y2=min(x0,x1);y3=max(x0,0.3)",
     lambda x: [root(abs(x[0])), 1 / root(x[0]**2 + 1e-40), np.minimum(x[0], x[1]), np.maximum(x[0], mp.mpf(0.3))]),
    ("rounded on the way in f64", F64, "y0=f32(x0);y1=bf16(x0);y2=f16(x0);y3=(f32(x0)==x0)-f32(0.1)",
     lambda x: [exact(x[0], "f32"), exact(x[0], "bf16"), exact(x[0], "f16"),
                truth(exact(x[0], "f32") == x[0]) - f32(0.1)]),
    ("softmax in f64", F64, "t=x0+x1;m=max_row(t);e=exp(t-m);s=sum_row(e);y0=e/s;r0=m+log(s);r1=min_row(x0)",
     lambda x: [exp(x[0] + x[1]) / total(exp(x[0] + x[1])), log(total(exp(x[0] + x[1])))[..., 0], x[0].min(-1)]),
    ("layer_norm in f64", F64, "m=mean_row(x0);c=x0-m;y0=c*rsqrt(mean_row(c*c)+1e-5)*x1+x2;r1=m",
     lambda x: [(x[0] - mean(x[0])) / root(mean((x[0] - mean(x[0]))**2) + 1e-5) * x[1] + x[2], mean(x[0])[..., 0]]),
    ("f64 by f32", ("f64", "f32", "f32", "f32", "f64"), "s=sum_row(x0*x1);y0=x0/s+x2;r0=s",
     lambda x: [x[0] / total(x[0] * x[1]) + x[2], total(x[0] * x[1])[..., 0]]),
    ("f32, summed in f64", ("f32", "f32", "f32", "f32", "f64"), "r0=sum_row(exp(x0));y0=x0-r0*1e-3",
     lambda x: [total(exp(x[0]))[..., 0], x[0] - total(exp(x[0])) * 1e-3]),
    ("i32 in f64", ("i32", "f64", "f64", "f64", "f64"), "y0=x0*16777217+x1;y1=x0*x2;r0=mean_row(x0)",
     lambda x: [x[0] * 16777217 + x[1], x[0] * x[2], mean(x[0])[..., 0]]),
    ("f32, stored in f64", ("f32", "f64", "f32", "f64", "f32"),
     "y0=select(x0<x1,x0*x1,x2);y1=tanh(x0)*x1;r1=max_row(x1)",
     lambda x: [np.where(truth(x[0] < x[1]), x[0] * x[1], x[2]), each(mp.tanh)(x[0]) * x[1], x[1].max(-1)]),
)


def inputs_of(program):
    return [name for name in X if name == "x0" or name in program]


def outputs_of(program):
    return [name for name in ("y0", "y1", "y2", "y3", "r0", "r1") if name + "=" in program.replace(" ", "")]


def chain(draw):
    for i, (name, program, formula) in enumerate(PROGRAMS):
        shape = ((3, 7), (2, 2, 5), (1, 33), (9,))[i % 4]
        yield written(draw, name, program, formula, shape, ("f32", "f32", "f32", "f32"))
    softmax = PROGRAMS[19]
    for types in (("bf16", "f16", "f32", "f32"), ("i8", "f32", "f32", "f32"), ("u8", "bf16", "f32", "bf16"),
                  ("i32", "f32", "f32", "f16")):
        yield written(draw, f"softmax of {types[0]}", *softmax[1:], (2, 3, 1, 11), types)
    yield broadcast(draw)
    yield special_numbers()
    for i, (name, types, program, formula) in enumerate(WIDE):
        yield in_f64(draw, name, program, formula, ((2, 7), (2, 1, 5), (1, 17), (9,))[i % 4], types)


def words_of(program, shape, types):
    words = " ".join(f"{v}={t}" for v, t in zip("ABCTR", types))
    words += "".join(f" {symbol}={n}" for symbol, n in zip("pqrn"[4 - len(shape):], shape))
    given = inputs_of(program)[1:] + outputs_of(program)[1:]
    return words + "".join(f" +{name}" for name in given) + " program=" + program.replace(" ", "")


def written(draw, name, program, formula, shape, types):
    x = {}
    for place, tensor in enumerate(inputs_of(program)):
        dtype = types[min(place, 2)]
        x[tensor] = draw.integers(shape, 0 if dtype == "u8" else -9, 10) if dtype[0] in "iu" else \
            draw.normal(shape, dtype, 1.5, 0.25)
    with np.errstate(invalid="ignore"):
        y = formula([x.get(tensor) for tensor in X])
    return case(name, words_of(program, shape, types), x, dict(zip(outputs_of(program), y, strict=True)))


def in_f64(draw, name, program, formula, shape, types):
    x = {}
    for place, tensor in enumerate(inputs_of(program)):
        dtype = types[min(place, 2)]
        x[tensor] = draw.integers(shape, -2**30, 2**30) if dtype == "i32" else draw.normal(shape, dtype, 1.5, 0.25)
    y = [a.astype(np.float64) for a in formula([each(mp.mpf)(x[tensor]) if tensor in x else None for tensor in X])]
    named = re.findall(r"([yr]\d)=", program)
    return case(name, words_of(program, shape, types), x, dict(zip(named, y, strict=True)))


def broadcast(draw):
    """Each input another way."""
    program = "y0=(x0+x1)*x2-mean_row(x3)"
    x = {"x0": draw.normal((2, 3, 1, 5)), "x1": draw.normal((5,)), "x2": draw.normal((3, 4, 1)),
         "x3": draw.normal((2, 1, 1, 5))}
    y = (x["x0"] + x["x1"]) * x["x2"] - mean(x["x3"])
    return case("broadcast", words_of(program, (2, 3, 4, 5), ("f32",) * 4), x, {"y0": y})


def special_numbers():
    """NaN goes through all but comparisons and select; so do infinities where the formula has them."""
    inf, nan = np.inf, np.nan
    program = "y0=max(x0,x1);y1=select(x0<x1,x0,x1);y2=relu(x0)+x0*0;y3=tanh(x0)+exp(x1)"
    x0, x1 = number([[nan, 1, inf, -inf, inf]]), number([[2, nan, 1, -inf, 0]])
    return case("what is not a number", words_of(program, (1, 5), ("f32",) * 4), {"x0": x0, "x1": x1},
                {"y0": number([[nan, nan, inf, -inf, inf]]), "y1": number([[2, nan, 1, -inf, 0]]),
                 "y2": number([[nan, 1, nan, nan, nan]]),
                 "y3": number([[nan, nan, 1 + np.e, -1, 2]])})
