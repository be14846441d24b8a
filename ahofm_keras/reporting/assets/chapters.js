// The parameters of the response's distribution: a tab for each, and what they are in words.

/** All that depends on the chapter that is open. */
function showChapter() {
  showTabs();
  showOrders();
  showOrderFilter();
  showRanking();
  const empty = everyItem.length === 0 && chapters.length > 1;
  byId("explore").hidden = empty;
  byId("constant").hidden = !empty;
  shownParts = [];
  showResult();
  if (empty) {
    state.selected = null;
    write(byId("constant"), `No feature changes the ${contents.parameter}: it is ${number(model.at(state.row).mean)} for all rows.`);
  } else if (everyItem.length) {
    emit("theme");
    select(everyItem[0].subset);
  }
}

function chooseChapter(next) {
  if (next === opened) return;
  openChapter(next);
  showChapter();
}

function showTabs() {
  byId("parameters").hidden = chapters.length < 2;
  const on = contents.parameter === null ? "" : ` on the ${contents.parameter}`;
  write(byId("effects-title"), `Effects${on}`);
  byId("values").hidden = byId("parts-title").hidden = chapters.length < 2;
  if (chapters.length < 2) return;
  const { about, words } = contents;
  write(byId("parameters-intro"), about.intro);
  const tabs = chapters.map((chapter, k) => element("button", {
    type: "button", role: "tab", id: `tab-${k}`, "aria-selected": String(k === opened), "aria-controls": "effects",
    tabindex: k === opened ? 0 : -1, onclick: () => chooseChapter(k),
  }, element("b", {}, chapter.contents.parameter), element("span", {}, about.parameters[k].means)));
  byId("tabs").replaceChildren(...tabs);
  const constant = about.parameters[opened].constant;
  write(byId("parameter-words"), constant ? "It is the same for all rows." : `${words.what} ${words.link}`);
  write(byId("parts-title"), `What the ${contents.parameter} is made of here`);
  byId("parameters").append(byId("orders"));
}

byId("tabs").addEventListener("keydown", (event) => {
  const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
  if (step === undefined) return;
  event.preventDefault();
  chooseChapter((opened + step + chapters.length) % chapters.length);
  byId(`tab-${opened}`).focus();
});
