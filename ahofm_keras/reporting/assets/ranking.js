// All effects by share: a list to search, filter, click and walk through with arrow keys.

const PAGE = 60;
const list = byId("ranking");
const listing = { order: null, text: "", shown: PAGE, matches: [] };
let everyItem, largestShare;
perChapter(() => {
  everyItem = ranked.flatMap((entry) => entry.items).sort((a, b) => b.share - a.share);
  largestShare = everyItem[0]?.share || 1;
  Object.assign(listing, { order: null, shown: PAGE });
});

function findMatches() {
  const wanted = listing.text.toLowerCase().split(/[\s×:]+/).filter(Boolean);
  const named = (v, word) => nameOf(v).toLowerCase().includes(word);
  listing.matches = everyItem.filter(({ subset }) => (listing.order === null || subset.length === listing.order)
    && wanted.every((word) => subset.some((v) => named(v, word))));
}

function showRanking() {
  findMatches();
  list.replaceChildren(...listing.matches.slice(0, listing.shown).map(rankingItem));
  const left = listing.matches.length - listing.shown;
  if (left > 0) {
    const more = () => { listing.shown += PAGE; showRanking(); };
    const text = `Show ${Math.min(PAGE, left)} more`;
    list.append(element("li", { class: "more", role: "presentation", onclick: more }, text));
  }
  byId("ranking-note").textContent = rankingNote();
  markSelected(false);
}

function rankingItem({ subset, share }, place) {
  const name = labelled(element("span", { class: "name", title: labelOf(subset) }), subset);
  const bar = { width: `${(100 * share) / largestShare}%`, background: orderTint(subset.length) };
  return element("li", {
    role: "option", id: `item-${place}`, "data-subset": subset.join(), "aria-selected": "false",
    "aria-label": `${labelOf(subset)}, ${percent(share)}`, onclick: () => select(subset, true),
  }, name, element("span", { class: "share" }, percent(share)),
  element("span", { class: "track" }, element("i", { style: bar })));
}

function rankingNote() {
  const { matches, order, text } = listing;
  if (!matches.length) return text ? `No effect matches “${text}”.` : "The model has no such effect.";
  const notes = ranked.filter((entry) => entry.order > 2 && (order === null || order === entry.order)).map((entry) => {
    const names = ORDER_NAMES(entry.order).toLowerCase();
    if (!entry.active) return `no ${names} are needed`;
    const all = entry.items.length === entry.active;
    return all ? null : `the largest ${entry.items.length} of ${count(entry.active)} ${names}`;
  });
  const found = `${count(matches.length)} ${matches.length === 1 ? "effect" : "effects"}`;
  return [found, ...notes].filter(Boolean).join("; ");
}

/** Mark the selected effect; where it is asked for, bring it into the list's window. */
function markSelected(scroll) {
  list.removeAttribute("aria-activedescendant");
  for (const item of list.querySelectorAll('[role="option"]')) {
    const chosen = state.selected !== null && item.dataset.subset === state.selected.join();
    item.setAttribute("aria-selected", String(chosen));
    if (!chosen) continue;
    list.setAttribute("aria-activedescendant", item.id);
    if (!scroll) continue;
    const [inner, outer] = [item.getBoundingClientRect(), list.getBoundingClientRect()];
    if (inner.top < outer.top) list.scrollTop -= outer.top - inner.top;
    if (inner.bottom > outer.bottom) list.scrollTop += inner.bottom - outer.bottom;
  }
}

list.addEventListener("keydown", (event) => {
  const last = listing.matches.length - 1, selected = state.selected?.join();
  const at = listing.matches.findIndex(({ subset }) => subset.join() === selected);
  const next = {
    ArrowDown: at + 1, ArrowUp: Math.max(at, 1) - 1, PageDown: at + 10, PageUp: at - 10, Home: 0, End: last,
  }[event.key];
  if (event.key === "Enter") goToEffect();
  if (next === undefined || last < 0) return;
  event.preventDefault();
  const place = clamp(next, 0, last);
  if (place >= listing.shown) {
    listing.shown = place + 1;
    showRanking();
  }
  select(listing.matches[place].subset);
});

function showOrderFilter() {
  const orders = ranked.filter((entry) => entry.items.length).map((entry) => entry.order);
  byId("orders-filter").replaceChildren();
  if (orders.length < 2) return;
  const buttons = [null, ...orders].map((order) => element("button", {
    type: "button", "aria-pressed": String(order === null),
    onclick: (event) => {
      Object.assign(listing, { order, shown: PAGE });
      for (const button of buttons) button.setAttribute("aria-pressed", String(button === event.currentTarget));
      showRanking();
    },
  }, order === null ? "All" : ORDER_NAMES(order)));
  byId("orders-filter").replaceChildren(...buttons);
}

byId("search").addEventListener("input", (event) => {
  Object.assign(listing, { text: event.target.value, shown: PAGE });
  showRanking();
});
on("select", () => markSelected(true));
