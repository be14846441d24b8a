"""What `peers.py` is made of: the libraries, one file a kind; runs in own processes; tables."""
