// Survival: the curve at the inputs, and curves that were observed beside those that were predicted.

const survival = page.survival === null ? null : {
  ...page.survival, times: unpack(page.survival.times), hazard: unpack(page.survival.hazard),
  groups: page.survival.groups.map((group) => ({ ...group, observed: unpack(group.observed), predicted: unpack(group.predicted) })),
};
// What moves the curve with the inputs.
let moveSurvival = null;

const survivalAt = (link) => Float64Array.from(survival.hazard, (hazard) => Math.exp(-Math.exp(link) * hazard));

/** Corners of a curve that is level between its times and steps at them, up to the end. */
function corners(values, end = survival.last) {
  const x = [], y = [];
  values.forEach((value, i) => {
    x.push(survival.times[i], i + 1 < values.length ? survival.times[i + 1] : Math.max(end, survival.times[i]));
    y.push(value, value);
  });
  return { x, y };
}

/** An empty figure of chances over time. */
const survivalFigure = (target, height) => makeFigure({
  x: [0, survival.last], y: [-0.02, 1.02], height, xLabel: contents.observed, yLabel: "Share without event",
  width: byId(target).clientWidth,
});

function showSurvival() {
  byId("survival-box").hidden = survival === null;
  if (survival === null) return null;
  const figure = survivalFigure("survival", narrow() ? 240 : 280);
  const band = source({ x: [], low: [], high: [] }), curve = source({ x: [], y: [] });
  figure.line({ field: "x" }, { field: "y" }, { source: source(corners(survivalAt(0))), line_color: colour("line-strong"), line_width: 1.5 });
  figure.varea({ field: "x" }, { field: "low" }, { field: "high" }, { source: band, fill_color: colour("accent"), fill_alpha: 0.18 });
  figure.line({ field: "x" }, { field: "y" }, { source: curve, line_color: colour("accent"), line_width: 2.5 });
  moveSurvival = () => {
    const at = model.at(state.row), error = posterior === null || !Number.isFinite(at.link) ? 0 : reach * posterior.errorAt(at);
    const [fit, low, high] = [0, error, -error].map((shift) => corners(survivalAt(at.link + shift)));
    curve.data = fit;
    band.data = { x: fit.x, low: low.y, high: high.y };
    byId("survival-words").textContent = survivalWords(survivalAt(at.link));
  };
  moveSurvival();
  byId("survival").setAttribute("aria-label", "Survival curve at the inputs");
  return mount(byId("survival"), [figure]);
}

function survivalWords(curve) {
  const half = curve.findIndex((chance) => chance <= 0.5), last = curve[curve.length - 1];
  byId("survival").dataset.median = String(half < 0 ? Infinity : survival.times[half]);
  const time = half < 0
    ? `Of such rows ${percent(last)} have no event until ${number(survival.last)}, the end of observation.`
    : `Half of such rows have the event until ${number(survival.times[half])}.`;
  const band = posterior === null ? "" : ` Band: ${percent(contents.level)}, of the hazard ratio.`;
  return `${time}${band} Grey: the average row.`;
}

/** Observed curves of groups of rows, and the means of the predicted ones. */
function observedSurvival() {
  const figure = survivalFigure("observed", narrow() ? 300 : 380);
  survival.groups.forEach((group, place) => {
    const own = { line_color: colour(["order-1", "order-2", "order-3"][place]) }, seen = group.observed.length;
    const end = seen < survival.times.length ? survival.times[seen - 1] : survival.last;
    figure.line({ field: "x" }, { field: "y" }, { source: source(corners(group.observed, end)), ...own, line_width: 2.5 });
    figure.line({ field: "x" }, { field: "y" }, { source: source(corners(group.predicted)), ...own, line_width: 1.5, line_dash: [5, 4] });
  });
  return figure;
}

on("row", () => moveSurvival?.());
on("theme", showSurvival);
