"""The index of a store: vectors and words of episodes, facts and entities, and synchronization of its copies."""
