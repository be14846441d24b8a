"""What all tests share."""

from ahofm_keras.model import starts

# Several fits are averaged unless a user says otherwise. One is enough for nearly every test, and takes
# a fraction of the time; tests/model/test_averaging.py has several.
starts.ROWS_OF_STARTS = 0
