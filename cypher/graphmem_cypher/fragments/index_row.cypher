[i.index_kind, i.index_key, i.model, i.vectors, i.pieces, i.detail, i.complete, i.position]
