"""Pure functions over text: cleaning of names, words of a question, dates."""
