"""`python -m epsgauge` is the `epsgauge` command."""

from epsgauge.cli.main import main

main()
