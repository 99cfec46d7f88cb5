// Draws the charts of a report, and makes its parts tabs. Everything that a chart shows stands in a table as well.
"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];
  const root = document.documentElement;
  const dashes = [[], [8, 4], [2, 3], [10, 3, 2, 3], [5, 5], [1, 5]];
  const SERIES = 6;

  const color = (name) => getComputedStyle(root).getPropertyValue(name).trim();
  function time(ns, digits = 4) {
    if (ns == null) return "–";
    const size = Math.abs(ns);
    const [unit, name] = size < 1e3 ? [1, "ns"] : size < 1e6 ? [1e3, "µs"] : size < 1e9 ? [1e6, "ms"] : [1e9, "s"];
    return `${Number((ns / unit).toPrecision(digits))} ${name}`.replace("-", "−");
  }
  const percentile = (x) => x == null ? "–" : trimmed6(100 - 100 / x) + " %";
  const trimmed6 = (number) => String(Number(number.toFixed(6)));
  const count = (n) => n == null ? "–" : n.toLocaleString("en-US");

  function axis(more) {
    return { stroke: color("--fore"), grid: { stroke: color("--line"), width: 1 }, ticks: { stroke: color("--line") }, ...more };
  }
  const timeAxis = (label, more) => axis({ label, values: (_, splits) => splits.map((ns) => ns == null ? "" : time(ns, 6)), size: 80, ...more });

  function line(label, index, more) {
    const at = index % SERIES;
    return { label, stroke: color("--series-" + at), dash: dashes[at], width: 2, spanGaps: true, points: { show: false }, ...more };
  }

  // Only what is shown of an axis of latencies or percentiles: no rounding up to the next tenfold.
  const tight = { time: false, distr: 3, range: (_, low, high) => [low, high] };
  // Marks on a logarithmic axis, also where it shows less than a tenfold; then where words stand at them.
  function marks(_, _axis, low, high) {
    if (high / low >= 10) {
      const all = [];
      for (let power = 10 ** Math.floor(Math.log10(low)); power <= high; power *= 10) {
        for (let times = 1; times < 10; times++) all.push(times * power);
      }
      return all.filter((at) => at >= low && at <= high);
    }
    const rough = (high - low) / 6, power = 10 ** Math.floor(Math.log10(rough));
    const step = power * [1, 2, 5, 10].find((times) => times * power >= rough);
    const first = Math.ceil(low / step);
    return Array.from({ length: Math.max(0, Math.floor(high / step) - first + 1) }, (_, index) => (first + index) * step);
  }
  function named(_, places) {
    const tenfolds = places.at(-1) / places[0];
    const leading = (at) => Math.round(at / 10 ** Math.floor(Math.log10(at) + 1e-9));
    return places.map((at) => tenfolds < 10 || leading(at) == 1 || (tenfolds < 1000 && [2, 5].includes(leading(at))) ? at : null);
  }
  const stepped = uPlot.paths.stepped({ align: 1 });

  const CLASSES = 120; // Those of a histogram that one sees at most, about.
  const shownOf = new Map(); // The ends of what each histogram shows, once it is zoomed.
  const rowsOf = (index) => data.points[index].histogram;

  function boundsOf(points) {
    const lowers = points.map((index) => rowsOf(index).lower_ns).filter((of) => of.length);
    return lowers.length ? [Math.max(1, Math.min(...lowers.map((of) => of[0]))), Math.max(...lowers.map((of) => of.at(-1)))] : null;
  }

  // The buckets of a result are so wide: 1024 of them in each power of two, and never less than 1 ns.
  const bucket = (ns) => Math.max(1, 2 ** (Math.floor(Math.log2(ns)) - 10));
  const down = (ns) => ns - ns % bucket(ns);

  // The same classes for all points, each of whole buckets and all about equally long on a logarithmic axis; then each point's
  // counts. Outside of what is shown nothing is drawn, but the ends of the whole stay ends.
  function classesOf(points, whole, [low, high]) {
    const from = Math.max(whole[0], down(Math.floor(low))), to = Math.min(whole[1], Math.ceil(high));
    const factor = Math.max((to / from) ** (1 / CLASSES), ...points.map((index) => rowsOf(index).factor ** 2));
    const bounds = [from];
    while (bounds.at(-1) < to) {
      const last = bounds.at(-1), width = bucket(last);
      bounds.push(Math.min(to, down(last + width * Math.max(1, Math.round(last * (factor - 1) / width)))));
    }
    const counts = points.map((index) => {
      const { lower_ns, count } = rowsOf(index), of = new Array(bounds.length).fill(0);
      for (let row = 0, at = 0; row + 1 < lower_ns.length; row++) {
        const lower = Math.max(1, lower_ns[row]); // Latencies of 0 have no place there.
        if (lower < from || lower >= to) continue;
        while (bounds[at + 1] <= lower) at++;
        of[at] += count[row];
      }
      return of;
    });
    const before = from > whole[0] ? [whole[0]] : [], after = to < whole[1] ? [whole[1]] : [];
    const around = (of) => [...before.map(() => null), ...of, ...after.map(() => null)];
    return [[...before, ...bounds, ...after], ...counts.map(around)];
  }

  // Where a point has had this part of its commands.
  function quantile(index, part) {
    const { lower_ns, count } = rowsOf(index), wanted = part * data.points[index].n;
    let below = 0, row = 0;
    while (row + 1 < count.length && (below += count[row]) < wanted) row++;
    return lower_ns[Math.min(row + 1, lower_ns.length - 1)];
  }
  const switched = (figure, name) => figure.querySelector(`[data-switch="${name}"]`).checked;

  const chosen = () => all("[name=point]:checked").map((box) => Number(box.value));

  // What to draw in each kind of chart: uPlot's data, series, scales and axes, and how a place on x is said.
  const kinds = {
    curve(figure) {
      const points = chosen();
      return {
        data: points.length ? uPlot.join(points.map((index) => data.points[index].curve)) : [[]],
        series: points.map((index) => line(data.points[index].name, index, { paths: stepped, value: (_, ns) => time(ns) })),
        scales: { x: tight, y: { distr: switched(figure, "log") ? 3 : 1 } },
        axes: [axis({ label: "percentile", values: (_, splits) => splits.map((x) => x == null ? "" : percentile(x)) }), timeAxis("latency")],
        place: percentile, floor: points.map((index) => data.points[index].floor_ns),
      };
    },
    histogram(figure) {
      const points = chosen(), log = switched(figure, "log"), whole = boundsOf(points);
      // A logarithmic axis has no place for 0, so it begins above a half, which is drawn for it.
      const drawn = (n) => n === 0 && log ? 0.5 : n;
      const classes = whole ? classesOf(points, whole, shownOf.get(figure) ?? whole) : [[]];
      return {
        data: [classes[0], ...classes.slice(1).map((counts) => counts.map(drawn))],
        series: points.map((index) => line(data.points[index].name, index, { paths: stepped, spanGaps: false, value: (_, n) => count(n == 0.5 ? 0 : n) })),
        scales: { x: tight, y: log ? { distr: 3, range: (_, low, high) => [0.7, 1.5 * Math.max(1, high)] } : { range: (_, low, high) => [0, 1.05 * Math.max(1, high)] } },
        axes: [timeAxis("latency", { size: 50, splits: marks, filter: named }), axis({ label: "commands in the class", size: 80, values: (_, splits) => splits.map((n) => n == null || n % 1 ? "" : count(n)) })],
        place: time, renew: () => kinds.histogram(figure).data,
      };
    },
    timeline(figure) {
      const point = data.points[Number(document.getElementById("over-time").value)];
      const { kind, columns } = point.timeline;
      const value = (_, ns) => time(ns);
      const dots = (label, index, size) => ({ label, stroke: color("--series-" + index), fill: color("--series-" + index), paths: () => null, points: { show: true, size, fill: color("--series-" + index) }, value });
      const series = kind == "samples"
        ? [dots("latency", 0, 4)]
        : [line("min", 4, { value, width: 1 }), line("p50", 0, { value }), line("p99", 2, { value }), line("max", 3, { value, width: 1 })];
      // Slowest commands stand at their own times, which need not be those of the other columns.
      const slowest = point.slowest[0].map((at, index) => [at, point.slowest[1][index]]).sort((a, b) => a[0] - b[0]);
      const marks = new Map();
      for (const [at, ns] of slowest) marks.set(at, Math.max(ns, marks.get(at) ?? 0));
      // uPlot joins by places that are unique: samples of one moment keep their order, a nanosecond's tenth apart.
      const places = [...columns[0]];
      for (let index = 1; index < places.length; index++) {
        if (places[index] <= places[index - 1]) places[index] = places[index - 1] + 0.01;
      }
      return {
        data: uPlot.join([[places, ...columns.slice(1)], [[...marks.keys()], [...marks.values()]]]),
        series: [...series, dots("slowest", 1, 9)],
        scales: { x: { time: false }, y: { distr: switched(figure, "log") ? 3 : 1 } },
        axes: [timeAxis("time since the first command", { size: 50 }), timeAxis("latency")],
        place: time, floor: [point.floor_ns],
      };
    },
    shift(figure) {
      const point = data.comparisons[Number(figure.closest("[data-shift]").dataset.shift)];
      const places = [...new Set(point.sides.flatMap((side) => side.shifts.map((row) => row[0])))].sort((a, b) => a - b);
      const columns = point.sides.flatMap((side) => [1, 2, 3].map((column) =>
        places.map((at) => side.shifts.find((row) => row[0] == at)?.[column] ?? null)));
      const ends = { width: 0, points: { show: false }, paths: () => null, value: (_, ns) => time(ns) };
      const series = point.sides.flatMap((side, index) => [
        line(side.name, index, { points: { show: true, size: 8, fill: color("--series-" + index) }, value: (_, ns) => time(ns) }),
        { ...ends, label: "from" }, { ...ends, label: "to" },
      ]);
      const name = (index) => Number.isInteger(index) && places[index] != null ? "p" + places[index] : "";
      return {
        data: [places.map((_, index) => index), ...columns],
        series,
        scales: { x: { time: false, range: (_, low, high) => [low - 0.3, high + 0.3] }, y: switched(figure, "log") ? { distr: 4, asinh: 1 } : {} },
        axes: [axis({ label: "percentile", splits: () => places.map((_, index) => index), values: (_, splits) => splits.map(name) }), timeAxis("shift", { size: 90 })],
        place: name, intervals: point.sides.length,
      };
    },
  };

  // The interval of each shift, and the line of no shift.
  function drawIntervals(plot, sides) {
    const { ctx, bbox } = plot;
    ctx.save();
    ctx.lineWidth = 2 * devicePixelRatio;
    const at = (ns) => plot.valToPos(ns, "y", true);
    ctx.strokeStyle = color("--dim");
    ctx.beginPath(); ctx.moveTo(bbox.left, at(0)); ctx.lineTo(bbox.left + bbox.width, at(0)); ctx.stroke();
    for (let side = 0; side < sides; side++) {
      ctx.strokeStyle = color("--series-" + side % SERIES);
      plot.data[0].forEach((place, index) => {
        const [low, high] = [plot.data[3 * side + 2][index], plot.data[3 * side + 3][index]];
        if (low == null || high == null) return;
        const x = plot.valToPos(place, "x", true);
        ctx.beginPath(); ctx.moveTo(x, at(low)); ctx.lineTo(x, at(high)); ctx.stroke();
      });
    }
    ctx.restore();
  }

  function drawFloor(plot, floors) {
    const { ctx, bbox } = plot;
    ctx.save();
    ctx.strokeStyle = ctx.fillStyle = color("--dim");
    ctx.font = 12 * devicePixelRatio + "px system-ui, sans-serif";
    ctx.textAlign = "left";
    ctx.setLineDash([3 * devicePixelRatio, 3 * devicePixelRatio]);
    for (const floor of new Set(floors)) {
      if (floor == null || floor < plot.scales.y.min || floor > plot.scales.y.max) continue;
      const y = plot.valToPos(floor, "y", true);
      ctx.beginPath(); ctx.moveTo(bbox.left, y); ctx.lineTo(bbox.left + bbox.width, y); ctx.stroke();
      ctx.fillText("floor p50", bbox.left + 6 * devicePixelRatio, y - 4 * devicePixelRatio);
    }
    ctx.restore();
  }

  const plots = new Map();

  // What a zoom shows of a histogram gets classes of its own.
  function renew(figure, plot, kind) {
    const { min, max } = plot.scales.x, [low, high] = shownOf.get(figure) ?? [];
    if (min == low && max == high) return;
    shownOf.set(figure, [min, max]);
    queueMicrotask(() => {
      if (plots.get(figure) != plot) return;
      plot.setData(kind.renew(), false);
      plot.setScale("x", { min, max });
    });
  }

  function draw(figure) {
    plots.get(figure)?.destroy();
    plots.delete(figure);
    shownOf.delete(figure);
    const host = figure.querySelector(".plot");
    if (!host.clientWidth) return; // In a tab that is not shown: drawn when it is.
    const kind = kinds[figure.dataset.chart](figure);
    if (kind.series.length == 0 || kind.data[0].length == 0) {
      host.textContent = "Nothing to draw.";
      return;
    }
    host.textContent = "";
    const output = figure.querySelector("output");
    const plot = new uPlot({
      width: host.clientWidth, height: 380,
      scales: kind.scales, axes: kind.axes, padding: [null, 30, null, null],
      series: [{ label: "at", value: (_, x) => x == null ? "–" : kind.place(x) }, ...kind.series],
      hooks: {
        setScale: [(plot, scale) => {
          if (scale == "x" && plot.scales.x.min != null && figure.dataset.chart != "shift") {
            output.textContent = `Shown: ${kind.place(plot.scales.x.min)} to ${kind.place(plot.scales.x.max)}`;
            if (kind.renew) renew(figure, plot, kind);
          }
        }],
        draw: [(plot) => {
          if (kind.intervals) drawIntervals(plot, kind.intervals);
          if (kind.floor) drawFloor(plot, kind.floor);
        }],
      },
    }, kind.data, host);
    plots.set(figure, plot);
  }

  // Moves and zooms in what the axis shows: on a logarithmic one by factors.
  function move(figure, from, to) {
    const plot = plots.get(figure);
    if (!plot) return;
    const places = plot.data[0], log = plot.scales.x.distr == 3;
    const [out, back] = log ? [Math.log, Math.exp] : [Number, Number];
    const ends = [out(places[0]), out(places[places.length - 1])];
    const [min, max] = [out(plot.scales.x.min), out(plot.scales.x.max)], length = max - min;
    const low = Math.max(ends[0], min + from * length), high = Math.min(ends[1], max + to * length);
    if (high > low) plot.setScale("x", { min: back(low), max: back(high) });
  }
  function reset(figure) {
    const plot = plots.get(figure);
    if (plot) plot.setScale("x", { min: plot.data[0][0], max: plot.data[0][plot.data[0].length - 1] });
  }
  function body(figure) {
    const plot = plots.get(figure), points = chosen();
    if (plot) plot.setScale("x", { min: plot.data[0][0], max: Math.max(...points.map((index) => quantile(index, 0.99))) });
  }
  const actions = { body, in: (figure) => move(figure, 0.25, -0.25), out: (figure) => move(figure, -0.5, 0.5), reset };
  const keys = {
    ArrowLeft: (figure) => move(figure, -0.2, -0.2), ArrowRight: (figure) => move(figure, 0.2, 0.2),
    "+": actions.in, "=": actions.in, "-": actions.out, 0: reset,
  };

  const drawAll = () => all(".chart").forEach(draw);

  function showTab(tab, focus) {
    for (const other of all("[role=tab]")) {
      const on = other == tab;
      other.setAttribute("aria-selected", on);
      other.tabIndex = on ? 0 : -1;
      document.getElementById(other.getAttribute("aria-controls")).hidden = !on;
    }
    if (focus) tab.focus();
    drawAll();
  }

  function showPoint() {
    const select = document.getElementById("over-time");
    all(".of-point").forEach((part) => { part.hidden = part.dataset.point != select.value; });
  }

  function setTheme(dark) {
    root.dataset.theme = dark ? "dark" : "light";
    document.getElementById("theme").textContent = dark ? "Light" : "Dark";
    drawAll();
  }

  all("[hidden]").forEach((part) => { part.hidden = false; });
  for (const figure of all(".chart")) {
    all("[data-switch]", figure).forEach((box) => box.addEventListener("change", () => draw(figure)));
    all("[data-zoom]", figure).forEach((button) => button.addEventListener("click", () => actions[button.dataset.zoom](figure)));
    figure.querySelector(".plot").addEventListener("keydown", (event) => {
      const action = keys[event.key];
      if (!action || event.ctrlKey || event.altKey || event.metaKey) return;
      action(figure);
      event.preventDefault();
    });
  }
  all("[name=point]").forEach((box) => box.addEventListener("change", () => all("[data-chart=curve], [data-chart=histogram]").forEach(draw)));
  const select = document.getElementById("over-time");
  if (select) {
    select.addEventListener("change", () => { showPoint(); all("[data-chart=timeline]").forEach(draw); });
    showPoint();
  }
  const tabs = all("[role=tab]");
  tabs.forEach((tab, index) => {
    tab.addEventListener("click", () => showTab(tab));
    tab.addEventListener("keydown", (event) => {
      const to = { ArrowLeft: index - 1, ArrowRight: index + 1, Home: 0, End: -1 }[event.key];
      if (to == null) return;
      showTab(tabs.at(to % tabs.length), true);
      event.preventDefault();
    });
  });
  const dark = matchMedia("(prefers-color-scheme: dark)");
  dark.addEventListener("change", () => setTheme(dark.matches));
  document.getElementById("theme").addEventListener("click", () => setTheme(root.dataset.theme != "dark"));
  setTheme(dark.matches);
  if (tabs.length) showTab(tabs[0]);
  addEventListener("resize", drawAll);
})();
