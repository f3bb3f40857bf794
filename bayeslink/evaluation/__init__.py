"""How good a selection was: recovery, ranking, calibration, coverage, and paired comparisons."""
