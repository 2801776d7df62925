"""`python -m epsgauge` is the `epsgauge` command."""

import sys


def main() -> None:
    """Ctrl-C ends it without a traceback, also while its modules are loaded."""
    try:
        from epsgauge.cli.main import main as command

        command()
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
