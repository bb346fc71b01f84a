# SPDX-License-Identifier: Apache-2.0
"""Attention under the names and arguments of the package flash_attn (version 2), with gradients.

    from trine.flash import flash_attn_func, flash_attn_varlen_func

What trine's attention does not do is refused: paged keys. Masks are aligned at the bottom right, as there since its
version 2.1. What dropout drops is drawn from PyTorch's generator, but is not what that package would drop."""
from . import torch as ops


def _options(dropout_p, softmax_scale, causal, window_size, softcap, alibi_slopes):
    left, right = window_size
    return {"scale": softmax_scale, "causal": bool(causal), "softcap": softcap or None, "dropout": dropout_p or None,
            "window_left": left + 1 if left >= 0 else None, "window_right": right + 1 if right >= 0 else None,
            "alibi_slopes": alibi_slopes}


def _result(q, k, v, return_attn_probs, options, starts):
    if not return_attn_probs:
        return ops.attention(q, k, v, **starts, **options)
    out, lse = ops.attention(q, k, v, lse=True, **starts, **options)
    return out, lse, None


def flash_attn_func(q, k, v, dropout_p=0.0, softmax_scale=None, causal=False, window_size=(-1, -1), softcap=0.0,
                    alibi_slopes=None, deterministic=False, return_attn_probs=False):
    """q: (batch, queries, heads, d); k, v: (batch, keys, key heads, d); alibi_slopes: (heads) or (batch, heads). It is
    deterministic whether asked to or not.
    return_attn_probs: also the log-sum-exp (batch, heads, queries), and None for the probabilities."""
    del deterministic
    options = _options(dropout_p, softmax_scale, causal, window_size, softcap, alibi_slopes)
    return _result(q, k, v, return_attn_probs, options, {})


def flash_attn_varlen_func(q, k, v, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k, dropout_p=0.0,
                           softmax_scale=None, causal=False, window_size=(-1, -1), softcap=0.0, alibi_slopes=None,
                           deterministic=False, return_attn_probs=False, block_table=None):
    """Sequences of several lengths behind one another. q: (tokens, heads, d); cu_seqlens: where each begins, and the
    end. The lengths at most are not needed."""
    del deterministic, max_seqlen_q, max_seqlen_k
    if block_table is not None:
        raise NotImplementedError("trine's attention has no paged keys yet")
    options = _options(dropout_p, softmax_scale, causal, window_size, softcap, alibi_slopes)
    return _result(q, k, v, return_attn_probs, options, {"cu_seqlens_q": cu_seqlens_q, "cu_seqlens_k": cu_seqlens_k})
