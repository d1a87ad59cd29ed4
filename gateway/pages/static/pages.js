"use strict";
// Pages work without this: it lights up the hits of one group on both sides, and opens all folds at once.
for (const kind of ["mouseover", "focusin"]) {
  document.addEventListener(kind, (event) => {
    const one = event.target.closest("[data-place]");
    for (const lit of document.querySelectorAll(".lit")) lit.classList.remove("lit");
    if (!one) return;
    const group = document.querySelectorAll(`[data-place="${one.dataset.place}"]`);
    if (group.length > 1) for (const other of group) other.classList.add("lit");
  });
}
const button = document.querySelector(".all");
if (button) {
  const folds = [...document.querySelectorAll(".fold")];
  const label = () => {
    button.textContent = folds.every((fold) => fold.open) ? button.dataset.close : button.dataset.open;
  };
  button.hidden = folds.length < 2;
  button.addEventListener("click", () => {
    const open = !folds.every((fold) => fold.open);
    for (const fold of folds) fold.open = open;
    label();
  });
  for (const fold of folds) fold.addEventListener("toggle", label);
  label();
}
