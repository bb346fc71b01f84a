# SPDX-License-Identifier: Apache-2.0
"""Ensembles that scikit-learn grew, by its own predict() and apply(), the leaves rounded to multiples of 2^-12 so that
sums are exact in any order; other trees, and scores of splits, by definition: each split's samples selected by NumPy
and added up by math.fsum, and scikit-learn's choice of the best."""
import math

import numpy as np
from sklearn.ensemble import ExtraTreesRegressor, GradientBoostingRegressor
from sklearn.tree import DecisionTreeRegressor

from vectors import case, f32


def below(threshold):
    """The largest f32 that is at most a threshold in f64: the same comparisons of features in f32."""
    t = np.float32(threshold)
    return float(t if float(t) <= threshold else np.nextafter(t, np.float32(-np.inf)))


def converted(trees, scale=1.0):
    """features, thresholds, rules, children, roots and leaves of trees of scikit-learn, and what the rows of `leaves`
    are of each."""
    features, thresholds, rules, children, roots, leaves, places = [], [], [], [], [], [], []
    for tree in trees:
        first, place = len(features), {}
        roots.append(first)
        for k in range(tree.node_count):
            leaf = tree.children_left[k] < 0
            if leaf:
                place[k] = len(leaves)
                leaves.append(np.round(tree.value[k, :, 0] * scale * 4096) / 4096)
            features.append(-1 - place[k] if leaf else tree.feature[k])
            thresholds.append(0 if leaf else below(tree.threshold[k]))
            rules.append(int(tree.missing_go_to_left[k]) if not leaf else 0)
            children.append([-1, -1] if leaf else [first + tree.children_left[k], first + tree.children_right[k]])
        places.append(place)
    ints = lambda x: np.array(x, dtype=np.float64)  # noqa: E731
    return {"features": ints(features), "thresholds": ints(thresholds), "rules": ints(rules),
            "children": ints(children), "roots": ints(roots), "leaves": ints(leaves)}, places


def data(draw, r, f, missing):
    x = draw.normal((r, f), "f32")
    if missing:
        x[draw.uniform((r, f), 0, 1) < 0.15] = np.nan
    return x


def grown(draw, name, estimator, outputs, missing=False, base=False, rows=24):
    train = data(draw, 300, 5, missing)
    filled = np.nan_to_num(train, nan=1.5)
    target = np.stack([filled[:, 0] * filled[:, 1] + filled[:, (2 + q) % 5] for q in range(outputs)], 1)
    estimator.fit(train.astype(np.float32), target if outputs > 1 else target[:, 0])
    members = [e.tree_ for e in (np.ravel(estimator.estimators_) if hasattr(estimator, "estimators_")
                                 else [estimator])]
    ins, places = converted(members)
    x = data(draw, rows, 5, missing)
    nodes = np.stack([tree.apply(x.astype(np.float32)) for tree in members], 1)
    indices = np.array([[places[t][k] for t, k in enumerate(row)] for row in nodes], dtype=np.float64)
    start = np.round(draw.normal((outputs,), "f32") * 64) / 64 if base else np.zeros(outputs)
    y = start + ins["leaves"][indices.astype(int)].sum(1)
    if not base and isinstance(estimator, DecisionTreeRegressor):
        assert np.allclose(y.ravel(), estimator.predict(x.astype(np.float32)).ravel(), atol=2**-12)
    ins = {"x": x} | ins | ({"base": start} if base else {})
    if not missing:
        del ins["rules"]
    words = (f"T=f32 r={rows} f=5 n={len(ins['features'])} t={len(members)} l={len(ins['leaves'])} v={outputs} "
             f"o={outputs} +children +indices" + (" +rules" if missing else "") + (" +base" if base else ""))
    return case(name, words, ins, {"y": y, "indices": indices})


def tree_predict(draw):
    yield grown(draw, "one tree", DecisionTreeRegressor(max_depth=5, random_state=1), 1)
    yield grown(draw, "missing values", DecisionTreeRegressor(max_leaf_nodes=40, random_state=2), 2, missing=True,
                rows=70)
    yield grown(draw, "extra trees of three outputs",
                ExtraTreesRegressor(n_estimators=7, max_depth=4, random_state=3), 3, base=True)
    yield grown(draw, "boosting", GradientBoostingRegressor(n_estimators=20, max_depth=3, random_state=4), 1, base=True,
                rows=40)
    # Oblivious: the leaf's bits are the comparisons, the first of them the lowest; NaN as the rule has it.
    r, f, t, depth, l = 12, 4, 3, 3, 24
    x = np.round(draw.normal((r, f), "f32") * 4) / 4
    x[2, 1] = x[5, 0] = x[7, 3] = np.nan
    features = np.array([0, 1, 3, 2, 2, 1, 3, 0, 1], dtype=np.float64)
    thresholds = np.array([0.25, -0.5, 0, 1, -1, 0, 0.5, 0.25, 0])
    rules = np.array([0, 1, 2, 3, 0, 1, 0, 2, 1], dtype=np.float64)
    leaves = np.round(draw.normal((l, 2), "f32") * 256) / 256
    targets = np.array([0, 1, -1], dtype=np.float64)
    y, indices = np.zeros((r, 3)), np.zeros((r, t))
    for i in range(r):
        for tree in range(t):
            leaf = 8 * tree
            for k in range(depth):
                node = tree * depth + k
                value, rule = x[i, int(features[node])], int(rules[node])
                if math.isnan(value):
                    left = rule % 2 == 1
                else:
                    left = value == thresholds[node] if rule >= 2 else value <= thresholds[node]
                leaf += 0 if left else 2**k
            indices[i, tree] = leaf
            for q in range(2):
                if 0 <= targets[tree] + q < 3:
                    y[i, int(targets[tree]) + q] += leaves[leaf, q]
    yield case("oblivious, targets", f"T=f32 r={r} f={f} n=9 t={t} l={l} v=2 o=3 +rules +targets +indices",
               {"x": x, "features": features, "thresholds": thresholds, "rules": rules,
                "roots": np.array([0., 8, 16]), "leaves": leaves, "targets": targets}, {"y": y, "indices": indices})
    # A set of categories {1, 4} as tests of equality with one left child; a feature and a child that are not there.
    yield case("a set, and what is not there", "T=f32 r=5 f=1 n=9 t=3 l=3 v=1 o=1 +rules +children +targets +indices",
               {"x": np.array([[1.], [4.], [2.], [np.nan], [np.inf]]),
                "features": np.array([0., 0, -1, -2, 0, 1, -3, 0, -1]),
                "thresholds": np.array([1., 4, 0, 0, 2, 0, 0, 0, 0]), "rules": np.array([2., 2, 0, 0, 0, 0, 0, 0, 0]),
                "children": np.array([[2., 1], [2, 3], [0, 0], [0, 0], [5, 6], [6, 6], [0, 0], [7, 8], [0, 0]]),
                "roots": np.array([0., 4, 3]), "targets": np.array([0., 0, 0]), "leaves": np.array([[8.], [16], [32]])},
               {"y": np.array([[np.nan], [8 + 32 + 16], [np.nan], [16 + 32 + 16], [16 + 32 + 16]]),
                "indices": np.array([[0., -1, 1], [0, 2, 1], [1, -1, 1], [1, 2, 1], [1, 2, 1]])})


def scored(side, g, h, regularization):
    weight = math.fsum(h[side]) + regularization
    return sum(math.fsum(g[side, q]) ** 2 for q in range(g.shape[1])) / weight


def splits(bins, nodes, g, h, m, b, *, cosine=False, min_count=1, regularization=0.0, gain=False, missing_left=False,
           categorical=None, weights=None):
    s, f = bins.shape
    scores, sums = np.zeros((m, f, b)), np.zeros((m, f, b, g.shape[1]))
    left_weights, counts = np.zeros((m, f, b)), np.zeros((m, f, b))
    root = math.sqrt if cosine else float
    for p in range(m):
        for j in range(f):
            here, without = nodes == p, (bins[:, j] < 0) | (bins[:, j] >= b)
            for k in range(b):
                one = categorical is not None and categorical[j]
                left = (bins[:, j] == k if one else bins[:, j] <= k) & ~without | (without if missing_left else False)
                left, right = here & left, here & ~left
                sums[p, j, k] = [math.fsum(g[left, q]) for q in range(g.shape[1])]
                left_weights[p, j, k], counts[p, j, k] = math.fsum(h[left]), left.sum()
                if min(left.sum(), right.sum()) < min_count:
                    scores[p, j, k] = -np.inf
                    continue
                score = root(scored(left, g, h, regularization) + scored(right, g, h, regularization))
                if gain:
                    score -= root(scored(here, g, h, regularization))
                scores[p, j, k] = score * (1 if weights is None else weights[j])
    return {"scores": scores, "left_sums": sums, "left_weights": left_weights, "left_counts": counts}


def tree_split_score(draw):
    s, f, b = 60, 3, 6
    for name, dtype, m, d, given in (
        ("boosting", "u8", 3, 1, {"regularization": 1.5, "gain": True, "min_count": 2, "missing_left": True}),
        ("gbrl", "i32", 1, 4, {"cosine": True}),
        ("cosine of a gain", "u8", 2, 2, {"cosine": True, "gain": True, "min_count": 3}),
    ):
        boosting = name == "boosting"
        bins = np.floor(draw.uniform((s, f), 0, b + 1))
        if dtype == "i32":
            bins[bins == b] = -1
        nodes = np.floor(draw.uniform((s,), -1, m + 1)) if m > 1 else np.zeros(s)
        g, h = draw.normal((s, d), "f32"), draw.uniform((s,), 0.25, 1) if boosting else np.ones(s)
        categorical = np.array([0., 1, 0]) if boosting or m == 2 else None
        weights = draw.uniform((f,), 0.5, 2) if name == "gbrl" else None
        outs = splits(bins, nodes, g, h, m, b, categorical=categorical, weights=weights, **given)
        words = f"B={dtype} s={s} f={f} d={d} m={m} b={b}" + (" score=cosine" if given.get("cosine") else "")
        for p in "min_count", "regularization", "gain", "missing_left":
            words += f" {p}={int(given[p]) if p != 'regularization' else given[p]}" if p in given else ""
        ins = {"bins": bins}
        for tensor, value, there in (("nodes", nodes, m > 1), ("gradients", g, True), ("hessians", h, boosting),
                                     ("categorical", categorical, categorical is not None),
                                     ("feature_weights", weights, weights is not None)):
            if there:
                ins[tensor] = value
                words += f" +{tensor}" if tensor != "gradients" else ""
        yield case(name, words + " +left_sums +left_weights +left_counts", ins, outs)
    # The best split is the one with which scikit-learn's tree of one test begins.
    x, g = draw.normal((40, 3), "f32"), draw.normal((40, 1), "f32")
    values = np.sort(x, 0)
    bins = np.stack([np.searchsorted(values[:, j], x[:, j]) for j in range(3)], 1).astype(np.float64)
    outs = splits(bins, np.zeros(40), g, np.ones(40), 1, 40)
    tree = DecisionTreeRegressor(max_depth=1).fit(x, g[:, 0]).tree_
    _, j, k = np.unravel_index(np.argmax(outs["scores"]), outs["scores"].shape)
    assert tree.feature[0] == j and values[k, j] <= tree.threshold[0] <= values[k + 1, j]
    yield case("scikit-learn's choice", "B=u8 s=40 f=3 d=1 m=1 b=40 regularization=" + str(f32(0)),
               {"bins": bins, "gradients": g}, {"scores": outs["scores"]})
