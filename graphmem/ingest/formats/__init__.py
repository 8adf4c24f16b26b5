"""File formats: one module for each kind of file.

| kind | modules |
|---|---|
| texts, Markdown, HTML | `documents`, `passages`, `markdown`, `pages` |
| mail, contacts, calendars | `mail`, `contacts`, `calendars` |
| tables | `tables` |
| JSON | `json_files`, `chatgpt`, `slack` |
| other exports in JSON, told by their fields | `exports`; `assistants`, `messengers`, `trackers` |
| chats and calls in plain text | `whatsapp`, `transcripts`, `subtitles` |
| what all of them use | `opening`, `source`, `archives`, `detection`, `values` |

To add a format: name it in `source.Format`, give its suffix in `detection.SUFFIXES` (and, if others share the suffix,
its beginning in `guess_format`), write a function that yields the turns or documents of a `Source`, and enter it in the
table of `graphmem.ingest.readers`. A kind of JSON export needs only a function and a row of `exports.EXPORTS`.
"""
