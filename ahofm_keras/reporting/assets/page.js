// What all parts of the page share: contents, the selected effect, the row of the sliders, texts, colours.

const page = JSON.parse(document.getElementById("contents").textContent);
// A chapter per predictor; what stands outside of chapters belongs to all of them.
const chapters = (page.chapters.length ? page.chapters : [page]).map((chapter) => {
  const own = new Model(chapter.arithmetic, chapter.family.link);
  return {
    contents: { ...page, ...chapter }, model: own,
    posterior: chapter.posterior === null ? null : new Posterior(own, chapter.posterior),
    margins: chapter.margins.map((margin) => Object.fromEntries(
      Object.entries(margin).map(([key, value]) => [key, value === null ? null : unpack(value)]))),
  };
});
const outcome = page.outcome === null ? null : new Outcome(page.outcome);
// The chapter that is open, and what the other scripts keep of it: they read it when it is opened.
let opened = 0;
let { contents, model, posterior, margins } = chapters[0];
const openers = [];

/** Do something now, and again whenever another chapter is opened. */
function perChapter(read) {
  openers.push(read);
  read();
}

function openChapter(next) {
  opened = next;
  ({ contents, model, posterior, margins } = chapters[next]);
  for (const read of openers) read();
}

const byId = (id) => document.getElementById(id);

/** An element with attributes and children; texts become text, never markup. */
function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (name === "style") Object.assign(made.style, value);
    else if (value !== null && value !== false) made.setAttribute(name, value === true ? "" : value);
  }
  // The list of a field takes texts only.
  const nodes = (child) => typeof child === "string" && tag !== "option" ? breakable(child) : [child];
  made.append(...children.filter((child) => child !== null).flatMap(nodes));
  return made;
}

/** A text that may go on in the next line after each underscore: names have no spaces. */
function breakable(text) {
  const pieces = text.match(/[^_]*_+|[^_]+$/g) ?? [text];
  return pieces.flatMap((piece, place) => (place ? [document.createElement("wbr"), piece] : [piece]));
}

/** Put such a text in the stead of what an element holds. */
const write = (target, text) => target.replaceChildren(...breakable(text));

// Texts ------------------------------------------------------------------------------------------------

/** A number with about `digits` digits that count. */
function number(value, digits = 4) {
  if (!Number.isFinite(value)) return "not defined";
  const size = Math.abs(value);
  if (size !== 0 && (size >= 1e9 || size < 1e-4))
    return value.toExponential(Math.max(digits - 2, 1)).replaceAll("-", "−");
  const decimals = size === 0 ? 0 : clamp(digits - 1 - Math.floor(Math.log10(size)), 0, 8);
  const text = value.toLocaleString("en-US", { maximumFractionDigits: decimals, useGrouping: size >= 1e4 });
  return text === "-0" ? "0" : text.replace("-", "−");
}

/** A number with so many decimals, with its sign where it is wanted. */
function fixed(value, decimals, sign) {
  if (!Number.isFinite(value)) return "not defined";
  const text = value.toLocaleString("en-US", {
    minimumFractionDigits: decimals, maximumFractionDigits: decimals, useGrouping: Math.abs(value) >= 1e4,
  });
  if (!/[1-9]/.test(text)) return text.replace("-", "");
  return (sign && value > 0 ? "+" : "") + text.replace("-", "−");
}

const percent = (share) => share >= 0.9995 ? "100 %" : share >= 0.0995 ? `${(100 * share).toFixed(0)} %`
  : share >= 0.0005 ? `${(100 * share).toFixed(1)} %` : share > 0 ? "< 0.1 %" : "0 %";
const levelText = (level) => typeof level === "number" ? number(level, 6) : String(level);
/** A long text without its middle: names often differ at their ends. */
function shorten(text, most) {
  return cut(text, most, Math.floor((most - 1) / 3));
}
/** A text of at most so many letters, so many of them from its end. */
const cut = (text, most, end) =>
  text.length <= most ? text : `${text.slice(0, most - 1 - end)}…${text.slice(text.length - end)}`;
/** Long texts that still differ when they are short: without the words that all of them begin with. */
function shortenApart(texts, most) {
  if (texts.every((text) => text.length <= most)) return texts;
  const [first, last] = [[...texts].sort()[0], [...texts].sort().at(-1)];
  let common = 0;
  while (common < first.length && first[common] === last[common]) common++;
  const start = common < first.length ? Math.max(...[..." _:.-/"].map((mark) => first.slice(0, common).lastIndexOf(mark) + 1)) : 0;
  const tails = texts.map((text) => (start ? `…${text.slice(start)}` : text));
  let best = null;
  for (let end = Math.floor((most - 1) / 3), k = 0; k < most - 1; k++) {
    const back = (end + k) % (most - 1);
    const found = tails.map((text) => cut(text, most, back)), distinct = new Set(found).size;
    if (best === null || distinct > best.distinct) best = { found, distinct };
  }
  return best.found;
}
/** Name of a variable, or of a coordinate, "3.0". */
const nameOf = (axis) => {
  const [v, coordinate] = String(axis).split(".").map(Number);
  return coordinate === undefined ? model.variables[v].name : model.variables[v].coordinates[coordinate];
};
const labelOf = (subset) => subset.map(nameOf).join(" × ");
/** A variable's value as text. */
const valueText = (v, value) =>
  model.variables[v].isCategory ? levelText(model.variables[v].levels[value])
    : model.variables[v].isPoint ? Array.from(value, (own) => number(own)).join(", ") : number(value);
const count = (whole) => whole.toLocaleString("en-US");

// Effects below this fill only a part of their picture.
let SMALL;
// As many decimals as tell effects apart.
let EFFECT_DECIMALS;
perChapter(() => {
  SMALL = contents.spread / 8 || 1e-12;
  EFFECT_DECIMALS = clamp(2 - Math.floor(Math.log10(contents.spread || 1)), 1, 8);
});

/** An effect, maybe with half the width of its band, and its meaning for the response. */
function effectText(value, reach = null) {
  const width = reach === null ? "" : ` ± ${fixed(reach, EFFECT_DECIMALS, false)}`;
  const text = fixed(value, EFFECT_DECIMALS, true) + width;
  if (contents.family.ratio === null) return text;
  const ratio = Math.exp(value);
  const times = ratio < 0.1 || ratio >= 100 ? number(ratio, 2) : fixed(ratio, 2, false);
  return `${text} (${contents.family.ratio}×${times})`;
}

/** Names as they stand in a sentence: a, b and c. */
const listed = (names) =>
  names.length < 2 ? names.join() : `${names.slice(0, -1).join(", ")} and ${names[names.length - 1]}`;

let EFFECT_AXIS;
perChapter(() => { EFFECT_AXIS = contents.family.effect_axis; });

const orderTint = (order) => `var(--order-${Math.min(order, 4)})`;
const ORDER_NAMES = (order) => ({ 1: "Features", 2: "Pairs", 3: "Triples" })[order] ?? `Order ${order}`;

/** The label with its × signs set apart. */
function labelled(parent, subset) {
  parent.replaceChildren();
  subset.forEach((v, place) => {
    if (place) parent.append(element("span", {}, "×"));
    parent.append(...breakable(nameOf(v)));
  });
  return parent;
}

// State ------------------------------------------------------------------------------------------------

const listeners = { select: [], row: [], theme: [] };
const on = (event, listener) => listeners[event].push(listener);
const emit = (event, ...details) => listeners[event].forEach((listener) => listener(...details));

const state = {
  selected: null,
  row: new Map(contents.inputs.map((input) =>
    [input.name, "levels" in input ? input.levels[input.start] : input.start])),
};

/** Show the effect of a subset; `reveal` brings it into view. */
function select(subset, reveal = false) {
  state.selected = subset;
  emit("select", subset);
  if (reveal) revealEffect();
}

/** Where columns stand below each other, or the effect is out of sight, go there. */
function revealEffect() {
  const box = byId("effect").getBoundingClientRect();
  if (box.top < 0 || box.top > window.innerHeight * 0.6) byId("effect").scrollIntoView({ block: "start" });
}

/** Put the focus on the effect, from the keyboard. */
function goToEffect() {
  byId("effect").focus({ preventScroll: true });
  revealEffect();
}

// Shares of all listed subsets, by order and by key.
let ranked, shareOf;
const readRanking = () => contents.ranking.map((entry) => {
  const flat = unpack(entry.subsets), share = unpack(entry.share);
  const overRows = entry.share_rows === null ? null : unpack(entry.share_rows);
  const items = Array.from(share, (own, k) => ({
    subset: Array.from(flat.subarray(k * entry.order, (k + 1) * entry.order)),
    share: own, overRows: overRows === null ? null : overRows[k],
  }));
  return { order: entry.order, count: entry.count, active: entry.active, whole: entry.whole, items };
});
perChapter(() => {
  ranked = readRanking();
  shareOf = new Map(ranked.flatMap((entry) => entry.items.map((item) => [item.subset.join(), item])));
});

// Colours ----------------------------------------------------------------------------------------------

const systemDark = window.matchMedia("(prefers-color-scheme: dark)");
let chosenTheme = null;

function applyTheme() {
  const dark = chosenTheme === null ? systemDark.matches : chosenTheme === "dark";
  document.documentElement.dataset.theme = dark ? "dark" : "light";
  byId("theme").textContent = dark ? "Light" : "Dark";
  byId("theme").setAttribute("aria-label", dark ? "Use light colours" : "Use dark colours");
  emit("theme");
}
systemDark.addEventListener("change", applyTheme);
byId("theme").addEventListener("click", () => {
  chosenTheme = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
  applyTheme();
});
// Paper is white.
let beforePrint = null;
window.addEventListener("beforeprint", () => {
  beforePrint = chosenTheme;
  chosenTheme = "light";
  applyTheme();
});
window.addEventListener("afterprint", () => {
  chosenTheme = beforePrint;
  applyTheme();
});

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
const stops = (name) => colour(name).split(",").map((hex) =>
  [1, 3, 5].map((i) => parseInt(hex.trim().slice(i, i + 2), 16)));

/** Colour at a place from 0 to 1 between the stops of a scale: [r, g, b]. */
function between(scale, place) {
  const x = clamp(place, 0, 1) * (scale.length - 1), i = Math.min(Math.floor(x), scale.length - 2);
  return scale[i].map((c, k) => Math.round(c + (scale[i + 1][k] - c) * (x - i)));
}
const rgba = ([r, g, b], alpha = 255) => ((alpha << 24) | (b << 16) | (g << 8) | r) >>> 0;
const css = ([r, g, b]) => `rgb(${r} ${g} ${b})`;
const ramp = (name) => `linear-gradient(to right, ${stops(name).map(css).join(", ")})`;
