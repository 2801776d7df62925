"""`python -m epsgauge.scripts` is a stage; its classes then have the names under which a session knows them."""

from epsgauge.scripts.stage import main

if __name__ == "__main__":
    main()
