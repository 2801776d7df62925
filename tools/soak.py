"""Kill a run 100 times at random moments, resume it until it is done, and compare every signal with runs left alone."""

import argparse
import random
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

import killing


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--models", type=int, default=3000)
    parser.add_argument("--together", action="store_true", help="models that are trained in groups")
    parser.add_argument("--seed", type=int, default=None, help="of the moments (default: the time)")
    args = parser.parse_args()
    seed = int(time.time()) if args.seed is None else args.seed
    rng, share = random.Random(seed), max(1, args.models // (args.kills + 1))
    parts = killing.TOGETHER if args.together else killing.ALONE
    how = "trained in groups" if args.together else "trained one by one"
    print(f"{args.kills} kills of a run of {args.models} models {how}, seed {seed}")
    kills: list[killing.Kill] = []
    with tempfile.TemporaryDirectory() as folder:
        killed = Path(folder, "killed")
        for i in range(1, args.kills + 1):
            whole = rng.random() < 0.5
            kills.append(killing.kill_once(killed, args.models, rng, whole_group=whole, share=share, parts=parts))
            if i % 10 == 0:
                print(f"  {i} kills, {kills[-1].after} models done")
        killing.uninterrupted(killed, args.models, 2, parts)
        same = {}
        for workers in (1, 2):
            alone = Path(folder, f"alone with {workers}")
            killing.uninterrupted(alone, args.models, workers, parts)
            same[workers] = killing.rows(alone) == killing.rows(killed)
    whom = Counter("the whole group" if kill.whole_group else "the parent" for kill in kills)
    middle = sum(kill.in_the_middle for kill in kills)
    lost = sum(kill.after < kill.before for kill in kills)
    print(f"killed: {', '.join(f'{who} {n} times' for who, n in sorted(whom.items()))}")
    print(f"with models done and models left: {middle} times; models lost by a kill: {lost}")
    for workers, equal in same.items():
        print(f"signals identical to those of a run left alone with {workers} worker(s): {'yes' if equal else 'NO'}")
    return 0 if all(same.values()) and not lost and middle >= args.kills // 2 else 1


if __name__ == "__main__":
    sys.exit(main())
