/* Draws each canvas[data-chart] from the JSON that the attribute names, and again when the theme changes. */
"use strict";
(function () {
    const pgperf = (window.pgperf = window.pgperf || {});
    const drawn = new Map();
    const widths = new Map();
    const sizes = new ResizeObserver(drawAnew);

    /* rows.js and curves.js draw different kinds of charts. */
    const family = (chart) => [pgperf.rows, pgperf.curves].find((each) => each.kinds.includes(chart.kind));

    /* The legend is part of the page, so that the bars of adjacent charts stay aligned. */
    function showLegend(canvas, chart) {
        const list = document.querySelector('[data-legend="' + canvas.dataset.chart + '"]');
        if (!list) {
            return;
        }
        const shapes = family(chart).shapes(chart);
        const keys = (chart.series || []).map((series, index) => key(series.name, shapes[index] || "rect", pgperf.tinted(series)));
        if ((chart.whiskers || []).some(Boolean)) {
            keys.push(key(chart.interval_title || list.dataset.interval, "whisker"));
        }
        list.replaceChildren(...keys);
        list.hidden = !keys.length;
    }

    function key(name, shape, colour) {
        const item = document.createElement("li");
        const swatch = item.appendChild(document.createElement("span"));
        swatch.className = shape;
        swatch.style.backgroundColor = colour;
        item.append(name);
        return item;
    }

    /* The chart's data, without its overlay where the reader has switched that off. */
    function dataOf(canvas) {
        const chart = JSON.parse(document.getElementById(canvas.dataset.chart + "-data").textContent);
        const overlay = document.querySelector('[data-overlay="' + canvas.dataset.chart + '"]');
        if (overlay) {
            overlay.parentElement.hidden = false;
            overlay.onchange = () => draw(canvas);
        }
        return overlay && !overlay.checked ? {...chart, series: chart.series.map((series) => ({...series, marks: []}))} : chart;
    }

    function draw(canvas) {
        const chart = dataOf(canvas);
        canvas.parentElement.style.height = family(chart).height(chart, canvas) + "px";
        if (drawn.has(canvas)) {
            drawn.get(canvas).destroy();
        }
        showLegend(canvas, chart);
        drawn.set(canvas, new Chart(canvas, family(chart).configuration(chart, canvas)));
        widths.set(canvas.parentElement, canvas.parentElement.clientWidth);
        sizes.observe(canvas.parentElement);
    }

    /* In another width, such as beside a scrollbar that came later, labels have other lines. */
    function drawAnew(entries) {
        const boxes = entries.map(({target}) => target).filter((box) => box.clientWidth && box.clientWidth !== widths.get(box));
        boxes.forEach((box) => draw(box.querySelector("canvas")));
    }

    /* A hidden chart has no width, by which its labels are broken into lines: it is drawn when it is shown. */
    function drawShown(part) {
        part.querySelectorAll("canvas[data-chart]").forEach((canvas) => canvas.offsetParent && draw(canvas));
    }

    function drawAll() {
        Object.assign(Chart.defaults.font, {family: pgperf.theme().font, size: pgperf.FONT_SIZE});
        drawShown(document);
    }

    function showMissing(part) {
        part.querySelectorAll(".pgperf-chart").forEach((box) => {
            box.querySelector("canvas").hidden = true;
            box.querySelector(".missing").hidden = false;
        });
    }

    /* Charts come first: the tables are one click away. Without charts and scripts they are open. */
    function fold(details) {
        details.open = false;
        details.addEventListener("toggle", () => details.open && drawShown(details));
    }

    function foldAll(part) {
        part.querySelectorAll("details[data-fold]").forEach(fold);
    }

    /* For parts that come later. */
    pgperf.prepareCharts = typeof Chart === "undefined" ? showMissing : foldAll;
    pgperf.prepareCharts(document);
    if (typeof Chart !== "undefined") {
        pgperf.drawShown = drawShown;
        drawAll();
        pgperf.onThemeChange(drawAll);
    }
})();
