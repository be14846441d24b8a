// The page comes to life.

Bokeh.set_log_level("error");
showWords();
showOrders();
showOrderFilter();
makeInputs();
showRanking();
applyTheme();
showResult();
if (everyItem.length) select(everyItem[0].subset);
let wasNarrow = narrow();
window.addEventListener("resize", () => {
  if (wasNarrow === narrow()) return;
  wasNarrow = narrow();
  emit("theme");
});
document.documentElement.dataset.ready = "yes";
