"""Thirteen bugs, each with a repaired twin, by somebody who had seen neither the probe nor the rest of the zoo."""
