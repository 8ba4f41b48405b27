// Draws the charts of the page one after the other, and then says so in the attribute data-charts.
"use strict";

const page = JSON.parse(document.getElementById("data").textContent);

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

// Vega writes into the rows of its data, so each chart has rows of its own.
function withData(chart) {
  return { ...chart, datasets: structuredClone({ ...page.datasets, ...chart.datasets }) };
}

async function drawCharts() {
  for (const place of document.querySelectorAll("[data-chart]")) {
    try {
      await vegaEmbed(place, withData(page.charts[Number(place.dataset.chart)]), options);
    } catch (error) {
      place.textContent = `This chart cannot be drawn: ${error.message}`;
      place.dataset.failed = "";
    }
  }
  document.documentElement.dataset.charts = "drawn";
}

drawCharts();
