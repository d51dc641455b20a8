/* The page's colours and fonts as the admin's theme has them now, and a call when the theme changes. */
"use strict";
(function () {
    const pgperf = (window.pgperf = window.pgperf || {});

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
            font: getComputedStyle(document.body).fontFamily,
        };
    };

    pgperf.colour = function (name) {
        return pgperf.css("--pgperf-" + name, "--pgperf-layer-other");
    };

    /* "#rrggbb" with an opacity from 0 to 1. */
    pgperf.faded = function (hex, opacity) {
        return hex + Math.round(opacity * 255).toString(16).padStart(2, "0");
    };

    /* Black or white, whichever reads better on "#rrggbb". */
    pgperf.inkOn = function (hex) {
        const [red, green, blue] = [1, 3, 5]
            .map((at) => parseInt(hex.slice(at, at + 2), 16) / 255)
            .map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.2 ? "#000000" : "#ffffff";
    };

    pgperf.onThemeChange = function (callback) {
        new MutationObserver(callback).observe(document.documentElement, {attributeFilter: ["data-theme"]});
        window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", callback);
    };
})();
