#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the forests that papers-forest reads in tests, in this folder: a small model of XGBoost and one of LightGBM, in
the JSON that they write, and rows with what they predict as sums of leaves. Needs both libraries and NumPy."""
import json
import pathlib

import lightgbm
import numpy as np
import xgboost

HERE = pathlib.Path(__file__).resolve().parent
BASE = 0.25


def rows(generator, count, categories):
    x = generator.normal(size=(count, 6)).astype(np.float32)
    x[:, 5] = generator.integers(0, categories, count)
    x[generator.random((count, 6)) < 0.1] = np.nan
    return x


def target(x):
    filled = np.nan_to_num(x, nan=0.7)
    return filled[:, 0] * filled[:, 1] + np.sin(filled[:, 2]) + (filled[:, 5] % 3 == 1)


def write_rows(name, x, y):
    lines = [",".join(f"{float(v):.9g}" for v in [*row, value]) for row, value in zip(x, y)]
    (HERE / name).write_text("\n".join(lines) + "\n")


def write_json(name, model):
    (HERE / name).write_text(json.dumps(model, indent=0) + "\n")


def slim(node):
    """Without what papers-forest does not read."""
    kept = {"split_feature", "threshold", "decision_type", "default_left", "missing_type", "left_child", "right_child",
            "leaf_value"}
    return {k: slim(v) if isinstance(v, dict) else v for k, v in node.items() if k in kept}


def main():
    generator = np.random.default_rng(1)
    x, unseen = rows(generator, 400, 7), rows(generator, 40, 7)
    booster = xgboost.train({"max_depth": 3, "eta": 0.3, "base_score": BASE, "seed": 1},
                            xgboost.DMatrix(x, target(x)), 8)
    write_json("xgboost.json", [json.loads(tree) for tree in booster.get_dump(dump_format="json")])
    write_rows("xgboost.csv", unseen, booster.predict(xgboost.DMatrix(unseen), output_margin=True))
    model = lightgbm.train({"num_leaves": 8, "seed": 1, "verbose": -1, "min_data_per_group": 5, "cat_smooth": 1},
                           lightgbm.Dataset(x, target(x), categorical_feature=[5]), 8)
    trees = [{"tree_structure": slim(t["tree_structure"])} for t in model.dump_model()["tree_info"]]
    write_json("lightgbm.json", {"tree_info": trees})
    write_rows("lightgbm.csv", unseen, model.predict(unseen, raw_score=True))


main()
