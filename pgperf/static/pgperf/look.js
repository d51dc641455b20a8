/* Shows a worker's look at its machine as soon as there is one. */
"use strict";
(function () {
    const EVERY_MS = 2000;
    const shown = document.getElementById("pgperf-outlook");
    const isWaiting = () => shown && "waiting" in shown.dataset;

    /* Parsed by the request: Trusted Types would refuse a parser of text. */
    function load(address, loaded) {
        const request = new XMLHttpRequest();
        request.open("GET", address);
        request.responseType = "document";
        request.addEventListener("loadend", () => loaded(request.status === 200 && request.response));
        request.send();
    }

    function refresh() {
        load(shown.dataset.waiting, (page) => {
            const newer = page && page.getElementById("pgperf-outlook");
            if (newer && !("waiting" in newer.dataset)) {
                show(page, newer);
            }
            follow(); // the next try may succeed
        });
    }

    function show(page, newer) {
        delete shown.dataset.waiting;
        shown.replaceChildren(...document.importNode(newer, true).childNodes);
        const button = document.querySelector("button[name=look]");
        const again = page.querySelector("button[name=look]");
        if (button && again) {
            button.disabled = again.disabled;
        }
    }

    function follow() {
        if (isWaiting()) {
            setTimeout(refresh, EVERY_MS);
        }
    }
    follow();
})();
