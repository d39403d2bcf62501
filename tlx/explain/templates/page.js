"use strict";
// Links the lines of the texts: lines with a common key, a line of the user's file, belong together.
(() => {
  const texts = [...document.querySelectorAll(".text")];
  const panel = document.querySelector("#stages");
  if (!panel || !texts.length) return;
  const status = panel.querySelector(".status");
  const holders = new Map();
  for (const text of texts) {
    for (const holder of text.querySelectorAll("[data-k]")) {
      for (const key of holder.dataset.k.split(" ")) {
        if (!holders.has(key)) holders.set(key, []);
        holders.get(key).push(holder);
      }
    }
  }
  let lit = [];
  let pinned = null;

  const keysOf = (element) => element.dataset.k.split(" ");
  const visible = (element) => {
    const details = element.closest("details");
    return details && !details.open && element.tagName !== "SUMMARY" ? details.querySelector("summary") : element;
  };

  function show(element, scrolls) {
    for (const one of lit) one.classList.remove("on");
    lit = [];
    if (!element) return;
    const firsts = new Map();
    for (const key of keysOf(element)) {
      for (const holder of holders.get(key) || []) {
        const shown = visible(holder);
        shown.classList.add("on");
        lit.push(shown);
        const text = shown.closest(".text");
        const first = firsts.get(text);
        if (!first || first.compareDocumentPosition(shown) & Node.DOCUMENT_POSITION_PRECEDING) firsts.set(text, shown);
      }
    }
    const own = element.closest(".text");
    for (const [text, first] of scrolls ? firsts : []) {
      if (text !== own) text.scrollTop = first.offsetTop - text.offsetTop - text.clientHeight / 3;
    }
  }

  function pin(element) {
    pinned = pinned === element ? null : element;
    panel.classList.toggle("pinned", Boolean(pinned));
    show(pinned, true);
    status.textContent = pinned ? `Pinned to line ${keysOf(pinned).join(", ")}` : "";
  }

  for (const text of texts) {
    text.addEventListener("mouseover", (event) => {
      const line = event.target.closest("[data-k]");
      if (line && !pinned) show(line, false);
    });
    text.addEventListener("mouseleave", () => {
      if (!pinned) show(null, false);
    });
    text.addEventListener("click", (event) => {
      const line = event.target.closest("[data-k]");
      if (!line || line.tagName === "SUMMARY") return;
      move(text, line);
      pin(line);
    });
    text.addEventListener("focus", () => {
      if (!text.querySelector(".at")) move(text, stops(text)[0]);
    });
    text.addEventListener("keydown", (event) => onKey(event, text));
  }

  const stops = (text) =>
    [...text.querySelectorAll(".l[data-k], summary")].filter((stop) => visible(stop) === stop);

  function move(text, stop) {
    for (const old of text.querySelectorAll(".at")) old.classList.remove("at");
    if (!stop) return;
    stop.classList.add("at");
    if (!stop.id) stop.id = `at-${texts.indexOf(text)}`;
    text.setAttribute("aria-activedescendant", stop.id);
    const top = stop.offsetTop - text.offsetTop;
    if (top < text.scrollTop) text.scrollTop = top - 20;
    if (top > text.scrollTop + text.clientHeight - 40) text.scrollTop = top - text.clientHeight + 60;
    if (stop.dataset.k && !pinned) show(stop, true);
  }

  function onKey(event, text) {
    const all = stops(text);
    const at = all.indexOf(text.querySelector(".at"));
    const column = texts.indexOf(text);
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: all.length - 1 }[event.key];
    if (to !== undefined && event.target === text) {
      move(text, all[Math.max(0, Math.min(all.length - 1, to))]);
    } else if (event.key === "ArrowRight" || event.key === "ArrowLeft") {
      const next = texts[column + (event.key === "ArrowRight" ? 1 : -1)];
      if (!next) return;
      next.focus({ preventScroll: true });
      next.closest(".column").scrollIntoView({ block: "nearest", inline: "start" });
      const target = next.querySelector(".on");
      if (target) move(next, target);
    } else if ((event.key === "Enter" || event.key === " ") && event.target === text && all[at]) {
      const details = all[at].tagName === "SUMMARY" ? all[at].closest("details") : null;
      if (details) details.open = !details.open;
      else pin(all[at]);
    } else if (event.key === "Escape") {
      if (pinned) pin(pinned);
    } else {
      return;
    }
    event.preventDefault();
  }

  // On a phone one text is shown at a time.
  const buttons = [...panel.querySelectorAll(".tabs button")];
  const columns = [...panel.querySelectorAll(".column")];
  const choose = (number) => buttons.forEach((b, i) => b.setAttribute("aria-pressed", String(i === number)));
  buttons.forEach((button, number) =>
    button.addEventListener("click", () => {
      const row = panel.querySelector(".columns");
      row.scrollLeft = columns[number].offsetLeft - columns[0].offsetLeft;
      choose(number);
    })
  );
  panel.querySelector(".columns").addEventListener("scroll", (event) => {
    choose(Math.round(event.target.scrollLeft / event.target.clientWidth));
  });

  // Links to a line of the source pin it.
  function follow() {
    const line = /^#line-\d+$/.test(location.hash) ? document.querySelector(location.hash) : null;
    if (!line) return;
    const text = line.closest(".text");
    text.scrollTop = line.offsetTop - text.offsetTop - text.clientHeight / 3;
    if (line.dataset.k && pinned !== line) pin(line);
    panel.scrollIntoView({ block: "start" });
  }
  addEventListener("hashchange", follow);
  follow();
})();
