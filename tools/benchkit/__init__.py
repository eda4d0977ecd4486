"""What the scripts in tools/ share: one module per idea, pure functions over rows.

names       a benchmark's name → its fields
reading     Google Benchmark JSON (1.5 – 1.9) → launches of rows, every complaint with its position
tables      rows ↔ tidy CSV
statistics  samples of launches → p-values and intervals of the ratio (scipy)
machines    two contexts → identical, warn or refuse
verdicts    two sides of launches → a word, a reason and a next step per benchmark
launching   programs and git revisions → launches, interleaved
rendering   verdicts → terminal, Markdown, CSV, JSON, JUnit
page        verdicts → one self-contained HTML page
"""
