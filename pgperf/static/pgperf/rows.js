/* Charts of rows, each a horizontal bar or a line of dots: turns the data of reports/ into Chart.js options. */
"use strict";
(function () {
    const pgperf = (window.pgperf = window.pgperf || {});
    const BAR = 22;
    const LABEL_SHARE = 0.42; // Chart.js clips labels that take more than half of a chart
    const MANY = 10; // rows; of more, the axis at the bottom may be out of sight
    const TOP_AXIS = 18;
    const format = pgperf.format;

    /* Each returns datasets and plug-in options; `configuration` adds the rest. */
    const KINDS = {stack, ladder, bars, groups, dots, forest};

    function stack(chart, theme) {
        const total = (row) => chart.series.reduce((sum, series) => sum + Math.max(series.values[row] || 0, 0), 0);
        const tops = chart.rows.map((_row, row) => Math.max(total(row), ((chart.whiskers || [])[row] || [0, 0])[1]));
        return {
            datasets: chart.series.map((series) => ({
                label: series.name,
                data: series.values,
                backgroundColor: pgperf.colour(series.colour),
                borderColor: theme.background,
                borderWidth: {left: 0, right: 1},
                borderSkipped: false,
            })),
            stacked: true,
            max: chart.max,
            tops,
            segments: true,
        };
    }

    /* A step that saves time is hollow: it leads from the end of the rung below back to its own. */
    function ladder(chart, theme) {
        const carried = Number(pgperf.css("--pgperf-carried"));
        const base = (step) => (chart.stands_on[step] < 0 ? 0 : chart.values[chart.stands_on[step]]);
        const saves = (step) => chart.values[step] < base(step);
        const colour = (step) => pgperf.colour(chart.colours[step]);
        return {
            datasets: chart.values.map((_value, step) => ({
                label: chart.rows[step].join(" · "),
                data: chart.rows.map((_row, row) => piece(chart, base(step), row, step)),
                backgroundColor: chart.rows.map((_row, row) => (row === step && !saves(step) ? colour(step) : pgperf.faded(colour(step), row === step ? 0.1 : carried))),
                borderColor: saves(step) ? colour(step) : theme.background,
                borderWidth: saves(step) ? 2 : {left: 0, right: 1},
                borderSkipped: false,
                grouped: false,
            })),
            max: chart.max,
            tops: chart.values.map((value, row) => Math.max(value, base(row), (chart.whiskers[row] || [0, 0])[1])),
            tooltip: (item) => " " + item.dataset.label + ": " + format(chart.values[item.datasetIndex] - base(item.datasetIndex)) + " " + chart.unit,
        };
    }

    /* A rung in its own row, or what later rungs leave of it in the row of one that stands on it. */
    function piece(chart, base, row, step) {
        if (row === step) return [base, chart.values[step]];
        const end = least(chart, row, step);
        return end > base ? [base, end] : null;
    }

    /* The shortest time from a rung up to the one of a row; none if that does not stand on it. */
    function least(chart, row, step) {
        if (row < 0) return -Infinity;
        return Math.min(chart.values[row], row === step ? Infinity : least(chart, chart.stands_on[row], step));
    }

    function bars(chart) {
        const tops = chart.values.map((value, row) => Math.max(value || 0, chart.line || 0, ((chart.whiskers || [])[row] || [0, 0])[1]));
        return {
            datasets: [{data: chart.values, backgroundColor: chart.colours.map(pgperf.colour), base: chart.line}],
            ...fromLine(chart, chart.values.concat((chart.whiskers || []).flat())),
            max: chart.whiskers ? Math.max(...tops) : undefined,
            tops,
            tooltip: (item) => format(item.raw),
        };
    }

    /* Bars of ratios begin at the line of no change, and so does their axis, unless a value lies below it. */
    function fromLine(chart, values) {
        if (chart.line === undefined) return {};
        const least = Math.min(chart.line, ...values.filter((value) => value !== null && value !== undefined));
        return least < chart.line ? {min: least} : {begin: chart.line};
    }

    /* For each row a bar for each series, side by side. */
    function groups(chart, theme) {
        return {
            datasets: chart.series.map((series) => ({
                label: series.name,
                data: series.values,
                marks: series.marks,
                markColour: theme.text,
                backgroundColor: pgperf.tinted(series),
                borderColor: pgperf.colour(series.colour),
                borderWidth: series.tint ? 1 : 0,
                base: chart.line,
                barPercentage: 0.9,
                categoryPercentage: 0.85,
            })),
            ...fromLine(chart, chart.series.flatMap((series) => series.values).concat(marksOf(chart))),
            max: Math.max(...marksOf(chart)),
        };
    }

    /* The values of the overlay of a chart: some, none without one. */
    const marksOf = (chart) => chart.series.flatMap((series) => series.marks || []).filter((value) => value !== null);

    /* The lines of each row's label: those of the data, broken at their dots where they are too long. */
    function labels(chart, canvas) {
        const [ctx, font] = [canvas.getContext("2d"), pgperf.FONT_SIZE + "px " + pgperf.theme().font];
        const room = (canvas.parentElement.clientWidth - endWidth(chart.ends, canvas, font)) * LABEL_SHARE;
        ctx.font = font;
        const fits = (text) => room <= 0 || ctx.measureText(text).width <= room;
        return chart.rows.map((lines) => lines.flatMap((line) => broken(line, fits)));
    }

    const broken = (line, fits) => filled(line.split(" · ").flatMap((part) => words(part, fits)), " · ", fits);

    /* A part that is wider than a line: its words, each line as long as fits. */
    function words(part, fits) {
        if (fits(part)) return [part];
        const found = part.match(/[^-_./ ]*[-_./ ]*/g).filter(Boolean);
        return filled(found.map((word) => shortened(word, fits)), "", fits);
    }

    /* The pieces, as many in a line as fit. */
    function filled(pieces, between, fits) {
        const lines = [];
        pieces.forEach((piece) => {
            const longer = lines.length ? lines[lines.length - 1] + between + piece : piece;
            if (lines.length && fits(longer)) {
                lines[lines.length - 1] = longer;
            } else {
                lines.push(piece);
            }
        });
        return lines;
    }

    function shortened(word, fits) {
        let length = word.length;
        while (length > 1 && !fits(word.slice(0, length) + "…")) length -= 1;
        return fits(word) ? word : word.slice(0, length) + "…";
    }

    /* Are whiskers below the bars? There they hide no values inside segments, and no segment hides them. */
    const areBelow = (chart) => ["stack", "ladder"].includes(chart.kind) && (chart.whiskers || []).some(Boolean);

    const aboveRows = (chart) => (chart.rows.length > MANY ? TOP_AXIS : 0);

    const rowHeight = (chart, canvas) => {
        const most = Math.max(1, ...labels(chart, canvas).map((lines) => lines.length));
        const lines = Math.max(areBelow(chart) ? BAR + 18 : BAR + 6, 10 + 14 * most);
        return chart.kind === "groups" ? Math.max(lines, chart.series.length * 14 + 12) : lines;
    };

    function dots(chart, theme) {
        const known = (row) => chart.series.map((series) => series.values[row]).filter((value) => value > 0);
        return {
            type: "line",
            datasets: chart.series.map((series, index) => ({
                label: series.name,
                data: series.values,
                marks: series.marks,
                markColour: pgperf.colour(series.colour),
                showLine: false,
                pointStyle: pgperf.shape(index),
                pointRadius: 6,
                pointHoverRadius: 8,
                backgroundColor: pgperf.colour(series.colour),
                borderColor: theme.background,
                borderWidth: 1,
            })),
            logarithmic: true,
            min: Math.min(...marksOf(chart)),
            max: Math.max(...marksOf(chart)),
            ranges: chart.rows.map((_row, row) => [Math.min(...known(row)), Math.max(...known(row))]),
        };
    }

    /* A dot on its interval for each row, and a line at the value that means "no change": 1 of ratios, 0 of differences.
       Each side of the line is as long as its own values and intervals, but at most twice as long as the farthest value. */
    function forest(chart, theme) {
        const ends = chart.values.map((value, row) => chart.whiskers[row] || [value, value]);
        const all = [chart.line, ...chart.values, ...ends.flat()];
        const reach = Math.max(0.02, ...all.map((value) => Math.abs(value - chart.line)));
        const shown = Math.min(reach, 2 * Math.max(0.02, ...chart.values.map((value) => Math.abs(value - chart.line))));
        const low = Math.max(Math.min(...all), chart.line - shown) - 0.1 * shown;
        return {
            type: "line",
            datasets: [{
                label: chart.axis,
                data: chart.values,
                showLine: false,
                pointRadius: 6,
                pointHoverRadius: 8,
                backgroundColor: chart.colours.map(pgperf.colour),
                borderColor: theme.background,
                borderWidth: 1,
            }],
            min: chart.line ? Math.max(0, low) : low, // a ratio is never negative
            max: Math.min(Math.max(...all), chart.line + shown) + 0.1 * shown,
            tops: chart.values.map((value, row) => Math.max(value, ends[row][1])),
            tooltip: (item) => " " + format(item.raw) + "  [" + ends[item.dataIndex].map((end) => format(end)).join(", ") + "]",
        };
    }

    const finite = (value) => (Number.isFinite(value) ? value : undefined);

    function axes(chart, made, theme) {
        const numbers = {
            type: made.logarithmic ? "logarithmic" : "linear",
            beginAtZero: !made.logarithmic && made.min === undefined && made.begin === undefined,
            min: made.begin,
            suggestedMin: finite(made.min),
            suggestedMax: finite(made.max),
            max: chart.max === 100 ? 100 : undefined, // a sum of percentages may be a hair more
            stacked: Boolean(made.stacked),
            title: {display: true, text: chart.axis, color: theme.quiet},
            grid: {color: theme.grid},
            border: {color: theme.border},
            ticks: {
                color: theme.quiet,
                maxRotation: 0,
                autoSkipPadding: made.type === "line" ? 3 : 12, // of dots, skipping would drop the line of no change
                callback: made.logarithmic ? pgperf.roundPowers : format,
            },
        };
        const names = {
            type: "category",
            offset: true,
            stacked: Boolean(made.stacked),
            grid: {display: false},
            border: {color: theme.border},
            ticks: {color: theme.text, autoSkip: false, crossAlign: "far", font: {size: pgperf.FONT_SIZE}},
        };
        return {x: numbers, y: names};
    }

    function plugins(chart, made, theme, font) {
        const options = {
            legend: {display: false},
            tooltip: {callbacks: {title: (items) => chart.rows[items[0].dataIndex].join(" · "), label: made.tooltip || labelled}},
            whiskers: {
                intervals: chart.whiskers,
                offset: areBelow(chart) ? BAR / 2 + 4 : 0,
                colour: theme.text,
                halo: chart.kind === "bars" ? theme.background : "",
            },
            ends: {texts: chart.ends, tops: made.tops, colour: theme.text, background: theme.background, font},
            ranges: {ranges: made.ranges, colour: theme.quiet},
            line: {at: chart.line, colour: theme.quiet},
            marks: {background: theme.background},
            topAxis: {isShown: aboveRows(chart) > 0, colour: theme.quiet, font},
        };
        options.segments = made.segments ? {format, font} : false;
        return options;
    }

    function labelled(item) {
        const mark = (item.dataset.marks || [])[item.dataIndex] ?? null;
        const value = item.raw === null ? "–" : format(item.raw);
        return " " + item.dataset.label + ": " + value + (mark === null ? "" : " (◇ " + format(mark) + ")");
    }

    function configuration(chart, canvas) {
        const theme = pgperf.theme();
        const made = KINDS[chart.kind](chart, theme);
        const font = pgperf.FONT_SIZE + "px " + theme.font;
        return {
            type: made.type || "bar",
            data: {labels: labels(chart, canvas).map((lines) => (lines.length > 1 ? lines : lines[0])), datasets: made.datasets},
            options: {
                indexAxis: "y",
                animation: false,
                responsive: true,
                maintainAspectRatio: false,
                maxBarThickness: BAR,
                layout: {padding: {right: endWidth(chart.ends, canvas, font), top: aboveRows(chart)}},
                interaction: {mode: made.type === "line" ? "y" : "nearest", intersect: made.type !== "line"},
                scales: axes(chart, made, theme),
                plugins: plugins(chart, made, theme, font),
            },
            plugins: [pgperf.ranges, pgperf.line, pgperf.segments, pgperf.whiskers, pgperf.ends, pgperf.marks, pgperf.topAxis],
        };
    }

    /* Space for the texts at the ends of the bars: the longest bar may have the longest text. */
    function endWidth(ends, canvas, font) {
        const ctx = canvas.getContext("2d");
        ctx.font = font;
        return Math.ceil(Math.max(0, ...(ends || []).map((text) => ctx.measureText(text).width))) + 16;
    }

    pgperf.rows = {
        kinds: Object.keys(KINDS),
        configuration,
        height: (chart, canvas) => chart.rows.length * rowHeight(chart, canvas) + 62 + aboveRows(chart),
        shapes: (chart) => (chart.kind === "dots" ? chart.series.map((_series, index) => pgperf.shape(index)) : []),
    };
})();
