"""Models in files that run no code.

modelfile: bytes <-> arrays + JSON; schema: the JSON as typed records; estimators (with scheme and learner) and boosters
(with lightgbm_trees and xgboost_trees): a fitted model <-> its record and arrays; models: whichever of both it is;
saved: how models ask for it; onnx (with onnx_trees): a fitted model -> a graph that runs elsewhere.
"""
