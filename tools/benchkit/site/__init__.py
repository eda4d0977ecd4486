"""History and alarms → a static site: one page, its data beside it or inside it.

data        history → what the page shows, as plain values
pages       those values and the assets here → files
page.html.j2, style.css, app.js (views), chart.js (SVG charts), roofline.js (a view with its chart),
verdict.js (compare two nights)

The charts are our own 300 lines of SVG. The libraries that embed are 1 MB (bokeh) to 4.5 MB
(plotly) of script, draw on a canvas that no screen reader sees, and want 'unsafe-inline' or
'unsafe-eval' in the content-security policy; the page with its charts stays under 70 kB of code,
needs neither, and every mark is a DOM element with a table behind it.
"""
