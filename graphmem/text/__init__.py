"""Pure text functions: name cleaning, query words, dates, redaction."""
