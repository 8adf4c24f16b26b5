"""Supersession: what a new telling of a fact changes in the known versions. Pure functions, without a store.

The versions of a slot (the values of a single-valued relation, or one fact of any other) are derived from tellings:
each says from when a fact holds, when it was told, how sure it is and who told it. The tellings are put in order, and
a version lasts from its first telling until the first later one that ends it. As the order depends on the times of
telling and not on when a telling arrives, late and early arrival give the same versions.

Read `decisions` first: it returns the rows that a telling adds or changes. Events and past facts are decided there; for
all others, `slot` derives the versions of a slot from their tellings, which are the classes of `versions`. `rules`
decides about single facts and changes their rows.

The rules and cases that docstrings name by number are those of docs/concepts/supersession.md; the tests read the cases.
"""
