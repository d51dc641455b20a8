/* Draws every canvas[data-chart] from the JSON that the attribute names; again when the theme changes. */
"use strict";
(function () {
    const pgperf = (window.pgperf = window.pgperf || {});
    const drawn = new Map();

    /* rows.js and curves.js know how each kind is drawn. */
    const family = (chart) => [pgperf.rows, pgperf.curves].find((each) => each.kinds.includes(chart.kind));

    /* The legend stands in the page, so that charts side by side keep their bars on one line. */
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
