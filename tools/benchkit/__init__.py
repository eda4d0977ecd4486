"""What the scripts in tools/ share: one module per idea, pure functions over rows.

names       a benchmark's name → its fields
rows        an entry of the JSON → a row: seconds, status, counters
reading     files of Google Benchmark JSON (1.5 – 1.9) → launches of rows
tables      rows ↔ tidy CSV
samples     a side's launches → one sample per benchmark
statistics  samples of launches → p-values and intervals of the ratio (scipy)
machines    two contexts → identical, warn or refuse
margins     what is too small to care about: defaults and a TOML file
report      the data of a comparison: settings, verdicts, all of them together
deciding    numbers of one benchmark → ratio, word, reason, next step
verdicts    two sides of launches → a report
roofline    a run's measured ceilings, and every variant below them
advice      one machine's launches → CPU or GPU, size by size
counsel     advice → Markdown, JSON, the decision flow
pictures    rooflines and crossovers (matplotlib)
within      one run → speed-ups over a baseline
launching   programs → launches, interleaved
revisions   git revisions → built programs
rendering   verdicts → terminal, Markdown, CSV, JSON, JUnit, annotations
page        verdicts → one self-contained HTML page
options     compare.py's command line, as tables
night       one night of measuring: families of rows, launches, states
unclear     which rows of a night need more launches
pruning     old nights, packed without loss
journal     what happened in a night, one line an event
conditions  load, governor, clocks and temperature now
index       result files → an SQLite index that is rebuilt at will
history     the index → nights in order and series over them
branch      what git knows: the order of commits, what lies between two
steps       a series → the nights at which its level changed (ruptures)
alarms      a history → steps with a state, a cause and what else changed
site        history and alarms → a static site
exports     history and alarms → what other systems read
announcements alarms → feed, message, JUnit, badge
environment, errors, output: the edge of every script
"""
