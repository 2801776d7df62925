"""`python -m epsgauge` is the `epsgauge` command."""

import os
import sys


def main() -> None:
    """Ctrl-C ends it without a traceback, also while its modules are loaded."""
    try:
        from epsgauge.cli.main import main as command

        command()
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    if not sys.flags.safe_path and sys.path[0] == os.getcwd():
        del sys.path[0]  # python -m puts the current folder first, and a file there would replace a module of ours
    main()
