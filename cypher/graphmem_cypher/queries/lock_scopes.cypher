// Lock scopes for the rest of the transaction; the node of a new scope is created.
/* include lock */
RETURN count(l) AS row
