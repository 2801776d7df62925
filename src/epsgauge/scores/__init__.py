"""A table of scores, its files, rules, how a rule was chosen."""
