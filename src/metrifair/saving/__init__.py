"""Models in files that run no code: modelfile (bytes <-> arrays + JSON), keeping (estimator <-> arrays + JSON).

plain, codebook, weights, requests and streamstate each take one part of an estimator apart and check it when it comes
back.
"""
