// Filtering and sorting of the table of results; uPlot drawings in place of the static ones where uPlot was built in.
"use strict";
(() => {
  const byId = (id) => document.getElementById(id);

  // ---- the table
  const startTable = (table) => {
    const body = table.tBodies[0], rows = [...body.rows];
    const cell = (row, column) => row.cells[column].textContent;
    const form = byId("filter"), text = byId("filter-text");
    const choices = [["filter-outcome", 0], ["filter-backend", 2], ["filter-check", 3]]
      .map(([id, column]) => ({ box: byId(id), column }));
    let haystacks = null;

    const filter = () => {
      haystacks ??= rows.map((row) => row.textContent.toLowerCase());
      const words = text.value.toLowerCase().split(/\s+/).filter(Boolean);
      let shown = 0;
      rows.forEach((row, i) => {
        const keep = words.every((word) => haystacks[i].includes(word)) &&
          choices.every(({ box, column }) => !box.value || cell(row, column) === box.value);
        row.hidden = !keep;
        shown += keep;
      });
      byId("shown").textContent = `${shown} of ${rows.length} rows`;
    };
    let waiting = 0;
    const soon = () => { cancelAnimationFrame(waiting); waiting = requestAnimationFrame(filter); };
    form.addEventListener("input", soon);
    form.addEventListener("reset", soon);
    form.addEventListener("submit", (event) => event.preventDefault());
    form.hidden = false;
    filter();

    const heads = [...table.tHead.rows[0].cells];
    const words = new Intl.Collator("en", { numeric: true });
    const severity = { fail: 0, error: 1, skip: 2, pass: 3 };
    const keyOf = (row, column) => {
      const value = cell(row, column);
      if (column === 0) return severity[value];
      if (!row.cells[column].classList.contains("n")) return value;
      if (value === "") return null;
      return { nan: Infinity, inf: Number.MAX_VALUE, "-inf": -Number.MAX_VALUE }[value] ?? Number(value);
    };
    const sort = (column) => {
      const direction = heads[column].getAttribute("aria-sort") === "ascending" ? -1 : 1;
      heads.forEach((head) => head.removeAttribute("aria-sort"));
      heads[column].setAttribute("aria-sort", direction > 0 ? "ascending" : "descending");
      const keyed = rows.map((row, place) => ({ row, place, key: keyOf(row, column) }));
      const compare = (a, b) => typeof a === "string" ? words.compare(a, b) : a < b ? -1 : a > b ? 1 : 0;
      keyed.sort((a, b) => {
        if (a.key === null || b.key === null) return (a.key === null) - (b.key === null) || a.place - b.place;
        return direction * compare(a.key, b.key) || a.place - b.place;
      });
      const sorted = document.createDocumentFragment();
      keyed.forEach(({ row }) => sorted.append(row));
      body.append(sorted);
    };
    heads.forEach((head, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = head.textContent;
      button.addEventListener("click", () => sort(column));
      head.replaceChildren(button);
    });
  };
  if (byId("table")) startTable(byId("table"));

  // ---- plots
  if (typeof uPlot === "undefined") return;
  const charts = JSON.parse(byId("charts").textContent);
  const dashes = [[], [10, 3], [3, 3], [10, 3, 3, 3], [6, 2], [2, 5]];
  const borders = ["solid", "dashed", "dotted"];
  const format = (x) => {
    const size = Math.abs(x);
    if (x === 0 || (size >= 1e-2 && size < 1e6)) return String(Number(x.toPrecision(size >= 1e3 ? 7 : 4)));
    return x.toExponential(1);
  };
  const isLog = (scale) => scale.startsWith("log");
  const forward = { linear: (x) => x, fitted: (x) => x, log2: Math.log2, log10: Math.log10 };
  const ticks = (scale, low, high) => {
    const from = forward[scale](low), to = forward[scale](high), span = to - from, out = [];
    if (!(span > 0)) return [low];
    if (scale === "log10" ? span < 3 : scale === "log2" && span < 2) {
      const base = 10 ** Math.floor(Math.log10(low));
      for (let decade = base; decade <= high; decade *= 10)
        for (const digit of [1, 2, 5]) if (digit * decade >= low && digit * decade <= high) out.push(digit * decade);
      if (out.length > 1) return out;
      return [low, high];
    }
    let step = 10 ** Math.floor(Math.log10(span / 6));
    for (const factor of [2, 2.5, 2]) if (span / step > 6.5) step *= factor;
    if (isLog(scale)) step = Math.max(1, Math.ceil(span / 7));
    for (let i = Math.ceil(from / step); i * step <= to; ++i)
      out.push(!isLog(scale) ? i * step : (scale === "log2" ? 2 : 10) ** (i * step));
    return out;
  };

  const scaleOf = ({ scale }, range) => ({
    time: false, distr: isLog(scale) ? 3 : 1, log: scale === "log2" ? 2 : 10, range,
  });
  const rangeOfY = (scale) => (_, low, high) => {
    if (low === null) return [1, 2];
    if (isLog(scale)) return [low / 1.2, high * 1.2];
    const margin = 0.1 * (high - low) || 0.1 * Math.abs(high) || 1;
    if (scale === "fitted") return [low - margin, high + margin];
    const room = high > low ? 0.05 * (high - Math.min(0, low)) : Math.abs(high) * 0.1 || 1;
    return [low >= 0 ? 0 : low - room, high + room];
  };
  const axisOf = ({ label, scale }, colour, extra) => ({
    label, stroke: colour("--text"), labelSize: 24,
    grid: { stroke: colour("--line"), width: 0.6 }, ticks: { stroke: colour("--line"), width: 1 },
    splits: (_, __, low, high) => ticks(scale, low, high), filter: (_, splits) => splits,
    values: (_, splits) => splits.map(format), ...extra,
  });
  const seriesOf = ({ name, mark }, i, points, colour) => {
    const stroke = colour(mark === "reference" ? "--text" : `--s${i % dashes.length}`);
    const out = { label: name, stroke, width: 2, spanGaps: true, value: (_, y) => y == null ? "\u2013" : format(y) };
    if (mark === "reference") return { ...out, width: 1.5, dash: [7, 4], points: { show: false } };
    if (mark === "symbols") return { ...out, paths: () => null, points: { show: true, size: 11, fill: stroke } };
    return { ...out, dash: dashes[i % dashes.length], points: { show: points <= 64, size: 7, fill: stroke } };
  };

  const draw = (holder) => {
    const chart = charts[holder.dataset.chart], style = getComputedStyle(document.documentElement);
    const colour = (name) => style.getPropertyValue(name).trim();
    const xName = (x) => chart.x_names[x] ?? format(x);
    const size = () => ({ width: Math.max(240, Math.min(holder.parentElement.clientWidth, 640)), height: 300 });
    holder.plot?.destroy();
    holder.classList.add("live");
    const whole = { splits: (_, __, low, high) => ticks("linear", low, high).filter(Number.isInteger) };
    const rangeOfX = isLog(chart.x.scale) ? (_, low, high) => [low / 1.2, high * 1.2] : undefined;
    const dashOf = (dash) => borders[dash?.length ? 1 + (dash[0] <= 3) : 0];
    holder.plot = new uPlot({
      ...size(),
      scales: { x: scaleOf(chart.x, rangeOfX), y: scaleOf(chart.y, rangeOfY(chart.y.scale)) },
      legend: { markers: { dash: (u, i) => dashOf(u.series[i].dash) } },
      axes: [axisOf(chart.x, colour, chart.x_names.length ? whole : {}), axisOf(chart.y, colour, { size: 62 })],
      series: [{ label: chart.x.label, value: (_, v) => v == null ? "\u2013" : xName(v) },
        ...chart.series.map((s, i) => seriesOf(s, i, chart.data[0].length, colour))],
    }, chart.data, holder);
    const canvas = holder.querySelector("canvas");
    canvas.setAttribute("role", "img");
    canvas.setAttribute("aria-label", `${chart.title}: ${chart.series.map((s) => s.name).join(", ")}`);
    holder.resize = () => holder.plot.setSize(size());
  };

  const drawn = new Set();
  const nearby = new IntersectionObserver((entries) => entries.forEach(({ isIntersecting, target }) => {
    if (!isIntersecting || drawn.has(target)) return;
    nearby.unobserve(target);
    drawn.add(target);
    draw(target);
  }), { rootMargin: "600px" });
  document.querySelectorAll("[data-chart]").forEach((holder) => nearby.observe(holder));
  let resizing = 0;
  window.addEventListener("resize", () => {
    cancelAnimationFrame(resizing);
    resizing = requestAnimationFrame(() => drawn.forEach((holder) => holder.resize()));
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => drawn.forEach(draw));
})();
