// The inputs of a prediction: a slider and a number, or a list of levels, for each raw column.

const FIRST_INPUTS = 12;
const STEPS = 1000;
const fields = [];
let allInputs = false;

/** Share of the variance of all effects that a raw column has a part in. */
function weightOf(name) {
  let total = 0;
  for (const { subset, share } of everyItem)
    if (subset.some((v) => model.variables[v].columns.includes(name))) total += share;
  return total;
}

/** Make all inputs, those that matter most first. */
function makeInputs() {
  const inputs = contents.inputs.map((input, place) =>
    ({ ...input, id: `input-${place}`, weight: weightOf(input.name) }));
  inputs.sort((a, b) => b.weight - a.weight);
  for (const input of inputs) fields.push("levels" in input ? levelField(input) : numberField(input));
  for (const field of fields) field.put(state.row.get(field.name));
  byId("inputs").replaceChildren(...fields.map((field) => field.box));
  byId("inputs-search").hidden = fields.length <= FIRST_INPUTS;
  byId("random-row").hidden = sample === null;
  showInputs();
}

function levelField(input) {
  const options = input.levels.map((level) => element("option", {}, levelText(level)));
  const choice = element("select", { id: input.id }, ...options);
  choice.addEventListener("change", () => {
    state.row.set(input.name, input.levels[choice.selectedIndex]);
    changed(true);
  });
  const put = (value) => {
    choice.selectedIndex = input.levels.indexOf(value);
    state.row.set(input.name, value);
  };
  const label = element("label", { for: input.id, title: input.name }, input.name);
  return { ...input, box: element("div", { class: "input" }, label, choice), put };
}

function numberField(input) {
  const quantiles = input.quantiles === null ? null : unpack(input.quantiles);
  const scale = quantiles === null ? null : sliderScale(quantiles);
  const [low, high] = quantiles === null ? [-Infinity, Infinity] : [quantiles[0], quantiles[quantiles.length - 1]];
  const size = quantiles === null ? Math.abs(input.start) || 1 : high - low;
  const decimals = input.whole ? 0 : clamp(3 - Math.floor(Math.log10(size)), 0, 12);
  const ends = quantiles === null ? {} : { min: low, max: high };
  const text = element("input", { id: input.id, type: "number", step: "any", ...ends });
  const slider = quantiles === null ? null
    : element("input", { type: "range", min: 0, max: STEPS, step: 1, "aria-label": input.name });
  const put = (value, from = null) => {
    const own = clamp(value, low, high);
    state.row.set(input.name, own);
    if (from !== text) text.value = own.toFixed(decimals);
    if (slider !== null && from !== slider) slider.value = String(Math.round(STEPS * scale.place(own)));
    slider?.setAttribute("aria-valuetext", number(own));
  };
  const typed = (final) => {
    const value = Number(text.value), valid = text.value !== "" && Number.isFinite(value);
    if (valid) put(value, final ? null : text);
    else if (final) put(state.row.get(input.name));
    if (valid) changed(final);
  };
  text.addEventListener("input", () => typed(false));
  text.addEventListener("change", () => typed(true));
  slider?.addEventListener("input", () => {
    const value = scale.value(Number(slider.value) / STEPS);
    put(input.whole ? Math.round(value) : value, slider);
    changed(false);
  });
  slider?.addEventListener("change", () => changed(true));
  const name = input.name + (input.only_offset ? " (offset)" : "");
  const label = element("label", { for: input.id, title: input.name }, name);
  const slide = slider === null ? null : element("div", { class: "slide" }, densityStrip(quantiles, scale), slider);
  return { ...input, box: element("div", { class: "input" }, label, text, slide), put };
}

/** How places on a slider become values: evenly; where tails are long, these get a twentieth each. */
function sliderScale(quantiles) {
  const last = quantiles.length - 1, [low, high] = [quantiles[0], quantiles[last]];
  const [first, second] = [quantiles[1], quantiles[last - 1]];
  if (!(second > first && high - low > 2 * (second - first)))
    return { place: (value) => (value - low) / (high - low), value: (place) => low + place * (high - low) };
  const table = [[0, low], [0.05, first], [0.95, second], [1, high]]
    .filter(([place, value]) => place === 0 || place === 1 || (value > low && value < high));
  const places = table.map(([place]) => place), values = table.map(([, value]) => value);
  return { place: (value) => interpolate(values, places, value), value: (place) => interpolate(places, values, place) };
}

/** A small picture of where the rows are along a slider. */
function densityStrip(quantiles, scale) {
  const bins = 36, make = (tag, attributes) => {
    const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    return made;
  };
  const places = spreadTies(quantiles).map((value) => clamp(scale.place(value), 0, 1));
  const { heights } = histogram(places, 0, 1, bins), most = Math.max(...heights) || 1;
  const steps = Array.from(heights, (height, i) => `V${(1 - height / most).toFixed(3)}H${i + 1}`);
  const svg = make("svg", { viewBox: `0 0 ${bins} 1`, preserveAspectRatio: "none", "aria-hidden": "true" });
  svg.append(make("path", { fill: "currentColor", d: `M0 1${steps.join("")}V1Z` }));
  return svg;
}

function showInputs() {
  const text = byId("inputs-search").value.toLowerCase(), more = byId("all-inputs");
  fields.forEach((field, place) => {
    field.box.hidden = text ? !field.name.toLowerCase().includes(text) : !allInputs && place >= FIRST_INPUTS;
  });
  more.hidden = Boolean(text) || fields.length <= FIRST_INPUTS;
  more.textContent = allInputs ? "Show fewer inputs" : `Show all ${fields.length} inputs`;
}

byId("inputs-search").addEventListener("input", showInputs);
byId("all-inputs").addEventListener("click", () => {
  allInputs = !allInputs;
  showInputs();
});
byId("typical").addEventListener("click", () => {
  for (const field of fields) field.put("levels" in field ? field.levels[field.start] : field.start);
  changed(true);
});
byId("random-row").addEventListener("click", () => {
  const i = Math.floor(Math.random() * sample.y.length), row = sampleRow(i);
  for (const field of fields) field.put(row.get(field.name));
  changed(true);
  const found = page.classes.length ? page.classes[sample.y[i]] : number(sample.y[i]);
  const ended = page.sample.events === null ? "" : unpack(page.sample.events)[i] ? ", with the event" : ", the event not seen until then";
  byId("result-row").textContent = `In this row ${page.observed} was ${found}${ended}.`;
});
