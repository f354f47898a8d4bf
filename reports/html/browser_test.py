# The page in a headless Chromium: usage: browser_test.py page|plots DELTAGAUGE_PAGE. Exit 77 (a skip, with its reason) when
# there is no Chromium or, for plots, when uPlot was not built in.
# Another use: browser_test.py shot PAGE.html OUT.png [light|dark] [WIDTH] [HEIGHT] takes a screenshot: HEIGHT pixels
# from the top, or the whole page.
import glob
import os
import subprocess
import sys
import tempfile

import browser

SKIP = 77
VISIBLE_ROWS = "[...document.querySelectorAll('#table tbody tr')].filter(r => !r.hidden).length"
HOLDERS = "[...document.querySelectorAll('[data-chart]')]"
# Every element with text of its own whose contrast with the nearest background is under 4.5 (WCAG AA).
LOW_CONTRAST = """(() => {
  const parse = c => c.match(/[\\d.]+/g).map(Number);
  const light = c => { const [r, g, b] = parse(c).map(v => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
                       return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  const back = e => { for (; e; e = e.parentElement) { const c = getComputedStyle(e).backgroundColor;
                      if (parse(c)[3] !== 0) return c; } return 'rgb(255, 255, 255)'; };
  const bad = new Set();
  for (const e of document.querySelectorAll('body *')) {
    if (![...e.childNodes].some(n => n.nodeType === 3 && n.data.trim()) || e.matches('script, title, option')) continue;
    const style = getComputedStyle(e), colour = e.namespaceURI.endsWith('svg') ? style.fill : style.color;
    const a = light(colour), b = light(back(e));
    if ((Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05) < 4.5) bad.add(e.tagName + '.' + e.getAttribute('class'));
  }
  return [...bad];
})()"""
UNLABELLED = """[...document.querySelectorAll('svg[role=img], input, select, button, nav, form, [role=region], canvas')]
  .filter(e => !(e.querySelector(':scope > title') || e.labels?.length || e.getAttribute('aria-label')
                 || e.textContent.trim()))
  .map(e => e.outerHTML.slice(0, 80))"""


def check(condition, what):
    if not condition:
        raise AssertionError(what)


def expect(got, want, what):
    check(got == want, f"{what}: expected {want!r}, got {got!r}")


def check_clean(tab, path):
    expect(tab.problems(), [], "console errors and policy violations")
    expect([url for url in tab.requests() if url != "file://" + path], [], "requests beside the page itself")


def check_table(tab):
    total = tab.evaluate("document.querySelectorAll('#table tbody tr').length")
    expect(tab.evaluate(VISIBLE_ROWS), total, "rows before filtering")
    tab.evaluate("document.getElementById('filter-text').focus()")
    tab.type("RECURRENT bench")
    few = tab.evaluate(VISIBLE_ROWS)
    check(0 < few < total, f"rows after typing: expected some of {total}, got {few}")
    said = tab.evaluate("document.getElementById('shown').textContent")
    expect(said, f"{few} of {total} rows", "the count beside the filter")
    tab.evaluate("document.querySelector('#filter button').click()")
    tab.settle()
    expect(tab.evaluate(VISIBLE_ROWS), total, "rows after Show all")
    filters = (("outcome", 0, "fail"), ("backend", 2, "cuda.gdn.recurrent"), ("check", 3, "replay-time-1/4"))
    for name, column, value in filters:
        tab.evaluate(f"(b => {{ b.value = '{value}'; b.dispatchEvent(new Event('input', {{bubbles: true}})); }})"
                     f"(document.getElementById('filter-{name}'))")
        tab.settle()
        got = tab.evaluate("[...new Set([...document.querySelectorAll('#table tbody tr')].filter(r => !r.hidden)"
                           f".map(r => r.cells[{column}].textContent))]")
        expect(got, [value], f"what the filter by {name} leaves")
        tab.evaluate("document.querySelector('#filter button').click()")
        tab.settle()
    head = "document.querySelectorAll('#table thead th')[6]"
    ratios = "[...document.querySelectorAll('#table tbody tr')].map(r => r.cells[6].textContent).filter(Boolean)"
    tab.evaluate(f"{head}.querySelector('button').focus()")
    tab.press("Enter", 13)
    expect(tab.evaluate(f"{head}.getAttribute('aria-sort')"), "ascending", "aria-sort after Enter")
    ascending = tab.evaluate(ratios)
    expect(ascending, sorted(ascending, key=float), "row ratios in ascending order")
    tab.press("Enter", 13)
    expect(tab.evaluate(f"{head}.getAttribute('aria-sort')"), "descending", "aria-sort after a second Enter")
    expect(tab.evaluate(ratios)[0], "inf", "the first row ratio in descending order")


def draw_all(tab):
    """Plots are drawn when they come near the window: goes past all of them, and waits at most a few seconds for each."""
    tab.evaluate("""(async () => {
      if (typeof uPlot === 'undefined') return;
      for (const holder of document.querySelectorAll('[data-chart]')) {
        holder.scrollIntoView();
        for (let i = 0; i < 100 && !holder.querySelector('canvas'); ++i)
          await new Promise(done => setTimeout(done, 30));
      }
    })()""")
    tab.settle()


def pages(tool, folder):
    sources = {"made-up": "made-up", "empty": "empty"}
    for path in sorted(glob.glob("reports/recorded/*/*.json")):
        sources[os.path.basename(path)[:-5]] = path
    for name, source in sources.items():
        path = os.path.join(folder, name + ".html")
        with open(path, "wb") as file:
            subprocess.run([tool, source], stdout=file, check=True)
        yield name, path


def test_page(chromium, made):
    for name, path in made.items():
        for scheme in ("light", "dark"):
            tab = chromium.open(path, scheme=scheme)
            tab.settle()
            check_clean(tab, path)
            if name in ("made-up", "empty", "smoke"):
                expect(tab.evaluate(LOW_CONTRAST), [], f"{name}: text with too little contrast, {scheme}")
            expect(tab.evaluate(UNLABELLED), [], f"{name}: elements without a name")
        print(f"{name}: {os.path.getsize(path)} bytes, loaded in {tab.load_seconds:.2f} s")
    tab = chromium.open(made["made-up"])
    check_table(tab)
    expect(tab.evaluate("document.querySelectorAll('img, #table script').length"), 0, "elements made by hostile text")
    check_clean(tab, made["made-up"])
    narrow = chromium.open(made["made-up"], width=375, height=800)
    expect(narrow.evaluate("document.documentElement.scrollWidth <= 375"), True, "no sideways scrolling on a phone")
    plain = chromium.open(made["made-up"], script=False)
    document = plain.call("DOM.getDocument")["root"]["nodeId"]

    def boxes(selector):
        nodes = plain.call("DOM.querySelectorAll", nodeId=document, selector=selector)["nodeIds"]
        styles = [plain.call("CSS.getComputedStyleForNode", nodeId=node)["computedStyle"] for node in nodes[:40]]
        return [next(s["value"] for s in style if s["name"] == "display") for style in styles]

    plain.call("DOM.enable")
    plain.call("CSS.enable")
    expect(set(boxes("#table tbody tr")), {"table-row"}, "rows without JavaScript")
    expect(set(boxes("svg.chart")), {"block"}, "static plots without JavaScript")
    expect(boxes("#filter"), ["none"], "the filter without JavaScript")
    expect(len(boxes("canvas")), 0, "canvases without JavaScript")


def test_plots(chromium, made):
    path = made["made-up"]
    tab = chromium.open(path)
    if not tab.evaluate("typeof uPlot !== 'undefined'"):
        print("skipped: uPlot was not built in (npm was missing)")
        sys.exit(SKIP)
    count = tab.evaluate(HOLDERS + ".length")
    check(count >= 8, f"expected at least 8 plots, got {count}")
    draw_all(tab)
    blank = tab.evaluate(HOLDERS + """.filter(h => {
      const c = h.querySelector('canvas');
      return !c || !c.getContext('2d').getImageData(0, 0, c.width, c.height).data.some(v => v !== 0);
    }).map(h => h.dataset.chart)""")
    expect(blank, [], "plots without a drawing")
    expect(tab.evaluate(HOLDERS + ".filter(h => getComputedStyle(h.querySelector('svg')).display !== 'none').length"), 0,
           "static plots beside drawn ones")
    tab.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark"}])
    tab.call("Emulation.setDeviceMetricsOverride", width=375, height=800, deviceScaleFactor=1, mobile=True)
    tab.settle()
    tab.settle()
    widest = tab.evaluate("Math.max(...[...document.querySelectorAll('.uplot canvas')].map(c => c.clientWidth))")
    check(widest <= 375, f"plots after narrowing: expected at most 375 pixels, got {widest}")
    check_clean(tab, path)
    print(f"{count} plots drawn")


def shoot(chromium, page, out, scheme="light", width="1280", height=None):
    tab = chromium.open(page, scheme=scheme, width=int(width), height=int(height or 900))
    draw_all(tab)
    tab.evaluate("scrollTo(0, 0)")
    tab.settle()
    tab.screenshot(out, whole=height is None)


def main():
    program = browser.find()
    if not program:
        print("skipped: no Chromium (Debian: chromium; or set DELTAGAUGE_CHROMIUM)")
        sys.exit(SKIP)
    with browser.Browser(program) as chromium, tempfile.TemporaryDirectory() as folder:
        if sys.argv[1] == "shot":
            shoot(chromium, *sys.argv[2:])
            return
        made = dict(pages(sys.argv[2], folder))
        {"page": test_page, "plots": test_plots}[sys.argv[1]](chromium, made)


if __name__ == "__main__":
    main()
