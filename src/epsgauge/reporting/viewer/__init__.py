"""The live viewer: a page on this machine alone that lists runs, follows them, and lets one explore."""
