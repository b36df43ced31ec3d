// Draws the charts of a page with the theme's own library; the colours follow the scheme.
const COLOURS = { unsuccessful: "#dc2626", waiting: "--color-base-400" };
const drawn = [];

function colour(name) {
  return name.startsWith("--") ? getComputedStyle(document.documentElement).getPropertyValue(name).trim() : name;
}

function dataset([name, data], kind) {
  const shade = colour(COLOURS[name] ?? "--color-primary-500");
  return { label: name, data, backgroundColor: shade, borderColor: shade, borderWidth: kind === "line" ? 2 : 0, pointRadius: 0, pointHitRadius: 12, stepped: kind === "line" };
}

function draw(canvas) {
  const { labels, series } = JSON.parse(canvas.dataset.chart);
  const { kind } = canvas.dataset;
  const isDark = document.documentElement.classList.contains("dark");
  const text = colour(isDark ? "--color-base-300" : "--color-base-600");
  const grid = { color: colour(isDark ? "--color-base-800" : "--color-base-200") };
  const isStacked = kind === "bar";
  return new Chart(canvas, {
    type: kind,
    data: { labels, datasets: Object.entries(series).map((entry) => dataset(entry, kind)) },
    options: {
      animation: false,
      maintainAspectRatio: false,
      interaction: { mode: "index", intersect: false },
      plugins: { legend: { display: Object.keys(series).length > 1, align: "end", labels: { color: text, boxWidth: 12 } } },
      scales: {
        x: { stacked: isStacked, grid: { display: false }, ticks: { color: text, maxRotation: 0, autoSkipPadding: 24 } },
        y: { stacked: isStacked, beginAtZero: true, grid, ticks: { color: text, precision: 0, maxTicksLimit: 6 } },
      },
    },
  });
}

function drawAll() {
  while (drawn.length) drawn.pop().destroy();
  for (const canvas of document.querySelectorAll("canvas[data-chart]")) drawn.push(draw(canvas));
}

document.addEventListener("DOMContentLoaded", () => {
  drawAll();
  new MutationObserver(drawAll).observe(document.documentElement, { attributeFilter: ["class"] });
});
