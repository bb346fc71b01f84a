# SPDX-License-Identifier: Apache-2.0
"""Ops whose gradients are composed of others: shapes, the formula in a library's own functions, and parameters."""


def williamson_20():
    """The Hadamard matrix of order 20, which is not symmetric."""
    p, r, t = [1, -1, -1, -1, -1], [1, 1, -1, -1, 1], [1, -1, 1, 1, -1]
    blocks = [[(p, 1), (p, 1), (r, 1), (t, 1)], [(p, -1), (p, 1), (t, -1), (r, 1)],
              [(r, -1), (t, 1), (p, 1), (p, -1)], [(t, -1), (r, -1), (p, 1), (p, 1)]]
    return [[sign * row[(j - i) % 5] for row, sign in line for j in range(5)] for line in blocks for i in range(5)]


def composed(relu, silu, gelu, wide, largest, matrix):
    """With a library's activations, a type that cast goes to, its k largest elements, in order, and what makes a matrix
    of lists."""
    def product(a, b):
        return a @ b
    return {
        "matmul": [((3, 5, 8), (8, 6), product, {}), ((5, 8), (8, 6), lambda a, b: 0.5 * (a @ b), {"alpha": 0.5}),
                   ((4, 5, 8), (4, 8, 6), product, {}), ((1, 5, 8), (4, 8, 6), product, {}),
                   ((5, 8), (4, 8, 6), product, {}), ((8,), (8, 6), product, {}),
                   ((2, 5, 0), (0, 6), product, {}), ((2, 0, 8), (8, 6), product, {}),
                   ((5, 8), (8, 6), lambda a, b: relu(a @ b), {"activation": "relu"}),
                   ((2, 5, 8), (8, 6), lambda a, b: silu(a @ b), {"activation": "silu"}),
                   ((5, 8), (8, 6), lambda a, b: gelu(a @ b), {"activation": "gelu_erf"})],
        "add": [((2, 3, 4), (2, 3, 4), lambda a, b: a - 2 * b, {"beta": -2.0}),
                ((2, 3, 4), (4,), lambda a, b: a + b, {}), ((3, 1), (3, 4), lambda a, b: a + b, {})],
        "mul": [((2, 3, 4), (2, 3, 4), lambda a, b: 3 * a * b, {"alpha": 3.0}),
                ((2, 3, 4), (3, 1), lambda a, b: a * b, {})],
        "scale": [((3, 4), None, lambda x: 2 * x + 1, {"alpha": 2.0, "shift": 1.0})],
        "cast": [((3, 4), None, lambda x: x, {"dtype": wide})],
        "reduce_sum": [((3, 4), None, lambda x: (x.sum(1), x.sum(0)), {"row_sums": True, "column_sums": True}),
                       ((2, 3, 4), None, lambda x: x.sum(-1), {"row_sums": True}),
                       ((3, 4), None, lambda x: x.sum(0), {"column_sums": True})],
        "topk": [((2, 3, 9), None, lambda x: largest(x, 4), {"k": 4, "values": True}),
                 ((3, 9), None, lambda x: -largest(-x, 1), {"k": 1, "values": True, "smallest": True})],
        "hadamard": [((2, 3, 20), None, lambda x: 0.5 * (x @ matrix(williamson_20()).T), {"scale": 0.5}),
                     ((3, 20), None, lambda x: x @ matrix(williamson_20()), {"transposed": True})],
        "block_mean": [((7, 4), None, lambda x: x[:6].reshape(2, 3, 4).mean(1), {"size": 3, "blocks": 2}),
                       ((2, 6, 4), None, lambda x: x.reshape(2, 2, 3, 4).mean(2), {"size": 3, "blocks": 2})],
    }
