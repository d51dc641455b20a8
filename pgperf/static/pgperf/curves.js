/* Charts of curves: `lines`, for example over clients, and `area` for parts of a whole. */
"use strict";
(function () {
    const pgperf = (window.pgperf = window.pgperf || {});
    const format = pgperf.format;
    const DASHES = [[], [6, 4], [2, 3], [10, 3, 2, 3]];
    const HEIGHT = 280;

    const KINDS = {lines, area};

    /* On a logarithmic axis each doubling has the same width. */
    const place = (chart, x) => (chart.x_log ? Math.log2(x) : x);
    const points = (chart, values) => chart.x.map((x, at) => ({x: place(chart, x), y: values[at]}));

    function lines(chart, theme) {
        return chart.series.map((series) => ({
            label: series.name,
            data: points(chart, series.values),
            spanGaps: true,
            borderColor: pgperf.colour(series.colour),
            borderDash: DASHES[series.shape % DASHES.length],
            borderWidth: 2,
            pointStyle: pgperf.shape(series.shape),
            pointRadius: 5,
            pointHoverRadius: 7,
            pointBackgroundColor: pgperf.colour(series.colour),
            pointBorderColor: theme.background,
            intervals: series.intervals,
        }));
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
                min: chart.x_min ?? place(chart, chart.x[0]),
                max: place(chart, chart.x[chart.x.length - 1]),
                title: {display: true, text: chart.x_axis, color: theme.quiet},
                afterBuildTicks: chart.x_log ? (axis) => { axis.ticks = chart.x.map((x) => ({value: place(chart, x)})); } : undefined,
                ticks: {...ticks, autoSkip: true, includeBounds: chart.x_min === undefined, callback: (value) => format(chart.x_log ? 2 ** value : value)},
            },
            y: {
                ...common,
                type: chart.log ? "logarithmic" : "linear",
                beginAtZero: !chart.log,
                stacked: chart.kind === "area",
                max: chart.max,
                suggestedMax: chart.series.some((series) => series.intervals) ? reach(chart) : undefined,
                title: {display: true, text: chart.axis, color: theme.quiet},
                ticks: {...ticks, callback: chart.log ? pgperf.roundPowers : format},
            },
        };
    }

    function tooltip(chart) {
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
                plugins: {legend: {display: false}, tooltip: tooltip(chart), filler: {propagate: false}},
            },
            plugins: [pgperf.spans],
        };
    }

    pgperf.curves = {
        kinds: Object.keys(KINDS),
        configuration,
        height: () => HEIGHT,
        shapes: (chart) => (chart.kind === "lines" ? chart.series.map((series) => pgperf.shape(series.shape)) : []),
    };
})();
