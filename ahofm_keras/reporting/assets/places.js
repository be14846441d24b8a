// Effects of a variable whose values are points: a map of two of its coordinates.

const MAP_POINTS = 90;
const SLICE_POINTS = 56;

/** The coordinates of a point as axes of their own: "3.0" is the first one of variable 3. */
const coordinatesOf = (v) => model.variables[v].coordinates.map((_, c) => `${v}.${c}`);

/** A map of the point of a subset; of the others one at three values, the rest where the inputs stand. */
function showPlaces(given) {
  const point = given.find((v) => model.variables[v].isPoint), others = given.filter((v) => v !== point);
  const [first, ...rest] = others, subset = [point, ...others], slices = first === undefined ? [null] : slicesOf(first);
  const keys = coordinatesOf(point).slice(0, 2), size = others.length ? SLICE_POINTS : MAP_POINTS;
  const axes = keys.map((key) => axisOf(key, size, true)), near = cellsNear(...keys);
  // Further coordinates, and further variables, stay where the inputs stand.
  const here = Array.from(model.valueAt(point, state.row)), held = rest.map((v) => model.valueAt(v, state.row));
  const at = (x, y) => [x, y, ...here.slice(2)];
  const points = Array.from(axes[0]).flatMap((x) => Array.from(axes[1], (y) => at(x, y)));
  const along = (slice) => [...(slice === null ? [] : [[slice]]), ...held.map((value) => [value])];
  const values = slices.map((slice) => valuesOn(subset, [points, ...along(slice)]));
  const most = Math.max(...values.map((own) => sizeOf(own, axes, near)));
  const width = chart.clientWidth / (narrow() ? 1 : slices.length);
  const height = others.length ? (narrow() ? 240 : 300) : narrow() ? 320 : 440;
  const figures = values.map((own, k) =>
    surfaceFigure(keys, axes, own, most, { height, near, labels: k === 0 || narrow(), width }));
  if (view.points && sample !== null) for (const figure of figures) addPlaces(figure, point);
  const say = (k) => (x, y) => {
    const own = [[at(x, y)], ...along(slices[k])], text = effectText(valuesOn(subset, own)[0], bandAt(subset, x, y));
    readout(subset, own.map(([value]) => value), text + (near !== null && !near(x, y) ? "; no rows near" : ""));
  };
  figures.forEach((figure, k) => onPointer(figure, say(k)));
  const rings = figures.map((figure) => addRing(figure, (row) => Array.from(model.valueAt(point, row))));
  follow = (row) => rings.forEach((move) => move(row));
  const middle = Math.floor(slices.length / 2);
  cursor = crossing(axes, say(middle));
  say(middle)(here[0], here[1]);
  const names = listed(subset.map(nameOf));
  describe({
    legend: [...surfaceLegend(most, near), placeKey()],
    words: others.length ? pairWords(subset) : `The part of the place (${names}) alone, averaged over all other features.`,
    label: `Map of ${names}. Arrow keys move on it.`,
  });
  const title = (k) => element("h4", {}, `${nameOf(first)} = ${valueText(first, slices[k])}`);
  const titled = (slots) => [element("div", { class: "triptych" }, ...slots.map((slot, k) => element("div", {}, title(k), slot)))];
  return others.length ? mount(chart, figures, titled) : mount(chart, figures);
}

/** Half the width of the band of a point's own part, between the points at which it is known. */
function bandAt(subset, x, y) {
  const { se, se_axes: ends } = margins[subset[0]];
  if (subset.length > 1 || se === null || view.joint) return null;
  const points = Math.round(Math.sqrt(se.length));
  const [i, k] = [x, y].map((value, c) => {
    const share = clamp((value - ends[2 * c]) / (ends[2 * c + 1] - ends[2 * c]), 0, 1);
    return share * (points - 1);
  });
  const [a, b] = [i, k].map((place) => Math.min(Math.floor(place), points - 2));
  const row = (own) => se[own * points + b] * (1 - (k - b)) + se[own * points + b + 1] * (k - b);
  return reach * (row(a) * (1 - (i - a)) + row(a + 1) * (i - a));
}

/** The rows in the page as points. */
function addPlaces(figure, v) {
  const places = Array.from(sample.y, (_, i) => model.valueAt(v, sampleRow(i)));
  const data = { x: places.map((place) => place[0]), y: places.map((place) => place[1]) };
  addDots(figure, data, { size: 3.5, fill_color: colour("ink"), fill_alpha: 0.4 });
}
