"""What all tests share."""

from ahofm_keras.model import fitting

# Several fits are averaged unless a user says otherwise. One is enough for nearly every test, and takes
# a fraction of the time; tests/model/test_averaging.py has several.
fitting.ROWS_OF_STARTS = 0
