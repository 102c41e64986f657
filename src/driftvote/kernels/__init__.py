"""Numba kernels: arrays in, arrays out. They check nothing; the stages above them do."""
