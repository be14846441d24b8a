// What the model is and how well it does.

function showWords() {
  const { words, quality, facts, warnings } = contents;
  write(byId("title"), contents.title);
  const lead = chapters.length > 1 ? [page.about.lead, words.scale] : [words.what, words.link, words.scale];
  write(byId("what"), lead.filter(Boolean).join(" "));
  const value = (figure) =>
    figure.kind === "percent" ? `${fixed(100 * figure.value, 1, false)} %` : number(figure.value);
  byId("figures").replaceChildren(...quality.figures.map((figure) =>
    element("div", { title: figure.note }, element("dt", {}, figure.label), element("dd", {}, value(figure)))));
  byId("figures-note").textContent = qualityNote();
  write(byId("formula"), contents.formula);
  byId("facts").replaceChildren(...facts.map((fact) =>
    element("div", {}, element("dt", {}, fact.label), element("dd", {}, fact.value))));
  byId("warnings").replaceChildren(...warnings.map((text) => element("p", {}, text)));
  byId("fit-words").textContent = "How close the predictions come to the data, and how the model was fitted.";
  byId("foot").textContent = `Made by ahofm_keras ${contents.version}. Shares are variances under the product of the `
    + "features' own distributions, where all effects are uncorrelated; they sum to 100 %. The page needs no network.";
}

function qualityNote() {
  const { source: from, rows } = contents.quality;
  if (from === null)
    return "How well it does is not known: the model has no rows of its fit any more, and none were given.";
  if (from === "given") return `On ${count(rows)} rows given to this report.`;
  return `On ${rows === null ? "the" : count(rows)} rows that the model was fitted to; on new rows it does less well.`;
}

/** Shares of the orders as one bar. */
function showOrders() {
  const orders = ranked.filter((entry) => entry.whole > 0);
  byId("orders").hidden = orders.length < 2;
  const names = orders.map((entry) => element("span", {},
    element("i", { style: { background: orderTint(entry.order) } }),
    `${ORDER_NAMES(entry.order)} `, element("b", {}, percent(entry.whole))));
  const bars = orders.map((entry) =>
    element("div", { style: { flex: `${Math.max(entry.whole, 0.002)} 0 0`, background: orderTint(entry.order) } }));
  byId("orders").replaceChildren(
    element("figcaption", {}, ...names, element("span", {}, "of the variance of the predictions")),
    element("div", { class: "stack", "aria-hidden": "true" }, ...bars));
}

// Observed against predicted -------------------------------------------------------------------------------

function showObserved() {
  const found = whatIsObserved();
  byId("observed-box").hidden = found === null;
  if (found === null) return null;
  byId("observed-title").textContent = found.title;
  byId("observed").setAttribute("aria-label", found.title);
  byId("observed-legend").replaceChildren(...(found.legend ?? []));
  byId("observed-note").textContent = found.note;
  return mount(byId("observed"), [found.figure]);
}

/** A figure that says how predictions and rows agree, with its title and note; null where nothing is known. */
function whatIsObserved() {
  if (survival !== null && survival.groups.length) return survivalAgreement();
  if (sample === null || sample.mean === null) return null;
  const found = outcome !== null && outcome.quantiles.length ? levelAgreement() : contents.family.binary ? calibration() : agreement();
  return { ...found, note: `${count(sample.y.length)} of the rows${found.note}` };
}

function survivalAgreement() {
  const legend = survival.groups.map((group, place) => key(["order-1", "order-2", "order-3"][place],
    `${group.label}: ${count(group.events)} events in ${count(group.rows)} rows`));
  return {
    title: "Observed and predicted survival", figure: observedSurvival(), legend,
    note: "Lines: observed. Dashed: the mean of the predicted curves of the same rows. Where they agree the risk is right.",
  };
}

/** A figure with its diagonal. */
function squareFigure(ends, xLabel, yLabel) {
  const width = byId("observed").clientWidth;
  const figure = makeFigure({ x: ends, y: ends, height: narrow() ? 300 : 380, xLabel, yLabel, width });
  figure.line(ends, ends, { line_color: colour("line-strong"), line_width: 1.5 });
  return figure;
}

function agreement(xLabel = `Predicted ${contents.response}`) {
  const ends = around([...innerRange(sample.y), ...innerRange(sample.mean)], 0, 0.05);
  const figure = squareFigure(ends, xLabel, `Observed ${contents.response}`);
  const data = { x: Float64Array.from(sample.mean), y: sample.y };
  addDots(figure, data, { size: 5, fill_color: colour("accent"), fill_alpha: 0.5 });
  return { title: "Observed against predicted", figure, note: ". On the line the two agree." };
}

/** Responses against the quantile in the middle. */
function levelAgreement() {
  const middle = outcome.quantiles.find((own) => own.middle).name, { figure } = agreement(`Predicted ${middle}`);
  return { title: `Observed against the predicted ${middle}`, figure, note: ". On the line the two are equal." };
}

/** Observed frequencies in groups of rows with similar probabilities. */
function calibration() {
  const order = [...sample.mean.keys()].sort((i, k) => sample.mean[i] - sample.mean[k]), rows = order.length;
  const groups = clamp(Math.floor(rows / 20), 1, 10), start = (g) => Math.floor((g * rows) / groups);
  const own = Array.from({ length: groups }, (_, g) => order.slice(start(g), start(g + 1)));
  const means = (values) => own.map((group) => group.reduce((total, i) => total + values[i], 0) / group.length);
  const x = means(sample.mean), y = means(sample.y);
  const width = x.map((p, g) => reach * Math.sqrt((p * (1 - p)) / own[g].length));
  const figure = squareFigure([-0.02, 1.02], "Predicted probability", "Observed frequency");
  const low = x.map((p, g) => Math.max(p - width[g], 0)), high = x.map((p, g) => Math.min(p + width[g], 1));
  figure.segment({ field: "x" }, { field: "low" }, { field: "x" }, { field: "high" }, {
    source: source({ x, low, high }), line_color: colour("line-strong"), line_width: 6, line_alpha: 0.6,
  });
  addDots(figure, { x, y }, { size: 9, fill_color: colour("accent"), line_color: colour("ground"), line_width: 1.5 });
  const note = ` in ${groups} groups. Grey: where ${percent(contents.level)} of the groups lie if all is right.`;
  return { title: "Observed frequency against predicted probability", figure, note };
}

on("theme", showObserved);
