// Draws the charts of the page one after the other, and then says so in the attribute data-charts.
"use strict";

let page;

const options = {
  actions: false,
  ast: true, // expressions are interpreted: the policy of the page forbids eval
  renderer: "svg",
  config: {
    font: "system-ui, sans-serif",
    axis: { labelFontSize: 12, titleFontSize: 12 },
    legend: { labelFontSize: 12, titleFontSize: 12 },
    view: { stroke: null },
  },
};

// The data are JSON, compressed by gzip, in base64.
async function read() {
  const text = atob(document.getElementById("data").textContent);
  const bytes = Uint8Array.from(text, (character) => character.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  page = JSON.parse(await new Response(stream).text());
}

function chosen() {
  const key = location.hash.slice(1);
  return Object.hasOwn(page.choices, key) ? key : null;
}

// Returns new rows, because Vega writes into the rows of its data.
function rowsOf(name, choice) {
  const { fields, rows } = page.datasets[name];
  const field = fields.indexOf("choice");
  const wanted = choice === null || field < 0 ? rows : rows.filter((row) => row[field] === choice);
  return wanted.map((row) => Object.fromEntries(fields.map((name, i) => [name, row[i]])));
}

function namesIn(value) {
  if (value === null || typeof value !== "object") return [];
  const own = value.data && Object.hasOwn(page.datasets, value.data.name) ? [value.data.name] : [];
  return [...own, ...Object.values(value).flatMap(namesIn)];
}

async function drawChart(place, choice) {
  const { datasets, ...chart } = page.charts[Number(place.dataset.chart)];
  const shared = namesIn(chart).map((name) => [name, rowsOf(name, choice)]);
  try {
    await vegaEmbed(place, { ...chart, datasets: { ...datasets, ...Object.fromEntries(shared) } }, options);
  } catch (error) {
    place.textContent = `This chart cannot be drawn: ${error.message}`;
    place.dataset.failed = "";
  }
}

function fillTable(place, choice) {
  const rows = rowsOf(place.dataset.table, choice);
  const fields = [...place.querySelectorAll("th")].map((th) => th.dataset.field);
  const body = place.querySelector("tbody");
  body.replaceChildren();
  for (const row of rows) {
    const line = body.insertRow();
    for (const field of fields) {
      const cell = line.insertCell();
      const isNumber = typeof row[field] === "number";
      cell.textContent = isNumber ? row[field].toLocaleString("en") : (row[field] ?? "");
      cell.classList.toggle("number", isNumber);
    }
  }
  place.querySelector("table").hidden = rows.length === 0;
  const empty = place.querySelector("p") ?? place.appendChild(document.createElement("p"));
  empty.textContent = rows.length === 0 ? place.dataset.empty : "";
}

// Charts take the width of their place, so they are drawn while they are shown.
async function show() {
  const choice = chosen();
  const root = document.documentElement;
  root.dataset.charts = "being drawn";
  for (const part of document.querySelectorAll("section, .of-choice")) {
    part.hidden = part.classList.contains("of-choice") !== (choice !== null);
  }
  const title = document.getElementById("chosen");
  if (title) title.textContent = choice === null ? "" : page.choices[choice];
  for (const section of document.querySelectorAll("section:not([hidden])")) {
    if (choice === null && section.dataset.drawn) continue;
    section.dataset.drawn = "yes";
    section.querySelectorAll("[data-table]").forEach((place) => fillTable(place, choice));
    for (const place of section.querySelectorAll("[data-chart]")) await drawChart(place, choice);
  }
  if (choice === chosen()) root.dataset.charts = "drawn";
  if (choice !== null) window.scrollTo(0, 0);
}

// A click during the drawing waits for its turn: two drawings at a time would draw into one place.
let last = read().then(show, () => {
  const note = document.createElement("p");
  note.textContent = "The charts of this page need a browser of the year 2023 or newer.";
  document.querySelector("h1").after(note);
});
window.addEventListener("hashchange", () => {
  last = last.then(show);
});

// A closed table is not printed.
window.addEventListener("beforeprint", () => {
  for (const part of document.querySelectorAll("details")) part.open = true;
});
