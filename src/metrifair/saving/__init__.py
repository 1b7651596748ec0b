"""Models in files that run no code.

modelfile: bytes <-> arrays + JSON; records: the JSON as typed records; estimators and boosters
(with lightgbm_trees and xgboost_trees): a fitted model <-> its record and arrays; models: any of
them, and what wraps one (post-processors, pipelines); scoring: predictions from a file with NumPy
or a booster's own library; saved: the methods of models; onnx: a model as a graph for other
programs.
"""
