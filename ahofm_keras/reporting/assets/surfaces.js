// Surfaces over two variables, with a mask where there are no rows.

const CLASSES = 15;
const NEAR = 2;

/** Whether rows are near, by the cells of two variables: (i, k) -> bool; null where it is not known. */
function cellsNear(a, b) {
  const swapped = !(`${a},${b}` in contents.occupied);
  const found = contents.occupied[swapped ? `${b},${a}` : `${a},${b}`];
  if (found === undefined) return null;
  const [rows, columns, text] = found, bytes = atob(text);
  const bit = (i, k) => (bytes.charCodeAt((i * columns + k) >> 3) >> (7 - ((i * columns + k) & 7))) & 1;
  const [first, second] = swapped ? [b, a] : [a, b];
  const reach = [first, second].map((v) => (isLevels(v) ? 0 : NEAR));
  const near = new Uint8Array(rows * columns);
  for (let i = 0; i < rows; i++)
    for (let k = 0; k < columns; k++)
      if (bit(i, k))
        for (let r = Math.max(i - reach[0], 0); r <= Math.min(i + reach[0], rows - 1); r++)
          near.fill(1, r * columns + Math.max(k - reach[1], 0), r * columns + Math.min(k + reach[1], columns - 1) + 1);
  return (x, y) => {
    const [i, k] = [cellOf(first, swapped ? y : x, rows), cellOf(second, swapped ? x : y, columns)];
    return i >= 0 && k >= 0 && near[i * columns + k] === 1;
  };
}

function cellOf(v, value, cells) {
  if (isLevels(v)) return value;
  const quantiles = quantilesOf(v), low = quantiles[0], high = quantiles[quantiles.length - 1];
  const share = (value - low) / (high - low);
  return share < 0 || share > 1 ? -1 : Math.min(Math.floor(share * cells), cells - 1);
}

/** Values along the axis of a variable, or of a coordinate. */
function axisOf(v, points, everything) {
  const { levels } = variableOf(v);
  if (isLevels(v)) return Float64Array.from(levels, (_, i) => i);
  const { low, high } = viewOf(v, everything);
  return variableOf(v).isPoint ? even(low, high, points) : model.besideAtoms(v, even(low, high, points));
}

/** Size of a surface where there are rows; a few corners may be larger, and would make the rest pale. */
function sizeOf(values, axes, near) {
  const sizes = values.filter((_, index) => {
    const i = Math.floor(index / axes[1].length), k = index % axes[1].length;
    return near === null || near(axes[0][i], axes[1][k]);
  }).map(Math.abs).sort();
  return Math.max(sizes[Math.floor(0.98 * (sizes.length - 1))] || 0, SMALL);
}

/** A colour of one of `CLASSES` classes between -most and most. */
function classColour(scale, value, most) {
  const place = Math.floor(((value / most + 1) / 2) * CLASSES);
  return between(scale, (clamp(place, 0, CLASSES - 1) + 0.5) / CLASSES);
}

/** Range of an axis in its figure: half a tile more on both sides of levels. */
const extent = (v, axis) =>
  isLevels(v) ? [-0.5, axis.length - 0.5] : [axis[0], axis[axis.length - 1]];

/** A figure of a surface: the first variable to the right, the second up. */
function surfaceFigure(subset, axes, values, most, { height, near, labels = true, width = chart.clientWidth }) {
  const [a, b] = subset, [rows, columns] = [axes[1].length, axes[0].length];
  const scale = stops("diverging"), pixels = new Uint32Array(rows * columns);
  const hatch = rgba(stops("no-data")[0]);
  for (let i = 0; i < columns; i++)
    for (let k = 0; k < rows; k++) {
      const seen = near === null || near(axes[0][i], axes[1][k]);
      const empty = (i + k) % 6 === 0 ? hatch : 0;
      pixels[k * columns + i] = seen ? rgba(classColour(scale, values[i * rows + k], most)) : empty;
    }
  const [x, y] = [extent(a, axes[0]), extent(b, axes[1])];
  const yLabel = labels ? nameOf(b) : null, left = labels ? 52 : 36, letters = narrow() ? 13 : 20;
  // Names of levels are wider than numbers.
  const beside = isLevels(b) ? 7 * letters : 0;
  const figure = makeFigure({ x, y, height, xLabel: nameOf(a), yLabel, left, width: width - beside });
  addImage(figure, pixels, rows, columns, x, y);
  [...figure.xgrids, ...figure.ygrids].forEach((grid) => { grid.visible = false; });
  if (isLevels(a)) nameLevels(figure.xaxes[0], a, narrow() ? 8 : 14);
  if (isLevels(b)) nameLevels(figure.yaxes[0], b, letters);
  return figure;
}

function nameLevels(axis, v, most) {
  const { levels } = model.variables[v];
  nameTicks(axis, levels.map(levelText), most);
  if (levels.length > 14) axis.major_label_policy = new Bokeh.NoOverlap();
}

/** The rows in the page as points; those of a level are spread a little. */
function addRows(figure, [a, b]) {
  const spread = (v, step) => valuesInSample(v).map((value, i) =>
    model.variables[v].isCategory ? value + 0.7 * (((i * step) % 1) - 0.5) : value);
  const data = { x: spread(a, 0.6180339887), y: spread(b, 0.7548776662) };
  addDots(figure, data, { size: 3.5, fill_color: colour("ink"), fill_alpha: 0.4 });
}

/** Where the sliders stand. */
const addPlace = (figure, [a, b]) => addRing(figure, (row) => [model.valueAt(a, row), model.valueAt(b, row)]);

/** A ring at a place that follows from the row of the sliders; returns what moves it. */
function addRing(figure, placeOf) {
  const at = (row) => {
    const [x, y] = placeOf(row);
    return { x: [x], y: [y] };
  };
  const ring = source(at(state.row));
  for (const [line_color, line_width] of [[colour("ground"), 4], [colour("marker"), 2]]) {
    const style = { size: 11, fill_color: null, line_color, line_width };
    figure.scatter({ field: "x" }, { field: "y" }, { source: ring, ...style });
  }
  return (row) => { ring.data = at(row); };
}

/** The legend of a surface. */
function surfaceLegend(most, near) {
  const colours = element("i", { class: "ramp", style: { background: ramp("diverging") } });
  return [
    element("span", {}, number(-most, 2), colours, `+${number(most, 2)}`),
    near === null ? null : element("span", {}, element("i", { class: "swatch hatched" }), "no rows near"),
  ];
}
