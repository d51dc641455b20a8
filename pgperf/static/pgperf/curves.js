/* Charts of curves: `lines`, for example over clients, `knee` with the highest rate that holds a limit, `area` for parts
   of a whole, and `history` over runs. */
"use strict";
(function () {
    const pgperf = (window.pgperf = window.pgperf || {});
    const format = pgperf.format;
    const DASHES = [[], [6, 4], [2, 3], [10, 3, 2, 3]];
    const HEIGHT = 280;
    const BESIDE = 90; // px, more than the y axis of most charts takes

    const KINDS = {lines, knee: lines, area, history};

    /* On a logarithmic axis each doubling has the same width. */
    const place = (chart, x) => (chart.x_log ? Math.log2(x) : x);
    const points = (chart, values) => chart.x.map((x, at) => ({x: place(chart, x), y: values[at]}));

    function lines(chart, theme) {
        return chart.series.map((series) => ({
            label: series.name,
            data: points(chart, series.values),
            spanGaps: true,
            borderColor: pgperf.tinted(series),
            borderDash: DASHES[series.shape % DASHES.length],
            borderWidth: 2,
            pointStyle: pgperf.shape(series.shape),
            pointRadius: 5,
            pointHoverRadius: 7,
            pointBackgroundColor: pgperf.tinted(series),
            pointBorderColor: theme.background,
            intervals: series.intervals,
        }));
    }

    /* Of many runs the points are dots, which show a run between two without a value; of a crowd, the line is faint, so
       that the levels stand out. Those of `hollow` runs stay rings. */
    function history(chart, theme) {
        const many = chart.x.length > 60, crowd = chart.x.length > 300;
        return lines(chart, theme).map((curve, at) => (chart.series[at].is_level ? level(curve, theme, many) : {
            ...curve,
            spanGaps: false,
            borderColor: crowd ? pgperf.faded(curve.borderColor, 0.5) : curve.borderColor,
            borderWidth: crowd ? 1 : 1.5,
            pointRadius: chart.hollow.map((hollow) => (many ? (hollow ? 3 : 1) : hollow ? 4 : 3)),
            pointBorderWidth: chart.hollow.map((hollow) => (many ? (hollow ? 1.5 : 0) : hollow ? 2 : 1)),
            pointBorderColor: chart.hollow.map((hollow) => (hollow ? curve.borderColor : theme.background)),
            pointBackgroundColor: chart.hollow.map((hollow) => (hollow ? theme.background : curve.borderColor)),
            pointHitRadius: 8,
            pointHoverRadius: 5,
        }));
    }

    /* The median between two changes: a broad line behind the runs, and a thin one over many, which would hide it. */
    function level(curve, theme, many) {
        const hidden = {pointRadius: 0, pointHitRadius: 0, pointHoverRadius: 0};
        const line = many ? {borderColor: theme.text, borderWidth: 1.5, order: -1} : {borderColor: theme.quiet, borderWidth: 3, order: 1};
        return {...curve, ...hidden, ...line, stepped: "middle"};
    }

    function area(chart, theme) {
        return chart.series.map((series, index) => ({
            label: series.name,
            data: points(chart, series.values),
            fill: index ? "-1" : "origin",
            backgroundColor: pgperf.colour(series.colour),
            borderColor: theme.background,
            borderWidth: 1,
            pointRadius: 0,
            pointHitRadius: 8,
        }));
    }

    /* The end of the longest interval, at most twice the highest point. */
    function reach(chart) {
        const highs = chart.series.flatMap((series) => (series.intervals || []).filter(Boolean).map(([, high]) => high));
        return Math.min(Math.max(...highs), 2 * Math.max(...chart.series.flatMap((series) => series.values)));
    }

    /* Both ends of the x axis. Runs stand half a place from them, so that one run has a place too. */
    function ends(chart) {
        const [first, last] = [chart.x_min ?? place(chart, chart.x[0]), place(chart, chart.x[chart.x.length - 1])];
        return chart.ticks ? {min: first - 0.5, max: last + 0.5} : {min: first, max: last};
    }

    /* The newest run, and each run a fixed number of runs before another one, as many as have room for their numbers:
       the same in charts of the same width. */
    function runTicks(axis, chart) {
        const last = chart.ticks.length - 1;
        axis.ctx.font = pgperf.FONT_SIZE + "px " + pgperf.theme().font;
        const label = Math.max(...[0, last].map((at) => axis.ctx.measureText(named(chart, at)).width)) + 20;
        const gaps = Math.max(1, Math.floor((axis.chart.width - BESIDE) / label) - 1);
        const step = Math.max(1, Math.ceil(last / gaps));
        axis.ticks = Array.from({length: Math.floor(last / step) + 1}, (_, at) => ({value: (last % step) + at * step}));
    }

    /* The ticks of the x axis where Chart.js does not choose them. */
    function xTicks(chart) {
        if (chart.x_log) return (axis) => { axis.ticks = chart.x.map((x) => ({value: place(chart, x)})); };
        return chart.ticks ? (axis) => runTicks(axis, chart) : undefined;
    }

    function axes(chart, theme) {
        const common = {
            grid: {color: theme.grid},
            border: {color: theme.border},
        };
        const ticks = {color: theme.quiet, maxRotation: 0};
        return {
            x: {
                ...common,
                type: "linear",
                ...ends(chart),
                title: {display: true, text: chart.x_axis, color: theme.quiet},
                afterBuildTicks: xTicks(chart),
                ticks: {...ticks, autoSkip: !chart.ticks, includeBounds: chart.x_min === undefined && !chart.ticks, callback: (value) => named(chart, value)},
            },
            y: {
                ...common,
                type: chart.log ? "logarithmic" : "linear",
                beginAtZero: !chart.log,
                stacked: chart.kind === "area",
                max: chart.max,
                suggestedMin: chart.limit,
                suggestedMax: chart.series.some((series) => series.intervals) ? reach(chart) : chart.limit,
                title: {display: true, text: chart.axis, color: theme.quiet},
                ticks: {...ticks, callback: chart.log ? pgperf.roundPowers : format},
            },
        };
    }

    /* A place on the x axis as its label: the number of a run, or the value itself. */
    function named(chart, value) {
        return chart.ticks ? "#" + (chart.ticks[value] ?? "") : format(chart.x_log ? 2 ** value : value);
    }

    function happened(chart, at) {
        return (chart.happened || []).filter((mark) => mark.at === at).flatMap((mark) => mark.texts);
    }

    function told(chart, item) {
        const series = chart.series[item.datasetIndex], value = item.raw.y === null ? "–" : format(item.raw.y);
        return series.is_level ? series.name + ": " + value : value;
    }

    function tooltip(chart) {
        if (chart.ticks) {
            return {
                callbacks: {
                    title: (items) => ["#" + chart.ticks[items[0].dataIndex] + ", " + chart.titles[items[0].dataIndex]],
                    label: (item) => " " + told(chart, item) + " " + chart.axis,
                    afterBody: (items) => happened(chart, items[0].dataIndex),
                },
            };
        }
        const unit = chart.x_axis;
        return {
            callbacks: {
                title: (items) => [format(chart.x[items[0].dataIndex]) + " " + unit, (chart.titles || [])[items[0].dataIndex]].filter(Boolean),
                label: (item) => " " + item.dataset.label + ": " + (item.raw.y === null ? "–" : format(item.raw.y)),
            },
        };
    }

    function configuration(chart) {
        const theme = pgperf.theme();
        return {
            type: "line",
            data: {datasets: KINDS[chart.kind](chart, theme)},
            options: {
                animation: false,
                responsive: true,
                maintainAspectRatio: false,
                clip: chart.kind === "area" ? undefined : false,
                layout: {padding: {right: 12, top: 8}},
                interaction: {mode: "index", intersect: false},
                scales: axes(chart, theme),
                plugins: {
                    legend: {display: false},
                    tooltip: tooltip(chart),
                    filler: {propagate: false},
                    knee: {interval: chart.knee, limit: chart.limit, colour: theme.quiet},
                    happened: {marks: chart.happened, change: theme.change, other: theme.quiet},
                },
            },
            plugins: [pgperf.spans, pgperf.happened, pgperf.knee],
        };
    }

    pgperf.curves = {
        kinds: Object.keys(KINDS),
        configuration,
        height: () => HEIGHT,
        shapes: (chart) => (chart.kind !== "area" ? chart.series.map((series) => pgperf.shape(series.shape)) : []),
    };
})();
