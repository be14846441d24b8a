// The map of interactions: pairs off the diagonal, single features on it.

const MOST_NAMES = 45;
const MOST_LINED = 60;
const mapChart = byId("map");
let mapped;
// Row and column of the cell that is marked.
let cell = [0, 0];
let moveMark = null;

const subsetOf = (i, k) => (i === k ? [mapped[i]] : [mapped[i], mapped[k]].sort((a, b) => a - b));
const shareAt = (i, k) => shareOf.get(subsetOf(i, k).join())?.share ?? 0;
// Where the colours of features and of pairs end: on scales of their own the weaker ones would look as strong.
const LEAST_SCALE = 0.01;
let mostShare;
perChapter(() => {
  mapped = contents.map;
  cell = [0, 0];
  mostShare = Math.max(LEAST_SCALE, ...ranked.filter(({ order }) => order < 3).map(({ items }) => items[0]?.share ?? 0));
});

function showMap() {
  const size = mapped.length;
  byId("map-box").hidden = size < 2 || !ranked.some((entry) => entry.order === 2 && entry.items.length);
  if (byId("map-box").hidden) return null;
  const ends = [-0.5, size - 0.5], height = Math.round(clamp(mapChart.clientWidth || 400, 260, 520));
  const left = size <= MOST_NAMES ? 20 : 4;
  const figure = makeFigure({ x: ends, y: ends, height, left, min_border_right: 4, min_border_top: 4 });
  addImage(figure, mapPixels(size), size, size, ends, ends);
  styleMapAxes(figure, size, height);
  const mark = source({ x: [], y: [] });
  figure.rect({ field: "x" }, { field: "y" }, 1, 1, {
    source: mark, fill_color: null, line_color: colour("marker"), line_width: 2.5, level: "annotation",
  });
  moveMark = () => {
    const [i, k] = cell, rows = i === k ? [i] : [i, k];
    mark.data = { x: i === k ? [k] : [k, i], y: rows.map((row) => size - 1 - row) };
  };
  moveMark();
  const cellAt = (x, y) => [size - 1 - Math.round(y), Math.round(x)].map((place) => clamp(place, 0, size - 1));
  onPointer(figure, (x, y) => sayCell(...cellAt(x, y)), (x, y) => selectCell(cellAt(x, y), true));
  const scale = (name, text) => element("span", {}, `${text} 0`,
    element("i", { class: "ramp", style: { background: ramp(name) } }), percent(mostShare));
  byId("map-legend").replaceChildren(scale("pairs", "pairs"), scale("mains", "features"));
  mapChart.setAttribute("aria-label", `Shares of ${size} features and their pairs. Arrow keys move from cell to cell.`);
  return mount(mapChart, [figure]);
}

/** Colours of all cells; row 0 of an image is at its bottom, the first feature stands on top. */
function mapPixels(size) {
  const scales = { main: stops("mains"), pair: stops("pairs") };
  const pixels = new Uint32Array(size * size);
  for (let i = 0; i < size; i++)
    for (let k = 0; k < size; k++) {
      // The square root of a share is the size of an effect: a colour of twice the depth is twice as much.
      const kind = i === k ? "main" : "pair", place = Math.sqrt(shareAt(i, k) / mostShare);
      pixels[(size - 1 - i) * size + k] = rgba(between(scales[kind], place));
    }
  return pixels;
}

function styleMapAxes(figure, size, height) {
  const letters = narrow() ? 12 : 16, pixels = size > 24 ? 10 : 12;
  // Where cells are lower than letters some names are left out; the readout says them.
  const every = Math.ceil((1.1 * pixels * size) / (height - 0.62 * pixels * letters));
  const names = shortenApart(mapped.map(nameOf), letters).map((name, i) => (i % every ? "" : name));
  for (const [axis, own] of [[figure.xaxes[0], names], [figure.yaxes[0], [...names].reverse()]]) {
    if (size <= MOST_NAMES) nameTicks(axis, own, letters);
    else axis.visible = false;
    axis.setv({
      major_tick_line_color: null, major_label_standoff: 2, major_label_text_font_size: `${pixels}px`,
    });
  }
  // Both axes take the same room, so that cells are square.
  figure.xaxes[0].major_label_orientation = Math.PI / 2;
  const ticks = Array.from({ length: size + 1 }, (_, i) => i - 0.5);
  for (const grid of [...figure.xgrids, ...figure.ygrids])
    grid.setv({
      visible: size <= MOST_LINED, ticker: new Bokeh.FixedTicker({ ticks, minor_ticks: [] }),
      grid_line_color: colour("ground"), grid_line_width: size > 24 ? 1 : 2, level: "glyph",
    });
}

function sayCell(i, k) {
  const text = `: ${percent(shareAt(i, k))} of the variance`;
  byId("map-readout").replaceChildren(element("b", {}, labelOf(subsetOf(i, k))), text);
}

function selectCell(next, reveal) {
  cell = next;
  select(subsetOf(...cell), reveal);
}

mapChart.addEventListener("keydown", (event) => {
  const [i, k] = cell, last = mapped.length - 1;
  const next = {
    ArrowDown: [i + 1, k], ArrowUp: [i - 1, k], ArrowRight: [i, k + 1], ArrowLeft: [i, k - 1],
    Home: [i, 0], End: [i, last],
  }[event.key];
  if (event.key === "Enter") goToEffect();
  if (next === undefined) return;
  event.preventDefault();
  selectCell(next.map((place) => clamp(place, 0, last)), false);
});

on("select", (subset) => {
  if (moveMark === null || subset.length > 2) return;
  if (subsetOf(...cell).join() !== subset.join()) {
    const places = subset.map((v) => mapped.indexOf(v));
    cell = [Math.min(...places), Math.max(...places)];
  }
  sayCell(...cell);
  moveMark();
});
on("theme", showMap);
