"""What all tests share."""

from ahofm_keras.model import fitting

# Of small data three fits are averaged unless a user says otherwise. One is enough for nearly every
# test, and takes a third of the time; tests/model/test_averaging.py has the three.
fitting.FEW_ROWS = 0
