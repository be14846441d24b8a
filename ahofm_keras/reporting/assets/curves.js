// Effects of one variable: a curve with its band, or levels with bars; below or beside it the data.

const MOST_LEVELS = 30;

function showCurve(v) {
  const { low, high, tails } = viewOf(v, view.everything), { grid, se, quantiles } = margins[v];
  const x = model.besideAtoms(v, even(low, high, 240)), fit = model.partOn([v], [x]);
  const atoms = atomsOf(v, low, high);
  const errors = se === null ? null : x.map((at) => reach * interpolate(grid, se, at));
  const lower = fit.map((f, i) => f - (errors?.[i] ?? 0)), upper = fit.map((f, i) => f + (errors?.[i] ?? 0));
  const points = view.points && hasResiduals ? partialResiduals(v, low, high) : null;
  const [bottom, top] = around([0, ...lower, ...upper, ...atoms.low, ...atoms.high, ...(points === null ? [] : innerRange(points.y))], SMALL);
  const { figure, strip } = curveFigure(v, [low, high], [bottom, top]);
  if (points !== null) addDots(figure, points, { size: 4, fill_color: colour("soft"), fill_alpha: 0.45 });
  if (errors !== null) addBand(figure, x, lower, upper, colour("accent"), 0.18);
  addLine(figure, x, fit, { line_color: colour("accent"), line_width: 2.5 });
  if (atoms.x.length > 0) addAtoms(figure, atoms);
  addHistogram(figure, quantiles, low, high, ...strip);
  const at = (row) => {
    const value = clamp(model.valueAt(v, row), low, high);
    return { x: [value], y: model.partOn([v], [[value]]) };
  };
  follow = addMarker(figure, at);
  const say = (value) => {
    const width = se === null ? null : reach * interpolate(grid, se, value);
    readout([v], [value], effectText(model.partOn([v], [[value]])[0], width));
  };
  onPointer(figure, (value) => say(clamp(value, low, high)));
  cursor = stepper(x, say);
  say(at(state.row).x[0]);
  const cut = tails && !view.everything;
  const beyond = cut ? " The outermost 1 % of the rows on either side lies beyond the picture." : "";
  describe({
    legend: [se === null ? null : bandKey(), placeKey(), rowsKey(),
      atoms.x.length === 0 ? null : key("accent", "values that many rows share", { ...DOT, height: "0.65rem" }),
      points === null ? null : key("soft", "partial residuals", { ...DOT, width: "0.5rem", height: "0.5rem" })],
    words: curveWords(v, x, fit) + beyond,
    label: `Curve of ${nameOf(v)}. Arrow keys move along it.`,
  });
  return mount(chart, [figure]);
}

/** Values of a variable that have a function of their own, between two ends, with effects and bands. */
function atomsOf(v, low, high) {
  const { atoms } = model.variables[v], { se, atoms_se: errors } = margins[v];
  const found = { x: [], y: [], low: [], high: [] };
  atoms.forEach((x, i) => {
    if (x < low || x > high) return;
    const [y] = model.partOn([v], [[x]]), width = se === null ? 0 : reach * errors[i];
    found.x.push(x);
    found.y.push(y);
    found.low.push(y - width);
    found.high.push(y + width);
  });
  return found;
}

function addAtoms(figure, atoms) {
  figure.segment({ field: "x" }, { field: "low" }, { field: "x" }, { field: "high" }, {
    source: source(atoms), line_color: colour("accent"), line_width: 1.5,
  });
  addDots(figure, { x: atoms.x, y: atoms.y }, { size: 7, fill_color: colour("accent") });
}

/** A figure for curves over a number, with a strip for the distribution of the rows below them. */
function curveFigure(v, ends, [bottom, top]) {
  const height = 0.16 * (top - bottom), ground = bottom - 1.3 * height;
  const figure = makeFigure({
    x: ends, y: [ground, top], height: narrow() ? 290 : 400,
    xLabel: nameOf(v), yLabel: EFFECT_AXIS, yBounds: [bottom, top],
  });
  figure.xgrid.visible = false;
  figure.line(ends, [0, 0], { line_color: colour("line-strong"), line_width: 1 });
  return { figure, strip: [ground, height] };
}

function addBand(figure, x, low, high, fill_color, fill_alpha) {
  const data = source({ x, low, high });
  figure.varea({ field: "x" }, { field: "low" }, { field: "high" }, { source: data, fill_color, fill_alpha });
}

function addLine(figure, x, y, style) {
  figure.line({ field: "x" }, { field: "y" }, { source: source({ x, y }), ...style });
}

function addDots(figure, data, style) {
  const dots = source(data);
  figure.scatter({ field: "x" }, { field: "y" }, { source: dots, line_color: null, ...style });
  return dots;
}

/** A dot where the inputs stand; returns what moves it. */
function addMarker(figure, at) {
  const dot = addDots(figure, at(state.row), {
    size: 9, fill_color: colour("marker"), line_color: colour("ground"), line_width: 1.5,
  });
  return (row) => { dot.data = at(row); };
}

function addHistogram(figure, quantiles, low, high, ground, height) {
  const { edges, heights } = histogram(quantiles, low, high, 36), most = Math.max(...heights) || 1;
  figure.quad({ field: "left" }, { field: "right" }, { field: "bottom" }, { field: "top" }, {
    source: source({
      left: edges.slice(0, -1), right: edges.slice(1),
      bottom: heights.map(() => ground), top: heights.map((h) => ground + (height * h) / most),
    }),
    fill_color: colour("line-strong"), fill_alpha: 0.75, line_color: colour("ground"), line_width: 0.5,
  });
}

/** Partial residuals of the rows in the page: the effect and what the model leaves over. */
function partialResiduals(v, low, high) {
  const values = valuesInSample(v), fit = model.partOn([v], [values]);
  const inside = [...values.keys()].filter((i) => values[i] >= low && values[i] <= high);
  return { x: inside.map((i) => values[i]), y: inside.map((i) => fit[i] + sample.residual[i]) };
}

function curveWords(v, x, fit) {
  let most = 0, least = 0;
  fit.forEach((value, i) => {
    if (value > fit[most]) most = i;
    if (value < fit[least]) least = i;
  });
  if (fit[most] - fit[least] < SMALL / 1000) return `${nameOf(v)} alone has no effect.`;
  const last = x.length - 1, at = (i) => `${effectText(fit[i])} at ${number(x[i])}`;
  const monotone = Math.min(most, least) === 0 && Math.max(most, least) === last;
  const shape = monotone ? `The effect ${most > least ? "rises" : "falls"} from ${at(0)} to ${at(last)}.`
    : `The effect is largest with ${at(most)}, and smallest with ${at(least)}.`;
  return `${shape} It is the part of ${nameOf(v)} alone, averaged over all other features.`;
}

// Levels ---------------------------------------------------------------------------------------------------

/** Levels in the order in which they are shown: as they are, or by effect; of too many the most frequent. */
function levelOrder(v, fit) {
  const { frequencies } = margins[v];
  let order = [...frequencies.keys()];
  if (order.length > MOST_LEVELS)
    order = order.sort((a, b) => frequencies[b] - frequencies[a]).slice(0, MOST_LEVELS);
  return order.length > 12 ? order.sort((a, b) => fit[b] - fit[a]) : order;
}

function showLevels(v) {
  const { levels } = model.variables[v], { frequencies, se } = margins[v];
  const fit = model.partOn([v], [levels.map((_, i) => i)]), order = levelOrder(v, fit), count = order.length;
  const width = (i) => (se === null ? 0 : reach * se[i]);
  const [left, right] = around([0, ...order.flatMap((i) => [fit[i] - width(i), fit[i] + width(i)])], SMALL);
  const strip = 0.22 * (right - left);
  const figure = makeFigure({
    x: [left, right + 1.3 * strip], y: [count - 0.4, -0.6], height: 90 + Math.max(count, 3) * (count > 16 ? 18 : 30),
    xLabel: EFFECT_AXIS, xBounds: [left, right],
  });
  figure.ygrid.visible = false;
  nameTicks(figure.yaxes[0], order.map((i) => levelText(levels[i])), narrow() ? 14 : 28);
  addFrequencies(figure, order.map((i) => frequencies[i]), right + 0.3 * strip, 0.95 * strip);
  figure.line([0, 0], [-0.6, count - 0.4], { line_color: colour("line-strong"), line_width: 1 });
  const y = order.map((_, k) => k), x = order.map((i) => fit[i]);
  if (se !== null) figure.segment({ field: "low" }, { field: "y" }, { field: "high" }, { field: "y" }, {
    source: source({ low: order.map((i) => fit[i] - width(i)), high: order.map((i) => fit[i] + width(i)), y }),
    line_color: colour("accent"), line_width: 2, line_alpha: 0.5,
  });
  const colours = (row) => order.map((i) => colour(model.valueAt(v, row) === i ? "marker" : "accent"));
  const dots = addDots(figure, { x, y, colour: colours(state.row) }, {
    size: 10, fill_color: { field: "colour" }, line_color: colour("ground"), line_width: 1.5,
  });
  follow = (row) => { dots.data = { x, y, colour: colours(row) }; };
  const say = (k) => {
    const i = order[k], text = effectText(fit[i], se === null ? null : width(i));
    readout([v], [i], `${text}; ${percent(frequencies[i])} of the rows`);
  };
  onPointer(figure, (_, at) => say(clamp(Math.round(at), 0, count - 1)));
  cursor = stepper(y, say);
  say(Math.max(order.indexOf(model.valueAt(v, state.row)), 0));
  const all = `The part of ${nameOf(v)} alone, averaged over all other features.`;
  describe({
    legend: [se === null ? null : bandKey(), placeKey(), rowsKey()],
    words: count < levels.length ? `The ${count} most frequent of ${levels.length} levels. ${all}` : all,
    label: `Levels of ${nameOf(v)}. Arrow keys move along them.`,
  });
  return mount(chart, [figure]);
}

function addFrequencies(figure, shares, start, width) {
  const most = Math.max(...shares) || 1;
  figure.quad({ field: "left" }, { field: "right" }, { field: "bottom" }, { field: "top" }, {
    source: source({
      left: shares.map(() => start), right: shares.map((share) => start + (width * share) / most),
      bottom: shares.map((_, k) => k + 0.3), top: shares.map((_, k) => k - 0.3),
    }),
    fill_color: colour("line-strong"), fill_alpha: 0.75, line_color: null,
  });
}
