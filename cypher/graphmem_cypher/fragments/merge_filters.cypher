m:Merge AND m.scope IN $q.scopes AND m.id > $q.after AND ($q.undone OR m.undone = false)
