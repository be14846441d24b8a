// Figures of the plotting library in the colours of the page, and what they say under the pointer.

const narrow = () => window.innerWidth < 640;
const plain = (text) => new Bokeh.PlainText({ text: String(text) });
let drawing = 0;
const shown = new Map();

/** Put figures into a place of the page, in the stead of those that are there. */
async function mount(target, figures, wrap = (own) => own) {
  const before = shown.get(target) ?? [];
  const ticket = {};
  shown.set(target, Object.assign([], { ticket }));
  document.documentElement.dataset.drawing = ++drawing;
  target.style.minHeight = `${target.offsetHeight}px`;
  before.forEach((view) => view.remove());
  const slots = figures.map(() => element("div"));
  target.replaceChildren(...wrap(slots));
  try {
    for (let i = 0; i < figures.length && shown.get(target).ticket === ticket; i++) {
      const view = await Bokeh.Plotting.show(figures[i], slots[i]);
      if (shown.get(target).ticket === ticket) shown.get(target).push(view);
      else view.remove();
    }
  } finally {
    if (--drawing) document.documentElement.dataset.drawing = drawing;
    else delete document.documentElement.dataset.drawing;
    if (shown.get(target).ticket === ticket) target.style.minHeight = "";
  }
}

const pen = document.createElement("canvas").getContext("2d");

/** A text that is no longer than so many pixels: the plotting library lets longer labels run out of their figure. */
function fitting(text, pixels, font) {
  pen.font = font;
  let letters = text.length;
  while (letters > 6 && pen.measureText(shorten(text, letters)).width > pixels) letters--;
  return shorten(text, letters);
}

/** An empty figure.
 *
 * x, y: [low, high] of the axes; xBounds, yBounds: the part of them that has ticks; width: about that of the figure.
 */
function makeFigure(given) {
  const {
    x, y, height, xLabel = null, yLabel = null, xBounds = null, yBounds = null, left = 52, width = chart.clientWidth, ...rest
  } = given;
  const figure = Bokeh.Plotting.figure({
    x_range: new Bokeh.Range1d({ start: x[0], end: x[1] }),
    y_range: new Bokeh.Range1d({ start: y[0], end: y[1] }),
    sizing_mode: "stretch_width", height, tools: [], toolbar_location: null,
    background_fill_color: null, border_fill_color: null, outline_line_color: null,
    min_border_left: left, min_border_right: 8, min_border_top: 6, min_border_bottom: 6, ...rest,
  });
  const face = getComputedStyle(document.body).fontFamily;
  // What ticks and the other axis take of the width and the height.
  const room = [width - left - 76, height - 64];
  const sides = [[figure.xaxes, x, xBounds, xLabel, room[0]], [figure.yaxes, y, yBounds, yLabel, room[1]]];
  for (const [axes, ends, bounds, label, length] of sides)
    for (const axis of axes) {
      axis.setv({
        axis_label: label === null ? null : plain(fitting(label, length, `12.5px ${face}`)),
        major_label_policy: new Bokeh.NoOverlap(),
        axis_line_color: null, major_tick_line_color: colour("line-strong"), minor_tick_line_color: null,
        major_tick_in: 0, major_tick_out: 4,
        major_label_text_color: colour("soft"), major_label_text_font: face, major_label_text_font_size: "12px",
        axis_label_text_color: colour("soft"), axis_label_text_font: face, axis_label_text_font_size: "12.5px",
        axis_label_text_font_style: "normal", axis_label_standoff: 8,
        ...(bounds === null ? {} : { bounds }),
      });
      if (axis.ticker instanceof Bokeh.BasicTicker) axis.ticker.desired_num_ticks = narrow() ? 4 : 6;
      if (Math.max(...ends.map(Math.abs)) >= 1e5)
        axis.formatter = new Bokeh.NumeralTickFormatter({ format: "0.[00]a" });
    }
  for (const [grids, bounds] of [[figure.xgrids, xBounds], [figure.ygrids, yBounds]])
    for (const grid of grids)
      grid.setv({ grid_line_color: colour("line"), grid_line_alpha: 1, ...(bounds === null ? {} : { bounds }) });
  return figure;
}

/** Names at whole numbers of an axis. */
function nameTicks(axis, names, most = 22) {
  axis.ticker = new Bokeh.FixedTicker({ ticks: names.map((_, i) => i), minor_ticks: [] });
  axis.major_label_overrides = new Map(shortenApart(names, most).map((name, i) => [i, plain(name)]));
  axis.major_label_policy = new Bokeh.AllLabels();
}

const source = (data) => new Bokeh.ColumnDataSource({ data });

/** Call back with data coordinates under the pointer, or finger, inside the frame. */
function onPointer(figure, move, tap = null) {
  const inside = ({ x, y }) => {
    const [xs, ys] = [figure.x_range, figure.y_range];
    return (x - xs.start) * (x - xs.end) <= 0 && (y - ys.start) * (y - ys.end) <= 0;
  };
  figure.on_event("mousemove", (event) => { if (inside(event)) move(event.x, event.y); });
  figure.on_event("tap", (event) => { if (inside(event)) (tap ?? move)(event.x, event.y); });
}

/** A picture of rows x columns colours over the given rectangle; row 0 is at the bottom. */
function addImage(figure, pixels, rows, columns, [x0, x1], [y0, y1]) {
  const { ndarray } = Bokeh.require("core/util/ndarray");
  const image = ndarray(Uint32Array.from(pixels), { dtype: "uint32", shape: [rows, columns] });
  return figure.image_rgba({ image: { field: "image" }, x: x0, y: y0, dw: x1 - x0, dh: y1 - y0,
    source: source({ image: [image] }) });
}

// Distributions ------------------------------------------------------------------------------------------

/** Quantiles of whole numbers, each spread around its number: bins then fall where they may. */
function spreadTies(quantiles) {
  // Quantiles between two rows may lie between whole numbers, and many rows may be 0 among fractions.
  const distinct = [...new Set(quantiles)];
  if (distinct.filter(Number.isInteger).length < 0.3 * distinct.length) return quantiles;
  const found = quantiles.map(Math.round);
  for (let i = 0; i < found.length; ) {
    let end = i;
    while (end < found.length && found[end] === found[i]) end++;
    for (let k = i; k < end; k++) found[k] += (k - i + 0.5) / (end - i) - 0.5;
    i = end;
  }
  return found;
}

/** Shares of rows in even bins between two ends, from quantiles at even probabilities. */
function histogram(given, low, high, bins) {
  const quantiles = spreadTies(given);
  const below = (x) => {
    // The last quantile that is not above x, and how far on the way to the next.
    let first = 0, last = quantiles.length;
    while (first < last) {
      const middle = (first + last) >> 1;
      if (quantiles[middle] <= x) first = middle + 1;
      else last = middle;
    }
    if (first === 0) return 0;
    if (first === quantiles.length) return 1;
    const [a, b] = [quantiles[first - 1], quantiles[first]];
    return (first - 1 + (x - a) / (b - a)) / (quantiles.length - 1);
  };
  const edges = Float64Array.from({ length: bins + 1 }, (_, i) => low + ((high - low) * i) / bins);
  edges[bins] = high;
  const heights = new Float64Array(bins);
  for (let i = 0; i < bins; i++)
    heights[i] = below(edges[i + 1]) - (i === 0 && low <= quantiles[0] ? 0 : below(edges[i]));
  return { edges, heights };
}

/** The variable of an axis; of a coordinate, "3.0", the point that it belongs to. */
const variableOf = (axis) => model.variables[parseInt(axis, 10)];
const isLevels = (axis) => variableOf(axis).isCategory;

/** Quantiles of the training rows along an axis. */
function quantilesOf(axis) {
  const { quantiles } = margins[parseInt(axis, 10)], { coordinates, isPoint } = variableOf(axis);
  if (!isPoint) return quantiles;
  const own = Number(String(axis).split(".")[1]);
  return quantiles.filter((_, i) => i % coordinates.length === own);
}

/** The part of an axis that is shown: all of it, or without tails that would squeeze the rest. */
function viewOf(v, everything = false) {
  const quantiles = quantilesOf(v), last = quantiles.length - 1;
  const [low, high] = [quantiles[0], quantiles[last]];
  const inner = quantiles[last - 1] - quantiles[1];
  const tails = inner > 0 && high - low > 2 * inner;
  if (!tails || everything) return { low, high, tails };
  const air = inner / 20;
  return { low: Math.max(low, quantiles[1] - air), high: Math.min(high, quantiles[last - 1] + air), tails };
}

const even = (low, high, points) =>
  Float64Array.from({ length: points }, (_, i) => low + ((high - low) * i) / (points - 1));

/** Linear interpolation in a table. */
function interpolate(xs, ys, x) {
  let first = 0, last = xs.length - 2;
  while (first < last) {
    const middle = (first + last + 1) >> 1;
    if (xs[middle] <= x) first = middle;
    else last = middle - 1;
  }
  const share = clamp((x - xs[first]) / (xs[first + 1] - xs[first]), 0, 1);
  return ys[first] + share * (ys[first + 1] - ys[first]);
}

// Rows of the data in the page ----------------------------------------------------------------------------

const sample = page.sample === null ? null : {
  columns: page.sample.columns.map(unpack), y: unpack(page.sample.y), mean: page.sample.mean === null ? null : unpack(page.sample.mean),
};
perChapter(() => {
  if (sample !== null && page.sample.residuals !== null) sample.residual = unpack(page.sample.residuals[opened]);
});

/** Raw values of a row of the data, as a Map. */
function sampleRow(i) {
  return new Map(contents.inputs.map((input, c) => {
    const value = sample.columns[c][i];
    return [input.name, "levels" in input ? input.levels[value] : value];
  }));
}

const sampleValues = new Map();
/** Values of a variable at all rows in the page. */
function valuesInSample(v) {
  if (!sampleValues.has(v))
    sampleValues.set(v, Float64Array.from(sample.y, (_, i) => model.valueAt(v, sampleRow(i))));
  return sampleValues.get(v);
}
