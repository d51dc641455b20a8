/* Colours, fonts, shapes and number formats of the admin's current theme, and a callback for its changes. */
"use strict";
(function () {
    const pgperf = (window.pgperf = window.pgperf || {});

    const SHAPES = ["circle", "rect", "triangle", "rectRot"];
    const language = document.documentElement.lang || "en";
    const figure = new Intl.NumberFormat(language, {maximumSignificantDigits: 3});
    const whole = new Intl.NumberFormat(language, {maximumFractionDigits: 0});

    pgperf.FONT_SIZE = 12;
    pgperf.shape = (index) => SHAPES[index % SHAPES.length];

    /* Three significant digits, and the minus sign of the tables. */
    pgperf.format = (value) => (Math.abs(value) >= 100 ? whole : figure).format(value).replace("-", "\u2212");

    /* Ticks at 1, 2 and 5 times each power of ten; more would overlap. */
    pgperf.roundPowers = function (value) {
        const lead = value / 10 ** Math.floor(Math.log10(value) + 1e-9);
        return [1, 2, 5].some((digit) => Math.abs(lead - digit) < 1e-6) ? pgperf.format(value) : null;
    };

    pgperf.css = function (name, otherwise) {
        const value = getComputedStyle(document.documentElement).getPropertyValue(name).trim();
        return value || (otherwise ? pgperf.css(otherwise) : "");
    };

    pgperf.theme = function () {
        return {
            text: pgperf.css("--body-fg"),
            quiet: pgperf.css("--body-quiet-color"),
            background: pgperf.css("--body-bg"),
            grid: pgperf.css("--hairline-color"),
            border: pgperf.css("--border-color"),
            change: pgperf.css("--error-fg"),
            font: getComputedStyle(document.body).fontFamily,
        };
    };

    /* Of {light, dark} or of the name of a CSS variable. */
    pgperf.colour = function (colour) {
        return colour.light
            ? colour[pgperf.css("--pgperf-scheme")] || colour.light
            : pgperf.css("--pgperf-" + colour, "--pgperf-other");
    };

    /* A series' colour, fainter for each earlier series that has it too. */
    pgperf.tinted = (series) => pgperf.faded(pgperf.colour(series.colour), 0.5 ** (series.tint || 0));

    /* "#rrggbb", or one that is faded already, with an opacity from 0 to 1. */
    pgperf.faded = function (hex, opacity) {
        return hex.slice(0, 7) + Math.round(opacity * 255).toString(16).padStart(2, "0");
    };

    /* Black or white, the one with more contrast on "#rrggbb". */
    pgperf.inkOn = function (hex) {
        const [red, green, blue] = [1, 3, 5]
            .map((at) => parseInt(hex.slice(at, at + 2), 16) / 255)
            .map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.18 ? "#000000" : "#ffffff";
    };

    pgperf.onThemeChange = function (callback) {
        new MutationObserver(callback).observe(document.documentElement, {attributeFilter: ["data-theme"]});
        window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", callback);
    };
})();
