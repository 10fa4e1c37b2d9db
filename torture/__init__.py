"""Attacks on the package that are too long for the test suite; each prints counts and ends with 1 if one succeeds.

python -m torture.readers --n 100000 --seed 0       damaged files of datasets
python -m torture.loaders --n 100000 --seed 0       damaged models, checkpoints and records
python -m torture.folders --n 10000 --seed 0        damaged folders of servers
python -m torture.wrong_requests --n 1000 --seed 0        wrong requests to a server
python -m torture.kills --n 1200 --seed 0           runs killed at random moments
python -m torture.serving --kills 1000 --seed 0     servers killed while clients teach them
python -m torture.crash_points --seed 0             power lost at every operation on files
python -m torture.calls --n 100000 --seed 0         hostile arguments of estimators
python -m torture.river_calls --n 20000 --seed 0    hostile rows and targets of the models for river
python -m torture.merges --n 2000 --seed 0          models merged that have more or less in common
python -m torture.interrupts --n 1700 --seed 0      exceptions at random moments of a call
python -m torture.threads --n 200 --seed 0          answers while another thread learns, 500 of each model
python -m torture.overrides --n 20000 --seed 0      hostile configurations

All run in several processes (``--jobs 16``) and in parts (``--from``, ``--to``, ``--seconds``), and repeat single ones
(``--only``): see :mod:`torture.attempts`. ``python -m torture.endless`` learns a million batches.
"""
