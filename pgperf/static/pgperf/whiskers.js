/* Chart.js plug-ins: interval whiskers, values inside segments, values at the ends of bars, percentile ranges. */
"use strict";
(function () {
    const pgperf = (window.pgperf = window.pgperf || {});
    const CAP = 5;

    function eachRow(chart, values, draw) {
        (values || []).forEach((value, row) => {
            if (value !== null && value !== undefined && value !== "") {
                draw(value, chart.scales.y.getPixelForValue(row), row);
            }
        });
    }

    /* options.intervals: [low, high] or null for each row; options.colour. */
    pgperf.whiskers = {
        id: "whiskers",
        afterDatasetsDraw(chart, _args, options) {
            const ctx = chart.ctx;
            ctx.save();
            ctx.strokeStyle = options.colour;
            ctx.lineWidth = 1.5;
            eachRow(chart, options.intervals, ([low, high], y) => {
                const [left, right] = [low, high].map((value) => chart.scales.x.getPixelForValue(value));
                ctx.beginPath();
                ctx.moveTo(left, y);
                ctx.lineTo(right, y);
                [left, right].forEach((x) => {
                    ctx.moveTo(x, y - CAP);
                    ctx.lineTo(x, y + CAP);
                });
                ctx.stroke();
            });
            ctx.restore();
        },
    };

    /* options.texts: one for each row, drawn right of options.tops (data values); options.colour. */
    pgperf.ends = {
        id: "ends",
        afterDatasetsDraw(chart, _args, options) {
            const ctx = chart.ctx;
            ctx.save();
            ctx.fillStyle = options.colour;
            ctx.font = options.font;
            ctx.textBaseline = "middle";
            eachRow(chart, options.texts, (text, y, row) => {
                ctx.fillText(text, chart.scales.x.getPixelForValue(options.tops[row]) + 8, y);
            });
            ctx.restore();
        },
    };

    /* The value of each segment inside it, where it fits. */
    pgperf.segments = {
        id: "segments",
        afterDatasetsDraw(chart, _args, options) {
            const ctx = chart.ctx;
            ctx.save();
            ctx.font = options.font;
            ctx.textAlign = "center";
            ctx.textBaseline = "middle";
            chart.data.datasets.forEach((dataset, index) => {
                if (!chart.isDatasetVisible(index)) {
                    return;
                }
                ctx.fillStyle = pgperf.inkOn(dataset.backgroundColor);
                chart.getDatasetMeta(index).data.forEach((bar, row) => {
                    const value = dataset.data[row];
                    const text = value === null || value === undefined ? "" : options.format(value);
                    if (text && ctx.measureText(text).width + 8 < Math.abs(bar.x - bar.base)) {
                        ctx.fillText(text, (bar.x + bar.base) / 2, bar.y + 1);
                    }
                });
            });
            ctx.restore();
        },
    };

    /* A thin line from each row's smallest to its largest dot. */
    pgperf.ranges = {
        id: "ranges",
        beforeDatasetsDraw(chart, _args, options) {
            const ctx = chart.ctx;
            ctx.save();
            ctx.strokeStyle = options.colour;
            ctx.lineWidth = 2;
            eachRow(chart, options.ranges, ([low, high], y) => {
                ctx.beginPath();
                ctx.moveTo(chart.scales.x.getPixelForValue(low), y);
                ctx.lineTo(chart.scales.x.getPixelForValue(high), y);
                ctx.stroke();
            });
            ctx.restore();
        },
    };
})();
