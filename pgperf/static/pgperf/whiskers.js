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

    /* A bar at the end of a whisker, or an arrow head if the whisker extends beyond the chart. */
    function cap(ctx, x, y, area) {
        const edge = Math.min(Math.max(x, area.left), area.right);
        const back = Math.sign(edge - x) * CAP;
        ctx.moveTo(edge + back, y - CAP);
        ctx.lineTo(edge, back ? y : y + CAP);
        if (back) {
            ctx.lineTo(edge + back, y + CAP);
        }
    }

    /* options.intervals: [low, high] or null for each row; options.offset: px below a row's middle; options.colour. */
    pgperf.whiskers = {
        id: "whiskers",
        afterDatasetsDraw(chart, _args, options) {
            const ctx = chart.ctx;
            ctx.save();
            ctx.strokeStyle = options.colour;
            ctx.lineWidth = 1.5;
            const area = chart.chartArea;
            eachRow(chart, options.intervals, ([low, high], middle) => {
                const y = middle + (options.offset || 0);
                const [left, right] = [low, high].map((value) => chart.scales.x.getPixelForValue(value));
                ctx.beginPath();
                ctx.moveTo(Math.max(left, area.left), y);
                ctx.lineTo(Math.min(right, area.right), y);
                cap(ctx, left, y, area);
                cap(ctx, right, y, area);
                ctx.stroke();
            });
            ctx.restore();
        },
    };

    /* dataset.intervals of a curve: [low, high] or null for each point, clipped to the chart. */
    pgperf.spans = {
        id: "spans",
        beforeDatasetsDraw(chart) {
            const ctx = chart.ctx;
            const area = chart.chartArea;
            ctx.save();
            ctx.beginPath();
            ctx.rect(area.left - CAP, area.top, area.width + 2 * CAP, area.height);
            ctx.clip();
            chart.data.datasets.forEach((dataset) => {
                ctx.strokeStyle = pgperf.faded(dataset.borderColor, 0.6);
                ctx.lineWidth = 1.5;
                (dataset.intervals || []).forEach((interval, at) => {
                    if (interval) {
                        const x = chart.scales.x.getPixelForValue(dataset.data[at].x);
                        const [low, high] = interval.map((value) => chart.scales.y.getPixelForValue(value));
                        ctx.beginPath();
                        [low, high].forEach((y) => { ctx.moveTo(x - CAP, y); ctx.lineTo(x + CAP, y); });
                        ctx.moveTo(x, low);
                        ctx.lineTo(x, high);
                        ctx.stroke();
                    }
                });
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
                ctx.fillText(text, Math.min(chart.scales.x.getPixelForValue(options.tops[row]), chart.chartArea.right) + 8, y);
            });
            ctx.restore();
        },
    };

    /* The value of each segment, drawn inside if it fits. */
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

    /* A dashed line from top to bottom at options.at. */
    pgperf.line = {
        id: "line",
        beforeDatasetsDraw(chart, _args, options) {
            if (options.at === undefined) {
                return;
            }
            const ctx = chart.ctx;
            const x = chart.scales.x.getPixelForValue(options.at);
            ctx.save();
            ctx.strokeStyle = options.colour;
            ctx.setLineDash([4, 4]);
            ctx.beginPath();
            ctx.moveTo(x, chart.chartArea.top);
            ctx.lineTo(x, chart.chartArea.bottom);
            ctx.stroke();
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
