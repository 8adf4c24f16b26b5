"""The index of a store: vectors and words of episodes, facts and entities, and what keeps copies of it up to date."""
