"""Attacks on the package that are too long for the test suite; each prints counts and ends with 1 if one succeeds.

python -m torture.readers --n 100000 --seed 0
"""
