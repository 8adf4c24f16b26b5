// Lock scopes for the rest of the transaction; the node of a new scope is created.
/* include lock */
/* include fence */
RETURN locked AS row
