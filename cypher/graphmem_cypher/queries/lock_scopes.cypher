// Lock scopes for the rest of the transaction; a scope that is new gets its node.
/* include lock */
RETURN count(l) AS row
