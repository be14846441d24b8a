// A prediction that follows its inputs, and its parts.

const SHOWN_PARTS = 10;
// Which parts are shown: they change places only when an input is let go.
let shownParts = [];
let waiting = false;
let announce = false;

/** Show the prediction again with the next frame. */
function changed(final) {
  byId("result-row").textContent = "";
  if (final) {
    shownParts = [];
    announce = true;
  }
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(() => {
    waiting = false;
    showResult();
    if (announce) byId("announce").textContent = `${byId("result-label").textContent}: ${byId("result").textContent}`;
    announce = false;
  });
}

function showResult() {
  const at = model.at(state.row);
  if (chapters.length > 1 || page.classes.length) showResponse();
  else {
    write(byId("result-label"), contents.family.result_label);
    byId("result").textContent = number(at.mean, 5);
    byId("result").dataset.value = String(at.mean);
    byId("result-band").textContent = bandText(at);
  }
  showParts(at);
  emit("row", state.row);
}

function bandText(at) {
  if (!Number.isFinite(at.link)) return "A function of the formula is not defined at these values.";
  if (posterior === null && contents.posterior_left_out)
    return "Intervals are left out of the page: the model has too many coefficients.";
  if (posterior === null) return "";
  const error = posterior.errorAt(at), [low, high] = bandOf(model, at, error);
  const { band_label: label } = contents.family;
  const band = `${percent(contents.level)} band of the ${label}: ${number(low)} to ${number(high)}`, ends = newEnds(at, error);
  return ends === null ? band : `${band}; of ${newWords()}: ${number(ends[0])} to ${number(ends[1])}`;
}

/** Where a parameter lies, by the standard error of its predictor. */
const bandOf = (own, at, error) =>
  [at.link - reach * error, at.link + reach * error].map((end) => own.inverseLink(end)).sort((a, b) => a - b);

/** Where a new observation lies, of a model with one predictor; null where that is not known. */
function newEnds(at, error) {
  if (!contents.family.linear)
    return outcome === null || outcome.spread === null ? null : outcome.spread.interval([at.link], [error], reach);
  const wide = reach * Math.hypot(error, Math.sqrt(posterior.dispersion));
  return [at.link - wide, at.link + wide];
}

const newWords = () => (outcome?.trials ? `successes in ${count(outcome.trials)} new trials` : "a new observation");

/** What all predictors together say of the response, and each of them by itself. */
function showResponse() {
  const every = chapters.map((chapter) => {
    const at = chapter.model.at(state.row), known = chapter.posterior !== null && Number.isFinite(at.link);
    return { chapter, at, error: known ? chapter.posterior.errorAt(at) : null };
  });
  if (page.classes.length) showChances(outcome === null ? null : outcome.chances(every.map(({ at }) => at.link)));
  else if (outcome !== null && outcome.quantiles.length) showQuantiles(outcome.levels(every.map(({ at }) => at.mean)));
  else showDistribution(every);
  byId("values").replaceChildren(element("tbody", {}, ...every.map(valueLine)));
}

/** The most likely class, and how likely all of them are. */
function showChances(chances) {
  const best = chances === null ? -1 : chances.indexOf(Math.max(...chances));
  write(byId("result-label"), `Most likely ${page.response}`);
  write(byId("result"), chances === null ? "not known here" : page.classes[best]);
  byId("result").dataset.value = String(chances?.[best]);
  byId("result").dataset.chances = String(chances);
  write(byId("result-band"), chances === null ? "" : page.classes.map((label, k) => `${label} ${percent(chances[k])}`).join(", "));
}

/** Fitted quantiles: the one in the middle, and the others below it. */
function showQuantiles(levels) {
  const middle = levels.find((own) => own.middle), capital = middle.name[0].toUpperCase() + middle.name.slice(1);
  write(byId("result-label"), `${capital} of ${page.response}`);
  byId("result").textContent = number(middle.value, 5);
  byId("result").dataset.value = String(middle.value);
  const others = levels.filter((own) => !own.middle).map(({ name, value }) => `${name} ${number(value)}`);
  write(byId("result-band"), others.join(", "));
}

/** The mean, and between which ends a new observation lies. */
function showDistribution(every) {
  const links = every.map(({ at }) => at.link), mean = outcome === null ? null : outcome.mean(links);
  const errors = every.map(({ error }) => error ?? 0), known = every.every(({ error }) => error !== null);
  const ends = outcome === null || outcome.spread === null ? null : outcome.spread.interval(links, errors, reach);
  write(byId("result-label"), `Average ${page.response} of such rows`);
  byId("result").textContent = mean === null ? "not known here" : number(mean, 5);
  byId("result").dataset.value = String(mean);
  byId("result-band").textContent = ends === null ? ""
    : `${percent(page.level)} of new observations: ${number(ends[0])} to ${number(ends[1])}${known ? "" : ", if the parameters are right"}`;
  byId("result-band").dataset.ends = String(ends);
}

/** A parameter, its value at the inputs and the band of that; a click opens its chapter. */
function valueLine({ chapter, at, error }, k) {
  const { contents: own, model: ofChapter } = chapter;
  const ends = error === null ? null : bandOf(ofChapter, at, error);
  const name = element("button", { type: "button", title: `Show the effects on ${own.parameter}`, onclick: () => chooseChapter(k) }, own.parameter);
  return element("tr", { class: k === opened ? "chosen" : "", "data-value": String(at.mean) },
    element("th", { class: "part", scope: "row" }, name), element("td", { class: "amount" }, number(at.mean)),
    element("td", { class: "ends" }, ends === null ? "" : `${number(ends[0])} to ${number(ends[1])}`));
}

function showParts(at) {
  if (!shownParts.length) shownParts = largestParts(model.partsAt(at));
  const lines = shownParts.map((subset) => ({ subset, value: model.partAt(at, subset) }));
  const offset = at.offsets.reduce((a, b) => a + b, 0);
  const rest = lines.reduce((left, line) => left - line.value, at.link - model.constant - offset - at.limit);
  const others = contents.ranking.reduce((total, entry) => total + entry.active, -shownParts.length);
  if (others > 0) lines.push({ text: `${count(others)} other ${others === 1 ? "part" : "parts"}`, value: rest });
  if (Math.abs(at.limit) > 1e-6 * Math.abs(at.link)) lines.push({ text: "Held in the training range", value: at.limit });
  if (at.offsets.length) lines.push({ text: model.offsets.map((own) => own.label).join(" + "), value: offset });
  const most = Math.max(...lines.map((line) => Math.abs(line.value)), 1e-12);
  const decimals = clamp(2 - Math.floor(Math.log10(lines.length ? most : Math.abs(at.link) || 1)), 0, 8);
  byId("parts").replaceChildren(element("tbody", {},
    partLine({ text: "Constant", value: model.constant }, decimals),
    ...lines.map((line) => partLine(line, decimals, most)),
    partLine({ text: contents.family.sum_label, value: at.link }, decimals, null, "total")));
}

/** The subsets whose parts are largest, as far as they can be seen beside the first. */
function largestParts(parts) {
  let best = [], least = 0;
  for (const { order, subsets, values } of parts)
    for (let k = 0; k < values.length; k++) {
      const size = Math.abs(values[k]);
      if (!(size > least)) continue;
      best.push({ size, subset: Array.from(subsets.subarray(k * order, (k + 1) * order)) });
      best = best.sort((a, b) => b.size - a.size).slice(0, SHOWN_PARTS);
      least = best.length < SHOWN_PARTS ? 0 : best[SHOWN_PARTS - 1].size;
    }
  return best.filter(({ size }) => size >= best[0].size / 500).map(({ subset }) => subset);
}

/** A row of the table; with a bar where `most` says how long the longest is. */
function partLine({ subset = null, text = null, value }, decimals, most = null, kind = "") {
  const name = subset === null ? element("span", { title: text }, text) : element("button", {
    type: "button", title: `Show the effect of ${labelOf(subset)}`, "data-part": subset.join(),
    onclick: () => select(subset, true),
  }, labelOf(subset));
  const bar = element("div", { class: "diverge", "aria-hidden": "true", hidden: most === null });
  if (most !== null) {
    const width = (50 * Math.abs(value)) / most, left = value < 0 ? 50 - width : 50;
    const background = `var(--${value < 0 ? "negative" : "positive"})`;
    bar.append(element("i", { style: { width: `${width}%`, left: `${left}%`, background } }));
  }
  return element("tr", { class: kind }, element("th", { class: "part", scope: "row" }, name),
    element("td", { class: "amount" }, fixed(value, decimals, most !== null)), element("td", {}, bar));
}
