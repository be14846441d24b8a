// Effects of two and more variables: surfaces, lines by level, slices.

const MOST_LINES = 6;
const LINE_COLOURS = ["accent", "positive", "negative", "ink", "soft", "marker"];
let later = null;

/** The subset with numbers first: they go to the right. */
const oriented = (subset) => [...subset].sort((a, b) => model.variables[a].isCategory - model.variables[b].isCategory);

/** Whether a pair is drawn as a surface: else as a line for each level. */
function isSurface(pair) {
  const [a, b] = oriented(pair).map((v) => model.variables[v]);
  return a.isCategory || !b.isCategory || b.levels.length > MOST_LINES;
}

const valuesOn = (subset, axes) => (view.joint ? model.jointOn(subset, axes) : model.partOn(subset, axes));
const errorsOn = (subset, axes) => (posterior === null || view.joint ? null : posterior.errorsOn(subset, axes));
const snap = (v, value) => model.variables[v].isCategory
  ? clamp(Math.round(value), 0, model.variables[v].levels.length - 1) : value;

function showPair(given) {
  const subset = oriented(given), [a, b] = subset;
  if (!isSurface(subset)) return showLines(subset);
  const axes = subset.map((v) => axisOf(v, 200, view.everything)), near = cellsNear(a, b);
  const values = valuesOn(subset, axes), most = sizeOf(values, axes, near);
  const levels = model.variables[b].levels.length;
  const height = levels ? clamp(120 + levels * 26, 220, 620) : narrow() ? 320 : 440;
  const figure = surfaceFigure(subset, axes, values, most, { height, near });
  if (view.points && sample !== null) addRows(figure, subset);
  follow = addPlace(figure, subset);
  const say = (x, y) => sayPair(subset, [snap(a, x), snap(b, y)], near);
  onPointer(figure, say);
  cursor = crossing(axes, say);
  say(...subset.map((v) => model.valueAt(v, state.row)));
  describe({
    legend: [...surfaceLegend(most, near), placeKey()], words: pairWords(subset),
    label: `Surface of ${listed(subset.map(nameOf))}. Arrow keys move on it.`,
  });
  return mount(chart, [figure]);
}

function sayPair(subset, values, near) {
  const axes = values.map((value) => [value]), errors = errorsOn(subset, axes);
  const text = effectText(valuesOn(subset, axes)[0], errors === null ? null : reach * errors[0]);
  readout(subset, values, text + (near !== null && !near(...values) ? "; no rows near" : ""));
}

function pairWords(subset) {
  const names = listed(subset.map(nameOf)), pair = subset.length === 2;
  if (view.joint) {
    const what = pair ? "their single effects and their interaction" : "their single effects, pairs and so on";
    return `All that depends on ${names} and on nothing else: ${what}.`;
  }
  return pair ? `What ${names} do together beyond the sum of their single effects. Where it is 0 the two simply add up.`
    : `What ${names} do together beyond their single effects and smaller interactions.`;
}

/** A number and few levels: a line for each level, with its band. */
function showLines(subset) {
  const [a, b] = subset, { levels } = model.variables[b], { low, high } = viewOf(a, view.everything);
  const x = model.besideAtoms(a, even(low, high, 120));
  const axes = [x, [...levels.keys()]], count = levels.length, near = cellsNear(a, b);
  const values = valuesOn(subset, axes), errors = errorsOn(subset, axes);
  const line = (k) => x.map((_, i) => values[i * count + k]);
  const edge = (k, sign) => x.map((_, i) => values[i * count + k] + sign * reach * (errors?.[i * count + k] ?? 0));
  const edges = levels.flatMap((_, k) => [...edge(k, -1), ...edge(k, 1)]);
  const { figure, strip } = curveFigure(a, [low, high], around([0, ...edges], SMALL));
  levels.forEach((_, k) => {
    const line_color = colour(LINE_COLOURS[k]), y = line(k);
    const seen = y.map((value, i) => (near === null || near(x[i], k) ? value : NaN));
    if (errors !== null) addBand(figure, x, edge(k, -1), edge(k, 1), line_color, 0.1);
    addLine(figure, x, y, { line_color, line_width: 1, line_dash: [3, 3], line_alpha: 0.7 });
    addLine(figure, x, seen, { line_color, line_width: 2.5 });
  });
  addHistogram(figure, margins[a].quantiles, low, high, ...strip);
  const at = (row) => {
    const place = [clamp(model.valueAt(a, row), low, high), model.valueAt(b, row)];
    return { x: [place[0]], y: valuesOn(subset, place.map((value) => [value])) };
  };
  follow = addMarker(figure, at);
  const lines = levels.map((_, k) => line(k));
  const nearest = (value, height) => {
    const distances = lines.map((own) => Math.abs(interpolate(x, own, value) - height));
    return distances.indexOf(Math.min(...distances));
  };
  onPointer(figure, (value, height) => sayPair(subset, [value, nearest(value, height)], near));
  cursor = crossing(axes, (value, k) => sayPair(subset, [value, k], near));
  sayPair(subset, [at(state.row).x[0], model.valueAt(b, state.row)], near);
  const entries = shortenApart(levels.map(levelText), 30).map((name, k) => key(LINE_COLOURS[k], name, { height: "3px" }));
  describe({
    legend: [...entries, near === null ? null : element("span", {}, "dashed: no rows near")], words: pairWords(subset),
    label: `Lines of ${nameOf(a)} by ${nameOf(b)}. Arrow keys move along them.`,
  });
  return mount(chart, [figure]);
}

/** Three and more: surfaces of two at three values of the third; the others stand where the inputs stand. */
function showSlices(given) {
  const [a, b, c, ...rest] = oriented(given), subset = [a, b, c, ...rest];
  const axes = [a, b].map((v) => axisOf(v, 96, view.everything)), near = cellsNear(a, b);
  const slices = slicesOf(c), held = rest.map((v) => model.valueAt(v, state.row));
  const values = slices.map((slice) => valuesOn(subset, [...axes, [slice], ...held.map((value) => [value])]));
  const most = Math.max(...values.map((own) => sizeOf(own, axes, near)));
  const width = chart.clientWidth / (narrow() ? 1 : slices.length);
  const height = narrow() ? 240 : 300, labels = (k) => k === 0 || narrow();
  const figures = values.map((own, k) => surfaceFigure([a, b], axes, own, most, { height, near, labels: labels(k), width }));
  const say = (k) => (x, y) => {
    const place = [snap(a, x), snap(b, y), slices[k], ...held];
    readout(subset, place, effectText(valuesOn(subset, place.map((value) => [value]))[0]));
  };
  figures.forEach((figure, k) => onPointer(figure, say(k)));
  cursor = crossing(axes, say(Math.floor(slices.length / 2)));
  if (rest.length) follow = () => {
    clearTimeout(later);
    later = setTimeout(() => { if (state.selected === given) showEffect(); }, 150);
  };
  const fixedAt = rest.map((v, i) => `${nameOf(v)} = ${valueText(v, held[i])}`).join(", ");
  describe({
    legend: surfaceLegend(most, near),
    words: pairWords(subset) + (fixedAt ? ` Shown at ${fixedAt}, where the inputs below stand.` : ""),
    label: `Surfaces of ${nameOf(a)} and ${nameOf(b)} by ${nameOf(c)}. Arrow keys move on the middle one.`,
  });
  const title = (k) => element("h4", {}, `${nameOf(c)} = ${valueText(c, slices[k])}`);
  const titled = (slot, k) => element("div", {}, title(k), slot);
  return mount(chart, figures, (slots) => [element("div", { class: "triptych" }, ...slots.map(titled))]);
}

/** A low, a middle and a high value of a variable, or its most frequent levels. */
function slicesOf(v) {
  const { quantiles, frequencies } = margins[v];
  if (!model.variables[v].isCategory)
    return [0.1, 0.5, 0.9].map((p) => quantiles[Math.round(p * (quantiles.length - 1))]);
  const byFrequency = [...frequencies.keys()].sort((i, k) => frequencies[k] - frequencies[i]);
  return byFrequency.slice(0, 3).sort((i, k) => i - k);
}
