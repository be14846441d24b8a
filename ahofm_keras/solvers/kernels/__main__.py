"""`python -m ahofm_keras.solvers.kernels` compiles the loops over rows once, for all fits to come."""

from ahofm_keras.solvers.kernels import compile_kernels

print(compile_kernels())
