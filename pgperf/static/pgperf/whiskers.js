/* Chart.js plug-ins: interval whiskers, values inside segments, values at the ends of bars, percentile ranges, the axis
   above many rows, the knee of a curve. */
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

    /* A bar at the end of a whisker, or an arrow head if the whisker extends beyond the chart: `along` it between
       `first` and `last`, `across` it. `at` makes a point of the two. */
    function cap(ctx, at, along, across, first, last) {
        const edge = Math.min(Math.max(along, first), last);
        const back = Math.sign(edge - along) * CAP;
        ctx.moveTo(...at(edge + back, across - CAP));
        ctx.lineTo(...at(edge, back ? across : across + CAP));
        if (back) {
            ctx.lineTo(...at(edge + back, across + CAP));
        }
    }

    /* A whisker from `low` to `high`, cut where it leaves the chart. */
    function whisker(ctx, at, low, high, across, first, last) {
        const [begin, end] = [low, high].map((along) => Math.min(Math.max(along, first), last));
        ctx.beginPath();
        ctx.moveTo(...at(begin, across));
        ctx.lineTo(...at(end, across));
        cap(ctx, at, low, across, first, last);
        cap(ctx, at, high, across, first, last);
        ctx.stroke();
    }

    const lying = (along, across) => [along, across];
    const upright = (along, across) => [across, along];

    /* options.intervals: [low, high] or null for each row; options.offset: px below a row's middle; options.colour;
       options.halo: the colour around a whisker that lies on a bar. */
    pgperf.whiskers = {
        id: "whiskers",
        afterDatasetsDraw(chart, _args, options) {
            const ctx = chart.ctx;
            const area = chart.chartArea;
            const pens = [[options.halo, 4.5], [options.colour, 1.5]].filter(([colour]) => colour);
            ctx.save();
            eachRow(chart, options.intervals, ([low, high], middle) => {
                const y = middle + (options.offset || 0);
                const [left, right] = [low, high].map((value) => chart.scales.x.getPixelForValue(value));
                pens.forEach(([colour, width]) => {
                    ctx.strokeStyle = colour;
                    ctx.lineWidth = width;
                    whisker(ctx, lying, left, right, y, area.left, area.right);
                });
            });
            ctx.restore();
        },
    };

    /* dataset.intervals of a curve: [low, high] or null for each point. */
    pgperf.spans = {
        id: "spans",
        beforeDatasetsDraw(chart) {
            const ctx = chart.ctx;
            const area = chart.chartArea;
            ctx.save();
            chart.data.datasets.forEach((dataset) => {
                ctx.strokeStyle = pgperf.faded(dataset.borderColor, 0.6);
                ctx.lineWidth = 1.5;
                (dataset.intervals || []).forEach((interval, at) => {
                    if (interval) {
                        const x = chart.scales.x.getPixelForValue(dataset.data[at].x);
                        const [low, high] = interval.map((value) => chart.scales.y.getPixelForValue(value));
                        whisker(ctx, upright, low, high, x, area.top, area.bottom);
                    }
                });
            });
            ctx.restore();
        },
    };

    const MARKS = {
        change(ctx, x, {top, bottom}, options) {
            ctx.strokeStyle = options.change;
            ctx.lineWidth = 2;
            ctx.setLineDash([5, 4]);
            ctx.moveTo(x, top);
            ctx.lineTo(x, bottom);
        },
        environment(ctx, x, {bottom}, _options, room) {
            const half = Math.max(0.5, Math.min(6, room / 2 - 1.5));
            ctx.moveTo(x - half, bottom);
            ctx.lineTo(x, bottom - 10);
            ctx.lineTo(x + half, bottom);
            ctx.fill();
        },
        note(ctx, x, {bottom}, _options, room) {
            const flag = Math.max(0, Math.min(8, room - 4));
            ctx.moveTo(x, flag ? bottom : bottom - 13); // poles without flags stand above the triangles
            ctx.lineTo(x, bottom - 24);
            ctx.lineTo(x + flag, bottom - 20);
            ctx.lineTo(x, bottom - 16);
        },
    };

    /* The places of all marks. `room` is how far the nearest one of its kind is: crowded marks are slim. */
    function placed(scale, marks) {
        return Object.keys(MARKS).flatMap((kind) => {
            const own = marks.filter(({kinds}) => kinds.includes(kind));
            const xs = own.map(({at}) => scale.getPixelForValue(kind === "change" ? at - 0.5 : at));
            const gap = (at) => (at > 0 && at < xs.length ? xs[at] - xs[at - 1] : Infinity);
            return xs.map((x, at) => ({kind, x, room: Math.min(gap(at), gap(at + 1))}));
        });
    }

    /* options.marks: {at, kinds} of what happened in a run. A new level begins between two runs. */
    pgperf.happened = {
        id: "happened",
        beforeDatasetsDraw(chart, _args, options) {
            const ctx = chart.ctx;
            placed(chart.scales.x, options.marks || []).forEach(({kind, x, room}) => {
                ctx.save();
                ctx.strokeStyle = ctx.fillStyle = options.other;
                ctx.lineWidth = Math.min(1.5, room / 3);
                ctx.beginPath();
                MARKS[kind](ctx, x, chart.chartArea, options, room);
                ctx.stroke();
                ctx.restore();
            });
        },
    };

    /* options.texts: one for each row, drawn right of options.tops (data values), in options.colour; no line of the grid
       goes through them. */
    pgperf.ends = {
        id: "ends",
        afterDatasetsDraw(chart, _args, options) {
            const ctx = chart.ctx;
            ctx.save();
            ctx.font = options.font;
            ctx.textBaseline = "middle";
            eachRow(chart, options.texts, (text, y, row) => {
                const x = Math.min(chart.scales.x.getPixelForValue(options.tops[row]), chart.chartArea.right) + 8;
                ctx.fillStyle = options.background;
                ctx.fillRect(x - 2, y - 8, ctx.measureText(text).width + 4, 16);
                ctx.fillStyle = options.colour;
                ctx.fillText(text, x, y);
            });
            ctx.restore();
        },
    };

    /* The values of the axis at the bottom, above the rows too. */
    pgperf.topAxis = {
        id: "topAxis",
        afterDraw(chart, _args, options) {
            if (!options.isShown) {
                return;
            }
            const ctx = chart.ctx;
            ctx.save();
            ctx.fillStyle = options.colour;
            ctx.font = options.font;
            ctx.textAlign = "center";
            ctx.textBaseline = "bottom";
            chart.scales.x.ticks.forEach(({value, label}) => {
                ctx.fillText(label, chart.scales.x.getPixelForValue(value), chart.chartArea.top - 3);
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

    /* dataset.marks: a value or null for each row, drawn as a diamond over its bar or dot, in dataset.markColour. */
    pgperf.marks = {
        id: "marks",
        afterDatasetsDraw(chart, _args, options) {
            const ctx = chart.ctx;
            ctx.save();
            ctx.lineWidth = 2;
            ctx.fillStyle = options.background;
            chart.data.datasets.forEach((dataset, index) => {
                ctx.strokeStyle = dataset.markColour;
                (dataset.marks || []).forEach((value, row) => {
                    if (value !== null) {
                        diamond(ctx, chart.scales.x.getPixelForValue(value), chart.getDatasetMeta(index).data[row].y);
                    }
                });
            });
            ctx.restore();
        },
    };

    function diamond(ctx, x, y) {
        ctx.beginPath();
        [[0, -CAP], [CAP, 0], [0, CAP], [-CAP, 0]].forEach(([right, down]) => ctx.lineTo(x + right, y + down));
        ctx.closePath();
        ctx.fill();
        ctx.stroke();
    }

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

    /* A dashed line at the value between both ends of options.interval, which is a band, and one at options.limit. */
    pgperf.knee = {
        id: "knee",
        beforeDatasetsDraw(chart, _args, options) {
            if (!options.interval) {
                return;
            }
            const ctx = chart.ctx;
            const {left, right, top, bottom} = chart.chartArea;
            const within = (value) => Math.min(Math.max(chart.scales.x.getPixelForValue(value), left), right);
            const dashed = (...[x1, y1, x2, y2]) => {
                ctx.beginPath();
                ctx.moveTo(x1, y1);
                ctx.lineTo(x2, y2);
                ctx.stroke();
            };
            const [low, found, high] = options.interval.map((value) => (value === null ? null : within(value)));
            ctx.save();
            ctx.strokeStyle = ctx.fillStyle = options.colour;
            if (low !== null) {
                ctx.globalAlpha = 0.15;
                ctx.fillRect(low, top, high - low, bottom - top);
                ctx.globalAlpha = 1;
            }
            ctx.setLineDash([4, 4]);
            if (found !== null) {
                dashed(found, top, found, bottom);
            }
            const limit = chart.scales.y.getPixelForValue(options.limit);
            dashed(left, limit, right, limit);
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
            ctx.globalAlpha = 0.5;
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
