// 00 Parameters: edit, then run this first
// The other queries of graphmem read these. Running it again replaces them all; `:param name => 'Globex'` changes one.
// scope: whose data, as "01 Scopes" lists it. name, other: entities, by any of their names.
// date: the day that "04 As of a date" looks at. days: how far "05 What changed" looks back.
// speaker: of "10 What somebody said". query: words of a question for "15 Why was this recalled", '' is the last one.
// words: what "21 Find by words" looks for.
:param {
  scope: 'default',
  name: 'Maya Chen',
  other: 'Globex',
  date: '2026-01-31',
  days: 7,
  speaker: 'Maya Chen',
  query: '',
  words: 'Globex'
}
