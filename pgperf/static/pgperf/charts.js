/* Draws each canvas[data-chart] from the JSON that the attribute names, and again when the theme changes. */
"use strict";
(function () {
    const pgperf = (window.pgperf = window.pgperf || {});
    const drawn = new Map();

    /* rows.js and curves.js draw different kinds of charts. */
    const family = (chart) => [pgperf.rows, pgperf.curves].find((each) => each.kinds.includes(chart.kind));

    /* The legend is part of the page, so that the bars of adjacent charts stay aligned. */
    function showLegend(canvas, chart) {
        const list = document.querySelector('[data-legend="' + canvas.dataset.chart + '"]');
        if (!list) {
            return;
        }
        const shapes = family(chart).shapes(chart);
        list.replaceChildren(...(chart.series || []).map((series, index) => {
            const item = document.createElement("li");
            const swatch = item.appendChild(document.createElement("span"));
            swatch.className = shapes[index] || "rect";
            swatch.style.backgroundColor = pgperf.colour(series.colour);
            item.append(series.name);
            return item;
        }));
        list.hidden = !chart.series;
    }

    function draw(canvas) {
        const chart = JSON.parse(document.getElementById(canvas.dataset.chart).textContent);
        canvas.parentElement.style.height = family(chart).height(chart) + "px";
        if (drawn.has(canvas)) {
            drawn.get(canvas).destroy();
        }
        showLegend(canvas, chart);
        drawn.set(canvas, new Chart(canvas, family(chart).configuration(chart, canvas)));
    }

    function drawAll() {
        Object.assign(Chart.defaults.font, {family: pgperf.theme().font, size: pgperf.FONT_SIZE});
        document.querySelectorAll("canvas[data-chart]").forEach(draw);
    }

    function showMissing() {
        document.querySelectorAll(".pgperf-chart").forEach((box) => {
            box.querySelector("canvas").hidden = true;
            box.querySelector(".missing").hidden = false;
        });
    }

    if (typeof Chart === "undefined") {
        showMissing();
    } else {
        drawAll();
        pgperf.onThemeChange(drawAll);
    }
})();
