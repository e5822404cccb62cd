"""`python -m trellis` is the same as the console script `trellis`."""

from trellis.cli import main

if __name__ == "__main__":
    main()
