"""Any program in any language. It reads train.csv and points.csv in the folder it is given and writes losses.csv.

Each line is a point: here four measurements and the label. The loss is the distance to the nearest of the training
points that this model was given, nine in ten of them, drawn with its seed.
"""

import csv
import random
import sys
from pathlib import Path

folder = Path(sys.argv[1])


def read(name):
    with open(folder / name, newline="") as file:
        return [[float(cell) for cell in row] for row in csv.reader(file)]


points = read("train.csv")
train = random.Random(sys.argv[2]).sample(points, 9 * len(points) // 10)
with open(folder / "losses.csv", "w") as file:
    for point in read("points.csv"):
        nearest = min(sum((a - b) ** 2 for a, b in zip(point, other, strict=True)) for other in train)
        file.write(f"{nearest**0.5}\n")
