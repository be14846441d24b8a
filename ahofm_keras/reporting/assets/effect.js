// The effect that is selected: which picture it gets, its switches, and what is said about it.

const view = { points: false, joint: false, everything: false };
const chart = byId("effect-chart");
const reach = contents.level_reach;
// What the picture does when the inputs move, and when an arrow key is pressed.
let follow = null;
let cursor = null;

function showEffect() {
  const subset = state.selected, [first] = subset;
  labelled(byId("effect-title"), subset);
  byId("effect-share").textContent = shareText(subset);
  follow = cursor = null;
  for (const id of ["effect-readout", "effect-legend", "effect-words"]) byId(id).replaceChildren();
  showControls(subset);
  if (subset.some((v) => model.variables[v].isPoint)) return showPlaces(subset);
  if (subset.length > 2) return showSlices(subset);
  if (subset.length === 2) return showPair(subset);
  return model.variables[first].isCategory ? showLevels(first) : showCurve(first);
}

function shareText(subset) {
  const item = shareOf.get(subset.join());
  if (item === undefined) return "The model does not use this effect";
  const rows = item.overRows === null ? "" : ` · ${percent(item.overRows)} over the rows of the data`;
  return `${percent(item.share)} of the variance of the predictions${rows}`;
}

// Residuals of single zeros and ones are no help beside a curve of log-odds.
const hasResiduals = sample !== null && page.sample.residuals !== null && !page.family.binary;

/** Switches that make sense for a subset. */
function showControls(subset) {
  const numbers = subset.filter((v) => !model.variables[v].isCategory && !model.variables[v].isPoint);
  const hasPoint = subset.some((v) => model.variables[v].isPoint);
  const drawn = hasPoint ? sample !== null : subset.length === 2 ? isSurface(subset) && sample !== null : hasResiduals && subset.length === 1;
  const switches = [
    ["points", "Rows of the data", drawn && (hasPoint || numbers.length > 0)],
    ["joint", subset.length > 2 ? "With smaller effects" : "With single effects", subset.length > 1],
    ["everything", "Whole range", numbers.some((v) => viewOf(v).tails)],
  ].filter(([, , useful]) => useful);
  const buttons = switches.map(([key, text]) => element("button", {
    type: "button", "aria-pressed": String(view[key]), "data-view": key,
    onclick: () => {
      view[key] = !view[key];
      showEffect();
      byId("effect-controls").querySelector(`[data-view="${key}"]`)?.focus();
    },
  }, text));
  byId("effect-controls").replaceChildren(...(buttons.length
    ? [element("div", { class: "toggles", role: "group", "aria-label": "What is shown" }, ...buttons)] : []));
}

/** What is under the pointer: values of variables, then a text. */
function readout(subset, values, text) {
  const place = subset.map((v, i) => `${nameOf(v)} = ${valueText(v, values[i])}`).join(", ");
  byId("effect-readout").replaceChildren(element("b", {}, place), `: ${text}`);
}

function describe({ legend, words, label }) {
  byId("effect-legend").replaceChildren(...legend.filter((entry) => entry !== null));
  write(byId("effect-words"), words);
  chart.setAttribute("aria-label", label);
}

/** An entry of a legend: a swatch and a text. */
function key(name, text, style = {}) {
  const swatch = element("i", { class: "swatch", style: { background: colour(name), ...style } });
  return element("span", {}, swatch, text);
}

const DOT = { borderRadius: "50%", width: "0.65rem" };
const placeKey = () => key("marker", "where the inputs below stand", DOT);
const bandKey = () => key("accent", `${percent(contents.level)} band`, { opacity: "0.3" });
const rowsKey = () => key("line-strong", "distribution of the rows");

/** Ends of an axis around values, with some air; small effects look small. */
function around(values, least = 0, air = 0.06) {
  let low = Infinity, high = -Infinity;
  for (const value of [...values, ...(least ? [-least, least] : [])])
    if (Number.isFinite(value)) {
      low = Math.min(low, value);
      high = Math.max(high, value);
    }
  if (!(low <= high)) return [-1, 1];
  const span = high - low || Math.abs(high) || 1;
  return [low - air * span, high + air * span];
}

/** Ends between which nearly all values lie. */
function innerRange(values) {
  const sorted = Float64Array.from(values).sort(), last = sorted.length - 1;
  return last < 0 ? [] : [sorted[Math.round(0.01 * last)], sorted[Math.round(0.99 * last)]];
}

// Keys ---------------------------------------------------------------------------------------------------

/** Arrow keys along the points of an axis. */
function stepper(points, say) {
  let place = Math.floor(points.length / 2);
  const step = Math.max(1, Math.round(points.length / 48));
  return (pressed) => {
    if (pressed === "Home") place = 0;
    else if (pressed === "End") place = points.length - 1;
    else place += pressed === "ArrowRight" || pressed === "ArrowDown" ? step : -step;
    place = clamp(place, 0, points.length - 1);
    say(points[place]);
  };
}

/** Arrow keys over a surface. */
function crossing(axes, say) {
  const place = axes.map((axis) => Math.floor(axis.length / 2));
  const steps = axes.map((axis) => Math.max(1, Math.round(axis.length / 32)));
  return (pressed) => {
    const along = pressed === "ArrowUp" || pressed === "ArrowDown" ? 1 : 0;
    if (pressed === "Home") place[0] = 0;
    else if (pressed === "End") place[0] = axes[0].length - 1;
    else place[along] += pressed === "ArrowRight" || pressed === "ArrowUp" ? steps[along] : -steps[along];
    place[along] = clamp(place[along], 0, axes[along].length - 1);
    say(axes[0][place[0]], axes[1][place[1]]);
  };
}

chart.addEventListener("keydown", (event) => {
  const known = ["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown", "Home", "End"].includes(event.key);
  if (cursor === null || !known) return;
  event.preventDefault();
  cursor(event.key);
});
on("select", showEffect);
on("theme", () => { if (state.selected !== null) showEffect(); });
on("row", (row) => { if (follow !== null) follow(row); });
