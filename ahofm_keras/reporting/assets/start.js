// The page comes to life.

Bokeh.set_log_level("error");
showWords();
makeInputs();
applyTheme();
showChapter();
let wasNarrow = narrow();
window.addEventListener("resize", () => {
  if (wasNarrow === narrow()) return;
  wasNarrow = narrow();
  emit("theme");
});
document.documentElement.dataset.ready = "yes";
