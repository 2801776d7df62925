"""`python -m epsgauge` is the `epsgauge` command."""

from epsgauge.cli.main import main

if __name__ == "__main__":
    main()
